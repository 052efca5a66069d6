//! How figures were, as all nodes remember it.

use std::collections::{BTreeMap, BTreeSet};

use forebay_proto::{peer, v1};
use forebay_types::Refusal;

use super::Gather;
use crate::history::{SERIES, is_greatest};

/// Lines of all nodes together.
#[derive(Debug, Default)]
pub struct Merged {
    /// The number of the step of the first point.
    pub from: u64,
    /// By series, of the same length. Empty: nobody remembers anything.
    pub lines: BTreeMap<i32, Vec<f64>>,
    /// Shards that could not be asked.
    pub incomplete: Vec<u32>,
    /// Some node has more topics than it looks at.
    pub topics_cut: bool,
    /// How many seconds lie between two looks of a node, at most.
    pub looked_every: u32,
}

impl Gather {
    /// How figures were in some steps.
    pub async fn history(&self, request: &peer::GetHistoryRequest) -> Result<Merged, Refusal> {
        let asked =
            self.ask_others(|links, address| async move { links.get_history(&address, request).await });
        let (own, others) = tokio::join!(self.history.answer_with_shards(&self.engine, request), asked);
        let answers: Vec<_> = std::iter::once(own?).chain(others).collect();
        let shards: BTreeSet<u32> = answers.iter().flat_map(|answer| &answer.shards).copied().collect();
        let incomplete = self.incomplete(&shards).await;
        Ok(Merged { incomplete, ..merge(request.from, request.until, &answers) })
    }
}

/// Adds lines up, step by step. A step that some nodes have seen is what these have seen.
fn merge(from: u64, until: u64, answers: &[peer::GetHistoryResponse]) -> Merged {
    let steps = usize::try_from(until.saturating_sub(from)).unwrap_or(0);
    let mut lines: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
    for answer in answers {
        let Some(offset) = answer.from.checked_sub(from).and_then(|it| usize::try_from(it).ok()) else {
            continue;
        };
        // A later program may have more series.
        for line in &answer.lines {
            let place = usize::try_from(line.series - 1).ok().filter(|place| *place < SERIES);
            let Some(place) = place else { continue };
            let sums = lines.entry(line.series).or_insert_with(|| vec![f64::NAN; steps]);
            add_up(&mut sums[..], offset, &line.points, is_greatest(place));
        }
    }
    let is_empty = |step: &usize| lines.values().all(|line| line[*step].is_nan());
    let empty = (0..steps).take_while(is_empty).count();
    if empty == steps {
        lines.clear();
    }
    lines.values_mut().for_each(|line| drop(line.drain(..empty)));
    Merged {
        from: from + empty as u64,
        lines,
        incomplete: Vec::new(),
        topics_cut: answers.iter().any(|answer| answer.topics_cut),
        looked_every: answers.iter().map(|answer| answer.looked_every).max().unwrap_or(0).max(1),
    }
}

/// Adds the points of one node to those of others. `offset`: the place of its first one. `is_greatest`: the
/// greatest one counts, and not their sum.
pub(super) fn add_up(sums: &mut [f64], offset: usize, points: &[f64], is_greatest: bool) {
    for (sum, point) in sums.iter_mut().skip(offset).zip(points) {
        *sum = match (*sum, *point) {
            (sum, point) if point.is_nan() => sum,
            (sum, point) if sum.is_nan() => point,
            (sum, point) if is_greatest => sum.max(point),
            (sum, point) => sum + point,
        };
    }
}

/// The lines that are asked for, as callers see them. Empty: all.
pub fn shown(lines: BTreeMap<i32, Vec<f64>>, series: &[i32]) -> Vec<v1::HistoryLine> {
    let wanted = lines.into_iter().filter(|(of, _)| series.is_empty() || series.contains(of));
    wanted.map(|(series, points)| v1::HistoryLine { series, points }).collect()
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::HistorySeries as Of;

    use super::*;

    fn answer(from: u64, ready: &[f64], age: &[f64]) -> peer::GetHistoryResponse {
        let line =
            |series: Of, points: &[f64]| v1::HistoryLine { series: series.into(), points: points.to_vec() };
        let lines = vec![line(Of::Ready, ready), line(Of::OldestReadyAge, age), line(Of::WaitP99, age)];
        peer::GetHistoryResponse { lines, from, ..peer::GetHistoryResponse::default() }
    }

    #[test]
    fn points_of_one_step_are_added_up_and_gaps_stay_gaps() {
        let gap = f64::NAN;
        let answers = [
            answer(12, &[1.0, gap, gap, 4.0], &[9.0, gap, gap, 1.0]),
            answer(13, &[2.0, gap, 8.0], &[1.0, gap, 5.0]),
        ];
        let Merged { from, lines, .. } = merge(10, 17, &answers);
        let [ready, age, wait] = [Of::Ready, Of::OldestReadyAge, Of::WaitP99].map(|of| &lines[&of.into()]);
        assert_eq!((from, lines.len(), ready.len()), (12, 3, 5));
        assert_eq!((ready[0], ready[1], ready[3]), (1.0, 2.0, 12.0));
        assert!(ready[2].is_nan() && ready[4].is_nan());
        assert_eq!((age[3], wait[3]), (5.0, 5.0), "the greatest one, not a sum");
    }

    #[test]
    fn what_one_node_has_left_out_is_told() {
        let whole = peer::GetHistoryResponse { looked_every: 1, ..answer(10, &[1.0], &[1.0]) };
        let cut = peer::GetHistoryResponse { topics_cut: true, looked_every: 10, ..whole.clone() };
        let told = |answers: &[_]| {
            let Merged { topics_cut, looked_every, .. } = merge(10, 17, answers);
            (topics_cut, looked_every)
        };
        assert_eq!(told(&[whole.clone(), cut]), (true, 10));
        assert_eq!(told(&[whole]), (false, 1));
    }

    #[test]
    fn what_nobody_has_seen_has_no_lines() {
        assert!(merge(10, 12, &[answer(10, &[f64::NAN; 2], &[f64::NAN; 2])]).lines.is_empty());
        assert!(merge(10, 12, &[peer::GetHistoryResponse::default()]).lines.is_empty());
        // One that answers for other steps than it was asked for.
        assert!(merge(10, 12, &[answer(500, &[1.0], &[1.0]), answer(3, &[1.0], &[1.0])]).lines.is_empty());
    }

    #[test]
    fn the_series_that_are_asked_for_are_shown() {
        let lines = || BTreeMap::from([(1, vec![1.0]), (3, vec![3.0]), (14, vec![2.0])]);
        assert_eq!(shown(lines(), &[]).len(), 3);
        let some = shown(lines(), &[3]);
        assert_eq!((some.len(), some[0].series, some[0].points[0]), (1, 3, 3.0));
    }
}
