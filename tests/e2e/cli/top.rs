//! `forebay top`, on a terminal and in a pipe.

use std::{
    io::{Read as _, Write as _},
    process::Stdio,
};

use serde_json::json;

use super::{Server, forebay, process::terminal};

#[tokio::test]
async fn a_pipe_gets_one_frame() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "mail", "--count", "3", "x"]).await.done();
    for flags in [&["top"][..], &["top", "--once"]] {
        let frame = server.run(flags).await.done();
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
    let status = tokio::task::spawn_blocking(move || {
        let mut shown = String::new();
        // Waits until something is drawn, and forgets what came before it.
        let mut wait = |controller: &mut std::fs::File, text: &str| {
            let mut bytes = [0; 4_096];
            while !shown.contains(text) {
                let read = controller.read(&mut bytes).unwrap();
                shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
            let drawn = std::mem::take(&mut shown);
            drawn[drawn.find(text).unwrap()..].to_owned()
        };
        wait(&mut controller, "\u{1b}[?1049h");
        wait(&mut controller, "topics 2  ready 2");
        controller.write_all(b"s").unwrap();
        wait(&mut controller, "by ready");
        controller.write_all(b"/sm\r").unwrap();
        wait(&mut controller, "/sm");
        wait(&mut controller, "topics 1  ready 1");
        controller.write_all(b"\r").unwrap();
        wait(&mut controller, "waiting calls");
        controller.write_all(b"\x1b").unwrap();
        wait(&mut controller, "by ready");
        controller.write_all(b" ").unwrap();
        wait(&mut controller, "HELD");
        controller.write_all(b"q").unwrap();
        wait(&mut controller, "\u{1b}[?25h\u{1b}[?1049l");
        // Without its controller, the terminal would tell nothing more.
        (child.wait().unwrap(), controller)
    });
    let (status, _controller) = status.await.unwrap();
    assert_eq!(status.code(), Some(0));
    let after = rustix::termios::tcgetattr(&end).unwrap();
    assert_eq!((before.local_modes, before.input_modes), (after.local_modes, after.input_modes));
}
