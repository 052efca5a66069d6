//! History of an item so far.

use forebay_proto::{
    time::from_timestamp,
    v1::{Item, ItemDeath, ItemFailure, ItemLease},
};
use maud::{Markup, html};

use super::super::super::{
    asked::PageRequest,
    frame::sentence,
    live::Live,
    texts::{count, span, time},
};

/// From its enqueue to now.
pub fn section(asked: &PageRequest, item: &Item, live: &mut Live) -> Markup {
    let now = asked.now();
    let forgotten = u64::from(item.failures).saturating_sub(item.last_failures.len() as u64);
    html! {
        h2 { "What has happened" }
        ul.timeline {
            li { "Enqueued " (time(item.enqueued_at, now)) "." }
            @if forgotten > 0 { li.none { (before(forgotten)) } }
            @for failure in item.last_failures.iter().rev() { (failed(asked, failure, live)) }
            @if let Some(lease) = &item.lease { (leased(asked, item, lease, live)) }
            @if let Some(death) = &item.death { (died(asked, death, live)) }
        }
    }
}

fn failed(asked: &PageRequest, failure: &ItemFailure, live: &mut Live) -> Markup {
    let ended = failure.ended_at.map(|at| at.to_string()).unwrap_or_default();
    let row = live.row(&["failure", &failure.attempt.to_string(), &ended]);
    html! {
        li data-row=(row) {
            "Delivery " (count(failure.attempt.into())) " to " (consumer(&failure.consumer)) " "
            @if let (Some(from), Some(to)) = (failure.leased_at, failure.ended_at) {
                "lasted " (span(from_timestamp(to).since(from_timestamp(from)))) " and "
            }
            (ended_so(&failure.cause)) " " (time(failure.ended_at, asked.now())) "."
            @if !failure.reason.is_empty() { " " q { bdi { (failure.reason) } } }
        }
    }
}

fn leased(asked: &PageRequest, item: &Item, lease: &ItemLease, live: &mut Live) -> Markup {
    let now = asked.now();
    let row = live.row(&["lease", &item.attempt.to_string()]);
    let ends = match lease.ends_at.map(from_timestamp) {
        Some(end) if end > now => format!("The lease ends in {}.", span(end.since(now))),
        Some(_) => "The lease has run out.".to_owned(),
        None => String::new(),
    };
    html! {
        li data-row=(row) {
            "Delivery " (count(item.attempt.into())) " to " (consumer(&lease.consumer)) " began "
            (time(lease.leased_at, now)) ", and has not ended. "
            (live.text("lease-ends", ends))
        }
    }
}

fn died(asked: &PageRequest, death: &ItemDeath, live: &mut Live) -> Markup {
    let now = asked.now();
    let row = live.row(&["death", &death.died_at.map(|at| at.to_string()).unwrap_or_default()]);
    html! {
        li.bad data-row=(row) {
            "Became a dead letter " (time(death.died_at, now)) ": " (sentence(&death.cause))
            @if !death.reason.is_empty() { " The last nack said: " q { bdi { (death.reason) } } "." }
            @if death.kept_until.is_some() { " It is deleted " (time(death.kept_until, now)) "." }
            @else { " It is kept for ever." }
        }
    }
}

fn consumer(name: &str) -> Markup {
    html! { @if name.is_empty() { "a consumer without a name" } @else { bdi { (name) } } }
}

/// Counts the failed deliveries that nothing more is known of.
fn before(forgotten: u64) -> String {
    match forgotten {
        1 => "1 failed delivery of which no more is known.".to_owned(),
        more => format!("{} failed deliveries of which no more is known.", count(more)),
    }
}

/// How a delivery ended.
fn ended_so(cause: &str) -> &str {
    match cause {
        "nacked" => "was nacked",
        "lease ended" => "ended with its lease, which ran out",
        "dead-lettered" => "was dead-lettered by the consumer",
        other => other,
    }
}
