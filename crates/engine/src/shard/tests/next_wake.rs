//! When a shard has something to do without an event.

use super::*;

const MICRO: Duration = Duration::from_micros(1);

/// A shard that has nothing to do: its sweeps found nothing, and its generations are being changed.
fn quiet() -> OwnedShard {
    let mut shard = shard();
    sweep_all(&mut shard, 0);
    shard.begin_generation_change(moment(0)).unwrap();
    shard
}

fn wake(shard: &mut OwnedShard, ms: u64) -> Option<Monotonic> {
    shard.next_wake(moment(ms), false)
}

#[test]
fn a_shard_with_nothing_to_do_need_not_be_woken() {
    assert_eq!(wake(&mut quiet(), 0), None);
}

#[test]
fn a_new_shard_is_woken_at_once() {
    assert_eq!(wake(&mut shard(), 7), Some(at(7)));
}

#[test]
fn a_shard_is_woken_when_a_lease_ends() {
    let mut shard = quiet();
    store_leased(&mut shard, 0, items(1));
    assert_eq!(wake(&mut shard, 10), Some(at(1_000).plus(MICRO)));
    shard.commit.timeouts_after = at(5_000);
    assert_eq!(wake(&mut shard, 10), Some(at(5_000)));
    assert_eq!(shard.next_wake(moment(10), true), None, "while its batch is deferred it is not");
}

#[test]
fn a_shard_is_woken_when_an_item_is_due_or_expires() {
    let mut shard = quiet();
    store(&mut shard, 0, vec![item_due(50)]);
    assert_eq!(wake(&mut shard, 10), Some(at(50).plus(MICRO)));
    store(&mut shard, 10, vec![item_expiring(40)]);
    assert_eq!(wake(&mut shard, 10), Some(at(40).plus(MICRO)));
    scan(&mut shard, Sweep::Expiry, 1, 60);
    assert_eq!(wake(&mut shard, 60), None, "the scan's end is an event");
    shard.scan_failed(Sweep::Expiry, 1, at(60));
    assert_eq!(shard.next_wake(moment(60), false), Some(at(60).plus(MICRO)), "the other one is due");
}

#[test]
fn a_shard_is_woken_when_a_topic_is_to_be_dropped() {
    let mut shard = quiet();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    ack(&mut shard, receipt);
    run(&mut shard, 20);
    assert_eq!(wake(&mut shard, 30), Some(at(20).plus(Duration::from_secs(3_600))));
}

#[test]
fn a_shard_is_woken_while_a_batch_is_in_flight_for_what_it_means_to_others() {
    let mut shard = quiet();
    put(&mut shard, part(1, items(1)));
    build(&mut shard, 10);
    assert_eq!(wake(&mut shard, 10), Some(at(110)), "its server does not count as busy any more");
    assert_eq!((shard.busy_until(at(109)), shard.busy_until(at(110))), (Some(at(110)), None));
    assert_eq!(wake(&mut shard, 110), None, "its task says when it is slow");
}

#[test]
fn a_shard_is_woken_when_a_generation_is_to_be_created() {
    let mut shard = quiet();
    let second = u64::try_from(time(0).as_micros() / 1_000_000).unwrap();
    shard.generations_changed(vec![second], None);
    assert_eq!(wake(&mut shard, 0), Some(at(300_000)), "half a generation ahead");
    shard.begin_generation_change(moment(300_000)).unwrap();
    shard.generations_changed(vec![second], Some(at(305_000)));
    assert_eq!(wake(&mut shard, 300_000), Some(at(305_000)), "a failed change waits");
}

#[test]
fn a_turn_takes_what_the_last_commit_took() {
    let mut shard = shard();
    put(&mut shard, part(1, items(1)));
    build(&mut shard, 10);
    commit(&mut shard, 35);
    assert_eq!(shard.turn_takes(), Duration::ZERO, "it has nothing to do");
    put(&mut shard, part(2, items(1)));
    assert_eq!(shard.turn_takes(), Duration::from_millis(25));
}
