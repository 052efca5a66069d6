//! The metric that says when tokens end.

use std::time::Duration;

use forebay_access::Record;
use forebay_types::{Clock as _, SystemClock, Timestamp};
use tokio::time::Instant;

use super::{GuardedNode, bearer, file, record, token};
use crate::wire::http1::Request as Http;

const NAME: &str = "forebay_token_expiry_timestamp_seconds";

/// Waits until the page of metrics has these lines of it, in any order.
async fn becomes(guarded: &GuardedNode, admin: &str, expected: &[String]) {
    let begun = Instant::now();
    loop {
        let page = Http::get("/metrics").with("Authorization", admin).send(&guarded.node.http).await.text();
        let mut found: Vec<_> = page.lines().filter(|line| line.starts_with(NAME)).collect();
        found.sort_unstable();
        if found == expected {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{found:#?}");
    }
}

#[tokio::test]
async fn the_first_end_of_each_namespace_is_shown() {
    let now = SystemClock::default().wall();
    // The file has whole seconds.
    let seconds = |later: u64| now.plus(Duration::from_secs(later)).as_micros() / 1_000_000;
    let ends = |later: u64| Some(Timestamp::from_micros(seconds(later) * 1_000_000));
    let (worker, team, admin) = (token(1), token(2), token(3));
    let mut kept = [
        Record { ends: ends(5_000), ..record(&worker, &["own:consume", "team-*:observe"]) },
        Record { ends: ends(4_000), ..record(&team, &["team-*:all"]) },
        record(&admin, &["*:all"]),
    ];
    let guarded = GuardedNode::start(&file(&kept)).await;
    let line = |namespace: &str, value: String| format!("{NAME}{{namespace=\"{namespace}\"}} {value}");
    let (own, of_team) =
        (line("own", seconds(5_000).to_string()), line("team-*", seconds(4_000).to_string()));
    becomes(&guarded, &bearer(&admin), &[own, of_team]).await;

    kept[1].revoked = true;
    kept[0].grants = vec!["team-*:observe".parse().unwrap()];
    guarded.replace_tokens(&file(&kept));
    let (own, of_team) = (line("own", "NaN".to_owned()), line("team-*", seconds(5_000).to_string()));
    becomes(&guarded, &bearer(&admin), &[own, of_team]).await;
}
