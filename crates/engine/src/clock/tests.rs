//! Clocks that step, stand and are slow to answer.

use std::{ops::Range, sync::Mutex};

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
    // A reading that agrees with that changes nothing, nor does the wall clock.
    hands.set(60_000_000, 20_000_000);
    assert_eq!(vote(&mut time, 52_100_000, 19_000_000), 32_500_000);
    // It is behind.
    assert_eq!(vote(&mut time, 40_000_000, 19_000_000), 21_000_000);
}

#[test]
fn a_small_step_of_the_wall_clock_is_approached_slowly_and_never_backwards() {
    let hands = Arc::new(Hands::default());
    hands.set(1_000_000, 0);
    let mut time = NodeTime::new(hands.clone());
    hands.set(5_000_000, 1_000);
    assert_eq!(time.now().as_micros(), 1_001_100);
    hands.set(0, 2_000);
    assert_eq!(time.now().as_micros(), 1_002_000);
}

const SECOND: u64 = 1_000_000;

/// The clock is read every second, from one second to another. Returns when the time stepped, and how far.
fn steps(time: &mut NodeTime, hands: &Hands, seconds: Range<u64>, ahead: i64) -> Vec<(u64, u64)> {
    let mut steps = Vec::new();
    for second in seconds {
        hands.set((second * SECOND) as i64 + ahead, second * SECOND);
        steps.extend(time.step().map(|step| (second, step.by().as_secs())));
    }
    steps
}

#[test]
fn a_clock_that_is_far_ahead_and_stands_there_is_followed_at_once() {
    let hands = Arc::new(Hands::default());
    let mut time = NodeTime::new(hands.clone());
    let hour = 3_600 * SECOND as i64;
    assert_eq!(steps(&mut time, &hands, 0..10, hour), [(5, 3_600)], "5 s after it was seen");
    assert_eq!(
        (time.now().as_micros(), time.stepped()),
        (9 * SECOND as i64 + hour, Duration::from_secs(3_600))
    );
    let seconds = |seconds: u64| Timestamp::from_micros((seconds * SECOND) as i64);
    assert_eq!(time.elapsed(seconds(2), seconds(3_609)), Duration::from_secs(7));
    assert_eq!(time.elapsed(seconds(3_607), seconds(3_609)), Duration::from_secs(2));
    assert_eq!(steps(&mut time, &hands, 10..40, hour + 4_900_000), [], "what is nearer is approached");
    assert_eq!(steps(&mut time, &hands, 100..200, 0), [], "and so is what is behind");
}

#[test]
fn a_clock_that_goes_back_or_on_within_five_seconds_is_not_followed() {
    let hands = Arc::new(Hands::default());
    let mut time = NodeTime::new(hands.clone());
    let hour = 3_600 * SECOND as i64;
    assert_eq!(steps(&mut time, &hands, 0..5, hour), []);
    assert!(time.now().as_micros() < 5 * SECOND as i64, "it is not approached before it is known");
    assert_eq!(steps(&mut time, &hands, 5..20, 0), []);
    assert_eq!(steps(&mut time, &hands, 20..24, hour), []);
    assert_eq!(steps(&mut time, &hands, 24..40, 2 * hour), [(29, 7_200)]);
}

#[test]
fn servers_are_followed_and_the_wall_clock_is_not() {
    let hands = Arc::new(Hands::default());
    let mut time = NodeTime::new(hands.clone());
    time.vote(ServerIndex(0), Timestamp::from_micros(0), time.monotonic());
    assert_eq!(steps(&mut time, &hands, 0..20, 3_600 * SECOND as i64), []);
    time.vote(ServerIndex(0), Timestamp::from_micros(619 * SECOND as i64), time.monotonic());
    assert_eq!(steps(&mut time, &hands, 19..30, 0).len(), 1);
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
    let mut shard =
        |node, at: Monotonic| time.moment(Moment { now: Timestamp::from_micros(node), at }).now.as_micros();
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
        hands.set(5_000_000, 3 * passed);
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
