//! `forebay topic watch`

use std::{
    io::{self, Write as _},
    time::Duration,
};

use clap::Args;
use forebay_client::v1::{GetTopicRequest, Rates, Topic};
use forebay_types::{Clock as _, SystemClock};
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    failure::Failure,
    output::{self, Format, Json, Output, Style},
    verbs::{connection::Connection, flow::per_second},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic watch mail
  forebay topic watch mail --interval 5s
  forebay topic watch mail --count 10 -o jsonl

A line each time, until Ctrl-C. As JSON a line is the topic that `forebay topic list -o jsonl` prints.")]
pub struct Watch {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The topic
    topic: String,
    /// How often to ask
    #[arg(long, value_parser = humantime::parse_duration, default_value = "1s", value_name = "TIME")]
    interval: Duration,
    /// Ends after so many lines
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

impl Watch {
    /// Prints the topic's figures again and again. It ends with the topic.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let is_table = matches!(self.format.output, Output::Table | Output::Wide);
        let mut ticks = interval(self.interval.max(Duration::from_millis(100)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut incomplete = Vec::new();
        for line in 0..self.count.unwrap_or(u64::MAX) {
            ticks.tick().await;
            let (namespace, topic) = (client.namespace().to_owned(), self.topic.clone());
            let report = client.ask(GetTopicRequest { namespace, topic }).await?;
            let topic = report.topic.unwrap_or_default();
            if report.incomplete_shards != incomplete {
                output::note_incomplete(&self.format.look, &report.incomplete_shards);
                incomplete = report.incomplete_shards;
            }
            let mut out = io::stdout().lock();
            if is_table && line == 0 {
                writeln!(out, "{}", columns(HEADS.map(str::to_owned)))?;
            }
            match self.format.output {
                Output::Table | Output::Wide => {
                    writeln!(out, "{}", columns(figures(&topic, &self.format.look.style())))?;
                }
                Output::Name => writeln!(out, "{}", topic.topic)?,
                Output::Json | Output::Jsonl => {
                    let topic = output::to_json("Topic", &topic)?;
                    writeln!(out, "{}", Json(&topic))?;
                }
            }
            out.flush()?;
        }
        Ok(())
    }
}

/// The heads of the columns.
const HEADS: [&str; 10] =
    ["TIME", "OLDEST READY", "READY", "LEASED", "SCHEDULED", "DEAD", "IN/S", "OUT/S", "FAILED/S", "WAIT P99"];
/// How wide they are. Lines come one by one, so they can't be as wide as the longest.
const WIDTHS: [usize; 10] = [28, 16, 10, 10, 10, 10, 10, 10, 10, 10];

/// A line.
fn columns(texts: [String; 10]) -> String {
    let padded = texts.iter().zip(WIDTHS).map(|(text, width)| format!("{text:<width$}"));
    padded.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

fn figures(topic: &Topic, style: &Style) -> [String; 10] {
    let rate = |which: fn(&Rates) -> f64| {
        topic.rates.as_ref().map_or_else(|| "-".to_owned(), |rates| per_second(which(rates)))
    };
    [
        Style::iso().time(SystemClock::default().wall()),
        style.optional_time(topic.oldest_ready_at),
        topic.ready_count.to_string(),
        topic.leased_count.to_string(),
        topic.scheduled_count.to_string(),
        topic.dead_count.to_string(),
        rate(|rates| rates.enqueued),
        rate(|rates| rates.acked),
        rate(|rates| rates.failed),
        output::optional_span(topic.wait_p99),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_below_their_heads() {
        let heads = columns(HEADS.map(str::to_owned));
        let line = columns(std::array::from_fn(|column| format!("x{column}")));
        for (column, head) in HEADS.iter().enumerate() {
            assert_eq!(heads.rfind(head), line.find(&format!("x{column}")), "{head}");
        }
    }
}
