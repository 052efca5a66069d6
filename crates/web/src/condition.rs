//! How a node is, in one line: the same words on the page and in `/status.json`.

use std::fmt::{self, Display};

use forebay_engine::{BreakerPhase, MissingSource, ShardState, ShardStatus, Status};
use forebay_membership::ClusterState;
use forebay_types::Timestamp;

/// The most problems that are named. The rest is counted.
const PROBLEMS_MAX: usize = 3;
/// Where the time of day is in a date and time of RFC 3339.
const TIME_OF_DAY: std::ops::Range<usize> = 11..19;

/// How a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Calls reach shards, and nothing is wrong with any.
    Serving,
    /// Something is wrong with these shards.
    Degraded(Vec<String>),
    /// Calls reach no shard: it has just started, is linked to no other node, or stops.
    StandingBy,
}

impl Condition {
    /// Of a node at `now`. `serving`: calls reach a shard, and it does not stop. Without a status the engine
    /// has stopped.
    pub fn of(serving: bool, engine: Option<&Status>, cluster: &ClusterState, now: Timestamp) -> Self {
        let Some(engine) = engine else { return Self::StandingBy };
        let mut problems: Vec<String> =
            engine.shards.iter().filter_map(|shard| problem(shard, now)).collect();
        for missing in engine.missing_homes.iter().filter(|_| serving) {
            let (shard, until) = (missing.shard, Time { micros: missing.until_micros, now });
            problems.push(format!(
                "shard {shard}, which may know dedupe keys, is not configured any more; this matters until \
                 {until}"
            ));
        }
        if !cluster.catalog_trouble.is_empty() {
            problems.push(cluster.catalog_trouble.clone());
        }
        let unreached = cluster.nodes.iter().filter(|node| node.live && !node.reached);
        problems.extend(unreached.map(|node| format!("node {} does not answer this one", node.name)));
        let missing = engine.missing_sources.iter();
        problems.extend(missing.map(|MissingSource { address, why }| {
            format!("items of the node at {address} do not come here: {why}")
        }));
        match (problems.is_empty(), serving) {
            (false, _) => Self::Degraded(problems),
            (true, true) => Self::Serving,
            (true, false) => Self::StandingBy,
        }
    }
}

impl Condition {
    /// The same with more that is wrong.
    pub fn and(self, more: Vec<String>) -> Self {
        match self {
            Self::Degraded(mut problems) => {
                problems.extend(more);
                Self::Degraded(problems)
            }
            fine if more.is_empty() => fine,
            _ => Self::Degraded(more),
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems = match self {
            Self::Serving => return f.write_str("serving"),
            Self::StandingBy => return f.write_str("standing by"),
            Self::Degraded(problems) => problems,
        };
        write!(f, "degraded: {}", problems[..problems.len().min(PROBLEMS_MAX)].join("; "))?;
        match problems.len().saturating_sub(PROBLEMS_MAX) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl serde::Serialize for Condition {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The problem of a shard, if it has one. That another node owns it is none.
fn problem(shard: &ShardStatus, now: Timestamp) -> Option<String> {
    let name = format!("shard {} ({})", shard.id, shard.server);
    if let Some(micros) = shard.silent_since_micros {
        return Some(format!("{name} does not answer since {}", Time { micros, now }));
    }
    match (shard.breaker, shard.state) {
        (BreakerPhase::Closed, ShardState::Unreachable) => {
            Some(format!("{name} can't be taken over: {}", shard.last_error))
        }
        (BreakerPhase::Closed, _) => None,
        (phase, _) => {
            let since = Time { micros: shard.breaker_since_micros.unwrap_or(now.as_micros()), now };
            Some(format!("the breaker of {name} is {} since {since}", phase.as_str()))
        }
    }
}

/// A time in UTC: the time of day, or also the date where that is not today's.
struct Time {
    micros: i64,
    now: Timestamp,
}

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [time, now] = [Timestamp::from_micros(self.micros), self.now].map(|at| at.to_string());
        let is_today = time[..TIME_OF_DAY.start] == now[..TIME_OF_DAY.start];
        f.write_str(if is_today { &time[TIME_OF_DAY] } else { &time })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_engine::MissingHome;

    use super::*;

    /// 2026-09-21T14:13:20Z.
    const NOW: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

    fn shard(id: u32) -> ShardStatus {
        let server = format!("db{id}:3306");
        ShardStatus { id, server, state: ShardState::Owned, ..Default::default() }
    }

    fn state(serving: bool, shards: Vec<ShardStatus>) -> String {
        Condition::of(serving, Some(&Status { shards, ..Default::default() }), &Default::default(), NOW)
            .to_string()
    }

    fn ago(seconds: u64) -> Option<i64> {
        Some(NOW.minus(Duration::from_secs(seconds)).as_micros())
    }

    #[test]
    fn a_node_serves_or_stands_by() {
        let waiting = ShardStatus { state: ShardState::Waiting, ..shard(2) };
        assert_eq!(state(true, vec![shard(1), waiting.clone()]), "serving");
        assert_eq!(state(false, vec![waiting]), "standing by");
        assert_eq!(state(false, vec![shard(1)]), "standing by", "it stops");
        assert_eq!(Condition::of(false, None, &Default::default(), NOW), Condition::StandingBy);
    }

    #[test]
    fn a_shard_that_does_not_answer_is_named_with_its_server_and_time() {
        let silent = ShardStatus { silent_since_micros: ago(20), breaker: BreakerPhase::Open, ..shard(3) };
        let degraded = "degraded: shard 3 (db3:3306) does not answer since 14:13:00";
        assert_eq!(state(true, vec![shard(1), silent.clone()]), degraded);
        assert_eq!(state(false, vec![silent]), degraded, "it was the only one");
        let yesterday = ShardStatus { silent_since_micros: ago(86_400), ..shard(3) };
        assert!(state(true, vec![yesterday]).ends_with("since 2026-09-20T14:13:20Z"));
    }

    #[test]
    fn an_open_breaker_and_a_shard_that_rejects_the_node_are_named() {
        let open = ShardStatus { breaker: BreakerPhase::Open, breaker_since_micros: ago(1), ..shard(1) };
        let half = ShardStatus { breaker: BreakerPhase::HalfOpen, breaker_since_micros: ago(1), ..shard(2) };
        let unfit = ShardStatus { last_error: "no schema".into(), ..shard(4) };
        let unfit = ShardStatus { state: ShardState::Unreachable, ..unfit };
        assert_eq!(
            state(true, vec![open.clone(), half, unfit, open]),
            "degraded: the breaker of shard 1 (db1:3306) is open since 14:13:19; \
             the breaker of shard 2 (db2:3306) is half-open since 14:13:19; \
             shard 4 (db4:3306) can't be taken over: no schema; and 1 more"
        );
    }

    #[test]
    fn an_earlier_home_of_keys_that_is_not_configured_is_named() {
        let missing = MissingHome { shard: 2, until_micros: NOW.plus(Duration::from_secs(60)).as_micros() };
        let status = Status { shards: vec![shard(1)], missing_homes: vec![missing], ..Default::default() };
        assert_eq!(
            Condition::of(true, Some(&status), &Default::default(), NOW).to_string(),
            "degraded: shard 2, which may know dedupe keys, is not configured any more; this matters until \
             14:14:20"
        );
    }
}
