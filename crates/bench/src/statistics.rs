//! Medians, spreads and ratios over the rounds of a comparison.

use serde::Serialize;

use crate::comparison::CandidateResult;

/// Summary of one metric over all rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// The median; of an even number of values, the mean of the middle two.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Summary {
    /// Summarizes the values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, min, max })
    }
}

/// Summary of the metric `name`.
pub fn summary(candidate: &CandidateResult, name: &str) -> Option<Summary> {
    Summary::of(candidate.rounds.iter().filter_map(|round| Some(round.metric(name)?.value)))
}

/// The metric `name` of `ours` divided by that of `theirs`, round by round. Quotients that are not finite are
/// left out.
pub fn ratio(ours: &CandidateResult, theirs: &CandidateResult, name: &str) -> Option<Summary> {
    let pairs = ours.rounds.iter().zip(&theirs.rounds);
    let quotients =
        pairs.filter_map(|(ours, theirs)| Some(ours.metric(name)?.value / theirs.metric(name)?.value));
    Summary::of(quotients.filter(|quotient| quotient.is_finite()))
}

/// Whether more or less is better for the metric `name`, as text.
pub fn better(candidates: &[CandidateResult], name: &str) -> &'static str {
    let mut rounds = candidates.iter().flat_map(|candidate| &candidate.rounds);
    rounds.find_map(|round| round.better(name)).unwrap_or("")
}

/// Summary of the resident memory of a role, in MiB.
pub fn memory(candidate: &CandidateResult, role: &str) -> Option<Summary> {
    let mib = |bytes: &u64| *bytes as f64 / f64::from(1 << 20);
    Summary::of(candidate.rounds.iter().filter_map(|round| round.usage.memory.get(role).map(mib)))
}

/// Names and units of all metrics, in order of their first occurrence. The first one is the main metric.
pub fn metric_names(candidates: &[CandidateResult]) -> Vec<(&'static str, &'static str)> {
    let mut names = Vec::new();
    for metric in candidates.iter().flat_map(|candidate| &candidate.rounds).flat_map(|round| &round.metrics) {
        if !names.contains(&(metric.name, metric.unit)) {
            names.push((metric.name, metric.unit));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([3.0, 1.0, 2.0]), Some(Summary { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Summary::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
    }
}
