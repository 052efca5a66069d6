//! `forebay audit list`

use std::time::Duration;

use clap::{Args, ValueEnum};
use forebay_client::{
    Timestamp,
    v1::{self, AuditOutcome},
};
use forebay_proto::time::to_timestamp;
use forebay_types::{Clock as _, SystemClock};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List as Printed, Row, Tone},
    verbs::{connection::Connection, pages},
};

/// Outcome of a call.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Outcome {
    /// Nothing is known of its end.
    Intended,
    /// It was done.
    Done,
    /// It failed.
    Failed,
    /// Its caller had no right to it, so it was not made.
    Denied,
}

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay audit list --since 24h
  forebay audit list --principal mailer --outcome failed
  forebay audit list --namespace - --from 2026-12-24T00:00:00Z --until 2026-12-25T00:00:00Z -o json")]
pub struct List {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// Calls of the last so long, as in 24h
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with = "from")]
    since: Option<Duration>,
    /// Calls from this time on, as in 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Calls before this time
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
    /// Calls of this principal, or of the token with this id
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME")]
    principal: String,
    /// These calls, as PauseTopic
    #[arg(long, default_value = "", hide_default_value = true, value_name = "CALL")]
    method: String,
    /// Calls that ended so
    #[arg(long, value_enum)]
    outcome: Option<Outcome>,
    /// The most records to list
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl List {
    /// Lists them.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let from = self.from.or(self.since.map(|span| SystemClock::default().wall().minus(span)));
        let outcome = match self.outcome {
            None => AuditOutcome::Unspecified,
            Some(Outcome::Intended) => AuditOutcome::Intended,
            Some(Outcome::Done) => AuditOutcome::Done,
            Some(Outcome::Failed) => AuditOutcome::Failed,
            Some(Outcome::Denied) => AuditOutcome::Denied,
        };
        let request = v1::ListAuditRecordsRequest {
            namespace: client.namespace().to_owned(),
            from: from.map(to_timestamp),
            until: self.until.map(to_timestamp),
            principal: self.principal,
            method: self.method,
            outcome: outcome.into(),
            ..Default::default()
        };
        let pages = pages::collect(self.limit, async |page_size, page_token| {
            let request = v1::ListAuditRecordsRequest { page_size, page_token, ..request.clone() };
            let page = client.ask(request).await?;
            Ok((page.records, page.next_page_token))
        });
        let (records, next) = pages.await?;
        Printed::up_to("records", &records, &next).print(self.format.output, &self.format.look)
    }
}

impl Row for v1::AuditRecord {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("AT", |it, style| style.optional_time(it.at).into()),
        Column::new("WHO", |it, _| match it.principal.as_str() {
            "" => output::word(it.principal_kind().as_str_name(), "PRINCIPAL_KIND_").into(),
            name => Cell::from(name),
        }),
        Column::wide("FROM", |it, _| Cell::from(&it.peer)),
        Column::new("CALL", |it, _| Cell::from(&it.method)),
        Column::new("NAMESPACE", |it, _| Cell::from(&it.namespace)),
        Column::new("TARGET", |it, _| Cell::from(&it.target)),
        Column::new("OUTCOME", |it, _| match it.outcome() {
            AuditOutcome::Failed => Cell::toned(it.failure.clone(), Tone::Warn),
            AuditOutcome::Denied => Cell::toned(format!("denied: {}", it.failure), Tone::Warn),
            outcome => output::word(outcome.as_str_name(), "AUDIT_OUTCOME_").into(),
        }),
        Column::new("REASON", |it, _| Cell::from(&it.reason)),
        Column::wide("REQUEST", |it, _| Cell::from(&it.request_summary)),
        Column::wide("OPERATION", |it, _| Cell::from(&it.operation_id)),
        Column::wide("NODE", |it, _| Cell::from(&it.node)),
        Column::wide("TRACE", |it, _| Cell::from(&it.trace_id)),
    ];

    fn name(&self) -> String {
        self.id.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("AuditRecord", self)
    }
}
