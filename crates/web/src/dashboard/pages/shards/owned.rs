//! State of the shards that this node owns, beside their items: their servers, and their sweeps.

use std::time::Duration;

use forebay_engine::{ShardStatus, SweepStatus};
use forebay_types::Timestamp;
use maud::{Markup, html};

use super::{
    super::super::{
        asked::PageRequest,
        live::Live,
        table::{self, Head},
        texts::{bytes, count, span},
    },
    known::ShardWithStatus,
};

/// Explains the column of settings.
const SETTINGS: &str = "Settings that may lose commits, or that are better changed";
/// From this difference on, a server's clock is a trouble.
const CLOCK_OFF: Duration = Duration::from_secs(1);
/// A sweep that is this far behind is late.
const LATE: Duration = Duration::from_secs(5 * 60);

/// Makes both sections. Without a shard of its own there are none.
pub fn make(asked: &PageRequest, known: &[ShardWithStatus<'_>], live: &mut Live) -> Markup {
    let owned: Vec<&ShardStatus> = known.iter().filter_map(ShardWithStatus::owned).collect();
    html! {
        @if !owned.is_empty() {
            h2 { "Servers of this node's shards" }
            (servers(&owned, live))
            h2 { "Sweeps of this node's shards" }
            p.dim {
                "A sweep moves rows whose time has come: due items, leases that ran out, what has expired."
            }
            (sweeps(&owned, asked.now(), live))
        }
    }
}

fn servers(owned: &[&ShardStatus], live: &mut Live) -> Markup {
    table::list(
        html! {
            (Head::words("shard"))
            (Head::words("server"))
            (Head::number("batch").title("The last batch that was committed"))
            (Head::number("index").title("Memory for the ready index and cached bodies"))
            (Head::number("clock").title("How far the server's clock is ahead of this node's"))
            (Head::words("settings").title(SETTINGS))
        },
        html! {
            @for status in owned {
                @let id = format!("own{}", status.id);
                @let (class, offset) = clock(status.clock_offset_micros);
                @let (settings_class, settings) = settings(status);
                tr {
                    td.l data-head="shard" { (status.id) }
                    td.l data-head="server" { (status.server) }
                    td data-head="batch" { (live.text(format!("{id}b"), count(status.batch))) }
                    td data-head="index" {
                        (live.text(format!("{id}i"), bytes(status.index_bytes as u64)))
                    }
                    td data-head="clock" { (live.word(format!("{id}c"), class, offset)) }
                    td.l.wrap data-head="settings" {
                        (live.word(format!("{id}s"), settings_class, settings))
                    }
                }
            }
        },
    )
}

/// The class and the words of a server's settings.
fn settings(status: &ShardStatus) -> (&'static str, String) {
    match status.concerns.as_slice() {
        [] => ("good", "fine".to_owned()),
        concerns => ("bad", concerns.join("; ")),
    }
}

/// The class and the words of how far a clock is ahead.
fn clock(offset_micros: i64) -> (&'static str, String) {
    let offset = Duration::from_micros(offset_micros.unsigned_abs());
    let class = if offset >= CLOCK_OFF { "bad" } else { "none" };
    let sign = if offset_micros < 0 { "−" } else { "" };
    (class, format!("{sign}{}", span(offset)))
}

fn sweeps(owned: &[&ShardStatus], now: Timestamp, live: &mut Live) -> Markup {
    table::plain(
        html! {
            (Head::words("shard"))
            (Head::words("sweep"))
            (Head::number("rows moved").title("Since this node took the shard over"))
            (Head::number("lag").title("How long ago the time is up to which all was moved"))
        },
        html! {
            @for status in owned {
                @for sweep in &status.sweeps {
                    @let id = format!("own{}-{}", status.id, sweep.name);
                    @let (class, lag) = lag(sweep, now);
                    tr {
                        td.l { (status.id) }
                        td.l { (sweep.name) }
                        td { (live.text(format!("{id}m"), count(sweep.moved))) }
                        td { (live.word(format!("{id}l"), class, lag)) }
                    }
                }
            }
        },
    )
}

/// The class and the words of how far a sweep is behind.
fn lag(sweep: &SweepStatus, now: Timestamp) -> (&'static str, String) {
    // It has not looked yet.
    if sweep.checkpoint_micros == i64::MIN {
        return ("none", "–".to_owned());
    }
    let lag = now.since(Timestamp::from_micros(sweep.checkpoint_micros));
    (if lag >= LATE { "warn" } else { "none" }, span(lag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_that_is_far_behind_is_late() {
        let now = Timestamp::from_micros(1_000_000_000);
        let at = |checkpoint_micros| SweepStatus { checkpoint_micros, ..SweepStatus::default() };
        assert_eq!(lag(&at(998_000_000), now), ("none", "2 s".into()));
        assert_eq!(lag(&at(1_005_000_000), now), ("none", "0 ms".into()), "it is ahead");
        assert_eq!(lag(&at(400_000_000), now), ("warn", "10 min".into()));
        assert_eq!(lag(&at(i64::MIN), now), ("none", "–".into()));
    }

    #[test]
    fn a_clock_that_is_off_is_a_trouble() {
        assert_eq!(clock(-1_500_000), ("bad", "−1 s".into()));
        assert_eq!(clock(2_000), ("none", "2 ms".into()));
        assert_eq!(clock(0), ("none", "0 ms".into()));
    }
}
