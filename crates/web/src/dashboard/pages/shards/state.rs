//! How a shard is, in words.

use std::time::Duration;

use forebay_engine::{BreakerPhase, ShardState as EngineState, ShardStatus};
use forebay_proto::v1::ShardState;
use forebay_types::Timestamp;

use super::{super::super::texts::span, known::ShardWithStatus};

/// The class and the words of a shard's state. What is wrong comes first.
pub fn state(known: &ShardWithStatus<'_>, now: Timestamp) -> (&'static str, String) {
    let shard = known.shard;
    if let Some(since) = known.status.and_then(|status| status.silent_since_micros) {
        return ("bad", format!("does not answer for {}", ago(since, now)));
    }
    let of_engine = known.status.map(|status| status.state);
    match (shard.state(), of_engine) {
        (ShardState::Offline, _) => ("warn", "offline".to_owned()),
        (_, Some(EngineState::Unreachable)) => ("bad", "can't be taken over".to_owned()),
        (_, Some(EngineState::Starting)) => ("warn", "starting".to_owned()),
        (_, Some(EngineState::Stopped)) => ("warn", "given up, as the node stops".to_owned()),
        _ if shard.owner.is_empty() => ("bad", "nobody owns it".to_owned()),
        (ShardState::Draining, _) => ("warn", "draining".to_owned()),
        _ if moves(known) => ("warn", "moving".to_owned()),
        _ => ("good", "active".to_owned()),
    }
}

/// Whether another node is to own it.
pub fn moves(known: &ShardWithStatus<'_>) -> bool {
    let shard = known.shard;
    !shard.wished_owner.is_empty() && shard.wished_owner != shard.owner
}

/// The class and the words of the circuit breaker.
pub fn breaker(status: &ShardStatus, now: Timestamp) -> (&'static str, String) {
    let phase = status.breaker.as_str();
    match (status.breaker, status.breaker_since_micros) {
        (BreakerPhase::Closed, _) => ("good", phase.to_owned()),
        (_, Some(since)) => ("bad", format!("{phase} for {}", ago(since, now))),
        (_, None) => ("bad", phase.to_owned()),
    }
}

/// How long ago a time is, which the engine tells in microseconds.
pub fn ago(micros: i64, now: Timestamp) -> String {
    span(now.since(Timestamp::from_micros(micros)).max(Duration::from_secs(1)))
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::Shard;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(100_000_000);

    fn said(shard: &Shard, status: Option<&ShardStatus>) -> (&'static str, String) {
        state(&ShardWithStatus { shard, status }, NOW)
    }

    #[test]
    fn what_is_wrong_comes_first() {
        let owned = ShardStatus { state: EngineState::Owned, ..ShardStatus::default() };
        let silent = ShardStatus { silent_since_micros: Some(80_000_000), ..owned.clone() };
        let active = ShardState::Active.into();
        let fine = Shard { owner: "a".into(), wished_owner: "a".into(), state: active, ..Shard::default() };
        let drains = Shard { state: ShardState::Draining.into(), ..fine.clone() };
        assert_eq!(said(&fine, Some(&owned)), ("good", "active".into()));
        assert_eq!(said(&fine, None), ("good", "active".into()), "another node owns it");
        assert_eq!(said(&drains, Some(&owned)), ("warn", "draining".into()));
        assert_eq!(said(&drains, Some(&silent)), ("bad", "does not answer for 20 s".into()));
        let unfit = ShardStatus { state: EngineState::Unreachable, ..owned.clone() };
        assert_eq!(said(&drains, Some(&unfit)).0, "bad");
        let nobodys = Shard { owner: String::new(), ..fine.clone() };
        assert_eq!(said(&nobodys, None), ("bad", "nobody owns it".into()));
        let offline = Shard { state: ShardState::Offline.into(), ..nobodys };
        assert_eq!(said(&offline, None), ("warn", "offline".into()), "nobody may own it");
        let moves = Shard { wished_owner: "b".into(), ..fine };
        assert_eq!(said(&moves, Some(&owned)), ("warn", "moving".into()));
    }

    #[test]
    fn an_open_breaker_says_since_when() {
        let closed = ShardStatus::default();
        let open = ShardStatus {
            breaker: BreakerPhase::Open,
            breaker_since_micros: Some(99_900_000),
            ..closed.clone()
        };
        assert_eq!(breaker(&closed, NOW), ("good", "closed".into()));
        assert_eq!(breaker(&open, NOW), ("bad", "open for 1 s".into()));
        let half = ShardStatus { breaker: BreakerPhase::HalfOpen, ..closed };
        assert_eq!(breaker(&half, NOW), ("bad", "half-open".into()));
    }
}
