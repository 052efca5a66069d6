//! `forebay namespace list`

use std::collections::BTreeSet;

use clap::Args;
use forebay_client::v1::{ListNamespacesRequest, Namespace};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List, Row},
    verbs::{
        connection::Connection,
        flow::{count, rate},
        pages,
        pauses::side_name,
    },
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay namespace list
  forebay namespace list -o wide
  forebay namespace list --limit 20 -o json

It needs the right to observe all namespaces. Whoever has it for one uses `namespace get`.")]
pub struct ListNamespaces {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The most namespaces to list
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl ListNamespaces {
    /// Lists namespaces.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let (mut incomplete, mut uncounted, mut scanned) = (BTreeSet::new(), BTreeSet::new(), 0);
        let pages = pages::collect(self.limit, async |page_size, page_token| {
            let page = client.ask(ListNamespacesRequest { page_size, page_token }).await?;
            incomplete.extend(page.incomplete_shards);
            uncounted.extend(page.uncounted_shards);
            scanned += page.scanned;
            Ok((page.namespaces, page.next_page_token))
        });
        let (namespaces, next) = pages.await?;
        let incomplete: Vec<u32> = incomplete.into_iter().collect();
        let uncounted: Vec<u32> = uncounted.into_iter().collect();
        output::note_incomplete(&self.format.look, &incomplete);
        output::note_uncounted(&self.format.look, &uncounted);
        let rest = vec![
            ("nextPageToken", next.into()),
            ("incompleteShards", incomplete.into()),
            ("uncountedShards", uncounted.into()),
            // As protobuf JSON has numbers of 64 bits.
            ("scanned", scanned.to_string().into()),
        ];
        List { field: "namespaces", rows: &namespaces, rest }.print(self.format.output, &self.format.look)
    }
}

/// A sum over topics, which is too small if not all were looked at.
fn sum(of: &Namespace, figure: u64) -> Cell {
    if of.topics_cut { format!("\u{2265} {figure}").into() } else { figure.into() }
}

impl Row for Namespace {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("NAMESPACE", |it, _| it.name().into()),
        Column::new("OLDEST READY", |it, style| style.optional_time(it.oldest_ready_at).into()),
        Column::new("READY", |it, _| sum(it, it.ready_count)),
        Column::new("LEASED", |it, _| sum(it, it.leased_count)),
        Column::new("SCHEDULED", |it, _| sum(it, it.scheduled_count)),
        Column::new("DEAD", |it, _| sum(it, it.dead_count)),
        Column::new("TOPICS", |it, _| sum(it, it.topic_count)),
        Column::new("PAUSED", |it, _| {
            let sides: Vec<String> = it.pauses.iter().map(side_name).collect();
            sides.join(", ").into()
        }),
        Column::new("IN/S", |it, _| rate(it.rates.as_ref(), |rates| rates.enqueued)),
        Column::new("ACKED/S", |it, _| rate(it.rates.as_ref(), |rates| rates.acked)),
        Column::wide("OUT/S", |it, _| rate(it.rates.as_ref(), |rates| rates.delivered)),
        Column::wide("FAILED/S", |it, _| rate(it.rates.as_ref(), |rates| rates.failed)),
        Column::wide("EXPIRED", |it, _| count(it.counts.as_ref(), |counts| counts.expired)),
        Column::wide("REMOVED", |it, _| count(it.counts.as_ref(), |counts| counts.removed)),
        Column::wide("WAITING", |it, _| sum(it, it.waiting_calls)),
        Column::wide("SETTINGS VERSION", |it, _| it.settings_version.into()),
    ];

    fn name(&self) -> String {
        self.namespace.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Namespace", self)
    }
}
