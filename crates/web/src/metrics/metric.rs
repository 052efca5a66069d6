//! Description of a metric.

use forebay_edge::{
    admission::{METHODS, QUEUE},
    rpc::OTHER,
};
use forebay_types::{Reason, ShardId};
use metrics::Label;
use tonic::Code;

/// The codes of gRPC.
const CODES: std::ops::RangeInclusive<i32> = 0..=16;

/// A metric.
pub struct Metric {
    /// Its type.
    pub kind: Kind,
    /// Its name.
    pub name: &'static str,
    /// Its labels, and which values each may have.
    pub labels: &'static [(&'static str, Values)],
    /// Its meaning.
    pub help: &'static str,
}

/// The type of a metric.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// The same, of seconds and parts of them. The recorder counts in whole numbers, so that these are
    /// written here.
    Seconds,
    /// A number that goes up and down.
    Gauge,
    /// How often something took so long, or had so many rows.
    Histogram,
}

/// The values that a label may have.
#[derive(Clone, Copy)]
pub enum Values {
    /// These.
    Fixed(&'static [&'static str]),
    /// The configured shards.
    Shards,
    /// The reasons of refusals.
    Reasons,
    /// The codes of gRPC.
    Codes,
    /// The methods of a service. Without a service before it: those of all.
    Methods,
    /// The version of the program.
    Version,
}

impl Values {
    /// All of them. The configured shards are these; `before`: what the labels before it are.
    pub fn list(self, shards: &[ShardId], before: &[Label]) -> Vec<String> {
        let is_service = |label: &&Label| label.key() == "service";
        match self {
            Self::Methods => {
                let service = before.iter().find(is_service).map(Label::value);
                let known = METHODS.iter().filter(|_| service.is_none_or(|service| service == QUEUE));
                known.chain([&OTHER]).map(ToString::to_string).collect()
            }
            Self::Fixed(values) => values.iter().map(ToString::to_string).collect(),
            Self::Shards => shards.iter().map(ToString::to_string).collect(),
            Self::Reasons => Reason::ALL.iter().map(|reason| reason.as_str().to_owned()).collect(),
            Self::Codes => CODES.map(|code| format!("{:?}", Code::from_i32(code))).collect(),
            Self::Version => vec![env!("CARGO_PKG_VERSION").to_owned()],
        }
    }
}

/// A metric of a table.
pub const fn metric(
    kind: Kind,
    name: &'static str,
    labels: &'static [(&'static str, Values)],
    help: &'static str,
) -> Metric {
    Metric { kind, name, labels, help }
}
