//! The question before one item is cancelled.

use forebay_proto::v1::{GetItemRequest, Item, ItemState, ItemView};
use maud::{Markup, html};

use super::{
    super::super::{
        asked::PageRequest,
        bulk::word,
        links::{self, link},
        live::Live,
        show::RenderedPage,
        texts::{bytes, time},
        trouble::Trouble,
    },
    cancel_form::cancel_form,
};

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let request = GetItemRequest {
        namespace: asked.namespace().to_owned(),
        item_id: asked.fields.get("id").to_owned(),
        view: ItemView::Basic.into(),
        max_payload_bytes: 0,
    };
    let answer = asked.ask(request).await?;
    let item = answer.item.unwrap_or_default();
    let namespace = asked.namespace();
    let body = html! {
        h1 { "Cancel item " span.id { (item.item_id) } "?" }
        div.why { p { (consequence(&item)) } }
        (facts(asked, &item))
        (form(asked, &item))
        h2 { "The same as a command" }
        pre { "forebay item cancel --namespace " (word(namespace)) " " (word(&item.item_id)) }
    };
    Ok(RenderedPage::new("Cancel an item?", body, Live::default()))
}

/// The consequence for the item.
fn consequence(item: &Item) -> String {
    let more = match (item.state(), &item.lease) {
        (ItemState::Leased, Some(lease)) if !lease.consumer.is_empty() => {
            format!(" {} has it now, and its receipt is over then.", lease.consumer)
        }
        (ItemState::Leased, _) => " It is leased, and its receipt is over then.".to_owned(),
        _ => String::new(),
    };
    format!("The item is deleted. It can't be had back.{more}")
}

fn facts(asked: &PageRequest, item: &Item) -> Markup {
    let state = match item.state() {
        ItemState::Ready => "ready",
        ItemState::Leased => "leased",
        ItemState::Scheduled => "scheduled",
        ItemState::Dead => "a dead letter",
        ItemState::Unspecified => "unknown",
    };
    html! {
        dl.pairs {
            dt { "topic" } dd { (links::topic(asked.namespace(), &item.topic)) }
            dt { "state" } dd { (state) }
            dt { "priority" } dd { (item.priority) }
            dt { "attempt" } dd { (item.attempt) " of " (item.max_attempts) }
            dt { "enqueued" } dd { (time(item.enqueued_at, asked.now())) }
            dt { "payload" } dd { (bytes(item.payload_size)) }
        }
    }
}

fn form(asked: &PageRequest, item: &Item) -> Markup {
    let (namespace, id) = (asked.namespace(), item.item_id.as_str());
    let fields = [("ns", namespace), ("id", id), ("name", item.topic.as_str())];
    cancel_form(asked, &fields, &link("item", &[("ns", namespace), ("id", id)]))
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::ItemLease;

    use super::*;

    #[test]
    fn whoever_has_the_item_is_named() {
        let ready = Item { state: ItemState::Ready.into(), ..Item::default() };
        assert_eq!(consequence(&ready), "The item is deleted. It can't be had back.");
        let lease = ItemLease { consumer: "worker-7".to_owned(), ..ItemLease::default() };
        let leased = Item { state: ItemState::Leased.into(), lease: Some(lease), ..ready };
        assert!(consequence(&leased).ends_with("worker-7 has it now, and its receipt is over then."));
    }
}
