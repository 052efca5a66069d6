//! `forebay history`

use std::time::Duration;

use clap::{Args, builder::PossibleValuesParser};
use forebay_client::v1::{GetHistoryRequest, GetHistoryResponse, HistoryLine, HistorySeries};
use forebay_proto::time::{from_duration, to_duration};
use forebay_types::ALL_NAMESPACES;
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
        value_parser = PossibleValuesParser::new(all_series().map(name)),
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
        let client = self.connection.client().await?;
        let whole = self.cluster || self.shard.is_some();
        let request = GetHistoryRequest {
            namespace: if whole { ALL_NAMESPACES } else { client.namespace() }.to_owned(),
            topic: self.topic.clone(),
            series: all_series().filter(|it| self.series.contains(&name(*it))).map(i32::from).collect(),
            range: Some(to_duration(self.range)),
            step: self.step.map(to_duration),
            shard: self.shard,
        };
        let mut found = client.ask(request).await?;
        // Later servers know more.
        found.lines.retain(|line| line.series() != HistorySeries::Unspecified);
        let [step, looked_every] = [found.step, found.looked_every].map(span_of);
        output::note_incomplete(&self.format.look, &found.incomplete_shards);
        if found.topics_cut {
            let note = "a node has more than 50,000 topics: only the first ones by name are in the figures";
            self.format.look.note(note);
        }
        if looked_every > step {
            let every = humantime::format_duration(looked_every);
            self.format.look.note(&format!("a node looks every {every}: in between its figures stand still"));
        }
        output::print_one(&TopicHistory { topic: self.topic, found }, &self.format)
    }
}

/// The series that there are, in the order of their numbers.
fn all_series() -> impl Iterator<Item = HistorySeries> {
    (1..).map_while(|number| HistorySeries::try_from(number).ok())
}

/// Names a series in commands.
fn name(series: HistorySeries) -> String {
    output::word(series.as_str_name(), "HISTORY_SERIES_")
}

fn span_of(span: Option<prost_types::Duration>) -> Duration {
    span.map(from_duration).unwrap_or_default()
}

/// A history, and what it is of.
struct TopicHistory {
    /// The topic. Empty: a namespace, a shard, or the cluster.
    topic: String,
    /// How it was.
    found: GetHistoryResponse,
}

impl One for TopicHistory {
    fn name(&self) -> String {
        self.topic.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("GetHistoryResponse", &self.found)
    }

    fn table(&self, style: &Style) -> Table {
        let GetHistoryResponse { begins_at, step, lines, .. } = &self.found;
        let mut table = Table::new(["SERIES", "LAST", "LEAST", "MOST", "PLOT"]);
        for line in lines {
            // There is a gap where nobody looked.
            let shown: Vec<Option<f64>> =
                line.points.iter().map(|point| Some(*point).filter(|it| !it.is_nan())).collect();
            let points: Vec<f64> = shown.iter().copied().flatten().collect();
            let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |it| figure(line, it));
            let least = points.iter().copied().reduce(f64::min);
            let most = points.iter().copied().reduce(f64::max);
            let last = shown.last().copied().flatten();
            table.row([
                name(line.series()).into(),
                figure(last).into(),
                figure(least).into(),
                figure(most).into(),
                sparkline(&shown, WIDTH).into(),
            ]);
        }
        let note = match begins_at {
            None => "nothing is known".to_owned(),
            Some(at) => {
                let step = humantime::format_duration(span_of(*step));
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
    match line.series() {
        Enqueued | Delivered | Acked | Failed | DeadLettered => format!("{}/s", per_second(value)),
        OldestReadyAge => format!("{value:.0} s"),
        WaitP50 | WaitP99 | HandlingP50 | HandlingP99 => {
            output::span(Duration::try_from_secs_f64(value).unwrap_or_default())
        }
        _ => format!("{value:.0}"),
    }
}
