//! The node's one time, and a shard's.
//!
//! Node time is the median of the clocks of the database servers, one vote a server, carried by the monotonic
//! clock between the votes. Between the two middle votes of an even number the wall clock decides. Beside a
//! single server it has no say: two nodes of that server would have two times if the clock of one was wrong,
//! and a lease that one of them gave would end early at the other. Node time never steps back, and a new
//! median is approached at 10 % of the speed of time. Only one that is far ahead, and stays so, is taken at
//! once: a machine slept, or its clock was set. The event loop takes that step, at the beginning of a turn,
//! and moves with it the spans that began before.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use forebay_types::{Clock, Monotonic, Timestamp};

use crate::{
    index::ServerIndex,
    planted::{Bug, on},
};

/// One part in so many is how fast node time approaches its median.
const SLEW: i64 = 10;

/// A median that is further ahead is taken at once, if it stands.
const STEP_MIN: i64 = 5_000_000;
/// How long it has to stand.
const STEP_STANDS: Duration = Duration::from_secs(5);
/// By how much it may move meanwhile, in microseconds: a reading of a server's clock is not exact.
const STEP_WOBBLE: i64 = 1_000_000;

/// The number of steps that are remembered.
const STEPS_MAX: usize = 64;

/// A median that is far ahead of node time.
#[derive(Debug, Clone, Copy)]
struct FarAhead {
    /// Since when there is one.
    first: Monotonic,
    /// Since when it stands.
    since: Monotonic,
    /// How far it is ahead of the monotonic clock, in microseconds.
    offset: i64,
}

/// Node time has stepped forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// The moment before it.
    pub before: Moment,
    /// The moment after it: the same for the monotonic clock.
    pub after: Moment,
}

impl Step {
    /// How far it was.
    pub fn by(self) -> Duration {
        self.after.now.since(self.before.now)
    }
}

/// The node's time.
pub(crate) struct NodeTime {
    /// The node's own clocks.
    clock: Arc<dyn Clock>,
    /// How far each server's clock is ahead of the monotonic clock, in microseconds.
    votes: BTreeMap<ServerIndex, i64>,
    /// The same, in order.
    sorted: Vec<i64>,
    /// Node time at `read_at`, in microseconds.
    value: i64,
    /// When `value` was last brought up to date.
    read_at: Monotonic,
    /// By how much the time that has passed since the last slew is not a whole multiple of [`SLEW`], in
    /// microseconds. Without it, time that is read all the time would never slew.
    slew_rest: i64,
    /// The median is far ahead.
    far_ahead: Option<FarAhead>,
    /// By how much all steps together have moved it.
    stepped: Duration,
    /// The last steps.
    steps: VecDeque<Step>,
}

impl NodeTime {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (value, read_at) = (clock.wall().as_micros(), clock.monotonic());
        Self {
            clock,
            votes: BTreeMap::new(),
            sorted: Vec::new(),
            value,
            read_at,
            slew_rest: 0,
            far_ahead: None,
            stepped: Duration::ZERO,
            steps: VecDeque::new(),
        }
    }

    pub fn monotonic(&self) -> Monotonic {
        self.clock.monotonic()
    }

    /// The wall clock of this machine, for whoever compares with what others of its programs say.
    pub fn wall(&self) -> Timestamp {
        self.clock.wall()
    }

    /// A server's clock was read, at some time since `began`: nobody knows when, and the answer may have been
    /// on its way for long. As long as the vote before agrees with that, it stands; the first one is as near
    /// to the wall clock as it can be.
    pub fn vote(&mut self, server: ServerIndex, time: Timestamp, began: Monotonic) {
        let (now, wall) = (micros(self.clock.monotonic()), self.clock.wall().as_micros());
        let began = if on(Bug::OldReadingTakenForNew) { now } else { micros(began).min(now) };
        let (lowest, highest) = (time.as_micros() - now, time.as_micros() - began);
        let vote = self.votes.entry(server).or_insert(wall - now);
        *vote = (*vote).clamp(lowest, highest);
        self.sort();
    }

    /// No shard of this server is owned any more, so its clock is not read.
    pub fn forget(&mut self, server: ServerIndex) {
        self.votes.remove(&server);
        self.sort();
    }

    fn sort(&mut self) {
        self.sorted.clear();
        self.sorted.extend(self.votes.values());
        self.sorted.sort_unstable();
    }

    /// How far a server's clock is from node time as it was last read, for operators. Where no server has
    /// one, as with SQLite, it is the clock of this machine. 0 if it is not known.
    pub fn offset(&self, server: ServerIndex) -> i64 {
        let now = self.value - micros(self.read_at);
        match self.votes.get(&server) {
            Some(vote) => vote - now,
            None if self.votes.is_empty() => self.clock.wall().as_micros() - micros(self.read_at) - now,
            None => 0,
        }
    }

    /// Whether it follows servers, and not the clock of this machine.
    pub fn follows_servers(&self) -> bool {
        !self.votes.is_empty()
    }

    /// By how much steps have moved it since the node began.
    pub fn stepped(&self) -> Duration {
        self.stepped
    }

    /// Steps to a median that has been far ahead for long enough. The caller moves the spans that began
    /// before.
    pub fn step(&mut self) -> Option<Step> {
        let before = self.moment();
        let far_ahead = self.far_ahead.filter(|far| before.at.since(far.since) >= STEP_STANDS)?;
        self.far_ahead = None;
        self.value = micros(before.at) + far_ahead.offset;
        let step = Step { before, after: Moment { now: Timestamp::from_micros(self.value), ..before } };
        self.stepped += step.by();
        self.steps.push_back(step);
        if self.steps.len() > STEPS_MAX {
            self.steps.pop_front();
        }
        Some(step)
    }

    /// How long it is from one time to a later one, without what was stepped over.
    pub fn elapsed(&self, from: Timestamp, to: Timestamp) -> Duration {
        let over = self.steps.iter().filter(|step| from <= step.before.now && to >= step.after.now);
        to.since(from).saturating_sub(over.map(|step| step.by()).sum())
    }

    /// Notes whether the median is far ahead, and since when it stands there.
    fn watch(&mut self, target: i64, free: i64, at: Monotonic) {
        if target - free <= STEP_MIN {
            self.far_ahead = None;
            return;
        }
        let offset = target - micros(at);
        let far = self.far_ahead.get_or_insert(FarAhead { first: at, since: at, offset });
        if (offset - far.offset).abs() > STEP_WOBBLE {
            *far = FarAhead { since: at, offset, ..*far };
        }
    }

    /// Whether the median may be one to step to: until that is known it is not approached, so that no span
    /// ends early. One that never stands is approached all the same.
    fn may_step(&self, at: Monotonic) -> bool {
        self.far_ahead.is_some_and(|far| at.since(far.first) <= 3 * STEP_STANDS)
    }

    /// Both clocks at once, for what looks at many items.
    pub fn moment(&mut self) -> Moment {
        Moment { now: self.now(), at: self.read_at }
    }

    /// The time. Never less than what was returned before.
    pub fn now(&mut self) -> Timestamp {
        let at = self.clock.monotonic();
        let elapsed = micros(at) - micros(self.read_at);
        let target = self.median(at);
        let free = self.value + elapsed;
        self.watch(target, free, at);
        let slewing = if self.may_step(at) { 0 } else { elapsed + self.slew_rest };
        let slew = slewing / SLEW;
        self.slew_rest = slewing % SLEW;
        self.value = target.clamp(free - slew, free + slew).max(self.value);
        self.read_at = at;
        Timestamp::from_micros(self.value)
    }

    /// The median of the votes; of an even number, what is nearest to the wall clock between the middle ones.
    /// Without a vote, the wall clock.
    fn median(&self, at: Monotonic) -> i64 {
        let (at, wall) = (micros(at), self.clock.wall().as_micros());
        let Some(last) = self.sorted.len().checked_sub(1) else { return wall };
        at + (wall - at).clamp(self.sorted[last / 2], self.sorted[last.div_ceil(2)])
    }
}

/// Node time, or a shard's time, and the monotonic clock, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Civil time.
    pub now: Timestamp,
    /// The monotonic clock.
    pub at: Monotonic,
}

impl Moment {
    /// When the clock will have passed `time`. A microsecond later, since times are compared in whole
    /// microseconds.
    pub fn when(self, time: Timestamp) -> Monotonic {
        self.at.plus(time.since(self.now)).plus(Duration::from_micros(1))
    }
}

/// A shard's time: node time, but never behind what the shard was told before. Where the fence's time is
/// ahead of the node's, the shard's runs at half speed until it is met.
#[derive(Debug)]
pub(crate) struct ShardTime {
    /// The shard's time at `as_of`.
    value: Timestamp,
    /// As of when. At half speed it moves by whole microseconds of `value`, so that nothing is lost however
    /// often the time is read.
    as_of: Monotonic,
}

impl ShardTime {
    pub fn new(fence: Timestamp, at: Monotonic) -> Self {
        Self { value: fence, as_of: at }
    }

    /// The shard's moment, given the node's.
    pub fn moment(&mut self, node: Moment) -> Moment {
        let whole = Duration::from_micros(node.at.since(self.as_of).as_micros() as u64 / 2);
        let half = self.value.plus(whole);
        (self.value, self.as_of) =
            if node.now < half { (half, self.as_of.plus(2 * whole)) } else { (node.now, node.at) };
        Moment { now: self.value, at: node.at }
    }
}

fn micros(at: Monotonic) -> i64 {
    i64::try_from(at.since(Monotonic::from_start(Duration::ZERO)).as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
