//! GetHistory: how figures were in the last minutes, up to a day.

use std::time::Duration;

use forebay_proto::v1;
use forebay_types::{ALL_NAMESPACES, Timestamp};

use crate::{
    client::Client,
    durations::{from_proto, time_from_proto, to_proto},
    error::Error,
};

/// What is told of the cluster, a shard, a namespace or a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistorySeries {
    /// Items enqueued a second.
    Enqueued,
    /// Deliveries begun a second.
    Delivered,
    /// Deliveries acked a second.
    Acked,
    /// Deliveries a second that were nacked, or whose lease ran out.
    Failed,
    /// Items that could be leased.
    Ready,
    /// For how many seconds the first ready item has waited, of the topic where that is longest.
    OldestReadyAge,
    /// Items that became dead letters, a second. Not of a topic.
    DeadLettered,
    /// Items that are leased. Not of a topic.
    Leased,
    /// Items that are not due yet. Not of a topic.
    Scheduled,
    /// Dead letters. Not of a topic.
    Dead,
    /// Dequeue calls that wait. Not of a topic, nor of a shard.
    WaitingCalls,
    /// Topics. Not of a topic, nor of a shard.
    Topics,
    /// For how many seconds half of the items had been ready at most when they were delivered, over one to
    /// two minutes. Not of a shard.
    WaitP50,
    /// The same for 99 of 100 items.
    WaitP99,
    /// For how many seconds half of the deliveries had lasted at most when they were acked. Not of a shard.
    HandlingP50,
    /// The same for 99 of 100 deliveries.
    HandlingP99,
}

impl HistorySeries {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Enqueued,
        Self::Delivered,
        Self::Acked,
        Self::Failed,
        Self::Ready,
        Self::OldestReadyAge,
        Self::DeadLettered,
        Self::Leased,
        Self::Scheduled,
        Self::Dead,
        Self::WaitingCalls,
        Self::Topics,
        Self::WaitP50,
        Self::WaitP99,
        Self::HandlingP50,
        Self::HandlingP99,
    ];

    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enqueued => "enqueued",
            Self::Delivered => "delivered",
            Self::Acked => "acked",
            Self::Failed => "failed",
            Self::Ready => "ready",
            Self::OldestReadyAge => "oldest-ready-age",
            Self::DeadLettered => "dead-lettered",
            Self::Leased => "leased",
            Self::Scheduled => "scheduled",
            Self::Dead => "dead",
            Self::WaitingCalls => "waiting-calls",
            Self::Topics => "topics",
            Self::WaitP50 => "wait-p50",
            Self::WaitP99 => "wait-p99",
            Self::HandlingP50 => "handling-p50",
            Self::HandlingP99 => "handling-p99",
        }
    }

    /// Its number between client and server.
    pub fn number(self) -> i32 {
        1 + self as i32
    }

    fn of(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|series| series.number() == number)
    }
}

/// Which history is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryQuery {
    /// That of the whole cluster, in place of the client's own namespace.
    pub cluster: bool,
    /// That of a shard, in place of the client's own namespace.
    pub shard: Option<u32>,
    /// The topic. Empty: the namespace.
    pub topic: String,
    /// What of it. Empty: all that there is.
    pub series: Vec<HistorySeries>,
    /// How far back. `None`: 15 minutes.
    pub range: Option<Duration>,
    /// How far apart the points are. `None`: the server chooses.
    pub step: Option<Duration>,
}

/// How figures were.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// The time of the first points. `None`: there are none.
    pub begins_at: Option<Timestamp>,
    /// How far apart the points are.
    pub step: Duration,
    /// The series, without those that this client does not know.
    pub lines: Vec<HistoryLine>,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
    /// Some node has more topics than it looks at. Only the first ones by name are in the figures.
    pub topics_cut: bool,
    /// How far two looks of a node lie apart, at most. Points in between are as the look before them saw it.
    pub looked_every: Duration,
}

/// One series.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryLine {
    /// Which one.
    pub series: HistorySeries,
    /// One point a step. `None`: nobody looked then.
    pub points: Vec<Option<f64>>,
}

impl Client {
    /// How figures of the cluster, of a shard, of the client's namespace or of a topic were.
    pub async fn history(&self, query: &HistoryQuery) -> Result<History, Error> {
        let whole = query.cluster || query.shard.is_some();
        let namespace = if whole { ALL_NAMESPACES.to_owned() } else { self.config.namespace.clone() };
        let request = v1::GetHistoryRequest {
            namespace,
            topic: query.topic.clone(),
            series: query.series.iter().map(|series| series.number()).collect(),
            range: query.range.map(to_proto),
            step: query.step.map(to_proto),
            shard: query.shard,
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.get_history(request).await }
            })
            .await?;
        let line = |line: v1::HistoryLine| {
            let points = line.points.into_iter().map(|point| Some(point).filter(|it| !it.is_nan()));
            Some(HistoryLine { series: HistorySeries::of(line.series)?, points: points.collect() })
        };
        Ok(History {
            begins_at: answer.begins_at.map(time_from_proto),
            step: answer.step.map(from_proto).unwrap_or_default(),
            lines: answer.lines.into_iter().filter_map(line).collect(),
            incomplete_shards: answer.incomplete_shards,
            topics_cut: answer.topics_cut,
            looked_every: answer.looked_every.map(from_proto).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_has_the_number_of_the_protocol() {
        for series in HistorySeries::ALL {
            let name = format!("HISTORY_SERIES_{}", series.name().to_uppercase().replace('-', "_"));
            let known = v1::HistorySeries::try_from(series.number()).unwrap();
            assert_eq!(known.as_str_name(), name);
            assert_eq!(HistorySeries::of(series.number()), Some(series));
        }
        assert_eq!(HistorySeries::of(0), None);
    }
}
