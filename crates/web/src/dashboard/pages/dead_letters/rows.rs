//! The dead letters of a topic, one by one.

use forebay_proto::v1::{Item, ItemState, ItemView, ListItemsRequest, ListItemsResponse};
use maud::{Markup, html};

use super::{
    super::{
        super::{
            asked::PageRequest,
            chosen,
            links::{self, link},
            live::Live,
            table::{self, Head},
            texts::{bytes, first_line, time},
            trouble::Trouble,
        },
        topics::{incomplete, unreadable},
    },
    filter,
    question::{question, shows_payloads},
};

/// Dead letters of a page.
const PAGE_SIZE: u32 = 50;
/// Bytes of each payload that are read for its first line.
const PAYLOAD_BYTES: u32 = 256;
/// Characters of a first line that are shown.
const PAYLOAD_CHARS: usize = 80;

/// The dead letters that pass the filter of the page.
pub async fn section(asked: &PageRequest, topic: &str, live: &mut Live) -> Result<Markup, Trouble> {
    let filter = filter::typed(asked.fields.get("reason"));
    let with_payloads = shows_payloads(asked);
    let request = ListItemsRequest {
        namespace: asked.namespace().to_owned(),
        topic: topic.to_owned(),
        state: ItemState::Dead.into(),
        view: if with_payloads { ItemView::Full } else { ItemView::Basic }.into(),
        max_payload_bytes: if with_payloads { PAYLOAD_BYTES } else { 0 },
        page_size: PAGE_SIZE,
        page_token: asked.fields.get("page-token").to_owned(),
        filter: filter.clone(),
    };
    let answer = asked.ask(request).await?;
    Ok(html! {
        h2 #rows { "One by one, the latest first" }
        (controls(asked, topic))
        @if !filter.is_empty() {
            div.actions {
                span { "Filter " code { bdi { (filter) } } }
                (question(asked, "redrive", topic, &filter, "Redrive these"))
                (question(asked, "delete-dead", topic, &filter, "Delete these"))
            }
        }
        (incomplete(&answer.incomplete_shards))
        (unreadable(&answer.items))
        @if !answer.items.is_empty() {
            (chosen::bar(asked, [asked.namespace(), topic], chosen::OF_DEAD))
        }
        (table(asked, &answer, with_payloads, live))
        (below(asked, topic, &answer))
    })
}

fn controls(asked: &PageRequest, topic: &str) -> Markup {
    html! {
        form.controls action="dead-letters" {
            input type="hidden" name="ns" value=(asked.namespace());
            input type="hidden" name="topic" value=(topic);
            label {
                "Filter "
                input name="reason" size="34" value=(asked.fields.get("reason")) maxlength="1000"
                    placeholder="a part of the reason, or age > 1h";
            }
            button { "Show" }
        }
    }
}

fn table(asked: &PageRequest, answer: &ListItemsResponse, with_payloads: bool, live: &mut Live) -> Markup {
    if answer.items.is_empty() {
        return html! {};
    }
    table::list(
        html! {
            @if chosen::may_choose(asked, asked.namespace()) { (chosen::head()) }
            (Head::words("item"))
            (Head::words("died"))
            (Head::words("cause"))
            (Head::words("reason"))
            (Head::number("attempts").title("Deliveries that have begun"))
            (Head::words("payload"))
        },
        html! { @for item in &answer.items { (row(asked, item, with_payloads, live)) } },
    )
}

fn row(asked: &PageRequest, item: &Item, with_payloads: bool, live: &mut Live) -> Markup {
    let id = live.row(&["item", &item.item_id]);
    let death = item.death.clone().unwrap_or_default();
    html! {
        tr data-row=(id) {
            @if chosen::may_choose(asked, asked.namespace()) { (chosen::cell(&item.item_id)) }
            td.l { (links::item(asked.namespace(), &item.item_id)) }
            td.l data-head="died" { (time(death.died_at, asked.now())) }
            td.l data-head="cause" { (death.cause) }
            td.l.wrap data-head="reason" { bdi { (death.reason) } }
            td data-head="attempts" { (item.attempt) }
            td.l.wrap data-head="payload" {
                @if with_payloads {
                    code { bdi { (first_line(&item.payload, PAYLOAD_CHARS)) } }
                } @else {
                    span.none { (bytes(item.payload_size)) }
                }
            }
        }
    }
}

/// The link to further dead letters, or a note that there are none.
fn below(asked: &PageRequest, topic: &str, answer: &ListItemsResponse) -> Markup {
    let (namespace, reason) = (asked.namespace(), asked.fields.get("reason"));
    let fields = [("ns", namespace), ("topic", topic), ("reason", reason)];
    let next = [fields.as_slice(), &[("page-token", &answer.next_page_token)]].concat();
    html! {
        @if !answer.next_page_token.is_empty() {
            @if answer.items.is_empty() { p { "None so far. There are more to look at." } }
            p { a rel="next" href=(link("dead-letters", &next) + "#rows") { "Next page" } }
        } @else if answer.items.is_empty() {
            div.empty {
                @if reason.is_empty() {
                    p { "No more dead letters." }
                } @else {
                    p {
                        "No dead letter passes the filter. A part of a reason with line breaks or several \
                         blanks in it passes only if it has them too."
                    }
                    p { a href=(link("dead-letters", &fields[..2]) + "#rows") { "Clear the filter" } }
                }
            }
        }
    }
}
