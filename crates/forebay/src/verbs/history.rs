//! `forebay history`

use std::time::Duration;

use clap::{Args, builder::PossibleValuesParser};
use forebay_client::{History, HistoryLine, HistoryQuery, HistorySeries};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Format, One, Style, Table},
    verbs::{connection::Connection, flow::per_second, sparkline::sparkline},
};

/// Columns of a line.
const WIDTH: usize = 60;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay history
  forebay history --topic mail --range 1h
  forebay history --cluster --range 5m --series ready,acked
  forebay history --shard 3 --range 10m
  forebay history --range 1d --step 5m -o json

Nodes keep this in memory: the last 5 minutes by the second, an hour by 10 s, a day by 5 minutes; of a
topic and of a shard 10 minutes by 10 s, and a day by 5 minutes. After a restart it begins anew.")]
pub struct GetHistory {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The history of this topic, in place of the namespace
    #[arg(long, default_value = "", hide_default_value = true, conflicts_with = "cluster")]
    topic: String,
    /// The history of the whole cluster
    #[arg(long)]
    cluster: bool,
    /// The history of this shard
    #[arg(long, conflicts_with_all = ["cluster", "topic"], value_name = "SHARD")]
    shard: Option<u32>,
    /// Only these series
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(HistorySeries::ALL.map(HistorySeries::name)),
        value_name = "SERIES"
    )]
    series: Vec<String>,
    /// How far back: at most 1d
    #[arg(long, value_parser = humantime::parse_duration, default_value = "15m", value_name = "TIME")]
    range: Duration,
    /// How far apart the points are: 1s, 10s or 5m [default: the finest that reaches back far enough]
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    step: Option<Duration>,
}

impl GetHistory {
    /// Shows it.
    pub async fn run(self) -> Result<(), Failure> {
        let named = |series: &HistorySeries| self.series.iter().any(|name| name == series.name());
        let query = HistoryQuery {
            cluster: self.cluster,
            shard: self.shard,
            topic: self.topic.clone(),
            series: HistorySeries::ALL.into_iter().filter(named).collect(),
            range: Some(self.range),
            step: self.step,
        };
        let found = self.connection.client().await?.history(&query).await?;
        output::note_incomplete(&self.format.look, &found.incomplete_shards);
        if found.topics_cut {
            let note = "a node has more than 50,000 topics: only the first ones by name are in the figures";
            self.format.look.note(note);
        }
        if found.looked_every > found.step {
            let every = humantime::format_duration(found.looked_every);
            self.format.look.note(&format!("a node looks every {every}: in between its figures stand still"));
        }
        output::print_one(&Shown { topic: self.topic, found }, &self.format)
    }
}

/// A history, and what it is of.
struct Shown {
    /// The topic. Empty: a namespace, a shard, or the cluster.
    topic: String,
    /// How it was.
    found: History,
}

impl One for Shown {
    fn name(&self) -> String {
        self.topic.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("GetHistoryResponse", &output::history(&self.found))
    }

    fn table(&self, style: &Style) -> Table {
        let History { begins_at, step, lines, .. } = &self.found;
        let mut table = Table::new(["SERIES", "LAST", "LEAST", "MOST", "PLOT"]);
        for line in lines {
            let points: Vec<f64> = line.points.iter().copied().flatten().collect();
            let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| figure(line, it));
            let least = points.iter().copied().reduce(f64::min);
            let most = points.iter().copied().reduce(f64::max);
            let last = line.points.last().copied().flatten();
            table.row([
                line.series.name().into(),
                figure(last).into(),
                figure(least).into(),
                figure(most).into(),
                sparkline(&line.points, WIDTH).into(),
            ]);
        }
        let note = match begins_at {
            None => "nothing is known".to_owned(),
            Some(at) => {
                let step = humantime::format_duration(*step);
                format!("from {} on, by {step}", style.optional_time(Some(*at)))
            }
        };
        table.row([note.into(), "".into(), "".into(), "".into(), "".into()]);
        table
    }
}

/// A point in the unit of its series.
fn figure(line: &HistoryLine, value: f64) -> String {
    use HistorySeries::{
        Acked, DeadLettered, Delivered, Enqueued, Failed, HandlingP50, HandlingP99, OldestReadyAge, WaitP50,
        WaitP99,
    };
    match line.series {
        Enqueued | Delivered | Acked | Failed | DeadLettered => format!("{}/s", per_second(value)),
        OldestReadyAge => format!("{value:.0} s"),
        WaitP50 | WaitP99 | HandlingP50 | HandlingP99 => {
            output::span(Duration::try_from_secs_f64(value).unwrap_or_default())
        }
        _ => format!("{value:.0}"),
    }
}
