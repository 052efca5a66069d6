//! `cargo xtask mutants`: changes the engine and the store in small ways, one at a time, and sees which
//! change no test notices. All of them take days, so a run usually takes one part: `--shard 3/100`.
//!
//! `.cargo/mutants.toml` lists the mutations that may survive, each with the reason.

use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::{cargo::cargo, servers};

/// Which mutations to try.
#[derive(clap::Args)]
pub struct Arguments {
    /// One part of them: `k/n` is the one numbered k of n parts, from 0.
    #[arg(long)]
    shard: Option<String>,
    /// Only those in files that match this glob.
    #[arg(long)]
    file: Vec<String>,
    /// Seeds of the simulation that a mutation has to survive.
    #[arg(long, default_value_t = 400)]
    seeds: u64,
    /// List the mutations, and try none.
    #[arg(long)]
    list: bool,
}

/// Packages whose sources are changed.
const CHANGED: [&str; 2] = ["forebay-engine", "forebay-store"];
/// The package with most of the tests.
const TESTS_IN: &str = "forebay-testkit";
/// Test programs beside the unit tests: those that need no server process of Forebay.
const TESTS: [&str; 2] = ["one_node", "all"];
/// Modules of these that take long, or test the tests.
const LEFT_OUT: [&str; 8] = [
    "changing_shards::",
    "per_server::",
    "planted::",
    "planted_cluster::",
    "prepared_statements::",
    "proxy::",
    "servers::",
    "simulation_cluster::",
];

/// Runs cargo-mutants; says whether every mutation was noticed.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    ensure!(
        cargo().args(["mutants", "--version"]).output()?.status.success(),
        "cargo-mutants is not installed: cargo install cargo-mutants --locked"
    );
    let mut command = cargo();
    // The copy of the tree that is changed has what is built already.
    command.args(["mutants", "--output", "target/mutants", "--copy-target", "true"]);
    for package in CHANGED {
        command.args(["--package", package]);
    }
    for glob in &arguments.file {
        command.args(["--file", glob]);
    }
    if let Some(shard) = &arguments.shard {
        // The parts are a sample each, not a stretch of files.
        command.args(["--shard", shard, "--sharding", "round-robin"]);
    }
    if arguments.list {
        return succeeds(command.arg("--list"));
    }
    let servers = servers::start()?;
    command.envs(servers.environment.iter().map(|(name, value)| (name, value)));
    command.env("FOREBAY_SIM_SEEDS", arguments.seeds.to_string());
    // An endless loop counts as noticed.
    command.args(["--minimum-test-timeout", "60", "--no-shuffle", "--", "--package", TESTS_IN, "--lib"]);
    for test in TESTS {
        command.args(["--test", test]);
    }
    command.arg("--");
    for module in LEFT_OUT {
        command.args(["--skip", module]);
    }
    succeeds(&mut command)
}

fn succeeds(command: &mut Command) -> anyhow::Result<bool> {
    Ok(command.status().context("cargo mutants")?.success())
}
