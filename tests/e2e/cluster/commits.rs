//! Connections to shards that end or go silent around COMMIT.

use std::time::Duration;

use forebay_testkit::{
    proxy::{BATCH_COMMIT, Spring, Toward},
    servers::Kind,
};
use tokio::time::{Instant, timeout};

use super::ways::Ways;
use crate::{
    history::{Event, Outcome},
    rpc::{Rpc, WorstOutcome},
    scenario::kinds,
};

/// A shard under load commits within this time, so its trap goes off.
const SPRUNG_WITHIN: Duration = Duration::from_secs(20);
/// How often each shard's connection is reset.
const RESETS: u32 = 3;
/// A statement without an answer for 10 s has lost its connection. The rest is for the read of the outcome.
const SILENT_AT_MOST: Duration = Duration::from_secs(25);

async fn sprung(ways: &Ways, count: u32) {
    for proxy in &ways.proxies {
        timeout(SPRUNG_WITHIN, proxy.wait_sprung(count)).await.expect("each shard commits");
    }
}

/// Resets each shard's connection a few times at COMMIT. Every call has a definite answer.
async fn resets_at_commit(kind: Kind, spring: Spring, seed: u64) {
    let ways = Ways::new(kind, 2, 2, seed).await;
    let (before, unknown) = (ways.take_overs().await, ways.history.counts().unknown);
    for reset in 1..=RESETS {
        ways.proxies.iter().for_each(|proxy| proxy.trap(BATCH_COMMIT, spring, 1));
        sprung(&ways, reset).await;
        ways.progress("load after a reset", 100).await;
    }
    let seen = ways.history.counts();
    assert_eq!(seen.unknown, unknown, "{}", ways.history.failure_reasons());
    assert_eq!(ways.take_overs().await, before, "no shard has changed its owner");
    ways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_10_reset_after_commit_is_read_back() {
    for kind in kinds(Kind::MySql) {
        resets_at_commit(kind, Spring::ResetAfter, 31).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_11_reset_before_commit_is_replayed() {
    for kind in kinds(Kind::MariaDb) {
        resets_at_commit(kind, Spring::ResetBefore, 33).await;
    }
}

/// Connections end inside handshakes, statements and answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_11_connections_cut_anywhere_lose_nothing() {
    let ways = Ways::new(Kind::MariaDb, 2, 2, 35).await;
    for (toward, bytes) in [
        (Toward::Target, 50_000),
        (Toward::Client, 10),
        (Toward::Target, 700),
        (Toward::Client, 5_000),
        (Toward::Target, 1),
    ] {
        for proxy in &ways.proxies {
            let before = proxy.sprung();
            proxy.cut_after(toward, bytes);
            timeout(SPRUNG_WITHIN, proxy.wait_sprung(before + 1)).await.expect("bytes pass");
            proxy.pass();
        }
        ways.progress(&format!("load after a cut {toward:?} after {bytes} bytes"), 50).await;
    }
    ways.end().await;
}

/// One shard's COMMIT does not arrive, the other one's does, and nobody hears of either.
async fn silence_during_commit(kind: Kind, seed: u64) {
    let ways = Ways::new(kind, 2, 2, seed).await;
    ways.proxies[0].trap(BATCH_COMMIT, Spring::SilentBefore, 1);
    ways.proxies[1].trap(BATCH_COMMIT, Spring::SilentAfter, 1);
    sprung(&ways, 1).await;
    let begun = Instant::now();
    let silent_from = ways.history.now();
    // Items that are sent while the outcome is open have no answer within their deadline of 3 s.
    let [mut one, mut two] = [0, 1].map(|_| Rpc::new(ways.nodes[0].channel(), &ways.history));
    let (first, second) = ([ways.item(1)], [ways.item(2)]);
    let (first, second) = tokio::join!(one.enqueue(&first, ""), two.enqueue(&second, ""));
    assert!(first != WorstOutcome::Done && second != WorstOutcome::Done, "{first:?} {second:?}");
    let early = ways.history.inspect(|events| {
        let ok = |event: &&Event| {
            matches!(event, Event::Enqueue { call, outcome: Outcome::Ok(_), .. } if call.began > silent_from)
        };
        events.iter().filter(ok).count()
    });
    assert_eq!(early, 0, "a batch was answered before the outcome of the one before it was known");
    ways.all_store().await;
    let took = begun.elapsed();
    println!("both shards store again after {took:?}");
    assert!(took < SILENT_AT_MOST, "{took:?}");
    ways.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_09_silence_during_commit_is_never_ok() {
    for kind in kinds(Kind::MySql) {
        silence_during_commit(kind, 36).await;
    }
}
