//! `forebay consumer list`

use clap::Args;
use forebay_client::v1::{Consumer, ListConsumersResponse};
use serde_json::Value;

use super::known::known;
use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List, Row, Tone},
    verbs::{connection::Connection, flow::per_second},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay consumer list
  forebay consumer list -o wide
  forebay consumer list --namespace shop -o json
  forebay consumer list --namespace - --limit 5000

A consumer is known by the name that it gives itself with its dequeue calls.")]
pub struct ListConsumers {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The most consumers to list
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl ListConsumers {
    /// Lists the consumers.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let found = known(&client, self.limit).await?;
        let ListConsumersResponse { consumers, consumers_cut, incomplete_shards, next_page_token } = found;
        output::note_incomplete(&self.format.look, &incomplete_shards);
        if consumers_cut {
            let text = "there are more consumers than are remembered; those seen last are listed";
            self.format.look.note(text);
        }
        let rest = vec![
            ("consumersCut", consumers_cut.into()),
            ("incompleteShards", incomplete_shards.into()),
            ("nextPageToken", next_page_token.into()),
        ];
        List { field: "consumers", rows: &consumers, rest }.print(self.format.output, &self.format.look)
    }
}

impl Row for Consumer {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("CONSUMER", |it, _| Cell::from(if it.name.is_empty() { "-" } else { &it.name })),
        Column::new("TOPICS", |it, _| topics(it).into()),
        Column::new("LEASED", |it, _| it.leased_count.into()),
        Column::new("OLDEST LEASE", |it, style| style.optional_time(it.oldest_lease_at).into()),
        Column::new("ACKED/S", |it, _| per_second(it.acks_per_second).into()),
        Column::new("FAILED", |it, _| failed(it.failure_ratio)),
        Column::new("LAST SEEN", |it, style| style.optional_time(it.last_seen_at).into()),
        Column::wide("NAMESPACE", |it, _| Cell::from(&it.namespace)),
        Column::wide("FROM", |it, _| Cell::from(&it.peer)),
        Column::wide("CLIENT", |it, _| Cell::from(&it.client)),
    ];

    fn name(&self) -> String {
        self.name.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Consumer", self)
    }
}

fn topics(it: &Consumer) -> String {
    let more = if it.topics_cut { ", \u{2026}" } else { "" };
    format!("{}{more}", it.topics.join(", "))
}

fn failed(ratio: f64) -> Cell {
    let text = format!("{:.0} %", ratio * 100.0);
    if ratio >= 0.2 { Cell::toned(&text, Tone::Warn) } else { text.into() }
}
