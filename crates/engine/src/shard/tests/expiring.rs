//! Items that fail, or are released, and would wait for longer than they live.

use forebay_types::{DeathCause, Failure, FailureCause, State};

use super::{
    topic_settings::{retry, run_with, table},
    *,
};
use crate::api::Settlement;

/// An item that expires at 9 s and is leased until 1 s, or for as long as that.
fn expiring(shard: &mut OwnedShard, lease: Option<Duration>) -> Receipt {
    let receipt = store_leased(shard, 0, vec![item_expiring(9_000)])[0];
    if lease.is_some() {
        settle(shard, receipt, SettleKind::Extend { lease });
        run(shard, 0);
    }
    receipt
}

/// Nacks an item that expires at 9 s, at this time.
fn nacked(ms: u64, action: NackAction) -> (Batch, CommittedBatch) {
    let mut shard = shard();
    let receipt = expiring(&mut shard, Some(Duration::from_secs(60)));
    nack(&mut shard, receipt, action);
    run(&mut shard, ms)
}

fn is_cut(committed: &CommittedBatch) -> bool {
    matches!(effects(committed)[..], [SettleEffect::Scheduled(Settlement { delay_cut: true })])
}

#[test]
fn a_delay_that_would_pass_the_expiry_is_half_of_what_is_left() {
    let minute = Duration::from_secs(60);
    for (action, failures) in [(NackAction::Fail(Some(minute)), 1), (NackAction::Release(minute), 0)] {
        let (batch, committed) = nacked(1_000, action);
        let requeue = &batch.requeues[0];
        assert_eq!((requeue.state, requeue.rank), (State::Scheduled, time(5_000).as_micros()));
        assert_eq!((requeue.failures, requeue.failure.is_some()), (failures, failures == 1));
        assert!(is_cut(&committed), "{action:?}");
    }
    let eight = Duration::from_millis(7_999);
    let (batch, committed) = nacked(1_000, NackAction::Fail(Some(eight)));
    assert_eq!(batch.requeues[0].rank, time(8_999).as_micros(), "it ends before the expiry");
    assert!(!is_cut(&committed));
}

#[test]
fn an_item_that_fails_shortly_before_it_expires_becomes_a_dead_letter() {
    let (batch, committed) = nacked(8_500, NackAction::Fail(Some(Duration::from_secs(60))));
    let dead = &batch.dead_letters[0];
    assert_eq!((&*dead.reason, &*dead.last_error, dead.failures), ("expired while failing", "why", 1));
    assert_eq!(batch.expiry_deletes.len(), 1, "a dead letter does not expire");
    // Programs that do not know the cause read how the delivery failed.
    let Failure { cause, reason, .. } = &dead.failure;
    assert_eq!((*cause, &**reason), (FailureCause::Nacked, "why"));
    assert!(matches!(effects(&committed)[..], [SettleEffect::DeadLettered(DeathCause::ExpiredFailing)]));
}

#[test]
fn an_item_that_does_not_have_to_wait_is_tried_again_to_the_last() {
    for action in [NackAction::Fail(None), NackAction::Fail(Some(Duration::from_millis(499)))] {
        let (batch, _) = nacked(8_500, action);
        assert_eq!((batch.requeues.len(), batch.dead_letters.len()), (1, 0), "{action:?}");
    }
}

#[test]
fn a_release_shortly_before_the_expiry_makes_no_dead_letter() {
    let (batch, committed) = nacked(8_500, NackAction::Release(Duration::from_secs(60)));
    assert_eq!((batch.requeues[0].rank, batch.dead_letters.len()), (time(8_750).as_micros(), 0));
    assert!(is_cut(&committed));
}

#[test]
fn the_retry_delay_of_a_topic_is_cut_too() {
    let set = table(&[("t", retry(60_000))]);
    let mut shard = shard();
    let receipt = expiring(&mut shard, None);
    nack(&mut shard, receipt, NackAction::Fail(None));
    let requeue = run_with(&mut shard, 500, &set).requeues.remove(0);
    assert_eq!(requeue.rank, time(4_750).as_micros());
}

#[test]
fn the_retry_delay_is_cut_after_a_lease_that_ran_out() {
    let set = table(&[("", retry(60_000))]);
    let mut shard = shard();
    expiring(&mut shard, None);
    let requeue = run_with(&mut shard, 2_000, &set).requeues.remove(0);
    assert_eq!((requeue.state, requeue.rank), (State::Scheduled, time(5_500).as_micros()));

    let mut shard = self::shard();
    expiring(&mut shard, None);
    let batch = run_with(&mut shard, 8_001, &set);
    assert_eq!(batch.dead_letters[0].reason, "expired while failing");
    assert_eq!(batch.dead_letters[0].failure.cause, FailureCause::LeaseEnded);
}

#[test]
fn on_a_full_disk_what_fails_too_late_waits_with_the_dead_letters() {
    let mut shard = shard();
    let receipt = expiring(&mut shard, Some(Duration::from_secs(60)));
    put(&mut shard, part(1, items(1)));
    build(&mut shard, 8_500);
    shard.disk_full(at(8_500)).unwrap();
    nack(&mut shard, receipt, NackAction::Fail(Some(Duration::from_secs(60))));
    assert!(build(&mut shard, 8_500).batch.is_none(), "it would store an item");
}
