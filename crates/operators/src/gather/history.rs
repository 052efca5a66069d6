//! How figures were, as all nodes remember it.

use std::collections::{BTreeMap, BTreeSet};

use forebay_peers::{
    history::{SERIES, is_greatest},
    looks::history::step_of,
};
use forebay_proto::{peer, v1};
use forebay_types::Refusal;

use super::Gather;

impl Gather {
    /// How figures were in some steps. `series`: those that are told. Empty: all.
    pub async fn history(
        &self,
        request: &peer::GetHistoryRequest,
        series: &[i32],
    ) -> Result<v1::GetHistoryResponse, Refusal> {
        let parts = self.look(request).await?;
        let shards: BTreeSet<u32> = parts.iter().flat_map(|part| &part.rest.shards).copied().collect();
        let answers: Vec<_> = parts.into_iter().map(|part| part.answer).collect();
        let incomplete_shards = self.incomplete(&shards);
        Ok(v1::GetHistoryResponse { incomplete_shards, ..merge(request, series, &answers) })
    }
}

/// Adds lines up, step by step. A step that some nodes have seen is what these have seen.
fn merge(
    request: &peer::GetHistoryRequest,
    series: &[i32],
    answers: &[v1::GetHistoryResponse],
) -> v1::GetHistoryResponse {
    let peer::GetHistoryRequest { from, until, step, .. } = *request;
    let steps = usize::try_from(until.saturating_sub(from)).unwrap_or(0);
    let mut lines: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
    for answer in answers {
        let first = step_of(answer.begins_at.as_ref(), step).and_then(|first| first.checked_sub(from));
        let Some(offset) = first.and_then(|offset| usize::try_from(offset).ok()) else { continue };
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
    lines.retain(|of, _| series.is_empty() || series.contains(of));
    let seconds = |number: u64| i64::try_from(number.saturating_mul(step.into())).unwrap_or(i64::MAX);
    let begins_at = prost_types::Timestamp { seconds: seconds(from + empty as u64), nanos: 0 };
    let looked_every = answers.iter().filter_map(|answer| answer.looked_every).map(|every| every.seconds);
    let looked_every = prost_types::Duration { seconds: looked_every.max().unwrap_or(0).max(1), nanos: 0 };
    v1::GetHistoryResponse {
        begins_at: Some(begins_at).filter(|_| !lines.is_empty()),
        step: Some(prost_types::Duration { seconds: step.into(), nanos: 0 }),
        lines: lines.into_iter().map(|(series, points)| v1::HistoryLine { series, points }).collect(),
        incomplete_shards: Vec::new(),
        topics_cut: answers.iter().any(|answer| answer.topics_cut),
        looked_every: Some(looked_every),
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

#[cfg(test)]
mod tests {
    use forebay_proto::v1::HistorySeries as Of;

    use super::*;

    /// Of steps of 10 s.
    fn answer(from: u64, ready: &[f64], age: &[f64]) -> v1::GetHistoryResponse {
        let line =
            |series: Of, points: &[f64]| v1::HistoryLine { series: series.into(), points: points.to_vec() };
        let lines = vec![line(Of::Ready, ready), line(Of::OldestReadyAge, age), line(Of::WaitP99, age)];
        let begins_at = Some(prost_types::Timestamp { seconds: 10 * from as i64, nanos: 0 });
        v1::GetHistoryResponse { lines, begins_at, ..v1::GetHistoryResponse::default() }
    }

    fn merged(until: u64, answers: &[v1::GetHistoryResponse]) -> v1::GetHistoryResponse {
        merge(&asked(until), &[], answers)
    }

    fn asked(until: u64) -> peer::GetHistoryRequest {
        peer::GetHistoryRequest { from: 10, until, step: 10, ..peer::GetHistoryRequest::default() }
    }

    #[test]
    fn points_of_one_step_are_added_up_and_gaps_stay_gaps() {
        let gap = f64::NAN;
        let answers = [
            answer(12, &[1.0, gap, gap, 4.0], &[9.0, gap, gap, 1.0]),
            answer(13, &[2.0, gap, 8.0], &[1.0, gap, 5.0]),
        ];
        let v1::GetHistoryResponse { begins_at, lines, .. } = merged(17, &answers);
        let [ready, age, wait] = [Of::Ready, Of::OldestReadyAge, Of::WaitP99]
            .map(|of| &lines.iter().find(|line| line.series() == of).unwrap().points);
        assert_eq!((begins_at.unwrap().seconds, lines.len(), ready.len()), (120, 3, 5));
        assert_eq!((ready[0], ready[1], ready[3]), (1.0, 2.0, 12.0));
        assert!(ready[2].is_nan() && ready[4].is_nan());
        assert_eq!((age[3], wait[3]), (5.0, 5.0), "the greatest one, not a sum");
    }

    #[test]
    fn what_one_node_has_left_out_is_told() {
        let every = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let whole = v1::GetHistoryResponse { looked_every: every(1), ..answer(10, &[1.0], &[1.0]) };
        let cut = v1::GetHistoryResponse { topics_cut: true, looked_every: every(10), ..whole.clone() };
        let told = |answers: &[_]| {
            let v1::GetHistoryResponse { topics_cut, looked_every, .. } = merged(17, answers);
            (topics_cut, looked_every.unwrap().seconds)
        };
        assert_eq!(told(&[whole.clone(), cut]), (true, 10));
        assert_eq!(told(&[whole]), (false, 1));
    }

    #[test]
    fn what_nobody_has_seen_has_no_lines() {
        assert!(merged(12, &[answer(10, &[f64::NAN; 2], &[f64::NAN; 2])]).lines.is_empty());
        assert!(merged(12, &[v1::GetHistoryResponse::default()]).lines.is_empty());
        // One that answers for other steps than it was asked for.
        let wrong = merged(12, &[answer(500, &[1.0], &[1.0]), answer(3, &[1.0], &[1.0])]);
        assert!(wrong.lines.is_empty() && wrong.begins_at.is_none());
    }

    #[test]
    fn the_series_that_are_asked_for_are_shown() {
        let answers = [answer(10, &[1.0], &[3.0])];
        assert_eq!(merged(12, &answers).lines.len(), 3);
        let some = merge(&asked(12), &[Of::OldestReadyAge.into()], &answers).lines;
        assert_eq!((some.len(), some[0].series(), some[0].points[0]), (1, Of::OldestReadyAge, 3.0));
    }
}
