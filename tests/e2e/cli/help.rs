//! `forebay error`, `completions` and `man`: what helps at the terminal.

use std::{fs, process::Command};

use super::run;

#[tokio::test]
async fn a_reason_is_explained() {
    let said = run(&["error", "lease-lost"]).await.done();
    assert!(said.starts_with("LEASE_LOST (FAILED_PRECONDITION): the delivery is over\n"), "{said}");
    assert!(said.contains("take effect? no") && said.contains("What to do: "), "{said}");
    let all = run(&["error", "-o", "name"]).await.done();
    assert!(all.lines().any(|line| line == "OUTCOME_UNKNOWN"), "{all}");
    assert!(run(&["error", "NOTHING"]).await.failed(3).contains("there is no reason NOTHING"));
}

#[tokio::test]
async fn completions_complete_verbs() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell]).await.done();
        assert!(script.contains("worker") && script.contains("forebay"), "{shell}");
    }
    let folder = tempfile::Builder::new().prefix("forebay-cli-").tempdir().unwrap();
    let script = folder.path().join("forebay.bash");
    fs::write(&script, run(&["completions", "bash"]).await.done()).unwrap();
    let line = "source \"$1\"; COMP_WORDS=(forebay no); COMP_CWORD=1; _forebay forebay no forebay; \
                echo \"${COMPREPLY[@]}\"";
    let completed = Command::new("bash").args(["-c", line, "bash"]).arg(&script).output().unwrap();
    let completed = String::from_utf8(completed.stdout).unwrap();
    assert!(completed.split_whitespace().any(|word| word == "node"), "{completed}");
}

#[tokio::test]
async fn each_verb_has_a_manual_page() {
    let folder = tempfile::Builder::new().prefix("forebay-cli-").tempdir().unwrap();
    let out = folder.path().join("man1");
    run(&["man", "--out", &out.display().to_string()]).await.done();
    for name in ["forebay", "forebay-worker", "forebay-shard", "forebay-shard-move"] {
        let page = fs::read_to_string(out.join(format!("{name}.1"))).unwrap();
        assert!(page.contains("Examples:") && page.contains(".SH OPTIONS"), "{name}: {page}");
    }
}
