//! Parts that `topic pause`, `topic resume`, `namespace pause` and `namespace resume` share.

use std::time::Duration;

use clap::{Args, ValueEnum};
use forebay_client::{
    Timestamp,
    v1::{Pause, PauseTopicRequest, ResumeTopicRequest, Side},
};
use forebay_proto::time::to_timestamp;
use forebay_types::{Clock, SystemClock};
use serde_json::Value;

use super::{connection::Connection, note::Note};
use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List, Row},
    parse,
};

/// Which sides of a topic.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sides {
    /// New items.
    Enqueue,
    /// Deliveries.
    Dequeue,
    /// New items and deliveries.
    Both,
}

impl Sides {
    fn numbers(self) -> Vec<i32> {
        match self {
            Self::Enqueue => vec![Side::Enqueue.into()],
            Self::Dequeue => vec![Side::Dequeue.into()],
            Self::Both => vec![Side::Enqueue.into(), Side::Dequeue.into()],
        }
    }
}

/// The flags of a pause.
#[derive(Args)]
pub struct PauseFlags {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// Side that is paused: new items, deliveries, or both
    #[arg(long, value_enum, default_value = "both")]
    side: Sides,
    /// End the pause after so long, as in 2h
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = humantime::parse_duration,
        conflicts_with = "until"
    )]
    span: Option<Duration>,
    /// End the pause at this time, as in 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
    /// Why, for whoever meets the pause
    #[arg(long, value_name = "TEXT", value_parser = parse::free_text(), default_value = "")]
    #[arg(hide_default_value = true)]
    note: String,
    /// Only check, and show the pauses that there would be
    #[arg(long)]
    dry_run: bool,
}

impl PauseFlags {
    /// Pauses a topic; an empty one is the whole namespace.
    pub async fn run(self, topic: &str) -> Result<(), Failure> {
        let until = self.until.or(self.span.map(|span| SystemClock::default().wall().plus(span)));
        let client = self.connection.client().await?;
        let request = PauseTopicRequest {
            namespace: client.namespace().to_owned(),
            topic: topic.to_owned(),
            sides: self.side.numbers(),
            until: until.map(to_timestamp),
            note: self.note,
            dry_run: self.dry_run,
        };
        print(&self.format, &client.ask(request).await?.pauses)
    }
}

/// The flags of a resume.
#[derive(Args)]
pub struct ResumeFlags {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// Side that goes on: new items, deliveries, or both
    #[arg(long, value_enum, default_value = "both")]
    side: Sides,
    /// Flags that all changes share.
    #[command(flatten)]
    note: Note,
}

impl ResumeFlags {
    /// Ends pauses of a topic; an empty one is the whole namespace.
    pub async fn run(self, topic: &str) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let request = ResumeTopicRequest {
            namespace: client.namespace().to_owned(),
            topic: topic.to_owned(),
            sides: self.side.numbers(),
            reason: self.note.reason,
            dry_run: self.note.dry_run,
        };
        print(&self.format, &client.ask(request).await?.pauses)
    }
}

/// The pauses that there are now.
fn print(format: &Format, pauses: &[Pause]) -> Result<(), Failure> {
    List { field: "pauses", rows: pauses, rest: Vec::new() }.print(format.output, &format.look)
}

impl Row for Pause {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("PAUSED", |row, _| side_name(row).into()),
        Column::new("SINCE", |row, style| style.optional_time(row.since).into()),
        Column::new("UNTIL", |row, style| style.optional_time(row.until).into()),
        Column::new("BY", |row, _| Cell::from(&row.by)),
        Column::new("NOTE", |row, _| Cell::from(&row.note)),
    ];

    fn name(&self) -> String {
        side_name(self)
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Pause", self)
    }
}

/// The side as people read it.
pub fn side_name(pause: &Pause) -> String {
    output::word(pause.side().as_str_name(), "SIDE_")
}
