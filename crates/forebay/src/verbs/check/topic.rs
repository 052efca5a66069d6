//! `forebay check topic`

use clap::Args;
use forebay_client::{
    Code, Error,
    v1::{GetTopicRequest, Topic as Figures},
};
use forebay_proto::time::from_timestamp;
use forebay_types::{Clock as _, SystemClock};

use super::{
    figures::{Bad, Spec, Unit},
    flags::CheckFlags,
    report::CheckedObject,
};
use crate::failure::Failure;

const fn count(name: &'static str, bad: Bad) -> Spec {
    Spec { name, unit: Unit::Count, bad, usual: [None; 2] }
}

/// Figures that are compared.
pub const FIGURES: &[Spec] = &[
    Spec { name: "age", unit: Unit::Seconds, bad: Bad::Above, usual: [None; 2] },
    count("ready", Bad::Above),
    count("leased", Bad::Above),
    count("scheduled", Bad::Above),
    count("dead", Bad::Above),
    count("waiting", Bad::Below),
];

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay check topic mail --warn age=60s,ready=1000 --critical age=5m,dead=100 --format nagios
  forebay check topic mail --warn waiting=1 --format prometheus

Figures: age of the oldest ready item, ready, leased, scheduled and dead items (bad above a threshold),
and waiting dequeue calls (bad below it). A topic without items is fine.
Exit status: 0 fine, 1 warning, 2 critical, 3 unknown.")]
pub struct Topic {
    /// The topic
    topic: String,
    /// Flags that all checks share.
    #[command(flatten)]
    pub checking: CheckFlags,
}

/// Asks for the topic.
pub async fn look(flags: &Topic) -> Result<CheckedObject, Failure> {
    let client = flags.checking.connection.client().await?;
    let (namespace, topic) = (client.namespace().to_owned(), flags.topic.clone());
    let asked = client.ask(GetTopicRequest { namespace, topic }).await;
    let (figures, incomplete) = match asked {
        Ok(report) => (report.topic, report.incomplete_shards),
        // The server forgets a topic without items.
        Err(error) if is_empty(&error) => (None, Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let now = SystemClock::default().wall();
    let values = figures.map_or([0.0; FIGURES.len()], |topic| values(&topic, now));
    let shards: Vec<String> = incomplete.iter().map(ToString::to_string).collect();
    Ok(CheckedObject {
        target: flags.topic.clone(),
        labels: vec![("namespace", client.namespace().to_owned()), ("topic", flags.topic.clone())],
        values: values.into(),
        in_doubt: (!shards.is_empty()).then(|| format!("shards not asked: {}", shards.join(" "))),
    })
}

fn is_empty(error: &Error) -> bool {
    error.code() == Code::NotFound
}

fn values(topic: &Figures, now: forebay_client::Timestamp) -> [f64; FIGURES.len()] {
    let age = topic.oldest_ready_at.map_or(0.0, |at| now.since(from_timestamp(at)).as_secs_f64());
    let counts =
        [topic.ready_count, topic.leased_count, topic.scheduled_count, topic.dead_count, topic.waiting_calls];
    // Counts are far below 2^53.
    let [ready, leased, scheduled, dead, waiting] = counts.map(|count| count as f64);
    [age, ready, leased, scheduled, dead, waiting]
}
