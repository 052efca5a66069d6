//! `forebay-bench`: measures Forebay against the baseline of its database and against other queues.

mod args;
mod comparison;
mod database;
mod delivery_check;
mod limit;
mod load;
mod machine;
mod other_queues;
mod payload;
mod report;
mod round_result;
mod scenario;
mod setup;
mod statistics;
mod system;
mod target;
mod targets;
mod times;
mod turn;
mod usage;
mod validate;
mod wait;
mod workload;

use std::{fs, process::ExitCode};

use anyhow::{Context as _, ensure};
use args::{Arguments, Command, Options};
use clap::Parser as _;
use machine::Machine;
use report::Report;
use setup::CommonSettings;
use target::State;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("forebay-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(Arguments { command, options }: Arguments) -> anyhow::Result<ExitCode> {
    validate::validate(&command, &options)?;
    if matches!(command, Command::OtherQueues) {
        for name in other_queues::NAMES {
            match other_queues::available(name, options.database) {
                Ok(()) => println!("{name}: found"),
                Err(why) => println!("{name}: {why:#}"),
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    if matches!(command, Command::Turn) {
        turn::run().await?;
        return Ok(ExitCode::SUCCESS);
    }
    let common = CommonSettings::new(&options, &setup::program(options.forebay.as_deref())?);
    let mut report = Report { machine: Machine::here(), verdicts: Vec::new(), results: Vec::new() };
    println!("{}", report::table::machine(&report.machine));
    let mut failures = Vec::new();
    if let Command::Targets { only } = &command {
        let results = targets::run(&common, only.as_deref()).await?;
        println!("{}", report::table::verdicts(&results.verdicts));
        (report.verdicts, report.results, failures) =
            (results.verdicts, results.comparisons, results.failures);
    } else {
        let result = setup::comparison(&command, &common, &options)?.run().await?;
        println!("{}", report::table::write(&result));
        report.results.push(result);
    }
    write(&options, &report)?;
    ensure!(failures.is_empty(), "some comparisons failed:\n{}", failures.join("\n"));
    let missed = report.verdicts.iter().any(|verdict| verdict.state == State::Missed);
    Ok(if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn write(options: &Options, report: &Report) -> anyhow::Result<()> {
    if let Some(path) = &options.json {
        let text = report::json::write(report)?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &options.html {
        let text = report::html::write(report)?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
