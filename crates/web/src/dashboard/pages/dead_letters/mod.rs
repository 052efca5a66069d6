//! Dead letters of a namespace or of a topic: grouped by why they died, and one by one.

pub mod filter;
mod groups;
mod question;
mod rows;

use forebay_proto::{
    time::from_duration,
    v1::{GetNamespaceRequest, GetTopicRequest, GroupDeadLettersRequest},
};
use maud::{Markup, html};
use tonic::Code;

use self::question::question;
use super::{
    super::{
        asked::PageRequest,
        bulk,
        links::{self, link},
        live::Live,
        show::RenderedPage,
        texts::span,
        trouble::Trouble,
    },
    topics::incomplete,
};

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    if asked.is_about_all() {
        return Err(Trouble::field("ns", "must name a namespace"));
    }
    let (namespace, topic) = (asked.namespace(), asked.fields.get("topic"));
    let request =
        GroupDeadLettersRequest { namespace: namespace.to_owned(), topic: topic.to_owned(), window: 0 };
    let answer = asked.ask(request).await?;
    let mut live = Live::default();
    let is_empty = answer.groups.is_empty() && answer.total == 0 && answer.incomplete_shards.is_empty();
    let rows = match topic.is_empty() || is_empty {
        true => html! {},
        false => rows::section(asked, topic, &mut live).await?,
    };
    let body = html! {
        h1 {
            "Dead letters of "
            @if topic.is_empty() { bdi { (namespace) } } @else { (links::topic(namespace, topic)) }
        }
        @if !topic.is_empty() {
            p { a href=(link("dead-letters", &[("ns", namespace)])) { "All topics of " bdi { (namespace) } } }
        }
        (incomplete(&answer.incomplete_shards))
        @if is_empty {
            (nothing(asked, topic).await?)
        } @else {
            (buttons(asked, topic))
            (groups::section(asked, &answer, &mut live))
            (rows)
        }
    };
    Ok(RenderedPage::new("Dead letters", body, live))
}

/// Buttons of the actions on all dead letters of a topic.
fn buttons(asked: &PageRequest, topic: &str) -> Markup {
    if topic.is_empty() {
        return html! {};
    }
    html! {
        div.actions {
            (question(asked, "redrive", topic, "", "Redrive all"))
            (question(asked, "delete-dead", topic, "", "Delete all"))
        }
    }
}

async fn nothing(asked: &PageRequest, topic: &str) -> Result<Markup, Trouble> {
    let kept = match retention(asked, topic).await? {
        Some(kept) if kept.is_zero() => "They are kept for ever.".to_owned(),
        Some(kept) => format!("They are kept for {}.", span(kept)),
        None => String::new(),
    };
    Ok(html! {
        div.empty {
            p { "No dead letters. " (kept) }
            p { "An item becomes one when its deliveries have failed too often. This lists them then:" }
            pre { "forebay dead-letter groups --namespace " (bulk::word(asked.namespace())) }
        }
    })
}

/// How long dead letters are kept; zero: for ever. `None`: that is not known.
async fn retention(asked: &PageRequest, topic: &str) -> Result<Option<std::time::Duration>, Trouble> {
    let namespace = asked.namespace().to_owned();
    let kept = match topic {
        "" => {
            let answer = asked.ask(GetNamespaceRequest { namespace }).await;
            answer.map(|it| it.effective_settings.and_then(|set| set.dead_letter_retention))
        }
        topic => {
            let answer = asked.ask(GetTopicRequest { namespace, topic: topic.to_owned() }).await;
            answer.map(|it| it.effective_settings.and_then(|set| set.dead_letter_retention))
        }
    };
    match kept {
        Ok(kept) => Ok(kept.map(from_duration)),
        // A topic or namespace that is not there has no settings to tell of.
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status.into()),
    }
}
