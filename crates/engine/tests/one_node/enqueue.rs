//! Enqueue: spreading over shards, dedupe keys, request ids, and items that can't be stored.

use forebay_engine::*;
use forebay_types::Reason;

use crate::queue::{Queue, item};

#[tokio::test]
async fn a_topic_spreads_over_more_shards_when_two_fall_behind() {
    // One batch is a small part of a call, so no shard catches up before all calls have found their shards.
    let settings = Settings { batch_rows: 100, ..Settings::default() };
    let queue = Queue::start_in(tempfile::tempdir().unwrap(), 4, settings).await;
    let shards_of = |stored: &[EnqueueOutcome]| {
        stored.iter().map(|stored| stored.id.shard).collect::<std::collections::BTreeSet<_>>()
    };
    let mut calm = Vec::new();
    for _ in 0..8 {
        calm.extend(queue.put(vec![item(0, "x")]).await);
    }
    assert!(shards_of(&calm).len() <= 2);
    let put = || queue.put((0..1_000).map(|_| item(0, "x")).collect());
    let (a, b, c, d, e, f) = tokio::join!(put(), put(), put(), put(), put(), put());
    let hurried: Vec<EnqueueOutcome> = [a, b, c, d, e, f].concat();
    assert_eq!(shards_of(&hurried).len(), 4);
    queue.engine.stop().await;
}

#[tokio::test]
async fn dedupe_keys_and_request_ids_store_once() {
    let queue = Queue::start(2).await;
    let mut keyed = item(0, "x");
    keyed.dedupe_key = Some("k".into());
    let first = queue.put(vec![keyed.clone(), keyed.clone()]).await;
    assert_eq!((first[0].id, first[0].duplicate, first[1].duplicate), (first[1].id, false, true));
    let queue = queue.restart().await;
    let again = queue.put(vec![keyed]).await;
    assert_eq!((again[0].id, again[0].duplicate), (first[0].id, true));
    let call = EnqueueCall {
        namespace: "ns".into(),
        items: vec![item(0, "y"), item(0, "z")],
        request_id: Some("r".into()),
        ..EnqueueCall::default()
    };
    let one = queue.engine.enqueue(call.clone()).await.unwrap();
    let two = queue.engine.enqueue(call).await.unwrap();
    assert_eq!(one, two);
    // A shard that answers 50 ms later than the other is left out of an answer.
    let mut stored = 0;
    while stored < 3 {
        stored += queue.get(10, 10_000).await.len();
    }
    assert_eq!((stored, queue.get(10, 0).await.len()), (3, 0));
    queue.engine.stop().await;
}

#[tokio::test]
async fn a_key_is_remembered_when_shards_are_added_and_refused_when_its_home_is_gone() {
    let keyed = |n: u32| NewItem { dedupe_key: Some(format!("k{n}")), ..item(0, "x") };
    let queue = Queue::start(2).await;
    let first = queue.put((0..40).map(keyed).collect()).await;
    queue.engine.stop().await;

    let queue = Queue::start_in(queue.folder, 4, Settings::default()).await;
    let again = queue.put((0..40).map(keyed).collect()).await;
    for (first, again) in first.iter().zip(&again) {
        assert_eq!((first.id, again.duplicate), (again.id, true));
    }
    let more = queue.put((100..140).map(keyed).collect()).await;
    assert!(more.iter().any(|stored| stored.id.shard.0 > 2), "new shards are homes too");
    queue.engine.stop().await;

    let queue = Queue::start_in(queue.folder, 2, Settings::default()).await;
    let call = EnqueueCall {
        namespace: "ns".into(),
        items: (100..140).map(keyed).collect(),
        ..EnqueueCall::default()
    };
    let results = queue.engine.enqueue(call).await.unwrap();
    for (stored, result) in more.iter().zip(results) {
        match result {
            Ok(again) => assert_eq!((again.id, again.duplicate), (stored.id, true)),
            Err(refusal) => assert_eq!(refusal.reason, Reason::ShardUnavailable),
        }
    }
    queue.engine.stop().await;
}

#[tokio::test]
async fn an_item_that_the_database_does_not_take_fails_alone() {
    let queue = Queue::start(1).await;
    let mut bad = item(0, "bad");
    bad.body.metadata = vec![0; 70_000].into(); // more than the column takes
    for request_id in [None, Some("r".to_owned())] {
        let mut items: Vec<NewItem> = (0..20).map(|n| item(n, "good")).collect();
        items[13] = bad.clone();
        let call = EnqueueCall { namespace: "ns".into(), items, request_id, ..EnqueueCall::default() };
        let results = queue.engine.enqueue(call.clone()).await.unwrap();
        for (index, result) in results.iter().enumerate() {
            match result {
                Ok(stored) => assert!(index != 13 && !stored.duplicate),
                Err(refusal) => assert_eq!((index, refusal.reason), (13, Reason::InvalidField)),
            }
        }
        if call.request_id.is_some() {
            let again = queue.engine.enqueue(call).await.unwrap();
            assert_eq!(results, again, "the refusal is remembered with the rest");
        }
        assert_eq!(queue.get(100, 0).await.len(), 19);
    }
    queue.engine.stop().await;
}

/// A call under a request id.
fn named(items: Vec<NewItem>) -> EnqueueCall {
    let request_id = Some("import".to_owned());
    EnqueueCall { namespace: "ns".into(), items, request_id, ..EnqueueCall::default() }
}

#[tokio::test]
async fn a_request_id_that_was_used_for_other_items_is_refused() {
    let queue = Queue::start(2).await;
    let first = queue.engine.enqueue(named(vec![item(0, "to Ann")])).await.unwrap();
    let topic = NewItem { topic: "sms".into(), ..item(0, "to Ann") };
    let others = [vec![item(0, "to Bob")], vec![topic], vec![item(1, "to Ann")], vec![item(0, "to Ann"); 2]];
    let queue = queue.restart().await;
    for items in others {
        for result in queue.engine.enqueue(named(items)).await.unwrap() {
            let refusal = result.unwrap_err();
            assert_eq!(
                (refusal.reason, refusal.field.as_deref()),
                (Reason::RequestIdReused, Some("request_id"))
            );
        }
    }
    let mut again = item(0, "to Ann");
    again.body.headers.push(("traceparent".to_owned(), "another at each try".to_owned()));
    assert_eq!(queue.engine.enqueue(named(vec![again])).await.unwrap(), first);
    assert_eq!(queue.get(10, 0).await.len(), 1);
    queue.engine.stop().await;
}

#[tokio::test]
async fn two_calls_with_one_request_id_at_once_store_one_of_them() {
    let queue = Queue::start(1).await;
    let call = |payload| queue.engine.enqueue(named(vec![item(0, payload)]));
    let (one, two, three) = tokio::join!(call("a"), call("b"), call("a"));
    let [one, two, three] = [one, two, three].map(|results| results.unwrap().remove(0));
    assert_eq!(one, three);
    assert_eq!([one, two].iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(queue.get(10, 0).await.len(), 1);
    queue.engine.stop().await;
}

#[tokio::test]
async fn dedupe_keys_belong_to_their_topics() {
    let queue = Queue::start(2).await;
    let keyed = |topic: &str| NewItem {
        dedupe_key: Some("order-42".to_owned()),
        topic: topic.into(),
        ..item(0, topic)
    };
    let both = queue.put(vec![keyed("mail"), keyed("invoice"), keyed("mail")]).await;
    assert_eq!(both.iter().map(|stored| stored.duplicate).collect::<Vec<_>>(), [false, false, true]);
    assert!(both[0].id != both[1].id && both[0].id == both[2].id);
    assert!(both[0].first_at.is_none() && both[2].first_at.is_some());
    let queue = queue.restart().await;
    let again = queue.put(vec![keyed("invoice"), keyed("mail"), keyed("sms")]).await;
    assert_eq!(again.iter().map(|stored| stored.id).take(2).collect::<Vec<_>>(), [both[1].id, both[0].id]);
    assert_eq!(again.iter().map(|stored| stored.duplicate).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(again[1].first_at, both[2].first_at, "it is when the first one was stored");
    queue.engine.stop().await;
}

#[tokio::test]
async fn the_key_of_an_item_that_an_operator_removes_is_free() {
    let queue = Queue::start(2).await;
    let keyed = || NewItem { dedupe_key: Some("k".to_owned()), ..item(0, "x") };
    for leased in [false, true] {
        let first = queue.put(vec![keyed()]).await[0];
        assert!(!first.duplicate);
        if leased {
            assert_eq!(queue.get(1, 1_000).await.len(), 1);
        }
        let change = ItemChange::Cancel;
        let call = ChangeCall { namespace: "ns".into(), items: vec![first.id], change, dry_run: false };
        queue.engine.change_items(call).await.unwrap().remove(0).unwrap();
    }
    let last = queue.put(vec![keyed()]).await[0];
    assert!(!last.duplicate);
    let delivered = queue.get(1, 1_000).await;
    queue.ack(&delivered).await.remove(0).unwrap();
    assert_eq!(queue.put(vec![keyed()]).await[0].id, last.id, "what is done is not removed");
    queue.engine.stop().await;
}
