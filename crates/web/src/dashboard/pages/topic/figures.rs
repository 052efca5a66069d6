//! The figures of a topic, as they are now and as they were.

use std::time::Duration;

use forebay_proto::{
    time::{from_duration, from_timestamp},
    v1::{GetHistoryRequest, GetHistoryResponse, HistorySeries, HistorySeries as Of, Rates, Topic},
};
use maud::{Markup, html};
use tonic::Status;

use super::{
    super::{
        super::{
            asked::PageRequest,
            live::Live,
            plot::{Series, plot},
            texts::{age, count, counted, length, rate, span},
        },
        overview::{
            lines::{self, Lines, took, wait, whole},
            unread,
        },
        ways_out,
    },
    place::Place,
};

/// Series that are shown.
const SERIES: [HistorySeries; 9] = [
    Of::Enqueued,
    Of::Acked,
    Of::Failed,
    Of::Ready,
    Of::OldestReadyAge,
    Of::WaitP50,
    Of::WaitP99,
    Of::HandlingP50,
    Of::HandlingP99,
];
/// How far back: the field of the address, for people, the range and the step in seconds.
const RANGES: [(&str, &str, i64, i64); 2] = [("", "10 min", 600, 10), ("24h", "24 h", 86_400, 300)];

fn range(place: &Place<'_>) -> (&'static str, &'static str, i64, i64) {
    RANGES.into_iter().find(|(field, ..)| *field == place.range).unwrap_or(RANGES[0])
}

/// Asks how the figures were.
pub fn request(place: &Place<'_>) -> GetHistoryRequest {
    let (_, _, seconds, step) = range(place);
    lines::request(place.namespace, place.name, seconds, step, &SERIES)
}

/// The figures as they are now.
pub fn figures(asked: &PageRequest, topic: &Topic, live: &mut Live) -> Markup {
    let rates = topic.rates.unwrap_or_default();
    let [comes, goes, fails] = [("in", rates.enqueued), ("out", rates.acked), ("failed", rates.failed)]
        .map(|(word, number)| format!("{word} {} /s", rate(number)));
    let waiting = format!("{} waiting", counted(topic.waiting_calls, "call"));
    let oldest = age(topic.oldest_ready_at, asked.now());
    let [waited, handled] =
        [(topic.wait_p50, topic.last_delivery_at), (topic.handling_p50, topic.last_ack_at)]
            .map(|(p50, last)| more(p50, last.map(|last| asked.now().since(from_timestamp(last)))));
    html! {
        div.figures {
            (figure(live, "oldest", "oldest ready", oldest, waiting))
            (figure(live, "ready", "ready", count(topic.ready_count), comes))
            (figure(live, "leased", "leased", count(topic.leased_count), goes))
            (figure(live, "scheduled", "scheduled", count(topic.scheduled_count), String::new()))
            (figure(live, "dead", "dead letters", count(topic.dead_count), fails))
            (figure(live, "wait", "wait, p99", length(topic.wait_p99), waited))
            (figure(live, "handling", "handling, p99", length(topic.handling_p99), handled))
        }
        (ways_out::line(topic.counts.as_ref(), asked.now(), live))
    }
}

/// How long half of them took, and when the last one was.
fn more(p50: Option<prost_types::Duration>, since_last: Option<Duration>) -> String {
    let half = p50.map(|p50| format!("p50 {}", span(from_duration(p50))));
    let last = since_last.map(|since| format!("last {} ago", span(since.max(Duration::from_secs(1)))));
    [half, last].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn figure(live: &mut Live, id: &str, label: &str, value: String, small: String) -> Markup {
    html! {
        div.figure {
            b { (live.text(format!("{id}-now"), value)) }
            small { (label) }
            small { (live.text(format!("{id}-rate"), small)) }
        }
    }
}

/// The plots, and the links to the other range.
pub fn plots(
    asked: &PageRequest,
    place: &Place<'_>,
    topic: &Topic,
    history: Result<GetHistoryResponse, Status>,
    live: &mut Live,
) -> Markup {
    let lines = match history {
        Ok(history) => Lines::new(history),
        Err(status) => return unread("How the figures were", &status),
    };
    let (chosen, ..) = range(place);
    html! {
        p.controls {
            "The last "
            @for (field, text, ..) in RANGES {
                @if field == chosen {
                    b { (text) }
                } @else {
                    a href=(place.with(&[("range", field)])) { (text) }
                }
            }
        }
        @if lines.is_empty() {
            p.none {
                "Nothing is known of that time. Since it has started, a node remembers the figures of the \
                 1,000 topics in which the most happens."
            }
        } @else {
            (lines_of(asked, topic, &lines, live))
        }
    }
}

fn lines_of(asked: &PageRequest, topic: &Topic, lines: &Lines, live: &mut Live) -> Markup {
    let Rates { enqueued, acked, failed, .. } = topic.rates.unwrap_or_default();
    let oldest = topic.oldest_ready_at.map_or(0.0, |at| asked.now().since(from_timestamp(at)).as_secs_f64());
    let seconds =
        |length: Option<prost_types::Duration>| length.map_or(f64::NAN, |it| from_duration(it).as_secs_f64());
    let [waited_50, waited_99, handled_50, handled_99] = [
        (Of::WaitP50, topic.wait_p50),
        (Of::WaitP99, topic.wait_p99),
        (Of::HandlingP50, topic.handling_p50),
        (Of::HandlingP99, topic.handling_p99),
    ]
    .map(|(series, now)| lines.until(series, seconds(now)));
    let [comes, goes, fails, ready, oldest] = [
        (Of::Enqueued, enqueued),
        (Of::Acked, acked),
        (Of::Failed, failed),
        (Of::Ready, topic.ready_count as f64),
        (Of::OldestReadyAge, oldest),
    ]
    .map(|(series, now)| lines.until(series, now));
    let over = &lines.over(&comes);
    let series = |name, class, points| Series { name, class, points };
    let flow = [series("in", "in", &comes), series("out", "out", &goes), series("failed", "fail", &fails)];
    let waited = [series("p50", "line", &waited_50), series("p99", "warn", &waited_99)];
    let handled = [series("p50", "line", &handled_50), series("p99", "warn", &handled_99)];
    html! {
        div.plots {
            (plot(live, "flow", "Items a second", over, &flow, rate))
            (plot(live, "depth", "Ready", over, &[series("ready", "line", &ready)], whole))
            (plot(live, "age", "Oldest ready", over, &[series("waits", "warn", &oldest)], wait))
            (plot(live, "waited", "Ready until delivered", over, &waited, took))
            (plot(live, "handled", "Delivered until acked", over, &handled, took))
        }
    }
}
