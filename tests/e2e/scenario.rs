//! Functions that the tests with faults have in common.

use std::{sync::Arc, time::Duration};

use forebay_testkit::servers::Kind;
use tokio::time::{Instant, sleep};

use crate::history::{Counts, History};

/// A queue must make progress again within this time after a fault.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(40);

/// How often something is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Waits until something is so. Panics with `what` if that takes longer than `timeout`.
pub async fn until(what: &str, timeout: Duration, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < timeout, "not within {timeout:?}: {what}");
        sleep(LOOK_EVERY).await;
    }
    println!("{what}, after {:?}", begun.elapsed());
}

/// How often a test injects its fault: `FOREBAY_E2E_ROUNDS`, or the test's default.
pub fn rounds(default: u32) -> u32 {
    std::env::var("FOREBAY_E2E_ROUNDS").ok().map_or(default, |rounds| rounds.parse().unwrap())
}

/// How long something stays away: a minute where `FOREBAY_E2E_ROUNDS` asks for more than usual.
pub fn outage(usual: Duration) -> Duration {
    if rounds(1) > 1 { Duration::from_secs(60) } else { usual }
}

/// The kinds of servers for a test that takes long: the usual one, and both where `FOREBAY_E2E_ROUNDS` asks
/// for more than usual.
pub fn kinds(usual: Kind) -> Vec<Kind> {
    if rounds(1) > 1 { Kind::ALL.to_vec() } else { vec![usual] }
}

/// Waits until `more` further items have been stored, delivered and acked.
pub async fn progress(history: &Arc<History>, what: &str, more: u64) -> Counts {
    let then = history.counts();
    let enough = |now: &Counts| {
        now.enqueued >= then.enqueued + more
            && now.delivered >= then.delivered + more
            && now.acked >= then.acked + more
    };
    history.wait(what, PROGRESS_TIMEOUT, enough).await
}
