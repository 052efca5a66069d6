//! Runs tests with real processes on demand.

use std::path::Path;

use anyhow::Context as _;

use crate::{
    cargo::{cargo, run_and_listen},
    count::of_cargo_test,
    servers,
};

/// Runs the tests whose names contain one of `filters`, all of them without one, with the program `binary`.
/// Says whether all passed.
pub fn run(binary: &Path, filters: &[&str], variables: &[(&str, String)]) -> anyhow::Result<bool> {
    let servers = servers::start()?;
    let mut processes = cargo();
    processes
        .args(["test", "--package", "forebay-tests", "--test", "e2e", "--"])
        .args(["--nocapture", "--test-threads=1"])
        .args(filters)
        .envs(servers.environment.iter().map(|(name, value)| (name, value)))
        .env("FOREBAY_BIN", binary.to_str().context("the path is not UTF-8")?)
        .envs(variables.iter().map(|(name, value)| (name, value)));
    let (done, lines) = run_and_listen(&mut processes)?;
    // A run of no test at all is no pass.
    Ok(done && of_cargo_test(&lines).passed > 0)
}
