//! One target: how its figure is found in what came of a contest, its bound, and the verdict.

use serde::Serialize;

use crate::{
    contest::{Result, Standing},
    report::statistics::{Summary, memory, ratio, summary},
};

/// Something that is to be so.
#[derive(Debug, Clone)]
pub struct Target {
    /// In words; begins with the title of the contest.
    pub title: String,
    /// How it is measured.
    pub measure: Measure,
    /// The unit of what is measured; empty for ratios.
    pub unit: &'static str,
    /// What it is to be; `None`: it is reported alone.
    pub bound: Option<Bound>,
}

/// How a target's figure comes from the standings, which are found by their labels.
#[derive(Debug, Clone)]
pub enum Measure {
    /// A figure itself.
    Figure {
        /// Of whom.
        of: String,
        /// Which.
        name: &'static str,
    },
    /// The figure of one by that of another, round by round.
    Ratio {
        /// Above the line.
        ours: String,
        /// Below it.
        theirs: String,
        /// Which.
        name: &'static str,
    },
    /// Resident memory at the end of the measured span, in MiB.
    Memory {
        /// Of whom.
        of: String,
        /// Of which of its processes.
        role: &'static str,
    },
}

/// What a median is to be.
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

/// What came of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is so.
    Met,
    /// It is not.
    Missed,
    /// It had no bound.
    Reported,
    /// Someone was absent.
    NotMeasured,
}

/// A target and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The target, in words.
    pub target: String,
    /// Its bound, in words; empty if there is none.
    pub bound: String,
    /// The unit of what was measured; empty for ratios.
    pub unit: &'static str,
    /// What was measured.
    pub measured: Option<Summary>,
    /// What that means.
    pub state: State,
    /// Why nothing was measured.
    pub why: Option<String>,
}

impl Target {
    /// What is to be said of it after its contest.
    pub fn judge(&self, result: &Result) -> Verdict {
        let measured = self.measure.of(result);
        let state = match (&measured, self.bound) {
            (Err(_), _) => State::NotMeasured,
            (Ok(_), None) => State::Reported,
            (Ok(of), Some(bound)) if bound.holds(of.median) => State::Met,
            (Ok(_), Some(_)) => State::Missed,
        };
        Verdict {
            target: self.title.clone(),
            bound: self.bound.map(|bound| bound.words(self.unit)).unwrap_or_default(),
            unit: self.unit,
            why: measured.as_ref().err().cloned(),
            measured: measured.ok(),
            state,
        }
    }
}

impl Measure {
    /// The labels of those whom it takes.
    pub fn entries(&self) -> Vec<&str> {
        match self {
            Self::Figure { of, .. } | Self::Memory { of, .. } => vec![of],
            Self::Ratio { ours, theirs, .. } => vec![ours, theirs],
        }
    }

    /// Whether it takes this one.
    pub fn needs(&self, label: &str) -> bool {
        self.entries().contains(&label)
    }

    fn of(&self, result: &Result) -> std::result::Result<Summary, String> {
        let (found, what) = match self {
            Self::Figure { of, name } => (summary(find(result, of)?, name), *name),
            Self::Ratio { ours, theirs, name } => {
                (ratio(find(result, ours)?, find(result, theirs)?, name), *name)
            }
            Self::Memory { of, role } => (memory(find(result, of)?, role), *role),
        };
        found.ok_or_else(|| format!("no figure {what}"))
    }
}

fn find<'a>(result: &'a Result, label: &str) -> std::result::Result<&'a Standing, String> {
    result.standings.iter().find(|standing| standing.label == label).ok_or_else(|| {
        let absent = result.absent.iter().find(|(name, _)| name == label);
        absent.map_or_else(|| format!("{label} took no part"), |(name, why)| format!("{name}: {why}"))
    })
}

impl Bound {
    /// Whether a value is as it should be; what is not a number never is.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::Above(bound) => value > bound,
            Self::AtMost(most) => value <= most,
            Self::Below(bound) => value < bound,
        }
    }

    /// As it is written in the table.
    pub fn words(self, unit: &str) -> String {
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
    /// In words, for the table.
    pub const fn words(self) -> &'static str {
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
    use crate::outcome::Outcome;

    fn standing(label: &str, values: &[f64]) -> Standing {
        let round = |value: &f64| {
            let mut outcome = Outcome::default();
            outcome.more("throughput", "items/s", *value);
            outcome.usage.memory.insert("node", (*value * f64::from(1 << 20)) as u64);
            outcome
        };
        let rounds = values.iter().map(round).collect();
        Standing {
            label: label.to_owned(),
            promise: "on disk",
            settings: Vec::new(),
            rounds,
            statements: Vec::new(),
        }
    }

    fn result() -> Result {
        Result {
            title: "race".to_owned(),
            standings: vec![standing("ours", &[10.0, 12.0, 30.0]), standing("theirs", &[20.0, 16.0, 30.0])],
            absent: vec![("nobody".to_owned(), "not found: nobody".to_owned())],
        }
    }

    fn verdict(measure: Measure, bound: Option<Bound>) -> Verdict {
        Target { title: "race: x".to_owned(), measure, unit: "", bound }.judge(&result())
    }

    fn against(theirs: &str) -> Measure {
        Measure::Ratio { ours: "ours".to_owned(), theirs: theirs.to_owned(), name: "throughput" }
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let met = verdict(against("theirs"), Some(Bound::AtLeast(0.75)));
        assert_eq!(met.measured, Some(Summary { median: 0.75, least: 0.5, most: 1.0 }));
        assert_eq!(met.state, State::Met);
        assert_eq!(met.bound, "at least 0.75");
        assert_eq!(verdict(against("theirs"), Some(Bound::Above(0.75))).state, State::Missed);
        assert_eq!(verdict(against("theirs"), None).state, State::Reported);
    }

    #[test]
    fn figures_and_memory_are_taken_as_they_are() {
        let figure = Measure::Figure { of: "ours".to_owned(), name: "throughput" };
        assert_eq!(verdict(figure.clone(), Some(Bound::AtMost(12.0))).state, State::Met);
        assert_eq!(verdict(figure, Some(Bound::Below(12.0))).state, State::Missed);
        let memory = |role| Measure::Memory { of: "ours".to_owned(), role };
        assert_eq!(verdict(memory("node"), Some(Bound::Below(512.0))).measured.unwrap().median, 12.0);
        let none = verdict(memory("broker"), Some(Bound::Below(512.0)));
        assert_eq!((none.state, none.why.as_deref()), (State::NotMeasured, Some("no figure broker")));
    }

    #[test]
    fn who_is_absent_is_named() {
        let absent = verdict(against("nobody"), Some(Bound::AtLeast(1.0)));
        assert_eq!(absent.state, State::NotMeasured);
        assert_eq!(absent.why.as_deref(), Some("nobody: not found: nobody"));
        assert_eq!(verdict(against("stranger"), None).why.as_deref(), Some("stranger took no part"));
    }

    #[test]
    fn what_is_no_number_is_never_enough() {
        for bound in [Bound::AtLeast(0.0), Bound::Above(0.0), Bound::AtMost(0.0), Bound::Below(0.0)] {
            assert!(!bound.holds(f64::NAN));
        }
        assert_eq!(Bound::Below(20.0).words("ms"), "below 20 ms");
        assert_eq!(Bound::Above(1.0).words(""), "above 1");
    }
}
