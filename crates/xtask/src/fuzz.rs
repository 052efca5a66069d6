//! `cargo xtask fuzz`: the targets of `crates/fuzz` under libFuzzer.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, ensure};

use crate::cargo::{cargo, workspace};

/// How the compiler counts what was reached, and what was compared: what libFuzzer needs. These options are
/// stable; a sanitizer of memory would not be.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// The longest input, in bytes.
const INPUT_BYTES: u32 = 4_096;
/// The most memory of the process, in MiB.
const MEMORY_MIB: u32 = 512;
/// The most of it in one piece, in MiB.
const PIECE_MIB: u32 = 64;
/// The longest time for one input, in seconds.
const INPUT_SECONDS: u32 = 10;

/// Targets to run, and for how long.
#[derive(clap::Args)]
pub struct Arguments {
    /// Minutes of each target.
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// One target alone: a folder of `crates/fuzz/corpora`.
    target: Option<String>,
}

/// Runs the targets one after the other; says whether nothing was found. Findings, and inputs that reached
/// something new, are kept below `target/fuzz`.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let corpora = workspace().join("crates/fuzz/corpora");
    let mut targets = Vec::new();
    for entry in fs::read_dir(&corpora)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            targets.extend(entry.file_name().into_string());
        }
    }
    targets.sort();
    if let Some(only) = &arguments.target {
        ensure!(targets.contains(only), "there is no target {only}; there are: {}", targets.join(", "));
        targets.retain(|target| target == only);
    }
    let program = build()?;
    let mut found = Vec::new();
    for target in targets {
        if !fuzz(&program, &corpora, &target, arguments.minutes)? {
            found.push(target);
        }
    }
    if !found.is_empty() {
        println!("fuzz: findings of {}; see target/fuzz/findings", found.join(", "));
    }
    Ok(found.is_empty())
}

/// Builds the program. Build scripts and macros must not count what they reach: so it is built as for another
/// machine, and has a target folder of its own.
fn build() -> anyhow::Result<std::path::PathBuf> {
    let host = Command::new("rustc").arg("-vV").output()?;
    let host = String::from_utf8(host.stdout)?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let folder = workspace().join("target/fuzz/build");
    let status = cargo()
        .args(["build", "--package", "forebay-fuzz", "--features", "libfuzzer", "--bin", "forebay-fuzz"])
        .args(["--target", host])
        .env("CARGO_TARGET_DIR", &folder)
        .env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"))
        .status()?;
    ensure!(status.success(), "forebay-fuzz does not build");
    Ok(folder.join(host).join("debug/forebay-fuzz"))
}

fn fuzz(program: &Path, corpora: &Path, target: &str, minutes: u64) -> anyhow::Result<bool> {
    let [grown, findings] =
        ["corpora", "findings"].map(|folder| workspace().join("target/fuzz").join(folder).join(target));
    fs::create_dir_all(&grown)?;
    fs::create_dir_all(&findings)?;
    println!("fuzz: {target} for {minutes} min");
    let status = Command::new(program)
        .env("FOREBAY_FUZZ_TARGET", target)
        .args([&grown, &corpora.join(target)])
        .arg(format!("-max_total_time={}", minutes * 60))
        .arg(format!("-max_len={INPUT_BYTES}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-malloc_limit_mb={PIECE_MIB}"))
        .arg(format!("-timeout={INPUT_SECONDS}"))
        .arg(format!("-artifact_prefix={}/", findings.display()))
        .args(["-print_final_stats=1", "-verbosity=1"])
        .status()?;
    Ok(status.success())
}
