//! Topics that were read before a shard was loaded. What a load finds is the same with them as without: each
//! load of a case compares that.

use forebay_store::{TopicCounts, TopicRow};
use forebay_types::TopicId;

use super::{
    Subject,
    bench::{Bench, topic},
};

const fn counts(ready: i64, dead: i64) -> TopicCounts {
    TopicCounts { ready, scheduled: 0, dead }
}

/// Six topics, with two items each.
async fn six(subject: Subject) -> Bench {
    let mut bench = Bench::new(subject).await;
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.extend((1..=6).map(topic));
            batch.count_deltas.extend((1..=6).map(|id| (TopicId(id), counts(2, 0))));
        })
        .await;
    assert_eq!(bench.shard().read_ahead().await.expect("reads ahead").topics().len(), 6);
    bench.owner.load().await;
    bench
}

async fn numbers(bench: &Bench) -> Vec<u32> {
    bench.owner.load().await.topics.iter().map(|topic| topic.id.0).collect()
}

/// A topic that is dropped after the read is not loaded, whether others change with it or not.
pub async fn a_topic_dropped_after_the_read_is_gone(subject: Subject) {
    let mut bench = six(subject).await;
    bench.owner.commit(|batch| batch.drop_topics.push(TopicId(2))).await;
    assert_eq!(numbers(&bench).await, [1, 3, 4, 5, 6]);
    bench
        .owner
        .commit(|batch| {
            batch.drop_topics.push(TopicId(3));
            batch.folds.push((TopicId(4), counts(2, 0), None));
            batch.new_topics.push(topic(7));
        })
        .await;
    assert_eq!(numbers(&bench).await, [1, 4, 5, 6, 7]);
    // The same name under a new number.
    bench
        .owner
        .commit(|batch| {
            batch.drop_topics.push(TopicId(1));
            batch.new_topics.push(TopicRow { id: TopicId(8), ..topic(1) });
        })
        .await;
    assert_eq!(numbers(&bench).await, [4, 5, 6, 7, 8]);
}

/// A topic that is left with dead letters alone after the read is not loaded. It is if it has later deltas.
pub async fn a_topic_dormant_after_the_read_is_not_loaded(subject: Subject) {
    let mut bench = six(subject).await;
    let dormant = |ids: [u32; 2]| ids.map(|id| (TopicId(id), counts(0, 3), None));
    bench.owner.commit(|batch| batch.folds.extend(dormant([2, 5]))).await;
    let loaded = bench.owner.load().await;
    assert_eq!((loaded.topics.len(), loaded.dormant_dead), (4, 6));
    bench.owner.commit(|batch| batch.dormant_losses.push((TopicId(2), 1))).await;
    assert_eq!(bench.owner.load().await.dormant_dead, 5);
    bench.owner.commit(|batch| batch.count_deltas.push((TopicId(5), counts(1, 0)))).await;
    let loaded = bench.owner.load().await;
    assert_eq!((loaded.topics.len(), loaded.dormant_dead), (5, 2));
    assert!(loaded.topics.contains(&TopicRow { counts: counts(1, 3), ..topic(5) }), "{:?}", loaded.topics);
}
