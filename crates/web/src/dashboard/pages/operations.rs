//! Changes of many items in a namespace, the latest first.

use forebay_proto::v1::{ListOperationsRequest, Operation, OperationFigures};
use maud::{Markup, html};

use super::{
    super::{
        asked::PageRequest,
        bulk,
        links::{self, link},
        live::Live,
        plot,
        show::RenderedPage,
        table::{self, Head},
        texts::{count, time},
        trouble::Trouble,
    },
    topics::incomplete,
};

/// Operations of a page.
const PAGE_SIZE: u32 = 50;

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    if asked.is_about_all() {
        return Err(Trouble::field("ns", "must name a namespace"));
    }
    let request = ListOperationsRequest {
        namespace: asked.namespace().to_owned(),
        page_size: PAGE_SIZE,
        page_token: asked.fields.get("page-token").to_owned(),
    };
    let answer = asked.ask(request).await?;
    let mut live = Live::default();
    let next = [("ns", asked.namespace()), ("page-token", &answer.next_page_token)];
    let body = html! {
        h1 { "Operations of " bdi { (asked.namespace()) } }
        (incomplete(&answer.incomplete_shards))
        @if answer.operations.is_empty() {
            (nothing(asked))
        } @else {
            (table(asked, &answer.operations, &mut live))
        }
        @if !answer.next_page_token.is_empty() {
            p { a rel="next" href=(link("operations", &next)) { "Next page" } }
        }
    };
    Ok(RenderedPage::new("Operations", body, live))
}

fn nothing(asked: &PageRequest) -> Markup {
    let namespace = bulk::word(asked.namespace());
    html! {
        div.empty {
            p { "No operations. One changes many items of a topic. This counts what it would change:" }
            pre { "forebay dead-letter redrive --dry-run --namespace " (namespace) " mail" }
        }
    }
}

fn table(asked: &PageRequest, operations: &[Operation], live: &mut Live) -> Markup {
    table::list(
        html! {
            (Head::words("operation"))
            (Head::words("topic"))
            (Head::words("state"))
            (Head::words("progress").title("Items that were looked at, of about how many"))
            (Head::number("matched").title("Items that passed the filter"))
            (Head::number("changed"))
            (Head::number("skipped").title("Items that did not fit any more, or that it skips"))
            (Head::number("failed").title("Items that could not be changed"))
            (Head::words("started"))
            (Head::words("ended"))
            (Head::words("by"))
            (Head::words("reason"))
        },
        html! { @for operation in operations { (row(asked, operation, live)) } },
    )
}

fn row(asked: &PageRequest, operation: &Operation, live: &mut Live) -> Markup {
    let id = live.row(&[&operation.id]);
    let (class, word) = bulk::state_word(operation.state());
    let page = link("operation", &[("ns", asked.namespace()), ("id", &operation.id)]);
    let OperationFigures { matched, changed, skipped, failed, .. } = operation.figures.unwrap_or_default();
    let failed_class = if failed > 0 { "bad" } else { "none" };
    html! {
        tr data-row=(id) {
            td.l { a href=(page) title=(operation.id) { (bulk::kind_text(operation.kind())) } }
            td.l data-head="topic" { (links::topic(asked.namespace(), &operation.topic)) }
            td.l data-head="state" { (live.word(format!("{id}w"), class, word)) }
            td.l data-head="progress" { (progress(operation, &id, live)) }
            td data-head="matched" { (live.text(format!("{id}m"), count(matched))) }
            td data-head="changed" { (live.text(format!("{id}c"), count(changed))) }
            td data-head="skipped" { (live.text(format!("{id}s"), count(skipped))) }
            td data-head="failed" { (live.word(format!("{id}f"), failed_class, count(failed))) }
            td.l data-head="started" { (time(operation.started_at, asked.now())) }
            td.l data-head="ended" { (time(operation.ended_at, asked.now())) }
            td.l data-head="by" { bdi { (operation.started_by) } }
            td.l.wrap data-head="reason" { bdi { (operation.reason) } }
        }
    }
}

/// How far an operation is, as a bar and in numbers. `id`: how the ids of its parts begin.
pub fn progress(operation: &Operation, id: &str, live: &mut Live) -> Markup {
    let (part, text) = looked_at(operation);
    html! {
        (plot::bar(live, &format!("{id}b"), part))
        (live.text(format!("{id}p"), text))
    }
}

/// The part that was looked at, and the same in words.
fn looked_at(operation: &Operation) -> (f64, String) {
    let scanned = operation.figures.unwrap_or_default().scanned;
    if operation.ended_at.is_some() {
        return (1.0, format!("{} looked at", count(scanned)));
    }
    // It may have looked at more than was thought.
    let total = operation.estimated_total.max(scanned);
    let part = if total == 0 { 0.0 } else { scanned as f64 / total as f64 };
    (part, format!("{} of about {} looked at", count(scanned), count(total)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_what_was_looked_at() {
        let of = |scanned, estimated_total, ended: bool| {
            looked_at(&Operation {
                figures: Some(OperationFigures { scanned, ..OperationFigures::default() }),
                estimated_total,
                ended_at: ended.then(prost_types::Timestamp::default),
                ..Operation::default()
            })
        };
        assert_eq!(of(250, 1_000, false), (0.25, "250 of about 1,000 looked at".to_owned()));
        assert_eq!(of(0, 0, false).0, 0.0, "it has not begun");
        assert_eq!(of(20, 10, false), (1.0, "20 of about 20 looked at".to_owned()));
        assert_eq!(of(7, 10, true), (1.0, "7 looked at".to_owned()), "it was stopped");
    }
}
