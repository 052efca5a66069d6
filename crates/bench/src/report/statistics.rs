//! Medians, spreads and ratios over the rounds of a contest.

use serde::Serialize;

use crate::contest::Standing;

/// What the rounds say of one figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Summary {
    /// Of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, least, most })
    }
}

/// What the rounds say of the figure `name`.
pub fn summary(standing: &Standing, name: &str) -> Option<Summary> {
    Summary::of(standing.rounds.iter().filter_map(|round| Some(round.figure(name)?.value)))
}

/// How `ours` compares to `theirs` in the figure `name`: the quotients of the rounds, in which the two had their
/// turns one soon after the other. A quotient of or by nothing says nothing.
pub fn ratio(ours: &Standing, theirs: &Standing, name: &str) -> Option<Summary> {
    let pairs = ours.rounds.iter().zip(&theirs.rounds);
    let quotients =
        pairs.filter_map(|(ours, theirs)| Some(ours.figure(name)?.value / theirs.figure(name)?.value));
    Summary::of(quotients.filter(|quotient| quotient.is_finite()))
}

/// What is better of the figure `name`, in words.
pub fn better(standings: &[Standing], name: &str) -> &'static str {
    let mut rounds = standings.iter().flat_map(|standing| &standing.rounds);
    rounds.find_map(|round| round.better(name)).unwrap_or("")
}

/// What the rounds say of the resident memory of a role, in MiB.
pub fn memory(standing: &Standing, role: &str) -> Option<Summary> {
    let of = |bytes: &u64| *bytes as f64 / f64::from(1 << 20);
    Summary::of(standing.rounds.iter().filter_map(|round| round.usage.memory.get(role).map(of)))
}

/// The figures that occur and their units, in order of their first occurrence; the first one is what the contest
/// is about.
pub fn names(standings: &[Standing]) -> Vec<(&'static str, &'static str)> {
    let mut names = Vec::new();
    for figure in standings.iter().flat_map(|standing| &standing.rounds).flat_map(|round| &round.figures) {
        if !names.contains(&(figure.name, figure.unit)) {
            names.push((figure.name, figure.unit));
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
        assert_eq!(Summary::of([3.0, 1.0, 2.0]), Some(Summary { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(Summary::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
    }
}
