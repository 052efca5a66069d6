//! Which servers a consumer asks for items, and for how many at a time.
//!
//! One that is asked alone gets all free slots and the whole wait. While a node of an earlier release hands
//! out the items of its own shards alone, each is asked. All that they hand out together must find a handler,
//! so the free slots are shared out. A long poll keeps its slots for as long as it waits. Therefore a server
//! that had no items last time waits with few of them, and one that had some gets the others, but soon gives
//! back what it does not use.

use std::time::Duration;

use tokio::time::Instant;

/// How long a poll waits that holds more slots than its share for waiting.
const GREEDY_WAIT: Duration = Duration::from_millis(500);
/// How long a poll waits while there are fewer slots than servers, so that these take turns.
const TURN_WAIT: Duration = Duration::from_millis(200);

/// The servers that a consumer asks, by the ids of their endpoints.
#[derive(Debug)]
pub(super) struct Lanes {
    /// One for each server.
    lanes: Vec<Lane>,
    /// Slots in all.
    capacity: usize,
    /// A poll asks each topic for one item at least.
    topics: usize,
    /// Never more items are asked for than there are slots, even if that leaves topics out.
    exact: bool,
    /// Counts when lanes fell idle: the one that waits for longest is served first.
    turns: u64,
    /// The topics that were asked for by polls for some of them, so that all have their turns.
    skip: usize,
}

/// A server.
#[derive(Debug)]
struct Lane {
    /// Its endpoint.
    id: u32,
    /// State of its polls.
    state: State,
    /// The last poll returned items.
    had_items: bool,
    /// Polls that failed since the last one that was answered.
    failures: u32,
    /// Its last word on items, since some came from any server.
    said: LaneState,
    /// Whether it is to be asked.
    role: Role,
}

/// Whether a server is to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It is.
    Asked,
    /// Not now, since another one is enough. Its failures count when it is its turn again.
    Spare,
    /// It is no longer to be asked. Its poll is awaited.
    Leaving,
}

/// A server's word on its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneState {
    /// It has not been asked.
    Nothing,
    /// It has none.
    None,
    /// It did not answer.
    Failed,
}

/// State of the polls of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It may be asked, since this turn.
    Idle(u64),
    /// It is being asked.
    Polling,
    /// It failed and is asked again then.
    Paused(Instant),
}

/// A poll to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Server to ask.
    pub(super) id: u32,
    /// How many slots its items have.
    pub(super) slots: usize,
    /// For how many topics to ask, and with which to begin: fewer than all of them, if only a few slots are
    /// free.
    pub(super) topics: Topics,
    /// How long to wait at most.
    pub(super) wait: Duration,
}

/// Some of a consumer's topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Topics {
    /// How many.
    pub(super) count: usize,
    /// How many come before the first. Grows beyond their number: after the last comes the first.
    pub(super) skip: usize,
}

impl Lanes {
    /// For so many slots and topics. There are no servers yet.
    pub(super) fn new(capacity: usize, topics: usize) -> Self {
        Self { lanes: Vec::new(), capacity, topics, exact: false, turns: 0, skip: 0 }
    }

    /// The same, asking for no more items than there are slots.
    pub(super) fn exact(self, exact: bool) -> Self {
        Self { exact, ..self }
    }

    /// Some servers are to be asked, of all that there are.
    pub(super) fn set(&mut self, asked: &[u32], all: &[u32]) {
        for lane in &mut self.lanes {
            lane.role = match lane.id {
                id if asked.contains(&id) => Role::Asked,
                id if all.contains(&id) => Role::Spare,
                _ => Role::Leaving,
            };
        }
        self.drop_left();
        for &id in asked {
            if !self.lanes.iter().any(|lane| lane.id == id) {
                let state = State::Idle(self.next_turn());
                self.lanes.push(Lane {
                    id,
                    state,
                    had_items: false,
                    failures: 0,
                    said: LaneState::Nothing,
                    role: Role::Asked,
                });
            }
        }
    }

    /// Whether some server should be asked now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.lanes.iter().any(|lane| due_since(lane, now).is_some())
    }

    /// When the next pause ends.
    pub(super) fn next_wake(&self, now: Instant) -> Option<Instant> {
        let pauses = self.lanes.iter().filter_map(|lane| match lane.state {
            State::Paused(until) if until > now && lane.role == Role::Asked => Some(until),
            _ => None,
        });
        pauses.min()
    }

    /// Shares `free` slots out among the servers that should be asked, which then are being asked.
    pub(super) fn share_out(&mut self, free: usize, now: Instant, wait: Duration) -> Vec<Share> {
        let alone = self.busy() == 1;
        let asked = self.lanes.iter().filter(|lane| lane.role == Role::Asked).count().max(1);
        let waiting = if alone { free } else { self.topics.clamp(1, (self.capacity / asked).max(1)) };
        let mut due: Vec<_> = self
            .lanes
            .iter_mut()
            .filter_map(|lane| due_since(lane, now).map(|since| (since, lane)))
            .collect();
        due.sort_by_key(|(since, _)| *since);
        let mut left = free;
        let mut shares = Vec::new();
        for (_, lane) in due {
            let slots = waiting.min(left);
            if slots == 0 {
                break;
            }
            left -= slots;
            lane.state = State::Polling;
            shares.push((slots, lane.had_items, lane.id));
        }
        let mut busy = shares.iter().filter(|(_, had_items, _)| *had_items).count();
        for (slots, _, _) in shares.iter_mut().filter(|(_, had_items, _)| *had_items) {
            let more = left.div_ceil(busy);
            (*slots, left, busy) = (*slots + more, left - more, busy - 1);
        }
        let shares: Vec<_> = shares.into_iter().map(|(slots, _, id)| (id, slots)).collect();
        shares.into_iter().map(|(id, slots)| self.poll(id, slots, waiting, wait)).collect()
    }

    /// Servers that are to be asked, or are asked still.
    fn busy(&self) -> usize {
        let busy = |lane: &&Lane| lane.role == Role::Asked || lane.state == State::Polling;
        self.lanes.iter().filter(busy).count()
    }

    /// A poll with so many slots, if `waiting` are enough for a long wait.
    fn poll(&mut self, id: u32, slots: usize, waiting: usize, wait: Duration) -> Share {
        let alone = self.busy() == 1;
        let partial = (!alone && slots < waiting) || (self.exact && slots < self.topics);
        let wait = match () {
            () if alone && !partial => wait,
            () if partial || self.capacity < self.busy() => wait.min(TURN_WAIT),
            () if slots > waiting => wait.min(GREEDY_WAIT),
            () => wait,
        };
        let count = if partial { slots } else { self.topics };
        let topics = Topics { count, skip: self.skip };
        self.skip = if partial { self.skip.wrapping_add(count) } else { self.skip };
        Share { id, slots, topics, wait }
    }

    /// A poll returned so many items.
    pub(super) fn answered(&mut self, id: u32, items: usize) {
        let turn = self.next_turn();
        if items > 0 {
            self.lanes.iter_mut().for_each(|lane| lane.said = LaneState::Nothing);
        }
        self.end_poll(id, |lane| {
            (lane.had_items, lane.failures, lane.state) = (items > 0, 0, State::Idle(turn));
            lane.said = if items > 0 { LaneState::Nothing } else { LaneState::None };
        });
    }

    /// Whether the servers have said that they have no items. Those that do not answer count with the others:
    /// a node without shards refuses.
    pub(super) fn are_empty(&self) -> bool {
        let mut asked = self.lanes.iter().filter(|lane| lane.role == Role::Asked).map(|lane| lane.said);
        asked.clone().any(|said| said == LaneState::None) && asked.all(|said| said != LaneState::Nothing)
    }

    /// A poll failed. `pause` says how long the server is left alone after so many failures. Returns their
    /// number.
    pub(super) fn failed(&mut self, id: u32, now: Instant, pause: impl Fn(u32) -> Duration) -> u32 {
        let mut failures = 0;
        self.end_poll(id, |lane| {
            lane.failures = lane.failures.saturating_add(1);
            failures = lane.failures;
            (lane.had_items, lane.state) = (false, State::Paused(now + pause(failures)));
            lane.said = LaneState::Failed;
        });
        failures
    }

    fn end_poll(&mut self, id: u32, end: impl FnOnce(&mut Lane)) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.id == id) {
            end(lane);
        }
        self.drop_left();
    }

    fn drop_left(&mut self) {
        self.lanes.retain(|lane| lane.role != Role::Leaving || lane.state == State::Polling);
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }
}

/// Since when a server waits to be asked. One whose pause is over has waited for longest.
fn due_since(lane: &Lane, now: Instant) -> Option<u64> {
    match lane.state {
        _ if lane.role != Role::Asked => None,
        State::Idle(turn) => Some(turn),
        State::Paused(until) if until <= now => Some(0),
        State::Polling | State::Paused(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(20);

    fn lanes(servers: u32, capacity: usize, topics: usize) -> Lanes {
        let mut lanes = Lanes::new(capacity, topics);
        let all: Vec<_> = (1..=servers).collect();
        lanes.set(&all, &all);
        lanes
    }

    fn shared(lanes: &mut Lanes, free: usize) -> Vec<(u32, usize, u64)> {
        let shares = lanes.share_out(free, Instant::now(), WAIT);
        shares.iter().map(|share| (share.id, share.slots, share.wait.as_millis() as u64)).collect()
    }

    #[test]
    fn a_server_alone_gets_every_slot_and_the_whole_wait() {
        let mut lanes = lanes(1, 16, 3);
        assert_eq!(shared(&mut lanes, 16), [(1, 16, 20_000)]);
        assert_eq!(shared(&mut lanes, 16), [], "it is being asked");
        lanes.answered(1, 16);
        assert_eq!(shared(&mut lanes, 2), [(1, 2, 20_000)]);
    }

    #[test]
    fn servers_without_items_wait_with_few_slots() {
        let mut lanes = lanes(3, 16, 1);
        assert_eq!(shared(&mut lanes, 16), [(1, 1, 20_000), (2, 1, 20_000), (3, 1, 20_000)]);
        lanes.answered(2, 1);
        assert_eq!(shared(&mut lanes, 13), [(2, 13, 500)], "the one with items gets the others for a while");
        lanes.answered(2, 0);
        assert_eq!(shared(&mut lanes, 14), [(2, 1, 20_000)]);
    }

    #[test]
    fn servers_with_items_share_alike() {
        let mut lanes = lanes(3, 20, 2);
        shared(&mut lanes, 20);
        (1..=3).for_each(|id| lanes.answered(id, id as usize - 1));
        assert_eq!(shared(&mut lanes, 17), [(1, 2, 20_000), (2, 8, 500), (3, 7, 500)]);
    }

    #[test]
    fn with_fewer_slots_than_servers_they_take_turns() {
        let mut lanes = lanes(3, 1, 1);
        let mut asked = Vec::new();
        for _ in 0..6 {
            let share = shared(&mut lanes, 1);
            assert_eq!(share.len(), 1);
            assert_eq!(share[0].2, 200);
            asked.push(share[0].0);
            lanes.answered(share[0].0, 1);
        }
        assert_eq!(asked, [1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn a_server_that_fails_is_left_alone_and_asked_again() {
        let mut lanes = lanes(2, 4, 1);
        shared(&mut lanes, 4);
        let now = Instant::now();
        let pause = |failures: u32| Duration::from_secs(failures.into());
        assert_eq!(lanes.failed(1, now, pause), 1);
        assert!(!lanes.is_due(now));
        assert_eq!(lanes.next_wake(now), Some(now + pause(1)));
        let later = now + pause(1);
        assert!(lanes.is_due(later));
        assert_eq!(
            lanes.share_out(1, later, WAIT),
            [Share { id: 1, slots: 1, topics: Topics { count: 1, skip: 0 }, wait: WAIT }]
        );
        assert_eq!(lanes.failed(1, later, pause), 2);
        assert_eq!(lanes.next_wake(later), Some(later + pause(2)));
    }

    #[test]
    fn a_few_slots_are_for_a_few_topics_in_turn() {
        let mut lanes = lanes(2, 12, 5);
        shared(&mut lanes, 12);
        let mut asked = Vec::new();
        for _ in 0..3 {
            lanes.answered(1, 5);
            let share = lanes.share_out(2, Instant::now(), WAIT)[0];
            assert_eq!((share.slots, share.wait), (2, TURN_WAIT));
            asked.push((share.topics.skip % 5, share.topics.count));
        }
        assert_eq!(asked, [(0, 2), (2, 2), (4, 2)]);
    }

    #[test]
    fn an_exact_number_of_items_leaves_topics_out() {
        let mut lanes = lanes(1, 1, 3).exact(true);
        let mut asked = Vec::new();
        for _ in 0..4 {
            let share = lanes.share_out(1, Instant::now(), WAIT)[0];
            assert_eq!((share.slots, share.topics.count, share.wait), (1, 1, TURN_WAIT));
            asked.push(share.topics.skip % 3);
            lanes.answered(1, 0);
        }
        assert_eq!(asked, [0, 1, 2, 0]);
        let share = lanes.share_out(3, Instant::now(), WAIT)[0];
        assert_eq!((share.slots, share.topics.count, share.wait), (3, 3, WAIT));
    }

    #[test]
    fn one_of_several_is_asked_like_a_server_alone_once_the_others_have_answered() {
        let mut lanes = lanes(3, 16, 1);
        assert_eq!(shared(&mut lanes, 16).len(), 3);
        (1..=2).for_each(|id| lanes.answered(id, 0));
        lanes.set(&[2], &[1, 2, 3]);
        assert_eq!(shared(&mut lanes, 15), [(2, 1, 20_000)], "3 has its slots still");
        lanes.answered(3, 0);
        lanes.answered(2, 0);
        assert_eq!(shared(&mut lanes, 16), [(2, 16, 20_000)]);
        let now = Instant::now();
        assert_eq!(lanes.failed(2, now, |_| WAIT), 1);
        lanes.set(&[1], &[1, 2, 3]);
        assert_eq!(lanes.next_wake(now), None, "nobody waits for 2");
        assert_eq!(shared(&mut lanes, 16), [(1, 16, 20_000)]);
        lanes.answered(1, 0);
        lanes.set(&[2], &[1, 2, 3]);
        assert_eq!((lanes.is_due(now), lanes.next_wake(now)), (false, Some(now + WAIT)), "its pause counts");
    }

    #[test]
    fn servers_join_and_leave() {
        let mut lanes = lanes(2, 4, 1);
        assert_eq!(shared(&mut lanes, 4).len(), 2);
        lanes.answered(1, 0);
        lanes.set(&[3], &[3]);
        assert_eq!(shared(&mut lanes, 3), [(3, 1, 20_000)], "1 left");
        lanes.answered(2, 5);
        lanes.answered(3, 0);
        assert_eq!(shared(&mut lanes, 4), [(3, 4, 20_000)], "2 left when its poll was answered");
    }
}
