//! Running cargo.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

/// Arguments that build the binary alone.
const FOREBAY: [&str; 5] = ["build", "--package", "forebay", "--bin", "forebay"];

/// A cargo command in the workspace's folder.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace());
    command
}

/// The workspace's folder.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether `cargo nextest` is installed.
pub fn has_nextest() -> bool {
    let output = cargo().args(["nextest", "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Builds the binary `forebay`, and says where it is.
pub fn build_forebay() -> anyhow::Result<PathBuf> {
    build_forebay_by(cargo().args(FOREBAY))
}

/// Builds all tests and the binary `forebay`, and says where that is. It is built together with the tests:
/// for itself, with fewer features of what it depends on, most of that would be built twice. So bugs can be
/// planted in it, as in what the tests of the engine are linked with; nothing in it does that.
pub fn build_tests_and_forebay() -> anyhow::Result<PathBuf> {
    build_forebay_by(cargo().args(["build", "--workspace", "--bins", "--tests"]))
}

/// Builds the binary of another checkout, in a target folder of its own: to cargo, a package is the same
/// wherever its workspace lies, and it would take the one for the other.
pub fn build_forebay_of(checkout: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    build_forebay_by(cargo().args(FOREBAY).current_dir(checkout).env("CARGO_TARGET_DIR", target))
}

fn build_forebay_by(command: &mut Command) -> anyhow::Result<PathBuf> {
    let output =
        command.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "forebay does not build");
    let messages = String::from_utf8(output.stdout)?;
    let mut executables = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let executable = message.get("executable")?.as_str()?;
        let is_forebay = message["target"]["name"] == "forebay" && message["profile"]["test"] == false;
        is_forebay.then(|| PathBuf::from(executable))
    });
    executables.next_back().context("cargo names no executable")
}

/// Runs a command, passes on what it prints to stdout and stderr, and keeps the lines.
pub fn run_and_listen(command: &mut Command) -> anyhow::Result<(bool, Vec<String>)> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("no stdout")?;
    let stderr = child.stderr.take().context("no stderr")?;
    let errors = std::thread::spawn(move || {
        let mut kept = Vec::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            eprintln!("{line}");
            kept.push(line);
        }
        kept
    });
    let mut kept = Vec::new();
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        writeln!(std::io::stdout(), "{line}")?;
        kept.push(line);
    }
    let done = child.wait()?.success();
    kept.extend(errors.join().map_err(|_| anyhow::anyhow!("the reader of stderr panicked"))?);
    Ok((done, kept))
}
