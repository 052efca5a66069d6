//! Runs tests with real processes on demand.

use std::path::Path;

use anyhow::Context as _;

use crate::{
    cargo::{cargo, run_and_listen},
    count::of_cargo_test,
    netns, servers,
};

/// Builds and runs them.
const TESTS: [&str; 5] = ["test", "--package", "forebay-tests", "--test", "e2e"];

/// Where tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// In the machine's network.
    Shared,
    /// In a network of their own, without a way out.
    Alone,
}

/// Runs the tests whose names contain one of `filters`, all of them without one, with the program `binary`.
/// Says whether all passed.
pub fn run(
    binary: &Path,
    filters: &[&str],
    variables: &[(&str, String)],
    network: Network,
) -> anyhow::Result<bool> {
    let servers = servers::start()?;
    // Built first: without a network cargo could fetch nothing.
    if !cargo().args(TESTS).arg("--no-run").status()?.success() {
        return Ok(false);
    }
    let mut processes = cargo();
    processes.args(TESTS).args(["--", "--nocapture", "--test-threads=1"]).args(filters);
    if network == Network::Alone {
        processes = netns::alone(processes);
    }
    processes
        .envs(servers.environment.iter().map(|(name, value)| (name, value)))
        .env("FOREBAY_BIN", binary.to_str().context("the path is not UTF-8")?)
        .envs(variables.iter().map(|(name, value)| (name, value)));
    let (done, lines) = run_and_listen(&mut processes)?;
    // A run of no test at all is no pass.
    Ok(done && of_cargo_test(&lines).passed > 0)
}
