//! Counts of the items of a topic or a namespace: items that came in, and items that left by each way out.

use forebay_proto::v1::Counts;
use forebay_types::Timestamp;
use maud::{Markup, html};

use super::super::{
    live::Live,
    texts::{count, time},
};

/// A line, if anything was counted.
pub fn line(counts: Option<&Counts>, now: Timestamp, live: &mut Live) -> Markup {
    html! {
        @if let Some(counts) = counts {
            p.facts title="What came in is what is there, dead letters too, and what left" {
                "Since " (time(counts.since, now)) ": " (live.text("ways-out", said(counts)))
            }
        }
    }
}

fn said(counts: &Counts) -> String {
    let Counts { enqueued, acked, expired, removed, .. } = counts;
    let [enqueued, acked, expired, removed] = [enqueued, acked, expired, removed].map(|it| count(*it));
    format!("{enqueued} enqueued, {acked} acked, {expired} expired, {removed} removed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_out_is_named() {
        let counts = Counts { enqueued: 1_004, acked: 1_001, expired: 2, removed: 1, ..Counts::default() };
        let mut live = Live::default();
        let text = line(Some(&counts), Timestamp::from_micros(0), &mut live).into_string();
        assert!(text.contains("1,004 enqueued, 1,001 acked, 2 expired, 1 removed"), "{text}");
        assert_eq!(line(None, Timestamp::from_micros(0), &mut live).into_string(), "");
    }
}
