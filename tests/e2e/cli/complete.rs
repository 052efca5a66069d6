//! `forebay __complete`, and the script of bash that asks it.

use std::{fs, process::Command, time::Duration};

use forebay_testkit::program;
use tokio::time::Instant;

use super::{Server, forebay, run, run_with};

#[tokio::test]
async fn names_that_exist_are_completed() {
    let server = Server::start().await;
    for topic in ["mail", "mail/urgent", "sms"] {
        server.run(&["enqueue", "--topic", topic, "x"]).await.done();
    }
    server.run(&["enqueue", "--topic", "mail/foreign", "--namespace", "other", "x"]).await.done();
    let node = server.run(&["node", "list", "-o", "name"]).await.done();
    for (words, expected) in [
        (&["topic", "get", "ma"][..], "mail\nmail/urgent\n"),
        (&["enqueue", "--namespace", "other", "--topic", ""], "mail/foreign\n"),
        (&["topics", "--namespace", "o"], "other\n"),
        (&["node", "drain", ""], &node),
        (&["topic", "ge"], ""),
        (&["topic", "get", "$(id)"], ""),
    ] {
        let ran = server.run(&[&["__complete", "--"], words].concat()).await;
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.status), (expected, "", 0), "{words:?}");
    }
    let help = run(&["--help"]).await.done();
    assert!(!help.contains("__complete"), "{help}");
}

#[tokio::test]
async fn without_an_answer_it_is_quick_and_silent() {
    // It takes connections, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    for addr in [silent.as_str(), "127.0.0.1:1", "no address"] {
        let begun = Instant::now();
        let ran = run(&["__complete", "--", "topic", "get", "--addr", addr, ""]).await;
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.status), ("", "", 0), "{addr}");
        // Far less than the 10 s of a call. The rest is the start of a process on a busy machine.
        assert!(begun.elapsed() < Duration::from_secs(5), "{addr}: {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn bash_asks_for_names_and_completes_verbs_as_ever() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "mail", "x"]).await.done();
    let folder = tempfile::Builder::new().prefix("forebay-cli-").tempdir().unwrap();
    let script = folder.path().join("forebay.bash");
    fs::write(&script, run_with(forebay(&["completions", "bash"]), Vec::new()).await.done()).unwrap();
    let complete = |words: &'static str, at: u32| {
        let mut command = Command::new("bash");
        let line = format!(
            "source \"$1\"; COMP_WORDS=(\"$2\" {words}); COMP_CWORD={at}; \
             _forebay_names \"$2\" \"${{COMP_WORDS[$COMP_CWORD]}}\" forebay; echo \"${{COMPREPLY[@]}}\""
        );
        command.args(["-c", &line, "bash"]).arg(&script).arg(program());
        command.env("FOREBAY_ADDR", &server.node.grpc).env("XDG_CONFIG_HOME", "/nonexistent");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let (names, verbs) = (complete("topic get m", 3), complete("no", 1));
    assert_eq!(names, "mail\n");
    assert!(verbs.split_whitespace().any(|word| word == "node"), "{verbs}");
}
