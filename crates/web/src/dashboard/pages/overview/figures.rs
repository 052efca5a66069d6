//! The figures of the whole cluster or of a namespace, and how they were in the last quarter of an hour.

use forebay_proto::v1::{HistorySeries, HistorySeries as Of};
use maud::{Markup, html};
use tonic::Status;

use super::{
    super::super::{
        asked::PageRequest,
        live::Live,
        plot::{Series, mirrored, plot, spark},
        texts::rate,
        trouble::Trouble,
    },
    lines::{Lines, change, request, took, wait, whole},
};

/// Series that are shown.
const SERIES: [HistorySeries; 7] =
    [Of::OldestReadyAge, Of::WaitP99, Of::Ready, Of::Enqueued, Of::Acked, Of::Failed, Of::Dead];
/// How far the plots go back, and how far apart their points are.
const PLOTTED: (i64, i64) = (15 * 60, 10);
/// Of now are the last seconds: so many, one by one.
const NOW: (i64, i64) = (10, 1);

/// Explains the percentile.
const WAIT_TITLE: &str =
    "99 of 100 items were ready no longer than this when they were delivered, in the last minutes";

/// How the cluster, or a namespace, was.
pub struct History {
    /// In the last quarter of an hour.
    plotted: Lines,
    /// In the last seconds.
    now: Lines,
    /// Shards that could not be asked.
    pub missing: Vec<u32>,
    /// Some node has more topics than it counts.
    is_cut: bool,
}

impl History {
    /// Reads it. The inner failure is that of the calls. `namespace`: `-` for the cluster.
    pub async fn read(asked: &PageRequest, namespace: &str) -> Result<Result<Self, Status>, Trouble> {
        let history = |(range, step)| asked.ask(request(namespace, "", range, step, &SERIES));
        let both = tokio::try_join!(history(PLOTTED), history(NOW));
        Ok(both.map(|(plotted, now)| {
            let mut missing = [&*plotted.incomplete_shards, &*now.incomplete_shards].concat();
            missing.sort_unstable();
            missing.dedup();
            let is_cut = plotted.topics_cut || now.topics_cut;
            Self { plotted: Lines::new(plotted), now: Lines::new(now), missing, is_cut }
        }))
    }

    /// The points of a figure, that of now at the end.
    fn figure(&self, series: HistorySeries) -> Vec<f64> {
        self.plotted.until(series, self.now.last(series))
    }

    /// Nothing is remembered of it.
    pub fn is_empty(&self) -> bool {
        self.plotted.is_empty() && self.now.is_empty()
    }

    /// How long items waited. While none was delivered that is not known.
    fn waits(&self) -> Vec<f64> {
        let known = |seconds| if seconds > 0.0 { seconds } else { f64::NAN };
        self.figure(Of::WaitP99).into_iter().map(known).collect()
    }

    /// The points of a rate, with the mean of the last seconds at the end.
    fn rate(&self, series: HistorySeries) -> Vec<f64> {
        self.plotted.until(series, self.now.mean(series))
    }
}

/// The figures, and the plots below.
pub fn figures(history: &History, live: &mut Live) -> Markup {
    let (comes, goes, fails) =
        (history.rate(Of::Enqueued), history.rate(Of::Acked), history.rate(Of::Failed));
    let over = history.plotted.over(&comes);
    let (oldest, ready) = (history.figure(Of::OldestReadyAge), history.figure(Of::Ready));
    let series = |name, class, points| Series { name, class, points };
    let failed = [series("failed", "fail", &fails)];
    html! {
        @if history.is_cut {
            p.bad { "≥ Some node has more than 50,000 topics. The figures count the first ones by name." }
        }
        div.figures {
            (figure(history, live, "oldest", "oldest ready", &oldest, wait))
            (figure(history, live, "wait", "wait, p99", &history.waits(), took))
            (figure(history, live, "ready", "ready", &ready, whole))
            (figure(history, live, "in", "in /s", &comes, rate))
            (figure(history, live, "out", "out /s", &goes, rate))
            (figure(history, live, "failed", "failed /s", &fails, rate))
            (figure(history, live, "dead", "dead letters", &history.figure(Of::Dead), whole))
        }
        div.plots {
            (mirrored(live, "flow", &over, &series("in", "in", &comes), &series("out", "out", &goes)))
            (plot(live, "fails", "Failed deliveries a second", &over, &failed, rate))
        }
    }
}

fn figure(
    history: &History,
    live: &mut Live,
    id: &str,
    label: &str,
    points: &[f64],
    unit: fn(f64) -> String,
) -> Markup {
    let now = points.last().copied().unwrap_or(f64::NAN);
    let change = change(points, history.plotted.step, unit);
    html! {
        div.figure {
            b { (live.text(format!("{id}-now"), unit(now))) }
            small title=[(id == "wait").then_some(WAIT_TITLE)] { (label) }
            (spark(live, &format!("{id}-line"), points))
            small { (live.text(format!("{id}-change"), change)) }
        }
    }
}
