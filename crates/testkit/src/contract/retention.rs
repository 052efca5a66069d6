//! Dead letters that were kept for long enough, and topics that have nothing else.

use forebay_store::{DeadLetter, DueItem, DueRow, Sweep, TopicCounts, TopicRow};
use forebay_types::{Seq, Timestamp, TopicId};

use super::{
    Subject,
    bench::{Bench, Owner, TOPIC, at, failure, item, topic},
};

fn dead(seq: u64, expires_at: Timestamp) -> DeadLetter {
    DeadLetter {
        seq: Seq(seq),
        deliveries: 1,
        failures: 1,
        reason: "nacked".to_owned(),
        last_error: String::new(),
        died_at: at(seq as i64),
        expires_at,
        metadata: None,
        failure: failure(1, "no"),
    }
}

/// A topic with these dead letters, numbered from 1.
async fn bench_with(subject: Subject, ends: &[Timestamp]) -> Bench {
    let mut bench = Bench::new(subject).await;
    let count = ends.len() as u64;
    bench
        .owner
        .commit(|batch| {
            batch.new_topics.push(topic(TOPIC.0));
            batch.inserts.extend((1..=count).map(item));
        })
        .await;
    let letters: Vec<DeadLetter> = (1..=count).zip(ends).map(|(seq, end)| dead(seq, *end)).collect();
    bench.owner.commit(|batch| batch.dead_letters.extend(letters)).await;
    bench
}

async fn found(owner: &Owner, to: Timestamp) -> Vec<DueRow> {
    owner.reader.due(Sweep::Retention, Timestamp::MIN, to, 1_000).await.expect("reads")
}

async fn seqs(owner: &Owner) -> Vec<u64> {
    found(owner, at(1_000_000)).await.into_iter().map(|row| row.seq.0).collect()
}

/// In order of their ends, with their topic. Those that are kept for ever are never looked for.
pub async fn dead_letters_are_found_by_their_end(subject: Subject) {
    let bench = bench_with(subject, &[at(30), Timestamp::MAX, at(20), at(30)]).await;
    let row = |seq: u64, end| {
        let item = DueItem::DeadLetter { name: topic(TOPIC.0).name, died_at: at(seq as i64) };
        DueRow { at: end, seq: Seq(seq), topic: TOPIC, item }
    };
    assert_eq!(found(&bench.owner, at(29)).await, [row(3, at(20))]);
    assert_eq!(found(&bench.owner, at(30)).await, [row(3, at(20)), row(1, at(30)), row(4, at(30))]);
    let next = async |from| bench.owner.reader.next_due(Sweep::Retention, from).await.expect("reads");
    assert_eq!((next(Timestamp::MIN).await, next(at(21)).await), (Some(at(20)), Some(at(30))));
    assert_eq!(next(at(31)).await, None);
}

/// With the numbers of a whole page.
pub async fn dead_letters_are_deleted(subject: Subject) {
    let mut bench = bench_with(subject, &[at(50); 300]).await;
    bench.owner.commit(|batch| batch.dead_letter_deletes.extend((1..=299).map(Seq))).await;
    assert_eq!(seqs(&bench.owner).await, [300]);
    let located = bench.owner.reader.locate(&[Seq(1), Seq(300)]).await.expect("reads");
    assert_eq!(
        located,
        [
            forebay_store::ItemLocation::Gone,
            forebay_store::ItemLocation::DeadLetter(topic(TOPIC.0).name.namespace)
        ]
    );
}

/// Some for a while, some for ever.
pub async fn dead_letters_are_kept_for_longer(subject: Subject) {
    let mut bench = bench_with(subject, &[at(50); 4]).await;
    let keeps = [(Seq(2), at(70)), (Seq(1), Timestamp::MAX), (Seq(3), at(60))];
    bench.owner.commit(|batch| batch.dead_letter_keeps.extend(keeps)).await;
    assert_eq!(seqs(&bench.owner).await, [4, 3, 2]);
}

/// Its row loses them one after the other, and goes with the last one. Nothing is left to load.
pub async fn a_dormant_topic_goes_with_its_last_dead_letter(subject: Subject) {
    let mut bench = bench_with(subject, &[at(50); 3]).await;
    let three = TopicCounts { dead: 3, ..TopicCounts::default() };
    bench.owner.commit(|batch| batch.count_deltas.push((TOPIC, three))).await;
    bench.owner.commit(|batch| batch.folds.push((TOPIC, three, None))).await;
    let lose = async |owner: &mut Owner, gone: &[u64]| {
        owner
            .commit(|batch| {
                batch.dead_letter_deletes.extend(gone.iter().copied().map(Seq));
                batch.dormant_losses.push((TOPIC, gone.len() as i64));
            })
            .await;
    };
    lose(&mut bench.owner, &[1]).await;
    let loaded = bench.owner.load().await;
    assert_eq!((loaded.topics.len(), loaded.unfolded.len(), loaded.dormant_dead), (0, 0, 2));
    lose(&mut bench.owner, &[2, 3]).await;
    let loaded = bench.owner.load().await;
    assert_eq!((loaded.topics.len(), loaded.dormant_dead), (0, 0));
}

/// A topic that looks dormant in its row, and has later deltas, is loaded.
pub async fn a_topic_whose_items_are_not_folded_is_not_dormant(subject: Subject) {
    let mut bench = Bench::new(subject).await;
    let counts = |ready, dead| TopicCounts { ready, scheduled: 0, dead };
    bench.owner.commit(|batch| batch.new_topics.extend((1..=4).map(topic))).await;
    let folds = (1..=4).map(|id| (TopicId(id), counts(0, 10 * i64::from(id)), None));
    bench
        .owner
        .commit(|batch| {
            batch.folds.extend(folds);
            // It is in the folded counts already.
            batch.count_deltas.push((TopicId(1), counts(0, 1)));
        })
        .await;
    bench.owner.commit(|batch| batch.count_deltas.push((TopicId(3), counts(2, 0)))).await;
    let loaded = bench.owner.load().await;
    assert_eq!(loaded.topics, [TopicRow { counts: counts(2, 30), ..topic(3) }]);
    assert_eq!((loaded.unfolded, loaded.dormant_dead), (vec![TopicId(3)], 70));
}
