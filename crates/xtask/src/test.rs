//! `cargo xtask test`.

use anyhow::Context as _;

use crate::{
    cargo::{build_forebay, build_tests_and_forebay, cargo, has_nextest, run_and_listen, workspace},
    count::{Count, of_cargo_test, of_nextest},
    servers, tidy,
};

/// Tests to run.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only tests whose names contain one of these.
    filters: Vec<String>,
    /// Only tests of these packages.
    #[arg(long, short)]
    package: Vec<String>,
    /// Use `cargo test` even where nextest is installed.
    #[arg(long)]
    no_nextest: bool,
}

/// Checks whether the tree is tidy and runs the tests, whatever it finds; says whether it is, and all of them
/// passed and none was skipped.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let tidy = tidy::run(&workspace(), &tidy::Arguments::default())?;
    let servers = servers::start()?;
    let all = arguments.package.is_empty();
    if all {
        // The tests of metrics need it. Fetched here, a failure is one line.
        println!("prometheus: {}", forebay_servers::prometheus()?.display());
        println!("browser: {}", forebay_servers::browser()?.chromium.display());
        // So do those of clocks.
        forebay_servers::WallClock::new()?;
    }
    let binary = if all { build_tests_and_forebay()? } else { build_forebay()? };
    let mut environment = servers.environment.clone();
    environment.push(("FOREBAY_BIN", binary.to_str().context("the path is not UTF-8")?.to_owned()));

    let nextest = !arguments.no_nextest && has_nextest();
    let (done, count) = if nextest {
        let (mut done, mut count) = with_nextest(arguments, &environment)?;
        // nextest has no documentation tests. Cargo refuses to look for them in a package without a library.
        if arguments.package.is_empty() {
            let (docs_done, docs) = with_cargo(arguments, &environment, &["--doc"])?;
            count += docs;
            done &= docs_done;
        }
        (done, count)
    } else {
        with_cargo(arguments, &environment, &[])?
    };
    if !tidy {
        println!("the tree is not tidy: see above, or run cargo xtask tidy");
    }
    println!("{count}");
    Ok(tidy && done && count.failed == 0 && count.skipped == 0 && count.passed > 0)
}

type Environment = [(&'static str, String)];

fn with_nextest(arguments: &Arguments, environment: &Environment) -> anyhow::Result<(bool, Count)> {
    let mut command = cargo();
    command.args(["nextest", "run", "--no-fail-fast", "--no-tests=pass"]);
    command.args(packages(arguments)).args(&arguments.filters);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let (done, lines) = run_and_listen(&mut command)?;
    // Without a summary nothing was run, which is never a pass.
    let mut count = of_nextest(&lines).unwrap_or(Count { failed: u64::from(!done), ..Count::default() });
    if !arguments.filters.is_empty() {
        // Tests that a filter leaves out are not skipped, and nextest counts both as one.
        count.skipped = 0;
    }
    Ok((done, count))
}

fn with_cargo(
    arguments: &Arguments,
    environment: &Environment,
    extra: &[&str],
) -> anyhow::Result<(bool, Count)> {
    let mut command = cargo();
    command.args(["test", "--no-fail-fast"]).args(packages(arguments)).args(extra).arg("--");
    command.args(&arguments.filters);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let (done, lines) = run_and_listen(&mut command)?;
    let mut count = of_cargo_test(&lines);
    if !done && count.failed == 0 {
        // It did not build, or a test binary died without a result.
        count.failed = 1;
    }
    Ok((done, count))
}

fn packages(arguments: &Arguments) -> Vec<String> {
    if arguments.package.is_empty() {
        return vec!["--workspace".to_owned()];
    }
    arguments.package.iter().map(|package| format!("--package={package}")).collect()
}
