//! One topic: why its items wait or flow, its figures, and what is in it.

mod actions;
mod figures;
mod items;
mod others;
mod pattern;
mod place;
mod settings;
mod tabs;

use std::collections::BTreeSet;

use forebay_proto::{
    time::from_timestamp,
    v1::{ExplainTopicRequest, ExplainTopicResponse, GetTopicRequest, GetTopicResponse, Pause, Side},
};
use forebay_types::is_prefix;
use http::StatusCode;
use maud::{Markup, html};
use tonic::{Code, Status};

use self::place::Place;
use super::{
    super::{
        asked::PageRequest, frame::sentence, links, live::Live, show::RenderedPage, texts::utc,
        trouble::Trouble,
    },
    topics::{chips, incomplete},
};

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let place = Place::of(asked)?;
    if is_prefix(place.name) {
        return pattern::make(asked, &place).await;
    }
    let (namespace, topic) = (place.namespace.to_owned(), place.name.to_owned());
    let get = GetTopicRequest { namespace: namespace.clone(), topic: topic.clone() };
    let explain = ExplainTopicRequest { namespace, topic };
    let (found, why, history) =
        tokio::join!(asked.ask(get), asked.ask(explain), asked.ask(figures::request(&place)),);
    let found = found.map_err(|status| unknown(&place, status))?;
    let missing: BTreeSet<u32> = [
        &*found.incomplete_shards,
        why.as_ref().map_or(&[], |why| &why.incomplete_shards),
        history.as_ref().map_or(&[], |history| &history.incomplete_shards),
    ]
    .concat()
    .into_iter()
    .collect();
    let missing: Vec<u32> = missing.into_iter().collect();
    let below = if place.is_followed {
        html! {}
    } else {
        tabs::show(asked, &place, &found).await?
    };
    let mut live = Live::default();
    let topic = found.topic.clone().unwrap_or_default();
    let body = html! {
        h1 { bdi { (place.name) } (chips(&topic.pauses)) }
        p.facts {
            "Topic of " (links::namespace(place.namespace))
            @if let Some(link) = links::grafana(asked, place.name) { " · " (link) }
        }
        (incomplete(&missing))
        (sentences(why.as_ref(), &found, &mut live))
        (actions::actions(asked, &place, &topic))
        (figures::figures(asked, &topic, &mut live))
        (figures::plots(asked, &place, &topic, history, &mut live))
        (tabs::links(asked, &place))
        (below)
    };
    Ok(RenderedPage::new(place.name, body, live))
}

/// Why its items wait or flow, a sentence a line.
fn sentences(
    why: Result<&ExplainTopicResponse, &Status>,
    found: &GetTopicResponse,
    live: &mut Live,
) -> Markup {
    let mut lines: Vec<String> = match why {
        Ok(why) => why.blockers.iter().map(|blocker| blocker.sentence.clone()).collect(),
        Err(status) => vec![format!("It could not be read why items wait. {}", sentence(status.message()))],
    };
    let pauses = found.topic.as_ref().map_or(&[][..], |topic| &topic.pauses);
    lines.extend(pauses.iter().filter(|pause| pause.side() == Side::Enqueue).map(refuses));
    html! { div.why { p { (live.text("why", lines.join("\n"))) } } }
}

/// A pause of enqueue, as the other sentences say those of deliveries.
fn refuses(pause: &Pause) -> String {
    let what = if pause.of_namespace { "The namespace" } else { "The topic" };
    let time = |at: prost_types::Timestamp| utc(from_timestamp(at));
    let since = pause.since.map(|at| format!(" since {}", time(at))).unwrap_or_default();
    let mut text = format!("{what} takes no new items{since}.");
    if let Some(until) = pause.until {
        text += &format!(" That ends at {}.", time(until));
    }
    if !pause.by.is_empty() {
        text += &format!(" It was paused by {}.", pause.by);
    }
    if !pause.note.is_empty() {
        text += &format!(" The note says: {}", pause.note);
    }
    text
}

/// There is no such topic.
fn unknown(place: &Place<'_>, status: Status) -> Trouble {
    if status.code() != Code::NotFound {
        return status.into();
    }
    let Place { namespace, name, .. } = place;
    let message = format!(
        "the namespace {namespace} has no topic {name} now: it has no items, no pauses and no settings. Its \
         first item creates it: forebay enqueue --namespace {namespace} --topic {name} hello"
    );
    Trouble { status: StatusCode::NOT_FOUND, title: "No such topic", message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_keeps_what_it_does_not_change() {
        let place = Place { namespace: "a", name: "x/y", range: "24h", tab: "dead", is_followed: false };
        assert_eq!(place.with(&[("tab", "leased")]), "topic?ns=a&name=x%2Fy&range=24h&tab=leased");
        assert_eq!(place.with(&[("range", "")]), "topic?ns=a&name=x%2Fy&tab=dead");
    }

    #[test]
    fn a_pause_of_enqueue_says_by_whom_and_why() {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let pause = Pause { side: Side::Enqueue.into(), since: at(60), ..Pause::default() };
        assert_eq!(refuses(&pause), "The topic takes no new items since 1970-01-01 00:01:00.");
        let (by, note) = ("ops".to_owned(), "moving".to_owned());
        let said = refuses(&Pause { until: at(120), by, note, of_namespace: true, ..pause });
        let end = "00:02:00. It was paused by ops. The note says: moving";
        assert!(said.starts_with("The namespace takes") && said.ends_with(end), "{said}");
    }

    #[test]
    fn what_is_unknown_is_told_with_the_next_step() {
        let place = Place { namespace: "a", name: "mail", range: "", tab: "waiting", is_followed: false };
        let trouble = unknown(&place, Status::not_found("no"));
        assert_eq!(trouble.status, StatusCode::NOT_FOUND);
        assert!(trouble.message.ends_with("forebay enqueue --namespace a --topic mail hello"));
        assert_eq!(unknown(&place, Status::unavailable("no")).status, StatusCode::SERVICE_UNAVAILABLE);
    }
}
