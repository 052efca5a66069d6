//! Which records are asked for: the fields of the page's address, and the form that sets them.

use std::time::UNIX_EPOCH;

use forebay_proto::{
    time::to_timestamp,
    v1::{AuditOutcome, ListAuditRecordsRequest},
};
use forebay_types::Timestamp;
use maud::{Markup, html};

use super::super::super::{asked::PageRequest, links::link, trouble::Trouble};

/// Records of a page.
pub const PAGE_SIZE: u32 = 100;
/// The outcomes: as the field has them, as the call does, and how they are called.
const OUTCOMES: [(&str, AuditOutcome, &str); 5] = [
    ("", AuditOutcome::Unspecified, "any"),
    ("done", AuditOutcome::Done, "done"),
    ("failed", AuditOutcome::Failed, "failed"),
    ("denied", AuditOutcome::Denied, "denied: without the right to it"),
    ("intended", AuditOutcome::Intended, "intended, with an unknown end"),
];
/// The fields that are texts.
const TEXTS: [&str; 5] = ["principal", "method", "outcome", "from", "until"];

/// Filter of the records that the page shows.
pub struct Filter<'a> {
    /// The fields of the page.
    asked: &'a PageRequest,
    /// The outcome of the calls.
    outcome: AuditOutcome,
    /// Calls from this time on.
    from: Option<Timestamp>,
    /// Calls before this time.
    until: Option<Timestamp>,
}

impl<'a> Filter<'a> {
    /// From the fields of the page.
    pub fn of(asked: &'a PageRequest) -> Result<Self, Trouble> {
        let now = asked.now();
        Ok(Self {
            asked,
            outcome: outcome(asked.fields.get("outcome"))?,
            from: time("from", asked.fields.get("from"), now)?,
            until: time("until", asked.fields.get("until"), now)?,
        })
    }

    /// The call.
    pub fn request(&self) -> ListAuditRecordsRequest {
        ListAuditRecordsRequest {
            namespace: self.asked.namespace().to_owned(),
            from: self.from.map(to_timestamp),
            until: self.until.map(to_timestamp),
            principal: self.asked.fields.get("principal").trim().to_owned(),
            method: self.asked.fields.get("method").trim().to_owned(),
            outcome: self.outcome.into(),
            page_size: PAGE_SIZE,
            page_token: self.asked.fields.get("page-token").to_owned(),
        }
    }

    /// Whether all records pass.
    pub fn has_all(&self) -> bool {
        TEXTS.iter().all(|field| self.asked.fields.get(field).trim().is_empty())
    }

    /// The address of the next page. Its times are those of this page, to which its token is bound: a span
    /// would count from later on.
    pub fn next(&self, token: &str) -> String {
        let [from, until] = [self.from, self.until].map(|at| at.map(exact).unwrap_or_default());
        let field = |name| self.asked.fields.get(name);
        link(
            "audit",
            &[
                ("ns", field("ns")),
                ("principal", field("principal")),
                ("method", field("method")),
                ("outcome", field("outcome")),
                ("from", &from),
                ("until", &until),
                ("page-token", token),
            ],
        )
    }

    /// The form.
    pub fn form(&self) -> Markup {
        let field = |name| self.asked.fields.get(name);
        html! {
            form.controls action="audit" {
                label { "Namespace " input name="ns" value=(field("ns")) placeholder="all" maxlength="255"; }
                label {
                    "Who "
                    input name="principal" value=(field("principal")) maxlength="255"
                        placeholder="name, or id of a token";
                }
                label {
                    "Call "
                    input name="method" value=(field("method")) maxlength="255" placeholder="PauseTopic";
                }
                label {
                    "Outcome "
                    select name="outcome" {
                        @for (name, outcome, text) in OUTCOMES {
                            option value=(name) selected[outcome == self.outcome] { (text) }
                        }
                    }
                }
                label {
                    "From "
                    input name="from" value=(field("from")) maxlength="40" placeholder="24h, or a UTC time";
                }
                label {
                    "Until " input name="until" value=(field("until")) placeholder="now" maxlength="40";
                }
                button { "Show" }
            }
        }
    }
}

fn outcome(text: &str) -> Result<AuditOutcome, Trouble> {
    let found = OUTCOMES.iter().find(|(name, ..)| *name == text).map(|(_, outcome, _)| *outcome);
    found.ok_or_else(|| Trouble::field("outcome", "must be done, failed or intended"))
}

/// A time: how long ago it is, as `24h`, or a date with or without a time of day, in UTC as the form says
/// unless it names another offset. Empty: none.
fn time(field: &str, text: &str, now: Timestamp) -> Result<Option<Timestamp>, Trouble> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    if let Ok(span) = humantime::parse_duration(text) {
        return Ok(Some(now.minus(span)));
    }
    if let Ok(at) = text.parse() {
        return Ok(Some(at));
    }
    let dated = ["", ":00", " 00:00:00"].iter();
    let read = dated.filter_map(|rest| humantime::parse_rfc3339_weak(&format!("{text}{rest}")).ok()).next();
    let since = read.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    match since.and_then(|since| i64::try_from(since.as_micros()).ok()) {
        Some(micros) => Ok(Some(Timestamp::from_micros(micros))),
        None => Err(Trouble::field(field, "must be a span as 24h, or a time as 2026-12-24 18:00")),
    }
}

/// A time to the microsecond, as [`time`] reads it.
fn exact(at: Timestamp) -> String {
    format!("{at:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-09-21T14:13:20Z.
    const NOW: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

    #[test]
    fn a_time_is_a_span_or_a_date() {
        let seconds = |text| time("from", text, NOW).unwrap().map(|at| at.as_micros() / 1_000_000);
        assert_eq!(seconds(" "), None);
        assert_eq!(seconds("24h"), Some(1_790_000_000 - 86_400));
        for text in [
            "2026-09-21T14:13:20Z",
            "2026-09-21T16:13:20+02:00",
            "2026-09-21 14:13:20",
            " 2026-09-21T14:13:20.000000Z ",
        ] {
            assert_eq!(seconds(text), Some(1_790_000_000), "{text}");
        }
        assert_eq!(seconds("2026-09-21 14:13"), Some(1_790_000_000 - 20));
        assert_eq!(seconds("2026-09-21"), Some(1_790_000_000 - (14 * 3_600 + 13 * 60 + 20)));
        for text in ["yesterday", "1960-01-01", "2026-13-01", "2026-09-21 14"] {
            assert!(time("from", text, NOW).is_err(), "{text}");
        }
    }

    #[test]
    fn the_next_page_has_the_same_times() {
        let at = Timestamp::from_micros(1_790_000_000_123_456);
        assert_eq!(time("from", &exact(at), NOW).unwrap(), Some(at), "to the microsecond");
    }

    #[test]
    fn an_outcome_has_a_name() {
        assert_eq!(outcome("failed").unwrap(), AuditOutcome::Failed);
        assert_eq!(outcome("").unwrap(), AuditOutcome::Unspecified);
        assert!(outcome("good").is_err());
    }
}
