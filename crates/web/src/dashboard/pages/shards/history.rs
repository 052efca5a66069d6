//! Plots of one shard.

use std::time::Duration;

use forebay_edge::rpc::ALL_NAMESPACES;
use forebay_proto::{
    time::{from_duration, to_duration},
    v1::{GetHistoryRequest, GetHistoryResponse, HistorySeries},
};
use maud::{Markup, html};

use super::super::{
    super::{
        asked::PageRequest,
        links::link,
        live::Live,
        plot::{Series, plot},
        texts::{count, rate, span},
        trouble::Trouble,
    },
    topics::incomplete,
};

/// The spans: as the field has them, how they are called, and their seconds. Of a shard 10 minutes are kept
/// by 10 s, and a day by 5 minutes.
const RANGES: [(&str, &str, u64); 2] = [("", "10 min", 600), ("day", "1 day", 86_400)];
/// Series that are shown.
const SERIES: [HistorySeries; 4] =
    [HistorySeries::Enqueued, HistorySeries::Acked, HistorySeries::Failed, HistorySeries::Ready];

/// Makes them.
pub async fn make(asked: &PageRequest, id: u32, live: &mut Live) -> Result<Markup, Trouble> {
    let (range, _, seconds) = range(asked.fields.get("range"))?;
    let request = GetHistoryRequest {
        namespace: ALL_NAMESPACES.to_owned(),
        series: SERIES.into_iter().map(i32::from).collect(),
        range: Some(to_duration(Duration::from_secs(seconds))),
        shard: Some(id),
        ..GetHistoryRequest::default()
    };
    let answer = asked.ask(request).await?;
    let number = id.to_string();
    Ok(html! {
        h2 { "Shard " (number) }
        div.tabs {
            @for (field, text, _) in RANGES {
                @let address = link("shards", &[("id", &number), ("range", field)]);
                a href=(address) aria-current=[(field == range).then_some("page")] { (text) }
            }
            a href="shards" { "all shards" }
        }
        (incomplete(&answer.incomplete_shards))
        (plots(&answer, live))
    })
}

fn range(text: &str) -> Result<(&'static str, &'static str, u64), Trouble> {
    let found = RANGES.into_iter().find(|(field, ..)| *field == text);
    found.ok_or_else(|| Trouble::field("range", "must be day, or be absent"))
}

fn plots(answer: &GetHistoryResponse, live: &mut Live) -> Markup {
    let points = |series: HistorySeries| {
        let line = answer.lines.iter().find(|line| line.series() == series);
        line.map(|line| line.points.as_slice()).unwrap_or_default()
    };
    let enqueued = points(HistorySeries::Enqueued);
    if enqueued.iter().all(|point| !point.is_finite()) {
        return html! { p.none { "Nothing is known of it yet. Its owner looks every few seconds." } };
    }
    let step = answer.step.map(from_duration).unwrap_or_default();
    let over = span(step.saturating_mul(u32::try_from(enqueued.len()).unwrap_or(u32::MAX)));
    let flow = [
        Series { name: "in", class: "in", points: enqueued },
        Series { name: "out", class: "out", points: points(HistorySeries::Acked) },
        Series { name: "failed", class: "fail", points: points(HistorySeries::Failed) },
    ];
    let ready = [Series { name: "ready", class: "line", points: points(HistorySeries::Ready) }];
    html! {
        div.plots {
            (plot(live, "flow", "Items a second", &over, &flow, rate))
            (plot(live, "waiting", "Ready items", &over, &ready, whole))
        }
    }
}

/// A number of items, of which a step may have a part.
fn whole(number: f64) -> String {
    if number.is_finite() { count(number.round().max(0.0) as u64) } else { "–".to_owned() }
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::HistoryLine;

    use super::*;

    fn answer(points: &[f64]) -> GetHistoryResponse {
        let line = |series: HistorySeries| HistoryLine { series: series.into(), points: points.to_vec() };
        GetHistoryResponse {
            step: Some(prost_types::Duration { seconds: 10, nanos: 0 }),
            lines: SERIES.map(line).to_vec(),
            ..GetHistoryResponse::default()
        }
    }

    #[test]
    fn a_shard_of_which_nothing_is_known_has_no_plots() {
        for points in [&[][..], &[f64::NAN]] {
            let shown = plots(&answer(points), &mut Live::default()).into_string();
            assert!(shown.contains("Nothing is known"), "{shown}");
        }
        let shown = plots(&answer(&[1.0, 2.0]), &mut Live::default()).into_string();
        assert!(shown.contains("20 s ago") && shown.matches("<figure").count() == 2, "{shown}");
    }

    #[test]
    fn spans_and_numbers() {
        assert_eq!(range("day").unwrap().2, 86_400);
        assert!(range("week").is_err());
        assert_eq!([2.4, f64::NAN, 1_234.6].map(whole), ["2", "–", "1,235"]);
    }
}
