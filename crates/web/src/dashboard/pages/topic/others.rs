//! Consumers of a topic, and its history.

use forebay_proto::v1::{AuditOutcome, AuditRecord, Consumer, ListAuditRecordsRequest, ListConsumersRequest};
use maud::{Markup, html};

use super::{
    super::{
        super::{
            asked::PageRequest,
            links::link,
            table::{self, Head},
            texts::{age, count, percent, rate, time},
            trouble::Trouble,
        },
        overview::unread,
        topics::incomplete,
    },
    place::Place,
};

/// Consumers that are looked at.
const CONSUMERS: u32 = 1_000;
/// Records that are looked at.
const RECORDS: u32 = 1_000;
/// Records that are shown at most.
const SHOWN: usize = 100;

/// The consumers that ask for the topic, or have leases of it.
pub async fn consumers(asked: &PageRequest, place: &Place<'_>) -> Result<Markup, Trouble> {
    let request = ListConsumersRequest {
        namespace: place.namespace.to_owned(),
        page_size: CONSUMERS,
        page_token: String::new(),
    };
    let answer = match asked.ask(request).await {
        Ok(answer) => answer,
        Err(status) => return Ok(unread("The consumers", &status)),
    };
    let has = |one: &&Consumer| one.topics.iter().any(|topic| topic == place.name);
    let of_topic: Vec<&Consumer> = answer.consumers.iter().filter(has).collect();
    let all = link("consumers", &[("ns", place.namespace)]);
    let is_cut = answer.consumers_cut
        || !answer.next_page_token.is_empty()
        || answer.consumers.iter().any(|one| one.topics_cut);
    Ok(html! {
        (incomplete(&answer.incomplete_shards))
        @if is_cut {
            p.none {
                "Some may be missing: there are more consumers, or more topics of one, than are remembered."
            }
        }
        @if of_topic.is_empty() {
            div.empty {
                p { "No consumer is known that asks for this topic. One that does:" }
                pre {
                    "forebay dequeue --namespace " (place.namespace) " --topic " (place.name) " --wait 20s"
                }
            }
        } @else {
            (table(asked, &of_topic))
            p.none { "The figures of a consumer are those of all its topics." }
        }
        p { a href=(all) { "All consumers of the namespace" } }
    })
}

fn table(asked: &PageRequest, consumers: &[&Consumer]) -> Markup {
    let now = asked.now();
    table::list(
        html! {
            (Head::words("consumer"))
            (Head::number("leased"))
            (Head::number("oldest lease"))
            (Head::number("acks/s"))
            (Head::number("failed"))
            (Head::number("last seen"))
            (Head::words("from"))
            (Head::words("program"))
        },
        html! {
            @for one in consumers {
                tr {
                    td.l.wrap { (named(&one.name)) }
                    td data-head="leased" { (count(one.leased_count)) }
                    td data-head="oldest lease" { (age(one.oldest_lease_at, now)) }
                    td data-head="acks/s" { (rate(one.acks_per_second)) }
                    td data-head="failed" { (percent(one.failure_ratio)) }
                    td data-head="last seen" { (time(one.last_seen_at, now)) }
                    td.l data-head="from" { bdi { (one.peer) } }
                    td.l.wrap data-head="program" { bdi { (one.client) } }
                }
            }
        },
    )
}

/// A consumer, by the name that it gave itself.
pub fn named(name: &str) -> Markup {
    html! { @if name.is_empty() { span.none { "without a name" } } @else { bdi { (name) } } }
}

/// Audit records about the topic, for visitors who may read them.
pub async fn history(asked: &PageRequest, place: &Place<'_>) -> Result<Markup, Trouble> {
    let request = ListAuditRecordsRequest {
        namespace: place.namespace.to_owned(),
        page_size: RECORDS,
        ..ListAuditRecordsRequest::default()
    };
    let answer = match asked.ask(request).await {
        Ok(answer) => answer,
        Err(status) => return Ok(unread("The audit log", &status)),
    };
    let of_topic: Vec<&AuditRecord> =
        answer.records.iter().filter(|record| record.target == place.name).collect();
    let looked = if answer.next_page_token.is_empty() { "all".to_owned() } else { count(answer.scanned) };
    Ok(html! {
        @if of_topic.is_empty() {
            div.empty { p { "Nobody has changed the topic, nor looked at its payloads." } }
        } @else {
            (table::list(
                html! {
                    (Head::words("when"))
                    (Head::words("who"))
                    (Head::words("what"))
                    (Head::words("with"))
                    (Head::words("why"))
                    (Head::words("outcome"))
                },
                html! { @for record in of_topic.iter().take(SHOWN) { (row(asked, record)) } },
            ))
            @if of_topic.len() > SHOWN { p.none { "The latest " (SHOWN) " of " (of_topic.len()) "." } }
        }
        p.none {
            "Of the latest records of the namespace " (looked) " were looked at. "
            a href=(link("audit", &[("ns", place.namespace)])) { "All records" }
        }
    })
}

fn row(asked: &PageRequest, record: &AuditRecord) -> Markup {
    let who = if record.principal.is_empty() { "somebody" } else { &record.principal };
    html! {
        tr {
            td.l { (time(record.at, asked.now())) }
            td.l.wrap data-head="who" { bdi { (who) } }
            td.l data-head="what" { (record.method) }
            td.l.wrap data-head="with" { bdi { (record.request_summary) } }
            td.l.wrap data-head="why" { bdi { (record.reason) } }
            td.l data-head="outcome" { (outcome(record)) }
        }
    }
}

/// The outcome of a call.
fn outcome(record: &AuditRecord) -> String {
    match record.outcome() {
        AuditOutcome::Done => "done".to_owned(),
        AuditOutcome::Failed => format!("failed: {}", record.failure),
        AuditOutcome::Denied => format!("denied: {}", record.failure),
        _ => "not known".to_owned(),
    }
}
