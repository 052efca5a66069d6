//! Search for topics by a part of their names, and for an item by its id.

use forebay_proto::v1::{GetItemRequest, ItemView, ListTopicsRequest, ListTopicsResponse};
use forebay_types::{ItemId, filter::quoted};
use maud::{Markup, html};
use tonic::Code;

use super::{
    super::{
        asked::PageRequest,
        frame::sentence,
        links::{self, link},
        live::Live,
        show::RenderedPage,
        trouble::Trouble,
    },
    topics::{incomplete, table},
};

/// Topics that are shown.
const TOPICS: u32 = 50;

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let query = asked.fields.get("q").trim();
    let mut live = Live::default();
    // A look at an item is written down, so the stream of changes does not ask for it again.
    let is_followed = asked.is_followed();
    let item = match query.parse::<ItemId>() {
        Ok(_) if !is_followed => item(asked, query).await?,
        _ => html! {},
    };
    let body = html! {
        h1 { "Search" }
        (form(asked, query))
        @if !query.is_empty() {
            (item)
            (topics(asked, query, &topics_with(asked, query).await?, &mut live))
        } @else {
            div.empty {
                p { "Type a part of a topic's name, or the id of an item, such as " code { "3-1041" } "." }
            }
        }
    };
    Ok(RenderedPage::new("Search", body, live))
}

fn form(asked: &PageRequest, query: &str) -> Markup {
    html! {
        form.controls action="search" {
            label {
                "Namespace "
                input name="ns" value=(asked.fields.get("ns")) placeholder="all" maxlength="255";
            }
            label { "Topic or item " input name="q" value=(query) maxlength="255"; }
            button { "Search" }
        }
    }
}

/// An item with this id.
async fn item(asked: &PageRequest, id: &str) -> Result<Markup, Trouble> {
    if asked.is_about_all() {
        return Ok(html! {
            h2 { "Item " span.id { (id) } }
            p { "An item is looked for in one namespace." }
            form.controls action="search" {
                input type="hidden" name="q" value=(id);
                label { "Namespace " input name="ns" required maxlength="255"; }
                button { "Look for the item" }
            }
        });
    }
    let namespace = asked.namespace();
    let request = GetItemRequest {
        namespace: namespace.to_owned(),
        item_id: id.to_owned(),
        view: ItemView::Basic.into(),
        max_payload_bytes: 0,
    };
    let found = asked.ask(request).await;
    Ok(html! {
        h2 { "Item " span.id { (id) } }
        @match found {
            Ok(answer) => {
                @let topic = answer.item.as_ref().map_or("", |item| &item.topic);
                p { (links::item(namespace, id)) " is an item of " (links::topic(namespace, topic)) "." }
            }
            Err(status) if status.code() == Code::NotFound => p.none {
                "The namespace " bdi { (namespace) } " has no item with this id. "
                "It was acked, removed or never there."
            },
            Err(status) => p.bad { "It could not be looked for. " (sentence(status.message())) },
        }
    })
}

/// The topics whose names have the text.
async fn topics_with(asked: &PageRequest, query: &str) -> Result<ListTopicsResponse, Trouble> {
    let request = ListTopicsRequest {
        namespace: asked.namespace().to_owned(),
        filter: format!("topic : {}", quoted(query)),
        page_size: TOPICS,
        recent: true,
        ..ListTopicsRequest::default()
    };
    Ok(asked.ask(request).await?)
}

fn topics(asked: &PageRequest, query: &str, found: &ListTopicsResponse, live: &mut Live) -> Markup {
    let has_more = !found.next_page_token.is_empty();
    let all = link("topics", &[("ns", asked.fields.get("ns")), ("q", query), ("sort", "name")]);
    html! {
        h2 { "Topics" }
        (incomplete(&found.incomplete_shards))
        @if !found.topics.is_empty() {
            (table(asked, &found.topics, None, live))
            @if has_more { p { a href=(all) { "All topics with this in their names" } } }
        } @else if has_more {
            // A page ends after a while, even where nothing was found.
            p { "None yet: not all topics were looked at. " a href=(all) { "Look at all topics" } }
        } @else {
            div.empty {
                p { "No topic has " code { (query) } " in its name." }
                p { a href=(link("topics", &[("ns", asked.fields.get("ns"))])) { "All topics" } }
            }
        }
    }
}
