//! The node's one time, and a shard's.
//!
//! Node time is the median of the clocks of the database servers, one vote a server, carried by the monotonic
//! clock between the votes. Between the two middle votes of an even number the wall clock decides. Beside a
//! single server it has no say: two nodes of that server would have two times if the clock of one was wrong,
//! and a lease that one of them gave would end early at the other. Node time never steps back, and a new
//! median is approached at 10 % of the speed of time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use forebay_types::{Clock, Monotonic, Timestamp};

use crate::{
    index::ServerIndex,
    planted::{Bug, on},
};

/// One part in so many is how fast node time approaches its median.
const SLEW: i64 = 10;

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
}

impl NodeTime {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (value, read_at) = (clock.wall().as_micros(), clock.monotonic());
        Self { clock, votes: BTreeMap::new(), sorted: Vec::new(), value, read_at, slew_rest: 0 }
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

    /// How far a server's clock is from node time, for operators.
    pub fn offset(&mut self, server: ServerIndex) -> Option<i64> {
        let now = self.now().as_micros() - micros(self.read_at);
        self.votes.get(&server).map(|vote| vote - now)
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
        let slewing = elapsed + self.slew_rest;
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
#[derive(Debug, Clone, Copy)]
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
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Hands(Mutex<(i64, u64)>);

    impl Hands {
        fn set(&self, wall: i64, monotonic: u64) {
            *self.0.lock().unwrap() = (wall, monotonic);
        }
    }

    impl Clock for Hands {
        fn wall(&self) -> Timestamp {
            Timestamp::from_micros(self.0.lock().unwrap().0)
        }

        fn monotonic(&self) -> Monotonic {
            Monotonic::from_start(Duration::from_micros(self.0.lock().unwrap().1))
        }
    }

    #[test]
    fn a_reading_that_took_long_says_no_more_than_it_can() {
        let hands = Arc::new(Hands::default());
        hands.set(50_000_000, 20_000_000);
        let mut time = NodeTime::new(hands.clone());
        let vote = |time: &mut NodeTime, read, began| {
            let began = Monotonic::from_start(Duration::from_micros(began));
            time.vote(ServerIndex(0), Timestamp::from_micros(read), began);
            time.votes[&ServerIndex(0)]
        };
        // Read 15 s ago, when the wall clock showed the same.
        assert_eq!(vote(&mut time, 35_000_000, 5_000_000), 30_000_000);
        // The server's clock is 2 s ahead at least, and 17 s at most.
        assert_eq!(vote(&mut time, 52_000_000, 5_000_000), 32_000_000);
        assert_eq!(vote(&mut time, 52_500_000, 19_000_000), 32_500_000);
        // What agrees with that changes nothing, nor does the wall clock.
        hands.set(60_000_000, 20_000_000);
        assert_eq!(vote(&mut time, 52_100_000, 19_000_000), 32_500_000);
        // It is behind.
        assert_eq!(vote(&mut time, 40_000_000, 19_000_000), 21_000_000);
    }

    #[test]
    fn a_step_of_the_wall_clock_is_approached_slowly_and_never_backwards() {
        let hands = Arc::new(Hands::default());
        hands.set(1_000_000, 0);
        let mut time = NodeTime::new(hands.clone());
        hands.set(9_000_000, 1_000);
        assert_eq!(time.now().as_micros(), 1_001_100);
        hands.set(0, 2_000);
        assert_eq!(time.now().as_micros(), 1_002_000);
    }

    #[test]
    fn two_servers_outvote_the_wall_clock() {
        let hands = Arc::new(Hands::default());
        hands.set(1_000_000, 0);
        let mut time = NodeTime::new(hands.clone());
        time.vote(ServerIndex(0), Timestamp::from_micros(1_000_000), time.monotonic());
        time.vote(ServerIndex(1), Timestamp::from_micros(1_000_000), time.monotonic());
        hands.set(9_001_000, 1_000);
        assert_eq!(time.now().as_micros(), 1_001_000);
    }

    #[test]
    fn a_shard_that_is_ahead_runs_at_half_speed_until_it_is_met() {
        let start = Monotonic::from_start(Duration::ZERO);
        let mut time = ShardTime::new(Timestamp::from_micros(2_000), start);
        let mut shard = |node, at: Monotonic| {
            time.moment(Moment { now: Timestamp::from_micros(node), at }).now.as_micros()
        };
        let later = start.plus(Duration::from_micros(1_000));
        assert_eq!(shard(1_000, later), 2_500);
        assert_eq!(shard(5_000, later.plus(Duration::from_micros(4_000))), 5_000);
    }

    #[test]
    fn time_slews_however_often_it_is_read() {
        let hands = Arc::new(Hands::default());
        hands.set(1_000_000, 0);
        let mut time = NodeTime::new(hands.clone());
        for passed in 1..=100_000 {
            hands.set(9_000_000, 3 * passed);
            time.now();
        }
        assert_eq!(time.now().as_micros(), 1_330_000);
    }

    #[test]
    fn a_shard_that_is_ahead_moves_however_often_its_time_is_read() {
        let start = Monotonic::from_start(Duration::ZERO);
        let mut time = ShardTime::new(Timestamp::from_micros(1_000_000), start);
        let mut shard = |passed| {
            let at = start.plus(Duration::from_micros(passed));
            time.moment(Moment { now: Timestamp::MIN, at }).now.as_micros()
        };
        for passed in 1..1_001 {
            shard(passed);
        }
        assert_eq!((shard(1_001), shard(1_002)), (1_000_500, 1_000_501));
    }

    #[test]
    fn the_median_is_the_middle_vote_and_the_wall_clock_decides_between_two() {
        let hands = Arc::new(Hands::default());
        hands.set(0, 500);
        let mut time = NodeTime::new(hands.clone());
        let at = hands.monotonic();
        for (server, vote) in [700, 300, 900, 100, 500, 300].into_iter().enumerate() {
            time.vote(ServerIndex(server), Timestamp::from_micros(vote), time.monotonic());
            for wall in (0..=1_000).step_by(50) {
                hands.set(wall, 500);
                let mut clocks: Vec<i64> = time.votes.values().map(|vote| vote + 500).collect();
                clocks.extend(clocks.len().is_multiple_of(2).then_some(wall));
                clocks.sort_unstable();
                assert_eq!(time.median(at), clocks[clocks.len() / 2], "{clocks:?}, wall {wall}");
            }
        }
        (0..6).for_each(|server| time.forget(ServerIndex(server)));
        assert_eq!(time.median(at), 1_000);
    }
}
