//! Development tasks: `cargo xtask test`, `soak`, `upgrade`, `model`, `mutants`, `servers`, `tidy`,
//! `codegen`, `fuzz`, `programs`, `compose`.

mod cargo;
mod codegen;
mod compose;
mod count;
mod e2e;
mod fuzz;
mod model;
mod mutants;
mod netns;
mod programs;
mod servers;
mod soak;
mod test;
mod tidy;
mod upgrade;

use std::process::ExitCode;

use clap::Parser;

/// Development tasks of Forebay.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Checks whether the tree is tidy, starts database servers, builds the binary and runs every test.
    /// Fails if the tree is not tidy, or if a test failed or was skipped.
    Test(test::Arguments),
    /// Runs the simulation with more seeds and the process tests for more rounds.
    Soak(soak::Arguments),
    /// Replaces the nodes of a cluster of an earlier commit by this one's, under load.
    Upgrade(upgrade::Arguments),
    /// Checks the models of ownership and of the assignment within wider bounds than the tests.
    Model(model::Arguments),
    /// Changes the engine and the store in small ways and lists the changes that no test notices.
    Mutants(mutants::Arguments),
    /// Feeds the targets of `crates/fuzz` with random bytes, under libFuzzer. It needs a C++ compiler.
    Fuzz(fuzz::Arguments),
    /// Says which database servers the tests would use, unpacking them if need be.
    Servers,
    /// Checks the rules of the tree that no compiler knows: lengths, comments, who may import whom.
    Tidy(tidy::Arguments),
    /// Generates the code of the gRPC interface anew, after `proto/` changed. It is committed.
    Codegen,
    /// Runs the programs of README.md and docs/START.md against a node with TLS and tokens. It needs
    /// `openssl`, `curl`, `python3`, and what pip installs.
    Programs,
    /// Brings the cluster of docker-compose.yml up, kills a node under load, and checks every item.
    /// It needs Docker. `FOREBAY_IMAGE` names an image to use; without it one is built.
    Compose,
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Test(arguments) => test::run(&arguments),
        Task::Soak(arguments) => soak::run(&arguments),
        Task::Upgrade(arguments) => upgrade::run(&arguments),
        Task::Model(arguments) => model::run(&arguments),
        Task::Mutants(arguments) => mutants::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Servers => servers::start().map(|_| true),
        Task::Tidy(arguments) => tidy::run(&cargo::workspace(), &arguments),
        Task::Codegen => codegen::run(),
        Task::Programs => programs::run(),
        Task::Compose => compose::run(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is::<servers::NeedsContainers>() => {
            println!("{error:#}");
            again_with_containers()
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds xtask with containers, which takes a while and is seldom needed, and does the same task again.
fn again_with_containers() -> ExitCode {
    let mut command = cargo::cargo();
    command.args(["run", "--quiet", "--package", "xtask", "--features", "docker", "--"]);
    match command.args(std::env::args_os().skip(1)).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
