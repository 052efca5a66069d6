//! The audit log: calls that changed something or showed payloads, the latest first.

mod filter;
mod table;

use forebay_proto::v1::ListAuditRecordsResponse;
use maud::{Markup, html};

use self::filter::Filter;
use super::super::{
    asked::PageRequest, links::link, live::Live, show::RenderedPage, texts::counted, trouble::Trouble,
};

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let filter = Filter::of(asked)?;
    let mut live = Live::default();
    let answer = asked.ask(filter.request()).await?;
    let list = list(asked, &filter, &answer, &mut live);
    let body = html! {
        h1 { "Audit" @if !asked.is_about_all() { " of " bdi { (asked.namespace()) } } }
        (filter.form())
        (list)
    };
    Ok(RenderedPage::new("Audit", body, live))
}

fn list(
    asked: &PageRequest,
    filter: &Filter<'_>,
    answer: &ListAuditRecordsResponse,
    live: &mut Live,
) -> Markup {
    let is_first = asked.fields.get("page-token").is_empty();
    let is_last = answer.next_page_token.is_empty();
    let clear = link("audit", &[("ns", asked.fields.get("ns"))]);
    html! {
        @if !answer.records.is_empty() {
            (table::make(asked, &answer.records, live))
        } @else if !is_last {
            p.none {
                "None of the " (counted(answer.scanned, "record")) " that were looked at passes the filter. "
                "There are more."
            }
        } @else if !is_first {
            p.none { "There are no more records." }
        } @else if filter.has_all() {
            div.empty {
                p { "No call is written down yet. One that changes something is:" }
                pre { "forebay topic pause mail --for 1m --note 'a try'" }
            }
        } @else {
            div.empty {
                p { "No record passes the filter." }
                p { a href=(clear) { "Clear the filter" } }
            }
        }
        @if !is_first {
            p { a href=(clear) { "The latest records" } }
        }
        @if !is_last {
            p { a rel="next" href=(filter.next(&answer.next_page_token)) { "Next page" } }
        }
    }
}
