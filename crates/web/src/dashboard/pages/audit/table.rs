//! The table of records.

use forebay_access::Scope;
use forebay_proto::{
    time::from_timestamp,
    v1::{AuditOutcome, AuditRecord, PrincipalKind},
};
use maud::{Markup, html};

use super::super::super::{
    asked::PageRequest,
    links::{self, link},
    live::Live,
    table::{self, Head},
    texts::utc,
};

/// Explains a call whose end is not known.
const INTENDED: &str =
    "It was about to be made, and nothing is known of its end. It may or may not have taken effect";

/// Explains the column with the subject of a call and the other fields of its request.
const ABOUT: &str = "The topic, item, operation, token, node or shard, and the request";

/// Makes it.
pub fn make(asked: &PageRequest, records: &[AuditRecord], live: &mut Live) -> Markup {
    table::list(
        html! {
            (Head::words("time (UTC)"))
            (Head::words("who"))
            (Head::words("from").title("From where the call came"))
            (Head::words("call"))
            (Head::words("namespace"))
            (Head::words("about").title(ABOUT))
            (Head::words("reason").title("Why, in the words of the caller"))
            (Head::words("outcome"))
            (Head::words("operation").title("The operation that it began"))
            (Head::words("node").title("The node that took it"))
            (Head::words("trace").title("The trace of which the call is part"))
        },
        html! { @for record in records { (row(asked, record, live)) } },
    )
}

fn row(asked: &PageRequest, record: &AuditRecord, live: &mut Live) -> Markup {
    let id = live.row(&[&record.id]);
    let at = record.at.map(from_timestamp).map(utc).unwrap_or_default();
    let (class, outcome) = outcome(record);
    let title = Some(INTENDED).filter(|_| record.outcome() == AuditOutcome::Intended);
    html! {
        tr data-row=(id) {
            td.l { time datetime=(at.replace(' ', "T") + "Z") { (at) } }
            td.l data-head="who" { (who(asked, record)) }
            td.l data-head="from" { bdi { (record.peer) } }
            td.l data-head="call" {
                a href=(narrowed(asked, "method", &record.method)) { bdi { (record.method) } }
            }
            td.l data-head="in" { @if !record.namespace.is_empty() { (links::namespace(&record.namespace)) } }
            td.l.wrap data-head="about" {
                bdi { (record.target) }
                @if !record.request_summary.is_empty() { p.dim { bdi { (record.request_summary) } } }
            }
            td.l.wrap data-head="reason" { bdi { (record.reason) } }
            td.l data-head="outcome" title=[title] { (live.word(format!("{id}o"), class, outcome)) }
            td.l data-head="operation" { (operation(asked, record)) }
            td.l data-head="node" { bdi { (record.node) } }
            td.l data-head="trace" { @if !record.trace_id.is_empty() { span.id { (record.trace_id) } } }
        }
    }
}

/// The records of the page that have this too.
fn narrowed(asked: &PageRequest, field: &str, value: &str) -> String {
    let kept = ["ns", "principal", "method", "outcome", "from", "until"].map(|name| {
        let value = if name == field { value } else { asked.fields.get(name) };
        (name, value)
    });
    link("audit", &kept)
}

fn who(asked: &PageRequest, record: &AuditRecord) -> Markup {
    if record.principal.is_empty() {
        return html! { span.none { (nobody(record.principal_kind())) } };
    }
    let title = Some(format!("token {}", record.token_id)).filter(|_| !record.token_id.is_empty());
    html! {
        a href=(narrowed(asked, "principal", &record.principal)) title=[title] { bdi { (record.principal) } }
    }
}

/// Whoever has no name.
fn nobody(kind: PrincipalKind) -> &'static str {
    match kind {
        PrincipalKind::Anyone => "anyone",
        PrincipalKind::Operator => "an operator",
        PrincipalKind::Token => "a token",
        PrincipalKind::Certificate => "a certificate",
        PrincipalKind::Unspecified => "not known",
    }
}

/// The class and the words of what became of a call.
fn outcome(record: &AuditRecord) -> (&'static str, String) {
    match (record.outcome(), record.failure.as_str()) {
        (AuditOutcome::Done, _) => ("good", "done".to_owned()),
        (AuditOutcome::Failed, "") => ("bad", "failed".to_owned()),
        (AuditOutcome::Failed, failure) => ("bad", format!("failed: {failure}")),
        (AuditOutcome::Denied, reason) => ("bad", format!("denied: {reason}")),
        (AuditOutcome::Intended, _) => ("warn", "intended".to_owned()),
        (AuditOutcome::Unspecified, _) => ("warn", "not known".to_owned()),
    }
}

/// The operation that a call began, as a link for those who may see it.
fn operation(asked: &PageRequest, record: &AuditRecord) -> Markup {
    html! {
        @if !record.operation_id.is_empty() {
            @if asked.may(Scope::Operate, &record.namespace) {
                (links::operation(&record.namespace, &record.operation_id))
            } @else {
                span.id { (record.operation_id) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_call_is_said_with_its_reason() {
        let record = |outcome: AuditOutcome, failure: &str| AuditRecord {
            outcome: outcome.into(),
            failure: failure.to_owned(),
            ..AuditRecord::default()
        };
        let said = |outcome, failure| super::outcome(&record(outcome, failure));
        assert_eq!(said(AuditOutcome::Done, ""), ("good", "done".into()));
        let failed = said(AuditOutcome::Failed, "TOPIC_NOT_FOUND");
        assert_eq!(failed, ("bad", "failed: TOPIC_NOT_FOUND".into()));
        assert_eq!(said(AuditOutcome::Intended, "").0, "warn", "it may have taken effect");
        let newer = AuditRecord { outcome: 99, ..AuditRecord::default() };
        assert_eq!(super::outcome(&newer).0, "warn");
    }
}
