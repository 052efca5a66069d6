//! `cargo xtask soak`.

use crate::{
    cargo::{build_forebay, cargo},
    e2e::{self, Network},
    netns,
};

/// How much to run.
#[derive(clap::Args)]
pub struct Arguments {
    /// Seeds of the simulation.
    #[arg(long, default_value_t = 50_000)]
    seeds: u64,
    /// Seeds of the simulation of clusters with a catalog. One takes as long as some tens of the others.
    #[arg(long, default_value_t = 1_000)]
    cluster_seeds: u64,
    /// One seed of that simulation alone, and nothing else.
    #[arg(long, conflicts_with_all = ["seed", "minutes"])]
    cluster_seed: Option<u64>,
    /// One seed of the simulation alone, and nothing else. With `--minutes`: the seed of the walk.
    #[arg(long)]
    seed: Option<u64>,
    /// Nothing but a random walk over faults of real nodes and servers, for so many minutes. It prints its
    /// seed, from which its faults follow.
    #[arg(long)]
    minutes: Option<u64>,
    /// The walk is in network namespaces, in which packets are lost without a word. It takes root.
    #[arg(long, requires = "minutes")]
    netns: bool,
    /// Rounds of each process test, in which a process is killed once.
    #[arg(long, default_value_t = 100)]
    rounds: u32,
}

/// Runs the simulations, then the tests with real processes, or the walk alone; says whether all passed.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    if let Some(minutes) = arguments.minutes {
        let seed = arguments.seed.unwrap_or_else(forebay_servers::random);
        let netns = arguments.netns;
        let network = if netns { Network::Alone } else { Network::Shared };
        if netns {
            netns::check()?;
        }
        println!("cargo xtask soak --minutes {minutes} --seed {seed}{}", if netns { " --netns" } else { "" });
        let mut walk = vec![("FOREBAY_E2E_WALK_MINUTES", minutes), ("FOREBAY_E2E_WALK_SEED", seed)];
        walk.extend(netns.then_some(("FOREBAY_E2E_WALK_NETNS", 1)));
        let walk: Vec<_> = walk.into_iter().map(|(name, value)| (name, value.to_string())).collect();
        return e2e::run(&build_forebay()?, &["a_random_walk_over_faults"], &walk, network);
    }
    if let Some(seed) = arguments.cluster_seed {
        return simulate("simulation_cluster", "FOREBAY_SIM_SEED", seed);
    }
    if let Some(seed) = arguments.seed {
        return simulate("simulation", "FOREBAY_SIM_SEED", seed);
    }
    let passed = simulate("simulation", "FOREBAY_SIM_SEEDS", arguments.seeds)?
        && simulate("simulation_cluster", "FOREBAY_SIM_SEEDS", arguments.cluster_seeds)?;
    if !passed {
        return Ok(false);
    }
    let rounds = [("FOREBAY_E2E_ROUNDS", arguments.rounds.to_string())];
    e2e::run(&build_forebay()?, &[], &rounds, Network::Shared)
}

/// Runs the tests of a simulation, which are this module's, as this variable says.
fn simulate(module: &str, variable: &str, value: u64) -> anyhow::Result<bool> {
    let mut simulation = cargo();
    simulation.args(["test", "--profile", "soak", "--package", "forebay-testkit", "--test", "all"]);
    simulation.args(["--", "--nocapture", &format!("{module}::")]).env(variable, value.to_string());
    Ok(simulation.status()?.success())
}
