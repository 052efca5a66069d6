//! A target: what is measured, its bound, and the verdict.

use serde::Serialize;

use crate::{
    comparison::{CandidateResult, ComparisonResult},
    statistics::{Summary, memory, ratio, summary},
};

/// A goal for the result of a comparison.
#[derive(Debug, Clone)]
pub struct Target {
    /// The target as text, starting with the title of the comparison.
    pub title: String,
    /// The measure.
    pub measure: Measure,
    /// Unit of the measured value; empty for ratios.
    pub unit: &'static str,
    /// The goal; `None`: the value is only reported.
    pub bound: Option<Bound>,
}

/// Measure of a target. Candidates are identified by their labels.
#[derive(Debug, Clone)]
pub enum Measure {
    /// A metric of one candidate.
    Metric {
        /// Label of the candidate.
        of: String,
        /// Name of the metric.
        name: &'static str,
    },
    /// A metric of one candidate divided by that of another, round by round.
    Ratio {
        /// Label of the dividend.
        ours: String,
        /// Label of the divisor.
        theirs: String,
        /// Name of the metric.
        name: &'static str,
    },
    /// Resident memory at the end of the measured phase, in MiB.
    Memory {
        /// Label of the candidate.
        of: String,
        /// Role of the process.
        role: &'static str,
    },
}

/// The allowed range of a median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// More than this.
    Above(f64),
    /// This or less.
    AtMost(f64),
    /// Less than this.
    Below(f64),
}

/// Whether a target is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The bound holds.
    Met,
    /// The bound does not hold.
    Missed,
    /// The target has no bound.
    Reported,
    /// A candidate is absent.
    NotMeasured,
}

/// The result of a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The target, as text.
    pub target: String,
    /// Its bound, as text; empty if there is none.
    pub bound: String,
    /// Unit of the measured value; empty for ratios.
    pub unit: &'static str,
    /// The measured value.
    pub measured: Option<Summary>,
    /// Whether the target is met.
    pub state: State,
    /// The reason if nothing was measured.
    pub why: Option<String>,
}

impl Target {
    /// Evaluates the target after its comparison.
    pub fn evaluate(&self, result: &ComparisonResult) -> Verdict {
        let measured = self.measure.of(result);
        let state = match (&measured, self.bound) {
            (Err(_), _) => State::NotMeasured,
            (Ok(_), None) => State::Reported,
            (Ok(of), Some(bound)) if bound.holds(of.median) => State::Met,
            (Ok(_), Some(_)) => State::Missed,
        };
        Verdict {
            target: self.title.clone(),
            bound: self.bound.map(|bound| bound.text(self.unit)).unwrap_or_default(),
            unit: self.unit,
            why: measured.as_ref().err().cloned(),
            measured: measured.ok(),
            state,
        }
    }
}

impl Measure {
    /// The labels of the candidates that it uses.
    pub fn labels(&self) -> Vec<&str> {
        match self {
            Self::Metric { of, .. } | Self::Memory { of, .. } => vec![of],
            Self::Ratio { ours, theirs, .. } => vec![ours, theirs],
        }
    }

    /// Whether it uses the candidate with this label.
    pub fn needs(&self, label: &str) -> bool {
        self.labels().contains(&label)
    }

    fn of(&self, result: &ComparisonResult) -> Result<Summary, String> {
        let (found, what) = match self {
            Self::Metric { of, name } => (summary(find(result, of)?, name), *name),
            Self::Ratio { ours, theirs, name } => {
                (ratio(find(result, ours)?, find(result, theirs)?, name), *name)
            }
            Self::Memory { of, role } => (memory(find(result, of)?, role), *role),
        };
        found.ok_or_else(|| format!("no metric {what}"))
    }
}

fn find<'a>(result: &'a ComparisonResult, label: &str) -> Result<&'a CandidateResult, String> {
    result.candidates.iter().find(|candidate| candidate.label == label).ok_or_else(|| {
        let absent = result.absent.iter().find(|(name, _)| name == label);
        absent.map_or_else(|| format!("{label} was not measured"), |(name, why)| format!("{name}: {why}"))
    })
}

impl Bound {
    /// Whether the bound holds for a value. It never holds for NaN.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::Above(bound) => value > bound,
            Self::AtMost(bound) => value <= bound,
            Self::Below(bound) => value < bound,
        }
    }

    /// As shown in reports.
    pub fn text(self, unit: &str) -> String {
        let (how, bound) = match self {
            Self::AtLeast(bound) => ("at least", bound),
            Self::Above(bound) => ("above", bound),
            Self::AtMost(bound) => ("at most", bound),
            Self::Below(bound) => ("below", bound),
        };
        format!("{how} {bound} {unit}").trim_end().to_owned()
    }
}

impl State {
    /// As shown in reports.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Reported => "reported",
            Self::NotMeasured => "not measured",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round_result::RoundResult;

    fn candidate(label: &str, values: &[f64]) -> CandidateResult {
        let round = |value: &f64| {
            let mut result = RoundResult::default();
            result.add_more_is_better("throughput", "items/s", *value);
            result.usage.memory.insert("node", (*value * f64::from(1 << 20)) as u64);
            result
        };
        let rounds = values.iter().map(round).collect();
        CandidateResult {
            label: label.to_owned(),
            durability: "on disk",
            settings: Vec::new(),
            rounds,
            statements: Vec::new(),
        }
    }

    fn result() -> ComparisonResult {
        ComparisonResult {
            title: "race".to_owned(),
            candidates: vec![
                candidate("ours", &[10.0, 12.0, 30.0]),
                candidate("theirs", &[20.0, 16.0, 30.0]),
            ],
            absent: vec![("nobody".to_owned(), "not found: nobody".to_owned())],
        }
    }

    fn verdict(measure: Measure, bound: Option<Bound>) -> Verdict {
        Target { title: "race: x".to_owned(), measure, unit: "", bound }.evaluate(&result())
    }

    fn against(theirs: &str) -> Measure {
        Measure::Ratio { ours: "ours".to_owned(), theirs: theirs.to_owned(), name: "throughput" }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let met = verdict(against("theirs"), Some(Bound::AtLeast(0.75)));
        assert_eq!(met.measured, Some(Summary { median: 0.75, min: 0.5, max: 1.0 }));
        assert_eq!(met.state, State::Met);
        assert_eq!(met.bound, "at least 0.75");
        assert_eq!(verdict(against("theirs"), Some(Bound::Above(0.75))).state, State::Missed);
        assert_eq!(verdict(against("theirs"), None).state, State::Reported);
    }

    #[test]
    fn metrics_and_memory_are_not_changed() {
        let metric = Measure::Metric { of: "ours".to_owned(), name: "throughput" };
        assert_eq!(verdict(metric.clone(), Some(Bound::AtMost(12.0))).state, State::Met);
        assert_eq!(verdict(metric, Some(Bound::Below(12.0))).state, State::Missed);
        let memory = |role| Measure::Memory { of: "ours".to_owned(), role };
        assert_eq!(verdict(memory("node"), Some(Bound::Below(512.0))).measured.unwrap().median, 12.0);
        let none = verdict(memory("broker"), Some(Bound::Below(512.0)));
        assert_eq!((none.state, none.why.as_deref()), (State::NotMeasured, Some("no metric broker")));
    }

    #[test]
    fn an_absent_candidate_is_named() {
        let absent = verdict(against("nobody"), Some(Bound::AtLeast(1.0)));
        assert_eq!(absent.state, State::NotMeasured);
        assert_eq!(absent.why.as_deref(), Some("nobody: not found: nobody"));
        assert_eq!(verdict(against("stranger"), None).why.as_deref(), Some("stranger was not measured"));
    }

    #[test]
    fn no_bound_holds_for_nan() {
        for bound in [Bound::AtLeast(0.0), Bound::Above(0.0), Bound::AtMost(0.0), Bound::Below(0.0)] {
            assert!(!bound.holds(f64::NAN));
        }
        assert_eq!(Bound::Below(20.0).text("ms"), "below 20 ms");
        assert_eq!(Bound::Above(1.0).text(""), "above 1");
    }
}
