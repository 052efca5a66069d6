//! How figures were, as GetHistory tells it.

use std::time::Duration;

use forebay_proto::{
    time::from_duration,
    v1::{GetHistoryRequest, GetHistoryResponse, HistoryLine, HistorySeries},
};

use super::super::super::texts::{count, span};

/// The lines of one answer.
#[derive(Default)]
pub struct Lines {
    /// One a series.
    lines: Vec<HistoryLine>,
    /// How far apart their points are.
    pub step: Duration,
}

impl Lines {
    /// Of an answer.
    pub fn new(answer: GetHistoryResponse) -> Self {
        Self { lines: answer.lines, step: answer.step.map(from_duration).unwrap_or_default() }
    }

    /// How far back so many points go, that of now included.
    pub fn over(&self, points: &[f64]) -> String {
        let steps = u32::try_from(points.len().saturating_sub(1)).unwrap_or(u32::MAX);
        if steps == 0 { "a moment".to_owned() } else { span(self.step.saturating_mul(steps)) }
    }

    /// Nothing is known.
    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.iter().all(|point| !point.is_finite()))
    }

    /// The points of a series, and the figure of now behind them.
    pub fn until(&self, series: HistorySeries, now: f64) -> Vec<f64> {
        let mut points = self.points(series).to_vec();
        points.push(now);
        points
    }

    /// The mean of a series.
    pub fn mean(&self, series: HistorySeries) -> f64 {
        let known = || self.points(series).iter().filter(|point| point.is_finite());
        known().sum::<f64>() / known().count() as f64
    }

    /// The last point of a series that is known.
    pub fn last(&self, series: HistorySeries) -> f64 {
        let known = |point: &&f64| point.is_finite();
        self.points(series).iter().rfind(known).copied().unwrap_or(f64::NAN)
    }

    fn points(&self, series: HistorySeries) -> &[f64] {
        self.lines.iter().find(|line| line.series() == series).map_or(&[], |line| &line.points)
    }
}

/// Asks how figures were. Topic: empty for all of the namespace.
pub fn request(
    namespace: &str,
    topic: &str,
    seconds: i64,
    step: i64,
    series: &[HistorySeries],
) -> GetHistoryRequest {
    let whole = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    GetHistoryRequest {
        namespace: namespace.to_owned(),
        topic: topic.to_owned(),
        series: series.iter().map(|series| i32::from(*series)).collect(),
        range: whole(seconds),
        step: whole(step),
        shard: None,
    }
}

/// How the last point differs from the first known one, and since when.
pub fn change(points: &[f64], step: Duration, unit: fn(f64) -> String) -> String {
    let first = points.iter().position(|point| point.is_finite());
    let (Some(first), Some((now, before))) = (first, points.split_last()) else { return "–".to_owned() };
    let Some(then) = before.get(first).filter(|_| now.is_finite()) else { return "–".to_owned() };
    let steps = u32::try_from(before.len() - first).unwrap_or(u32::MAX);
    let (ago, differs) = (span(step.saturating_mul(steps)), now - then);
    let by = unit(differs.abs());
    match differs {
        _ if by == unit(0.0) => format!("as {ago} ago"),
        differs if differs > 0.0 => format!("+{by} in {ago}"),
        _ => format!("−{by} in {ago}"),
    }
}

/// Seconds.
pub fn wait(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds.round()) {
        Ok(Duration::ZERO) => "0 s".to_owned(),
        Ok(time) => span(time),
        Err(_) => "–".to_owned(),
    }
}

/// How long something took: seconds, of which there may be small parts.
pub fn took(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds).map_or_else(|_| "–".to_owned(), span)
}

/// A number of items.
pub fn whole(number: f64) -> String {
    if number.is_finite() { count(number.round() as u64) } else { "–".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_since_when() {
        let step = Duration::from_secs(10);
        let unknown = f64::NAN;
        let change = |points: &[f64]| change(points, step, whole);
        assert_eq!(change(&[5.0, 7.0, 1_205.0]), "+1,200 in 20 s");
        assert_eq!(change(&[unknown, 7.0, unknown, 5.0]), "−2 in 20 s", "since the first that is known");
        assert_eq!(change(&[5.0, 9.0, 5.2]), "as 20 s ago");
        assert_eq!([change(&[]), change(&[5.0]), change(&[5.0, unknown])], ["–"; 3]);
    }

    #[test]
    fn what_nobody_saw_is_no_zero() {
        let points = vec![f64::NAN, 4.0, 2.0, f64::NAN];
        let line = HistoryLine { series: HistorySeries::Ready.into(), points };
        let lines = Lines { lines: vec![line], step: Duration::from_secs(1) };
        assert_eq!((lines.last(HistorySeries::Ready), lines.mean(HistorySeries::Ready)), (2.0, 3.0));
        assert!(lines.last(HistorySeries::Dead).is_nan() && lines.mean(HistorySeries::Dead).is_nan());
        assert!(!lines.is_empty() && Lines::default().is_empty());
        assert_eq!(lines.until(HistorySeries::Ready, 9.0).last(), Some(&9.0));
        assert_eq!([wait(f64::NAN), wait(0.2), wait(250.0)], ["–", "0 s", "4 min 10 s"]);
        assert_eq!([whole(f64::NAN), whole(0.0)], ["–", "0"]);
        assert_eq!([took(f64::NAN), took(0.012), took(250.0)], ["–", "12 ms", "4 min 10 s"]);
    }
}
