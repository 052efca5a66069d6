//! `forebay context`

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use super::{CliOutput, Server, forebay, run_with};

/// Runs a verb with this folder for its configuration.
async fn run(folder: &Path, arguments: &[&str]) -> CliOutput {
    let mut command = forebay(arguments);
    command.env("XDG_CONFIG_HOME", folder);
    run_with(command, Vec::new()).await
}

#[tokio::test]
async fn a_context_holds_where_flags_do_not() {
    let server = Server::start().await;
    let folder = tempfile::Builder::new().prefix("forebay-cli-").tempdir().unwrap();
    let run = async |arguments: &[&str]| run(folder.path(), arguments).await;
    run(&["context", "add", "here", "--addr", &server.node.grpc, "--namespace", "mail"]).await.done();
    run(&["context", "add", "nowhere", "--addr", "127.0.0.1:1"]).await.done();
    run(&["enqueue", "--topic", "t", "x"]).await.done();
    // The first one is current, and its namespace holds.
    let topics = server.run(&["topics", "--namespace", "mail", "-o", "name"]).await.done();
    assert_eq!(topics, "t\n");
    assert_eq!(run(&["topics", "--namespace", "other", "-o", "name"]).await.done(), "");
    run(&["topics", "--context", "nowhere"]).await.failed(6);
    // Another server is not told what the context says.
    let other = run(&["topics", "--addr", &server.node.grpc, "-o", "name"]).await.done();
    assert_eq!(other, "");

    run(&["context", "use", "nowhere"]).await.done();
    run(&["topics"]).await.failed(6);
    assert_eq!(run(&["context", "list", "-o", "name"]).await.done(), "here\nnowhere\n");
    assert_eq!(run(&["context", "show"]).await.done(), "addr = [\"127.0.0.1:1\"]\n");
    run(&["context", "remove", "nowhere"]).await.done();
    let listed = run(&["context", "list", "-o", "json"]).await.json();
    assert_eq!(listed["contexts"][0]["current"], false);
    assert_eq!(listed["contexts"][0]["namespace"], "mail");
}

#[tokio::test]
async fn the_file_is_for_its_user_alone_and_mistakes_are_named() {
    let folder = tempfile::Builder::new().prefix("forebay-cli-").tempdir().unwrap();
    let run = async |arguments: &[&str]| run(folder.path(), arguments).await;
    run(&["context", "add", "a", "--addr", "q:1"]).await.done();
    let file = folder.path().join("forebay/contexts.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let twice = run(&["context", "add", "a", "--addr", "q:2"]).await.failed(1);
    assert!(twice.contains("--replace"), "{twice}");
    run(&["context", "add", "a", "--addr", "q:2", "--replace"]).await.done();
    let wrong = run(&["context", "add", "b", "--addr", "no-port"]).await.failed(2);
    assert!(wrong.contains("has no port"), "{wrong}");
    for verb in [&["context", "use", "x"][..], &["context", "show", "x"], &["topics", "--context", "x"]] {
        let missing = run(verb).await.failed(3);
        assert!(missing.contains("there is no context x"), "{missing}");
    }
    fs::write(&file, "[context.a]\nadress = 1\n").unwrap();
    let unknown = run(&["topics"]).await.failed(1);
    assert!(unknown.contains("contexts.toml") && unknown.contains("adress"), "{unknown}");
}
