//! The items of a topic in one state, in their order. Nothing is leased.

use forebay_access::Scope;
use forebay_proto::v1::{GetTopicResponse, Item, ItemState, ItemView, ListItemsRequest, ListItemsResponse};
use forebay_types::Timestamp;
use maud::{Markup, html};

use super::{
    super::{
        super::{
            asked::PageRequest,
            chosen,
            frame::sentence,
            links::{self, link},
            table::{self, Head},
            texts::{age, bytes, first_line, time},
            trouble::Trouble,
        },
        settings::kept,
        topics::{incomplete, unreadable},
    },
    others,
    place::Place,
};

/// Items of a page.
const PAGE_SIZE: u32 = 50;
/// Bytes of a payload that are read, for its first line.
const PAYLOAD_BYTES: u32 = 256;
/// Characters of the first line.
const LINE: usize = 80;

/// List of items in one state, as it is read.
struct List<'a> {
    /// The state.
    state: ItemState,
    /// The filter.
    filter: &'a str,
    /// How many items the pages before had.
    before: u64,
    /// Whether payloads are shown.
    inspects: bool,
    /// Whether rows can be chosen.
    chooses: bool,
    /// The time of the node.
    now: Timestamp,
}

/// A page of items, with its filter.
pub async fn list(
    asked: &PageRequest,
    place: &Place<'_>,
    found: &GetTopicResponse,
    state: ItemState,
) -> Result<Markup, Trouble> {
    let before = match asked.fields.get("from") {
        "" => 0,
        text => text.parse::<u32>().map_err(|_| Trouble::field("from", "must be a number"))?,
    };
    let inspects = asked.may(Scope::Inspect, place.namespace);
    let filter = asked.fields.get("filter");
    let chooses = chosen::may_choose(asked, place.namespace);
    let list = List { state, filter, before: before.into(), inspects, chooses, now: asked.now() };
    let request = ListItemsRequest {
        namespace: place.namespace.to_owned(),
        topic: place.name.to_owned(),
        state: state.into(),
        view: ItemView::Basic.into(),
        max_payload_bytes: if inspects { PAYLOAD_BYTES } else { 0 },
        page_size: PAGE_SIZE,
        page_token: asked.fields.get("page-token").to_owned(),
        filter: filter.to_owned(),
    };
    let answer = asked.ask(request).await;
    Ok(html! {
        (controls(place, &list))
        @match answer {
            Ok(answer) => (page(asked, place, found, &list, &answer)),
            Err(status) => {
                p.bad role="alert" { (sentence(status.message())) }
                p { a href=(place.with(&[])) { "The list from its beginning" } }
            }
        }
    })
}

fn controls(place: &Place<'_>, list: &List<'_>) -> Markup {
    let example = match list.state {
        ItemState::Leased => "age > 10m AND consumer = \"worker-7\"",
        ItemState::Dead => "reason = \"timeout*\"",
        _ => "age > 1h AND priority < 5",
    };
    html! {
        form.controls action="topic" {
            @for (name, value) in [("ns", place.namespace), ("name", place.name), ("tab", place.tab)] {
                input type="hidden" name=(name) value=(value);
            }
            label {
                "Filter "
                input name="filter" size="38" value=(list.filter) placeholder=(example) maxlength="1000";
            }
            button { "Show" }
            @if !list.filter.is_empty() { a href=(place.with(&[])) { "Clear the filter" } }
            @if list.state == ItemState::Dead {
                @let groups = link("dead-letters", &[("ns", place.namespace), ("topic", place.name)]);
                a href=(groups) { "Grouped by reason" }
            }
        }
    }
}

fn page(
    asked: &PageRequest,
    place: &Place<'_>,
    found: &GetTopicResponse,
    list: &List<'_>,
    answer: &ListItemsResponse,
) -> Markup {
    let next = &*answer.next_page_token;
    let through = (list.before + answer.items.len() as u64).to_string();
    html! {
        (incomplete(&answer.incomplete_shards))
        (unreadable(&answer.items))
        @if !answer.items.is_empty() {
            @let actions = if list.state == ItemState::Dead { chosen::OF_DEAD } else { chosen::OF_ITEMS };
            (chosen::bar(asked, [place.namespace, place.name], actions))
            (table(place, list, &answer.items))
        } @else if !next.is_empty() {
            p.none { "No item of this page passes the filter. There are more pages." }
        } @else if list.before > 0 {
            p.none { "There are no more items." }
        } @else {
            (nothing(place, found, list))
        }
        @if !next.is_empty() {
            @let fields = [("filter", list.filter), ("page-token", next), ("from", &*through)];
            p { a rel="next" href=(place.with(&fields)) { "Next page" } }
        }
    }
}

fn nothing(place: &Place<'_>, found: &GetTopicResponse, list: &List<'_>) -> Markup {
    let command =
        |verb: &str| format!("forebay {verb} --namespace {} --topic {}", place.namespace, place.name);
    let retention = found.effective_settings.and_then(|settings| settings.dead_letter_retention);
    html! {
        div.empty {
            @if !list.filter.is_empty() {
                p { "No item passes the filter " code { (list.filter) } "." }
            } @else {
                @match list.state {
                    ItemState::Leased => {
                        p { "No item is leased. A consumer leases one so:" }
                        pre { (command("dequeue")) }
                    }
                    ItemState::Scheduled => {
                        p { "No item is scheduled. One that is due in ten minutes is enqueued so:" }
                        pre { (command("enqueue")) " --delay 10m hello" }
                    }
                    ItemState::Dead => p {
                        "There are no dead letters."
                        @if let Some(time) = retention { " They are kept " (for_time(&kept(time))) "." }
                    },
                    _ => {
                        p { "No item is ready. One is enqueued so:" }
                        pre { (command("enqueue")) " hello" }
                    }
                }
            }
        }
    }
}

/// `for ever`, `for 14 d`.
fn for_time(kept: &str) -> String {
    if kept.starts_with("for ") { kept.to_owned() } else { format!("for {kept}") }
}

/// The columns of a state.
fn columns(state: ItemState) -> &'static [Head] {
    match state {
        ItemState::Leased => {
            const {
                &[
                    Head::words("item"),
                    Head::number("priority"),
                    Head::words("consumer"),
                    Head::number("since"),
                    Head::number("ends"),
                    Head::number("attempt"),
                ]
            }
        }
        ItemState::Dead => {
            const {
                &[
                    Head::words("item"),
                    Head::number("died"),
                    Head::words("cause"),
                    Head::words("reason"),
                    Head::number("attempts"),
                ]
            }
        }
        ItemState::Scheduled => const { &waiting("due") },
        _ => const { &waiting("ready for") },
    }
}

/// The columns of items that wait. `when`: the name of the one with their time.
const fn waiting(when: &'static str) -> [Head; 6] {
    [
        Head::number("position"),
        Head::words("item"),
        Head::number("priority"),
        Head::number(when),
        Head::number("age"),
        Head::number("attempt"),
    ]
}

fn table(place: &Place<'_>, list: &List<'_>, items: &[Item]) -> Markup {
    table::list(
        html! {
            @if list.chooses { (chosen::head()) }
            @for head in columns(list.state) { (head) }
            @if list.inspects { (Head::words("payload")) }
        },
        html! {
            @for (position, item) in (list.before + 1..).zip(items) {
                (row(place, list, position, item))
            }
        },
    )
}

fn row(place: &Place<'_>, list: &List<'_>, position: u64, item: &Item) -> Markup {
    let (lease, death) = (item.lease.clone().unwrap_or_default(), item.death.clone().unwrap_or_default());
    let id = links::item(place.namespace, &item.item_id);
    html! {
        tr {
            @if list.chooses { (chosen::cell(&item.item_id)) }
            @match list.state {
                ItemState::Leased => {
                    td.l { (id) }
                    td data-head="priority" { (item.priority) }
                    td.l.wrap data-head="consumer" { (others::named(&lease.consumer)) }
                    td data-head="since" { (time(lease.leased_at, list.now)) }
                    td data-head="ends" { (time(lease.ends_at, list.now)) }
                    td data-head="attempt" { (item.attempt) }
                }
                ItemState::Dead => {
                    td.l { (id) }
                    td data-head="died" { (time(death.died_at, list.now)) }
                    td.l data-head="cause" { (death.cause) }
                    td.l.wrap data-head="reason" { bdi { (death.reason) } }
                    td data-head="attempt" { (item.attempt) }
                }
                ItemState::Scheduled => {
                    td data-head="position" { (position) }
                    td.l { (id) }
                    td data-head="priority" { (item.priority) }
                    td data-head="due" { (time(item.ready_at, list.now)) }
                    td data-head="age" { (age(item.enqueued_at, list.now)) }
                    td data-head="attempt" { (item.attempt) }
                }
                _ => {
                    td data-head="position" { (position) }
                    td.l { (id) }
                    td data-head="priority" { (item.priority) }
                    td data-head="ready for" { (age(item.ready_at, list.now)) }
                    td data-head="age" { (age(item.enqueued_at, list.now)) }
                    td data-head="attempt" { (item.attempt) }
                }
            }
            @if list.inspects {
                td.l.wrap data-head="payload" title=(bytes(item.payload_size)) {
                    bdi { code { (first_line(&item.payload, LINE)) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(state: ItemState, inspects: bool) -> List<'static> {
        List { state, filter: "", before: 50, inspects, chooses: !inspects, now: Timestamp::from_micros(0) }
    }

    #[test]
    fn a_row_has_the_cells_of_its_head() {
        let place = Place { namespace: "a", name: "t", range: "", tab: "dead", is_followed: false };
        let states = [ItemState::Ready, ItemState::Leased, ItemState::Scheduled, ItemState::Dead];
        for (state, inspects) in states.into_iter().flat_map(|state| [(state, false), (state, true)]) {
            let shown = table(&place, &list(state, inspects), &[Item::default()]).into_string();
            let of = |tag: &str| shown.matches(tag).count();
            assert_eq!(of("<th "), of("<td"), "{state:?} {shown}");
        }
        let shown = table(&place, &list(ItemState::Ready, true), &[Item::default()]).into_string();
        assert!(shown.contains(">51</td>"), "positions go on from the page before: {shown}");
    }

    #[test]
    fn payloads_are_escaped() {
        let place = Place { namespace: "a", name: "t", range: "", tab: "dead", is_followed: false };
        let item = Item { payload: "<script>alert(1)</script>\nmore".into(), ..Item::default() };
        let shown = row(&place, &list(ItemState::Ready, true), 1, &item).into_string();
        assert!(shown.contains("&lt;script&gt;alert(1)&lt;/script&gt;</code>"), "{shown}");
        assert_eq!([for_time("for ever"), for_time("14 d")], ["for ever", "for 14 d"]);
    }
}
