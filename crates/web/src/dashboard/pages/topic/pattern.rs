//! A pattern: the settings of all topics whose names begin alike. It has no items.

use forebay_proto::v1::{GetTopicRequest, GetTopicResponse};
use maud::html;
use tonic::Code;

use super::{
    super::super::{asked::PageRequest, links, live::Live, show::RenderedPage, trouble::Trouble},
    place::Place,
    settings::settings,
};

/// Makes its page.
pub async fn make(asked: &PageRequest, place: &Place<'_>) -> Result<RenderedPage, Trouble> {
    let request = GetTopicRequest { namespace: place.namespace.to_owned(), topic: place.name.to_owned() };
    let (found, is_set) = match asked.ask(request).await {
        Ok(found) => (found, true),
        Err(status) if status.code() == Code::NotFound => (GetTopicResponse::default(), false),
        Err(status) => return Err(status.into()),
    };
    let prefix = place.name.trim_end_matches('*');
    let body = html! {
        h1 { bdi { (place.name) } }
        p.facts {
            "Settings of all topics of " (links::namespace(place.namespace)) " that begin with "
            bdi { code { (prefix) } }
        }
        p.none {
            "A topic's own settings go before these, and those of a longer pattern do. To poll all of these "
            "topics, consumers name the prefix."
        }
        @if !is_set { p.none { "Nothing is set here." } }
        (settings(asked, place, &found))
    };
    Ok(RenderedPage::new(place.name, body, Live::default()))
}
