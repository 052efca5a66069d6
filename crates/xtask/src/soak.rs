//! `cargo xtask soak`.

use anyhow::Context as _;

use crate::{
    cargo::{build_forebay, cargo, run_and_listen},
    count::of_cargo_test,
    servers,
};

/// How much to run.
#[derive(clap::Args)]
pub struct Arguments {
    /// Seeds of the simulation.
    #[arg(long, default_value_t = 50_000)]
    seeds: u64,
    /// One seed of the simulation alone, and nothing else. With `--minutes`: the seed of the walk.
    #[arg(long)]
    seed: Option<u64>,
    /// Nothing but a random walk over faults of real nodes and servers, for so many minutes. It prints its
    /// seed, from which its faults follow.
    #[arg(long)]
    minutes: Option<u64>,
    /// Rounds of each process test, in which a process is killed once.
    #[arg(long, default_value_t = 100)]
    rounds: u32,
}

/// Runs the simulation, then the tests with real processes, or the walk alone; says whether all passed.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    if let Some(minutes) = arguments.minutes {
        let seed = arguments.seed.unwrap_or_else(forebay_servers::random);
        println!("cargo xtask soak --minutes {minutes} --seed {seed}");
        let walk = [("FOREBAY_E2E_WALK_MINUTES", minutes), ("FOREBAY_E2E_WALK_SEED", seed)];
        return processes(&["a_random_walk_over_faults"], &walk);
    }
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
    processes(&[], &[("FOREBAY_E2E_ROUNDS", u64::from(arguments.rounds))])
}

/// Runs the tests with real processes whose names contain one of `filters`, all of them without one.
fn processes(filters: &[&str], variables: &[(&str, u64)]) -> anyhow::Result<bool> {
    let servers = servers::start()?;
    let binary = build_forebay()?;
    let mut processes = cargo();
    processes
        .args(["test", "--package", "forebay-tests", "--test", "e2e", "--"])
        .args(["--nocapture", "--test-threads=1"])
        .args(filters)
        .envs(servers.environment.iter().map(|(name, value)| (name, value)))
        .env("FOREBAY_BIN", binary.to_str().context("the path is not UTF-8")?)
        .envs(variables.iter().map(|(name, value)| (name, value.to_string())));
    let (done, lines) = run_and_listen(&mut processes)?;
    // A run of no test at all is no pass.
    Ok(done && of_cargo_test(&lines).passed > 0)
}
