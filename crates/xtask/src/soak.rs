//! `cargo xtask soak`.

use anyhow::Context as _;

use crate::{
    cargo::{build_forebay, cargo},
    servers,
};

/// How much to run.
#[derive(clap::Args)]
pub struct Arguments {
    /// Seeds of the simulation.
    #[arg(long, default_value_t = 50_000)]
    seeds: u64,
    /// One seed of the simulation alone, and nothing else.
    #[arg(long)]
    seed: Option<u64>,
    /// Rounds of each process test, in which a process is killed once.
    #[arg(long, default_value_t = 100)]
    rounds: u32,
}

/// Runs the simulation, then the tests with real processes; says whether all passed.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let mut simulation = cargo();
    simulation.args(["test", "--profile", "soak", "--package", "forebay-testkit", "--test", "simulation"]);
    simulation.args(["--", "--nocapture"]);
    match arguments.seed {
        Some(seed) => simulation.env("FOREBAY_SIM_SEED", seed.to_string()),
        None => simulation.env("FOREBAY_SIM_SEEDS", arguments.seeds.to_string()),
    };
    if !simulation.status()?.success() {
        return Ok(false);
    }
    if arguments.seed.is_some() {
        return Ok(true);
    }
    let servers = servers::start()?;
    let binary = build_forebay()?;
    let mut processes = cargo();
    processes
        .args([
            "test",
            "--package",
            "forebay-tests",
            "--test",
            "e2e",
            "--",
            "--nocapture",
            "--test-threads=1",
        ])
        .envs(servers.environment.iter().map(|(name, value)| (name, value)))
        .env("FOREBAY_BIN", binary.to_str().context("the path is not UTF-8")?)
        .env("FOREBAY_E2E_ROUNDS", arguments.rounds.to_string());
    Ok(processes.status()?.success())
}
