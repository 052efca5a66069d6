//! `forebay top`, on a terminal and in a pipe.

use std::{io::Write as _, process::Stdio, time::Duration};

use serde_json::json;
use tokio::time::Instant;

use super::{
    Server, forebay,
    process::{ProcessOutput, terminal},
};

/// A frame must have the rate of the last seconds within this time.
const RATE_TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_pipe_gets_one_frame() {
    // A rate is that of the items while the ten seconds last in which they came. Where the clock goes on to
    // the next ten before both frames are there, another server is tried.
    let begun = Instant::now();
    let (server, frames) = loop {
        let server = Server::start().await;
        server.run(&["enqueue", "--topic", "mail", "--count", "3", "x"]).await.done();
        let frames = [server.run(&["top"]).await.done(), server.run(&["top", "--once"]).await.done()];
        if frames.iter().all(|frame| frame.contains("  in 0.30/s  ")) {
            break (server, frames);
        }
        assert!(begun.elapsed() < RATE_TIMEOUT, "{frames:?}");
    };
    for frame in frames {
        let lines: Vec<&str> = frame.lines().collect();
        assert!(lines[0].starts_with("default at 127.0.0.1:") && lines[0].ends_with("by oldest"), "{frame}");
        assert!(
            lines[1].contains(
                "topics 1  ready 3  leased 0  scheduled 0  dead 0  in 0.30/s  out 0.0/s  failed 0.0/s"
            ),
            "{frame}"
        );
        assert!(
            lines[3].starts_with("TOPIC") && lines[4].starts_with("mail  ") && lines.len() == 5,
            "{frame}"
        );
        assert!(!frame.contains('\u{1b}'), "{frame:?}");
    }
    let json = server.run(&["top", "-o", "json"]).await.json();
    assert_eq!(
        (&json["topics"][0]["topic"], &json["topics"][0]["readyCount"]),
        (&json!("mail"), &json!("3"))
    );
}

#[tokio::test]
async fn keys_are_obeyed_and_the_terminal_is_left_as_it_was() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "mail", "x"]).await.done();
    server.run(&["enqueue", "--topic", "sms", "x"]).await.done();
    let (mut controller, end) = terminal();
    let before = rustix::termios::tcgetattr(&end).unwrap();
    let mut command = forebay(&["top", "--interval", "100ms"]);
    command.env("FOREBAY_ADDR", &server.node.grpc);
    command.stdin(end.try_clone().unwrap()).stdout(end.try_clone().unwrap()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut shown = ProcessOutput::of(controller.try_clone().unwrap());
    shown.wait_for("\u{1b}[?1049h").await;
    shown.wait_for("topics 2  ready 2").await;
    for (keys, drawn) in [
        ("s", &["by ready"][..]),
        ("/sm\r", &["/sm", "topics 1  ready 1"]),
        ("\r", &["waiting calls"]),
        ("\u{1b}", &["by ready"]),
        (" ", &["HELD"]),
        ("q", &["\u{1b}[?25h\u{1b}[?1049l"]),
    ] {
        controller.write_all(keys.as_bytes()).unwrap();
        for text in drawn {
            shown.wait_for(text).await;
        }
    }
    let status = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(status.code(), Some(0));
    let after = rustix::termios::tcgetattr(&end).unwrap();
    assert_eq!((before.local_modes, before.input_modes), (after.local_modes, after.input_modes));
}
