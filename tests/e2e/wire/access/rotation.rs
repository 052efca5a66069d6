//! `forebay token rotate`, while a node serves.

use std::{process::Command, time::Duration};

use forebay_testkit::program;
use tokio::time::{Instant, sleep};

use super::{GuardedNode, file, record, token};

/// Runs `forebay`. Returns its exit status, stdout and stderr.
async fn run(guarded: &GuardedNode, arguments: &[&str], shown: &str) -> (i32, String, String) {
    let mut command = Command::new(program());
    command.args(arguments).env("FOREBAY_ADDR", &guarded.node.grpc).env("FOREBAY_TOKEN", shown);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Waits until a token is accepted, or until it no longer is. Returns what the node says of it.
async fn until(guarded: &GuardedNode, shown: &str, status: i32) -> String {
    let begun = Instant::now();
    loop {
        let (code, out, err) = run(guarded, &["whoami", "-o", "json"], shown).await;
        if code == status {
            return out + &err;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{code}: {err}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn both_secrets_hold_until_the_overlap_ends() {
    let token = token(1);
    let guarded = GuardedNode::start(&file(&[record(&token, &["own:produce"])])).await;
    let (id, path) = (token.id().to_string(), guarded.folder.path().join("tokens.toml"));
    let path = path.display().to_string();
    let rotate = async |overlap: &str| {
        let arguments = ["token", "rotate", &id, "--overlap", overlap, "--tokens-file", &path];
        run(&guarded, &arguments, "").await
    };
    let old = token.reveal();
    assert!(until(&guarded, &old, 0).await.contains(&id));

    let (code, second, said) = rotate("1h").await;
    assert!(code == 0 && said.contains("the one before holds for 1h"), "{said}");
    let second = second.trim().to_owned();
    let now = until(&guarded, &second, 0).await;
    assert!(now.contains(&id) && now.contains("own") && !now.contains("endsAt"), "{now}");
    // The holder of the older one is told when it ends.
    assert!(until(&guarded, &old, 0).await.contains("endsAt"));

    let (code, _, said) = rotate("1h").await;
    assert!(code == 1 && said.contains("both of its secrets hold until"), "{said}");
    let (code, third, _) = rotate("0s").await;
    assert_eq!(code, 0);
    until(&guarded, third.trim(), 0).await;
    for ended in [&old, &second] {
        assert!(until(&guarded, ended, 4).await.contains("BAD_CREDENTIALS"));
    }
    let (_, listed, _) = run(&guarded, &["token", "list", "--tokens-file", &path, "-o", "wide"], "").await;
    assert!(listed.lines().count() == 2 && listed.contains("OLD SECRET ENDS"), "{listed}");
    let unknown = ["token", "rotate", "000000000000", "--overlap", "1h", "--tokens-file", &path];
    assert_eq!(run(&guarded, &unknown, "").await.0, 3);
}
