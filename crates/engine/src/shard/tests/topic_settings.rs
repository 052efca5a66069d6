//! Settings of a topic count when a delivery fails and when a dead letter's end is decided.

use forebay_types::{State, TopicSettings};

use super::*;
use crate::api::VersionedSettings;

pub(super) fn retry(ms: u64) -> TopicSettings {
    TopicSettings { retry_delay: Some(Duration::from_millis(ms)), ..TopicSettings::default() }
}

fn retention(ms: u64) -> TopicSettings {
    TopicSettings { dead_letter_retention: Some(Duration::from_millis(ms)), ..TopicSettings::default() }
}

/// These settings of topics of `ns`; an empty topic is the namespace.
pub(super) fn table(rows: &[(&str, TopicSettings)]) -> SettingsTable {
    let mut table = SettingsTable::default();
    for (topic, settings) in rows {
        table.replace(&TopicName::new("ns", *topic), VersionedSettings { settings: *settings, version: 1 });
    }
    table
}

/// Builds a batch under these settings and commits it.
pub(super) fn run_with(shard: &mut OwnedShard, ms: u64, set: &SettingsTable) -> Batch {
    let rng = &mut StdRng::seed_from_u64(ms);
    let waiting = HashMap::new();
    let context =
        BuildContext { moment: moment(ms), rng, topics_of: &|_| 0, topics_left: usize::MAX, waiting, set };
    let batch = shard.build(context).batch.unwrap();
    commit(shard, ms);
    batch
}

/// The state and the time of an item that fails at 10 ms.
fn failed(rows: &[(&str, TopicSettings)], action: NackAction) -> (State, Timestamp) {
    let mut shard = shard();
    let receipt = store_leased(&mut shard, 0, items(1))[0];
    nack(&mut shard, receipt, action);
    let requeue = run_with(&mut shard, 10, &table(rows)).requeues.remove(0);
    (requeue.state, Timestamp::from_micros(requeue.rank))
}

#[test]
fn a_nack_without_a_delay_waits_for_the_retry_delay() {
    let fail = NackAction::Fail(None);
    assert_eq!(failed(&[], fail), (State::Ready, time(10)));
    assert_eq!(failed(&[("", retry(30))], fail), (State::Scheduled, time(40)));
    assert_eq!(failed(&[("", retry(30)), ("t", retry(50))], fail), (State::Scheduled, time(60)));
    assert_eq!(failed(&[("", retry(30)), ("t", retry(0))], fail), (State::Ready, time(10)));
    assert_eq!(failed(&[("other", retry(30))], fail), (State::Ready, time(10)));
}

#[test]
fn a_nack_that_names_a_delay_has_that() {
    let set = [("t", retry(50))];
    let five = Duration::from_millis(5);
    assert_eq!(failed(&set, NackAction::Fail(Some(five))), (State::Scheduled, time(15)));
    assert_eq!(failed(&set, NackAction::Fail(Some(Duration::ZERO))), (State::Ready, time(10)));
}

#[test]
fn a_release_is_no_failure() {
    let set = [("t", retry(50))];
    assert_eq!(failed(&set, NackAction::Release(Duration::ZERO)).0, State::Ready);
}

#[test]
fn a_lease_that_ran_out_waits_for_the_retry_delay_from_its_end_on() {
    let mut shard = shard();
    store_leased(&mut shard, 0, items(1));
    let requeue = run_with(&mut shard, 1_005, &table(&[("t", retry(50))])).requeues.remove(0);
    assert_eq!((requeue.state, requeue.rank), (State::Scheduled, time(1_050).as_micros()));
    assert_eq!((counts(&shard, T), requeue.failures), ((0, 1, 0), 1));
}

#[test]
fn a_lease_whose_end_is_found_late_does_not_wait_once_more() {
    let mut shard = shard();
    store_leased(&mut shard, 0, items(1));
    let requeue = run_with(&mut shard, 1_080, &table(&[("t", retry(50))])).requeues.remove(0);
    assert_eq!((requeue.state, requeue.rank), (State::Ready, time(1_050).as_micros()));
}

#[test]
fn a_dead_letter_ends_with_the_retention_of_its_topic() {
    for (rows, end) in [
        (vec![("", retention(70))], time(80)),
        (vec![("", retention(70)), ("t", retention(30))], time(40)),
        (vec![("", retention(70)), ("t", retention(0))], Timestamp::MAX),
        (vec![("other", retention(30))], time(10).plus(Settings::default().dead_letter_retention)),
    ] {
        let mut shard = shard();
        let receipt = store_leased(&mut shard, 0, items(1))[0];
        nack(&mut shard, receipt, NackAction::DeadLetter);
        let batch = run_with(&mut shard, 10, &table(&rows));
        assert_eq!(batch.dead_letters[0].expires_at, end);
    }
}

#[test]
fn the_sweep_asks_again_for_the_retention_of_the_topic() {
    for (rows, kept) in [(vec![("t", retention(150))], true), (vec![("u", retention(150))], false)] {
        let mut shard = shard_with(|settings| settings.dead_letter_retention = Duration::from_millis(100));
        let receipt = store_leased(&mut shard, 0, items(1))[0];
        nack(&mut shard, receipt, NackAction::DeadLetter);
        run(&mut shard, 0);
        super::retention::found(&mut shard, 100, T, &[(receipt.item.seq, 100, 0)]);
        let batch = run_with(&mut shard, 100, &table(&rows));
        let keeps = if kept { vec![(receipt.item.seq, time(150))] } else { vec![] };
        assert_eq!((batch.dead_letter_keeps, batch.dead_letter_deletes.is_empty()), (keeps, kept));
    }
}
