//! Pauses at random, beside producers and consumers: nothing is handed out or taken in while it is paused,
//! but for what was on its way, and everything comes out once nothing is paused any more. The same seed makes
//! the same run.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use forebay_engine::{DequeueCall, Engine, EnqueueCall, Settings, planted};
use forebay_testkit::{
    FakeShards, NAMESPACE, dequeue,
    fake::{Dice, Faults},
    item,
};
use forebay_types::{Clock, ItemId, Pause, Policy, PolicyChanges, PolicyRow, Side, Timestamp, TopicName};
use tokio::time::sleep;

const TOPICS: [&str; 3] = ["a", "b", "c"];
/// How long the faults and pauses go on.
const RUN: Duration = Duration::from_secs(30);
/// Items that were on their way when a pause began have arrived after so long: a batch, and the one before
/// it.
const ON_ITS_WAY: Duration = Duration::from_millis(200);
/// Everything comes out within this time after the last pause.
const DRAINED_WITHIN: Duration = Duration::from_secs(20);

/// A side of a topic that was paused. An empty topic is the whole namespace.
#[derive(Debug, Clone)]
struct Span {
    topic: &'static str,
    side: Side,
    from: Timestamp,
    to: Timestamp,
}

/// Events of a run.
#[derive(Default)]
struct Log {
    paused: Vec<Span>,
    stored: BTreeMap<ItemId, (&'static str, Timestamp)>,
    delivered: Vec<(ItemId, &'static str, Timestamp)>,
    refused: usize,
}

struct Run {
    engine: Engine,
    clock: Arc<dyn Clock>,
    log: Mutex<Log>,
}

impl Run {
    /// Pauses and resumes, until the run is over; then resumes all.
    async fn pause(&self, mut dice: Dice) {
        let (end, mut version) = (self.clock.wall().plus(RUN), 0);
        let mut open: BTreeMap<&'static str, Policy> = BTreeMap::new();
        loop {
            sleep(dice.millis((50, 1_500))).await;
            let over = self.clock.wall() >= end;
            let names = ["", "a", "b", "c"];
            let changed: Vec<&'static str> = if over { names.into() } else { vec![*dice.pick(&names)] };
            for topic in changed {
                let now = self.clock.wall();
                let policy = if over { Policy::default() } else { self.any_policy(&mut dice, now) };
                let was = open.remove(topic).unwrap_or_default();
                for side in Side::BOTH {
                    if let Some(pause) = was.pause(side) {
                        let to = pause.until.unwrap_or(now).min(now);
                        let span = Span { topic, side, from: pause.since, to };
                        self.log.lock().unwrap().paused.push(span);
                    }
                }
                version += 1;
                let rows = vec![PolicyRow {
                    name: TopicName::new(NAMESPACE, topic),
                    version,
                    policy: policy.clone(),
                }];
                self.engine.set_policies(PolicyChanges { rows, ..PolicyChanges::default() });
                open.insert(topic, policy);
            }
            if over {
                return;
            }
        }
    }

    fn any_policy(&self, dice: &mut Dice, now: Timestamp) -> Policy {
        let mut policy = Policy::default();
        if dice.chance(600) {
            let side = if dice.chance(700) { Side::Dequeue } else { Side::Enqueue };
            let until = dice.chance(500).then(|| now.plus(dice.millis((100, 3_000))));
            *policy.pause_mut(side) =
                Some(Pause { by: String::new(), since: now, until, note: String::new() });
        }
        policy
    }

    async fn produce(&self, mut dice: Dice) {
        let end = self.clock.wall().plus(RUN);
        while self.clock.wall() < end {
            sleep(dice.millis((20, 900))).await;
            let (topic, began) = (*dice.pick(&TOPICS), self.clock.wall());
            let call = EnqueueCall {
                namespace: NAMESPACE.into(),
                items: vec![item(topic)],
                ..EnqueueCall::default()
            };
            let answer = self.engine.enqueue(call).await.expect("is taken").remove(0);
            let mut log = self.log.lock().unwrap();
            match answer {
                Ok(stored) => drop(log.stored.insert(stored.id, (topic, began))),
                Err(_) => log.refused += 1,
            }
        }
    }

    async fn consume(&self, mut dice: Dice) {
        let end = self.clock.wall().plus(RUN + DRAINED_WITHIN);
        while self.clock.wall() < end {
            let both = [*dice.pick(&TOPICS), *dice.pick(&TOPICS)];
            let topics = match () {
                () if dice.chance(300) => &["*"][..],
                () if both[0] == both[1] => &both[..1],
                () => &both[..],
            };
            let call = DequeueCall { wait: dice.millis((0, 2_000)), ..dequeue(topics, 10) };
            let items = self.engine.dequeue(call).await.expect("is answered");
            let at = self.clock.wall();
            let receipts = items.iter().filter_map(|item| item.receipt).collect();
            for item in items {
                let topic = TOPICS.into_iter().find(|topic| **topic == *item.topic).expect("was asked for");
                self.log.lock().unwrap().delivered.push((item.id, topic, at));
            }
            let _ = self.engine.ack(NAMESPACE.into(), receipts, None).await;
            sleep(dice.millis((1, 30))).await;
        }
    }
}

/// Returns the rule that a run breaks, if it breaks one.
fn broken(log: &Log) -> Option<String> {
    let within = |topic: &str, side: Side, at: Timestamp| {
        let holds = |span: &&Span| span.side == side && (span.topic == topic || span.topic.is_empty());
        let in_span = |span: &&Span| span.from.plus(ON_ITS_WAY) < at && at < span.to;
        log.paused.iter().filter(holds).find(in_span).cloned()
    };
    for (id, topic, at) in &log.delivered {
        if let Some(span) = within(topic, Side::Dequeue, *at) {
            return Some(format!("{id} was handed out at {at:?} in {span:?}"));
        }
    }
    for (id, (topic, at)) in &log.stored {
        if let Some(span) = within(topic, Side::Enqueue, *at) {
            return Some(format!("{id} was asked for at {at:?} and stored in {span:?}"));
        }
    }
    let delivered: std::collections::BTreeSet<_> = log.delivered.iter().map(|(id, ..)| *id).collect();
    let left: Vec<_> = log.stored.keys().filter(|id| !delivered.contains(id)).collect();
    (!left.is_empty()).then(|| format!("{} items never came out: {left:?}", left.len()))
}

fn run(seed: u64) -> Log {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let shards = FakeShards::new(3).await;
        for db in &shards.dbs {
            db.lock().faults = Faults { commit_ms: (1, 40), ..Faults::instant() };
        }
        let engine = shards.start(Settings::default()).await;
        let clock: Arc<dyn Clock> = Arc::new(shards.clock(Duration::ZERO));
        let run = Run { engine, clock, log: Mutex::default() };
        let dice = |number: u64| Dice::new(seed * 100 + number);
        tokio::join!(
            run.pause(dice(0)),
            run.produce(dice(1)),
            run.produce(dice(2)),
            run.consume(dice(3)),
            run.consume(dice(4)),
            run.consume(dice(5)),
            run.consume(dice(6)),
        );
        run.log.into_inner().unwrap()
    })
}

#[test]
fn what_is_paused_stands_still_and_then_goes_on() {
    let (mut refused, mut spans) = (0, 0);
    for seed in 0..20 {
        let log = run(seed);
        if let Some(what) = broken(&log) {
            panic!("seed {seed}: {what}");
        }
        assert!(log.stored.len() > 50, "seed {seed} stored {} items", log.stored.len());
        refused += log.refused;
        spans += log.paused.len();
    }
    assert!(refused > 50 && spans > 100, "{refused} refusals, {spans} pauses");
}

/// The check must find a node that hands out items of paused topics.
fn finds(bug: planted::Bug) {
    planted::plant(Some(bug));
    let found = (0..20).find_map(|seed| broken(&run(seed)));
    assert!(found.as_ref().is_some_and(|what| what.contains("was handed out")), "{found:?}");
}

#[test]
fn a_hand_off_that_ignores_pauses_is_found() {
    finds(planted::Bug::HandsOffPaused);
}

#[test]
fn a_prefix_that_ignores_pauses_is_found() {
    finds(planted::Bug::PausedInPrefix);
}
