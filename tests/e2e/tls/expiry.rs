//! `forebay check certificate`

use std::process::{Command, Stdio};

use forebay_client::TlsConfig;
use forebay_testkit::{certificates::Authority, program};
use forebay_types::{Clock as _, SystemClock};

use super::TlsFolder;

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Runs `forebay`. Returns its exit status, and what it said.
async fn forebay(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    command.args(arguments).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[tokio::test]
async fn the_end_of_a_certificate_is_told_in_days() {
    let now = SystemClock::default().wall().as_micros().unsigned_abs() / 1_000_000;
    let issue =
        |authority: &Authority| authority.issue_valid(&["127.0.0.1"], now - DAY, now + 10 * DAY + 3_600);
    let prepared = TlsFolder::new(issue, "").await;
    let tls = TlsConfig::default().ca_certificate(prepared.authority.pem());
    let secured = prepared.start(tls).await;
    let ca = secured.path("ca.crt").display().to_string();
    for address in [&secured.node.grpc, &secured.node.http] {
        let addr = format!("https://{address}");
        let check = ["check", "certificate", "--addr", &addr, "--ca", &ca];
        for (flags, status, says) in [
            (&[][..], 1, "certificate warning: "),
            (&["--warn", "days=9"], 0, "days 10.0"),
            (&["--critical", "days=11"], 2, "days 10.0 (below 11.0)"),
        ] {
            let (ended, text) = forebay(&[&check[..], flags].concat()).await;
            assert!(
                ended == Some(status) && text.contains(says) && text.contains(address),
                "{ended:?} {text}"
            );
        }
    }
    // Its end is known though nobody believes it, and that it is not accepted is said.
    let other = Authority::new("another").write(secured.folder.path(), "other.crt");
    let other = other.display().to_string();
    let addr = format!("https://{}", secured.node.grpc);
    let foreign = ["check", "certificate", "--addr", &addr, "--ca", &other, "--warn", "days=1"];
    let (ended, text) = forebay(&foreign).await;
    assert!(ended == Some(3) && text.contains("authority that is not known here"), "{ended:?} {text}");
}
