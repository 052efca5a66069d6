//! `forebay-bench`: measures Forebay against the floor of its database and against other queues.

mod args;
mod check;
mod contest;
mod database;
mod entries;
mod ledger;
mod machine;
mod outcome;
mod payload;
mod peers;
mod report;
mod scenario;
mod system;
mod targets;
mod times;
mod usage;
mod wait;
mod workload;

use std::{fs, process::ExitCode};

use anyhow::{Context as _, ensure};
use args::{Arguments, Options, Verb};
use clap::Parser as _;
use entries::Common;
use machine::Machine;
use report::Report;
use targets::State;

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

async fn run(Arguments { verb, options }: Arguments) -> anyhow::Result<ExitCode> {
    check::check(&verb, &options)?;
    if matches!(verb, Verb::Peers) {
        for name in peers::NAMES {
            match peers::available(name, options.database) {
                Ok(()) => println!("{name}: found"),
                Err(why) => println!("{name}: {why:#}"),
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let common = Common::new(&options, &entries::program(options.forebay.as_deref())?);
    let mut report = Report { machine: Machine::here(), verdicts: Vec::new(), results: Vec::new() };
    println!("{}", report::table::machine(&report.machine));
    let mut failures = Vec::new();
    if let Verb::Targets { only } = &verb {
        let judged = targets::run(&common, only.as_deref()).await?;
        println!("{}", report::table::verdicts(&judged.verdicts));
        (report.verdicts, report.results, failures) = (judged.verdicts, judged.results, judged.failures);
    } else {
        let result = entries::contest(&verb, &common, &options)?.run().await?;
        println!("{}", report::table::write(&result));
        report.results.push(result);
    }
    write(&options, &report)?;
    ensure!(failures.is_empty(), "not everything could be measured:\n{}", failures.join("\n"));
    let missed = report.verdicts.iter().any(|verdict| verdict.state == State::Missed);
    Ok(if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn write(options: &Options, report: &Report) -> anyhow::Result<()> {
    if let Some(path) = &options.json {
        let text = report::json::write(report)?;
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    if let Some(path) = &options.html {
        let text = report::html::write(report)?;
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
