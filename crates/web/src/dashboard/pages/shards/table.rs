//! The table of shards.

use std::time::Duration;

use forebay_proto::v1::ShardState;
use maud::{Markup, html};

use super::{
    super::super::{
        asked::PageRequest,
        links::link,
        live::Live,
        table::{self, Head},
        texts::{count, time},
    },
    known::ShardWithStatus,
    state::{breaker, moves, state},
};

/// Stands for a value that is not known to this node.
pub const UNKNOWN: &str = "–";

/// Makes it.
pub fn make(asked: &PageRequest, known: &[ShardWithStatus<'_>], live: &mut Live) -> Markup {
    let elsewhere = known.iter().any(|known| known.owned().is_none());
    html! {
        (table::list(
            html! {
                (Head::words("shard"))
                (Head::words("server"))
                (Head::words("state"))
                (Head::words("owner").title("The node that owns it"))
                (Head::words("since").title("Since when its owner has it"))
                (Head::number("epoch").title("Counts its owners"))
                (Head::words("breaker").title("Open: nothing new is sent to it"))
                (Head::number("ready").title("Items that could be leased now"))
                (Head::number("leased").title("Items that are leased"))
                (Head::number("scheduled").title("Items that are not due yet"))
                (Head::number("dead").title("Dead letters"))
                (Head::number("topics"))
                (Head::number("last commit").title("How long the last commit took"))
                (Head::words("last error"))
            },
            html! { @for known in known { (row(asked, known, live)) } },
        ))
        @if elsewhere {
            p.dim { "The figures of a shard are shown at the pages of the node that owns it." }
        }
    }
}

fn row(asked: &PageRequest, known: &ShardWithStatus<'_>, live: &mut Live) -> Markup {
    let (shard, owned, now) = (known.shard, known.owned(), asked.now());
    let number = shard.id.to_string();
    let id = live.row(&["shard", &number]);
    let (class, words) = state(known, now);
    let (breaker_class, breaker_words) =
        known.owned().map_or(("none", UNKNOWN.to_owned()), |status| breaker(status, now));
    let figures = [
        ("r", Some("ready"), owned.map(|status| status.ready)),
        ("l", None, owned.map(|status| status.leased)),
        ("s", None, owned.map(|status| status.scheduled)),
        ("d", Some("dead"), owned.map(|status| status.dead)),
        ("t", None, owned.map(|status| status.topics as u64)),
    ];
    html! {
        tr data-row=(id) {
            td.l data-head="shard" id=(format!("shard-{number}")) {
                a href=(link("shards", &[("id", &number)])) { (number) }
            }
            td.l data-head="server" { bdi { (shard.server) } }
            td.l.wrap data-head="state" {
                (live.word(format!("{id}w"), class, words))
                (drain(known, &id, live))
            }
            td.l data-head="owner" { (owner(known, &id, live)) }
            td.l data-head="since" { (time(shard.since, now)) }
            td { (live.text(format!("{id}e"), count(shard.epoch))) }
            td.l data-head="breaker" { (live.word(format!("{id}b"), breaker_class, breaker_words)) }
            @for (name, head, figure) in figures {
                td data-head=[head] {
                    (live.text(format!("{id}{name}"), figure.map_or(UNKNOWN.to_owned(), count)))
                }
            }
            td { (live.text(format!("{id}c"), commit(owned.map(|status| status.commit_micros)))) }
            td.l.wrap data-head="error" { (live.text(format!("{id}x"), &shard.trouble)) }
        }
    }
}

/// Says what holds up the drain of a shard. That it has run empty is known to its owner alone.
fn drain(known: &ShardWithStatus<'_>, id: &str, live: &mut Live) -> Markup {
    let (shard, is_own) = (known.shard, known.owned().is_some());
    let text = match (shard.state(), shard.hold_up.as_str()) {
        (ShardState::Draining, "") if is_own => "It has run empty, and can be removed.".to_owned(),
        (ShardState::Draining, "") => "Nobody knows what is left in it.".to_owned(),
        (ShardState::Draining, hold_up) if is_own => format!("Held up: {hold_up}."),
        (ShardState::Draining, hold_up) => format!("{hold_up} what is left in it."),
        _ => return html! {},
    };
    html! { p.dim { (live.text(format!("{id}h"), text)) } }
}

fn owner(known: &ShardWithStatus<'_>, id: &str, live: &mut Live) -> Markup {
    let shard = known.shard;
    let mut text = if shard.owner.is_empty() { "nobody".to_owned() } else { shard.owner.clone() };
    if moves(known) {
        text = format!("{text}, moves to {}", shard.wished_owner);
    }
    html! {
        bdi { (live.text(format!("{id}n"), text)) }
        @if shard.pinned {
            " " span.chip title="It was moved there by hand, and is not moved for evenness" { "pinned" }
        }
    }
}

/// How long a commit took. 0: there was none.
fn commit(micros: Option<u64>) -> String {
    match micros {
        None | Some(0) => UNKNOWN.to_owned(),
        Some(micros) => format!("{:.1} ms", Duration::from_micros(micros).as_secs_f64() * 1_000.0),
    }
}

#[cfg(test)]
mod tests {
    use forebay_engine::{ShardState as EngineState, ShardStatus};
    use forebay_proto::v1::Shard;

    use super::*;

    #[test]
    fn a_commit_is_told_in_milliseconds() {
        assert_eq!([None, Some(0), Some(1_240)].map(commit), ["–", "–", "1.2 ms"]);
    }

    #[test]
    fn a_drain_says_what_holds_it_up() {
        let shard = |state: ShardState, hold_up: &str| Shard {
            state: state.into(),
            hold_up: hold_up.to_owned(),
            ..Shard::default()
        };
        let own = ShardStatus { state: EngineState::Owned, ..ShardStatus::default() };
        let said = |shard: &Shard, status| {
            drain(&ShardWithStatus { shard, status }, "r", &mut Live::default()).into_string()
        };
        let draining = |hold_up| shard(ShardState::Draining, hold_up);
        assert!(said(&draining("3 items"), Some(&own)).contains("Held up: 3 items."));
        assert!(said(&draining(""), Some(&own)).contains("can be removed"));
        assert!(said(&draining(""), None).contains("Nobody knows"), "never falsely calm");
        let elsewhere = said(&draining("b owns it, and knows"), None);
        assert!(elsewhere.contains("b owns it, and knows what is left in it."), "{elsewhere}");
        assert_eq!(said(&shard(ShardState::Active, "x"), Some(&own)), "");
    }
}
