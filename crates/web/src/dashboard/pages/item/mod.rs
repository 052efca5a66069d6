//! One item: why it is not delivered, what has become of it, and what it carries.

mod changes;
mod json;
mod payload;
mod timeline;

use forebay_proto::v1::{Blocker, ExplainItemRequest, GetItemRequest, Item, ItemState, ItemView};
use maud::{Markup, html};
use tonic::Code;

use super::super::{
    asked::PageRequest,
    bulk::word,
    links,
    live::Live,
    show::RenderedPage,
    texts::{bytes, count, time},
    trouble::Trouble,
};

/// Bytes of a payload that are shown.
const PAYLOAD_BYTES: u32 = 64 << 10;

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let id = asked.fields.get("id");
    let request = ExplainItemRequest { namespace: asked.namespace().to_owned(), item_id: id.to_owned() };
    let explained = asked.ask(request).await?;
    let item = item(asked, id).await?;
    let mut live = Live::default();
    let (class, state) = item.as_ref().map_or(("none", "gone"), |item| state_word(item.state()));
    let body = html! {
        h1 { span.id { (id) } }
        p {
            @if let Some(item) = &item { "Item of " (links::topic(asked.namespace(), &item.topic)) " · " }
            (live.word("item-state", class, state))
        }
        (why(&explained.blockers, &mut live))
        @if let Some(item) = &item {
            @if !item.unreadable.is_empty() {
                p.bad { "What is stored of it can't be read, so it can only be removed: " (item.unreadable) }
            }
            (changes::section(asked, item))
            (facts(asked, item, &mut live))
            (timeline::section(asked, item, &mut live))
            @if !asked.is_followed() { (payload::section(asked, item)) }
            h2 { "The same as a command" }
            pre { "forebay item get --namespace " (word(asked.namespace())) " " (word(id)) }
        }
    };
    Ok(RenderedPage::new(format!("Item {id}"), body, live))
}

/// The item, with what it carries if that may be seen. `None`: it is not there.
async fn item(asked: &PageRequest, id: &str) -> Result<Option<Item>, Trouble> {
    // To show what it carries is written down, and it does not change: once a page is enough.
    let with_payload = payload::is_shown(asked) && !asked.is_followed();
    let request = GetItemRequest {
        namespace: asked.namespace().to_owned(),
        item_id: id.to_owned(),
        view: if with_payload { ItemView::Full } else { ItemView::Basic }.into(),
        max_payload_bytes: if with_payload { PAYLOAD_BYTES } else { 0 },
    };
    match asked.ask(request).await {
        Ok(answer) => Ok(answer.item),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status.into()),
    }
}

/// The word for a state, and its class.
fn state_word(state: ItemState) -> (&'static str, &'static str) {
    match state {
        ItemState::Ready => ("good", "ready"),
        ItemState::Leased => ("good", "leased"),
        ItemState::Scheduled => ("none", "scheduled"),
        ItemState::Dead => ("bad", "dead letter"),
        ItemState::Unspecified => ("none", "unknown"),
    }
}

/// Why it is not delivered, a sentence a line.
fn why(blockers: &[Blocker], live: &mut Live) -> Markup {
    let sentences: Vec<&str> = blockers.iter().map(|blocker| blocker.sentence.as_str()).collect();
    html! { div.why { p.lines { (live.text("why", sentences.join("\n"))) } } }
}

fn facts(asked: &PageRequest, item: &Item, live: &mut Live) -> Markup {
    let now = asked.now();
    let attempt = format!("{} of {}", count(item.attempt.into()), count(item.max_attempts.into()));
    html! {
        dl.pairs {
            dt { "priority" } dd { (live.text("item-priority", item.priority)) }
            dt { "attempt" } dd { (live.text("item-attempt", attempt)) }
            dt { "failures" } dd { (live.text("item-failures", count(item.failures.into()))) }
            dt { "enqueued" } dd { (time(item.enqueued_at, now)) }
            @match item.state() {
                ItemState::Ready => { dt { "ready" } dd { (time(item.ready_at, now)) } }
                ItemState::Scheduled => { dt { "due" } dd { (time(item.ready_at, now)) } }
                _ => {}
            }
            dt { "expires" } dd {
                @if item.expires_at.is_some() { (time(item.expires_at, now)) } @else { "never" }
            }
            dt { "redrives" } dd { (item.redrives) }
            dt { "at most once" } dd {
                @if item.at_most_once { "yes: it is removed before it is handed out" } @else { "no" }
            }
            dt { "payload" } dd { (bytes(item.payload_size)) }
        }
    }
}
