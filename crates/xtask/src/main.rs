//! Development tasks: `cargo xtask test`, `cargo xtask soak`, `cargo xtask servers`.

mod cargo;
mod count;
mod servers;
mod soak;
mod test;

use std::process::ExitCode;

use clap::Parser;

/// Development tasks of Forebay.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Starts database servers, builds the binary and runs every test. Fails if a test failed or was
    /// skipped.
    Test(test::Arguments),
    /// Runs the simulation with more seeds and the process tests for more rounds.
    Soak(soak::Arguments),
    /// Says which database servers the tests would use, unpacking them if need be.
    Servers,
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Test(arguments) => test::run(&arguments),
        Task::Soak(arguments) => soak::run(&arguments),
        Task::Servers => servers::start().map(|_| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
