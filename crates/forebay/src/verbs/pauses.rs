//! What `topic pause`, `topic resume`, `namespace pause` and `namespace resume` share.

use std::time::Duration;

use clap::{Args, ValueEnum};
use forebay_client::{Side, Timestamp, TopicPause};
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
    const fn list(self) -> &'static [Side] {
        match self {
            Self::Enqueue => &[Side::Enqueue],
            Self::Dequeue => &[Side::Dequeue],
            Self::Both => &Side::BOTH,
        }
    }
}

/// The flags of a pause.
#[derive(Args)]
pub struct Pausing {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// What is paused: new items, deliveries, or both
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

impl Pausing {
    /// Pauses a topic; an empty one is the whole namespace.
    pub async fn run(self, topic: &str) -> Result<(), Failure> {
        let until = self.until.or(self.span.map(|span| SystemClock::default().wall().plus(span)));
        let client = self.connection.client().await?;
        let pauses = client.pause_topic(topic, self.side.list(), until, &self.note, self.dry_run).await?;
        print(&self.format, &pauses)
    }
}

/// The flags of a resume.
#[derive(Args)]
pub struct Resuming {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// What goes on: new items, deliveries, or both
    #[arg(long, value_enum, default_value = "both")]
    side: Sides,
    /// What all changes share.
    #[command(flatten)]
    note: Note,
}

impl Resuming {
    /// Ends pauses of a topic; an empty one is the whole namespace.
    pub async fn run(self, topic: &str) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let pauses = client.resume_topic(topic, self.side.list(), self.note.into()).await?;
        print(&self.format, &pauses)
    }
}

/// The pauses that there are now.
fn print(format: &Format, pauses: &[TopicPause]) -> Result<(), Failure> {
    let rows: Vec<Paused> = pauses.iter().cloned().map(Paused).collect();
    List { field: "pauses", rows: &rows, rest: Vec::new() }.print(format.output, &format.look)
}

/// A pause, as a row.
struct Paused(TopicPause);

impl Row for Paused {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("PAUSED", |row, _| Cell::from(side_name(&row.0))),
        Column::new("SINCE", |row, style| style.optional_time(row.0.since).into()),
        Column::new("UNTIL", |row, style| style.optional_time(row.0.until).into()),
        Column::new("BY", |row, _| Cell::from(&row.0.by)),
        Column::new("NOTE", |row, _| Cell::from(&row.0.note)),
    ];

    fn name(&self) -> String {
        side_name(&self.0).to_owned()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Pause", &output::pause(&self.0))
    }
}

/// The side as people read it.
pub fn side_name(pause: &TopicPause) -> &'static str {
    pause.side.map_or("unknown", Side::as_str)
}
