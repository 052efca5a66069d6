//! MOVES-BOUNDED: a node takes part in at most two moves at once, and a shard that has moved stays for 30 s,
//! unless its owner fails, drains or leaves. A pinned one stays, too. A healthy owner gives a shard to its
//! home alone.
//!
//! Judged is what happens while nothing disturbs the cluster, and nothing has for a while: otherwise the
//! nodes know things that the checker does not.

use std::{collections::BTreeMap, time::Duration};

use forebay_types::{NodeName, ShardId};

use super::record::{Finding, RunRecord, ShardLog};
use crate::{
    fake::{AssignmentRecord, AttemptRecord, HomeChange, Moment, ReleaseRecord, TakeOverRecord},
    sim::cluster::{ClusterLog, process_of},
};

/// A node takes part in so many moves at once.
const MOVES_MAX: usize = 2;
/// A shard that has moved stays for so long.
const STAYS: Duration = Duration::from_secs(30);
/// For so long nothing must have disturbed the cluster.
const CALM_FOR: Duration = Duration::from_secs(15);
/// So long a node may take to act on an assignment that is not the newest any more.
const LATE: Duration = Duration::from_secs(10);

/// A shard that is given has no owner for so long at most.
const HAND_OVER_MAX: Duration = Duration::from_millis(500);
/// So soon all nodes know that a disturbance is over.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);
/// Number of nodes that are a crowd if they try to take the same shard over.
const CROWD: usize = 3;

/// A move from a living owner.
struct Move {
    /// The shard.
    shard: ShardId,
    /// When it was written.
    at: Moment,
    /// The processes that take part.
    between: [usize; 2],
    /// Its owner drains.
    drains: bool,
}

/// Counts the moves of the runs: moves from living owners, those that were checked, and other moves.
pub fn check(record: &RunRecord, log: &ClusterLog, found: &mut Vec<Finding>) -> [u64; 3] {
    let mut moves: Vec<Move> = Vec::new();
    let mut since: BTreeMap<ShardId, Vec<Moment>> = BTreeMap::new();
    let mut counts = [0; 3];
    for assigned in &log.assigned {
        let calm = !log.troubles.iter().any(|trouble| trouble.is_felt(assigned.done, CALM_FOR));
        for change in &assigned.changes {
            if node_of(&change.from) == node_of(&change.to) {
                continue;
            }
            if calm && unpinned(record, assigned, change) {
                let (shard, at) = (change.shard, assigned.done.event);
                found
                    .push(("MOVES-BOUNDED", format!("shard {shard} is pinned, and a node moves it in {at}")));
            }
            let earlier = since.entry(change.shard).or_default();
            let moved_before = last_move(record, change.shard, earlier, assigned.done);
            earlier.push(assigned.done);
            let Some(planned) = planned(record, assigned, change) else {
                counts[2] += 1;
                continue;
            };
            counts[0] += 1;
            counts[1] += u64::from(calm);
            let early = moved_before.filter(|before| before.at.plus(STAYS) > planned.at.at);
            if let Some(before) = early.filter(|_| calm && !planned.drains) {
                let (shard, at, before) = (planned.shard, planned.at.event, before.event);
                found.push(("MOVES-BOUNDED", format!("shard {shard} moves in {at}, and moved in {before}")));
            }
            moves.push(planned);
            if calm {
                crowded(record, log, &moves, assigned.done, found);
            }
        }
    }
    for shard in &record.shards {
        given(record, log, shard, found);
        crowds(log, shard, found);
    }
    counts
}

/// The last of these changes of a shard's home after which another process took it over.
fn last_move(record: &RunRecord, shard: ShardId, changes: &[Moment], before: Moment) -> Option<Moment> {
    let owners = &record.shards.iter().find(|it| it.id == shard)?.owners;
    let moved = |change: &&Moment| {
        owners.windows(2).any(|pair| {
            let (done, other) = (pair[1].done.event, pair[0].process != pair[1].process);
            other && change.event < done && done < before.event
        })
    };
    changes.iter().rev().find(moved).copied()
}

fn node_of(home: &Option<forebay_store::Home>) -> Option<&str> {
    home.as_ref().map(|home| home.node.as_str())
}

/// A change that a node has written, and that takes a shard from its owner, which lives.
fn planned(record: &RunRecord, assigned: &AssignmentRecord, change: &HomeChange) -> Option<Move> {
    let node = |home: &Option<forebay_store::Home>| assigned.nodes.get(&home.as_ref()?.node);
    let (from, to) = (node(&change.from)?, node(&change.to)?);
    let (owner, next) = (process_of(from), process_of(to));
    let shard = record.shards.iter().find(|shard| shard.id == change.shard)?;
    let lives = lives(record, owner, assigned.done);
    let owns = shard.owner_at(assigned.done) == Some(owner);
    let planned = assigned.process != 0 && owns && lives;
    planned.then_some(Move {
        shard: change.shard,
        at: assigned.done,
        between: [owner, next],
        drains: from.draining,
    })
}

/// A change that a node has written, and that takes a shard from the node to which it is pinned, which lives.
fn unpinned(record: &RunRecord, assigned: &AssignmentRecord, change: &HomeChange) -> bool {
    let Some(home) = change.from.as_ref().filter(|home| home.pinned && assigned.process != 0) else {
        return false;
    };
    let node = assigned.nodes.get(&home.node).filter(|node| !node.draining);
    node.is_some_and(|node| lives(record, process_of(node), assigned.done))
}

/// Whether a process runs at a moment, and was not about to stop.
fn lives(record: &RunRecord, process: usize, at: Moment) -> bool {
    let dead = record.deaths.iter().any(|(number, died)| *number == process && died.event < at.event);
    let told = record.told.iter().any(|(number, told)| *number == process && told.event < at.event);
    let still = record.stalls.iter().any(|stall| {
        stall.process == process
            && stall.begin.event < at.event
            && stall.end.is_none_or(|end| end.event > at.event)
    });
    !dead && !told && !still
}

/// A node takes part in too many moves.
fn crowded(record: &RunRecord, log: &ClusterLog, moves: &[Move], at: Moment, found: &mut Vec<Finding>) {
    let is_open = |it: &&Move| {
        let shard = record.shards.iter().find(|shard| shard.id == it.shard);
        let arrived = shard.is_some_and(|shard| shard.owner_at(at) == Some(it.between[1]));
        let newer = log.assigned.iter().any(|other| {
            other.done.event > it.at.event
                && other.done.event <= at.event
                && other.changes.iter().any(|change| change.shard == it.shard)
        });
        !arrived && !newer && it.between.iter().all(|process| lives(record, *process, at))
    };
    // A node that gives a shard has done its part once it has released it.
    let has_given = |it: &Move| {
        let shard = record.shards.iter().find(|shard| shard.id == it.shard);
        let mut releases = shard.iter().flat_map(|shard| &shard.releases);
        releases.any(|release| it.at.event < release.done.event && release.done.event < at.event)
    };
    let mut busy: BTreeMap<usize, Vec<ShardId>> = BTreeMap::new();
    for open in moves.iter().filter(is_open) {
        let [from, to] = open.between;
        let busy_with_it = [(!has_given(open)).then_some(from), Some(to)];
        busy_with_it.iter().flatten().for_each(|process| busy.entry(*process).or_default().push(open.shard));
    }
    for (process, shards) in busy.into_iter().filter(|(_, shards)| shards.len() > MOVES_MAX) {
        let what = format!("in {} process {process} takes part in moves of {shards:?}", at.event);
        found.push(("MOVES-BOUNDED", what));
    }
}

/// SHARD-SERVED: nothing disturbed the cluster, and a shard that was given was without an owner for long. One
/// that an operator took offline is given to nobody.
fn hand_over(shard: &ShardLog, after: &TakeOverRecord, log: &ClusterLog, found: &mut Vec<Finding>) {
    let before = |release: &&ReleaseRecord| release.done.event < after.done.event;
    let Some(release) = shard.releases.iter().rfind(before) else { return };
    let earlier = log.assigned.iter().filter(|assigned| assigned.done.event < release.done.event);
    let mut homes = earlier.filter_map(|it| it.changes.iter().find(|change| change.shard == shard.id));
    let offline = homes.next_back().is_some_and(|change| change.to.is_none());
    let calm = !log.troubles.iter().any(|trouble| trouble.is_felt(after.done, KNOWN_WITHIN));
    let (from, to) = (release.done.at, after.done.at);
    if calm && !offline && from.plus(HAND_OVER_MAX) < to {
        let (id, at) = (shard.id, release.done.event);
        let what = format!("shard {id}, given in {at}, had no owner for more than {HAND_OVER_MAX:?}");
        found.push(("SHARD-SERVED", what));
    }
}

/// IN-TURN: while the catalog does not answer, the living nodes take a shard without an owner in turn. So
/// there is no crowd that tries to, beside those that were its home. Who tries after somebody has taken it
/// has only seen that too late.
fn crowds(log: &ClusterLog, shard: &ShardLog, found: &mut Vec<Finding>) {
    let homes = Homes::of(log, shard.id);
    let mut tried: BTreeMap<u64, BTreeMap<usize, u64>> = BTreeMap::new();
    let is_late = |it: &AttemptRecord| {
        let taken = shard.owners.iter().find(|owner| owner.epoch > it.epoch);
        taken.is_some_and(|taken| taken.done.event <= it.begun.event)
    };
    let tries = shard.tried.iter().filter(|it| !homes.may_be(log, it.process, it.begun));
    for it in tries.filter(|it| !is_late(it)) {
        tried.entry(it.epoch).or_default().entry(it.process).or_insert(it.begun.event);
    }
    for (epoch, processes) in tried.into_iter().filter(|(_, processes)| processes.len() >= CROWD) {
        let id = shard.id;
        let what = format!("a crowd tried to take shard {id} over after epoch {epoch}: {processes:?}");
        found.push(("IN-TURN", what));
    }
}

/// The homes of a shard, in order.
struct Homes(Vec<(Moment, NodeName)>);

impl Homes {
    fn of(log: &ClusterLog, shard: ShardId) -> Self {
        let home = |assigned: &AssignmentRecord| {
            let change = assigned.changes.iter().find(|change| change.shard == shard)?;
            Some((assigned.done, change.to.as_ref()?.node.clone()))
        };
        Self(log.assigned.iter().filter_map(home).collect())
    }

    /// Whether a process is the home at a moment, or was not long ago.
    fn may_be(&self, log: &ClusterLog, process: usize, at: Moment) -> bool {
        let name = log.names.get(process.wrapping_sub(1));
        let until = |index: usize| self.0.get(index + 1).map(|(until, _)| *until);
        self.0.iter().enumerate().any(|(index, (since, home))| {
            let is_now = until(index).is_none_or(|until| until.at.plus(LATE) > at.at);
            Some(home) == name && since.event < at.event && is_now
        })
    }
}

/// Shards that were given to a node that is not their home.
fn given(record: &RunRecord, log: &ClusterLog, shard: &ShardLog, found: &mut Vec<Finding>) {
    for pair in shard.owners.windows(2) {
        let [before, after] = pair else { continue };
        let given = after.released && before.process != after.process;
        let stopped = record.told.iter().any(|(number, _)| *number == before.process);
        let mut felt = log.troubles.iter().filter(|trouble| trouble.is_felt(after.done, Duration::ZERO));
        let calm = felt.all(|trouble| trouble.of_catalog);
        if !given || stopped || !calm || !lives(record, before.process, after.done) {
            continue;
        }
        hand_over(shard, after, log, found);
        if !Homes::of(log, shard.id).may_be(log, after.process, after.done) {
            let (process, at) = (after.process, after.done.event);
            let what =
                format!("shard {} was given to process {process} in {at}, which is not its home", shard.id);
            found.push(("MOVES-BOUNDED", what));
        }
    }
}
