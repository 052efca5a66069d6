//! `cargo xtask upgrade`: a cluster of an earlier commit's program gets this one, node by node, under load.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};

use crate::{
    cargo::{build_forebay, build_forebay_of, workspace},
    e2e::{self, Network},
};

/// From where.
#[derive(clap::Args)]
pub struct Arguments {
    /// The commit of the old program: of this release, or of the one before.
    #[arg(long, default_value = "HEAD~1")]
    from: String,
}

/// Builds both programs and runs the test; says whether it passed.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let folder = workspace().canonicalize()?.join("target/upgrade");
    fs::create_dir_all(&folder)?;
    let revision = format!("{}^{{commit}}", arguments.from);
    let commit = git(&workspace(), &["rev-parse", "--verify", "--short=12", &revision])?;
    let old = old_program(&folder, &commit)?;
    let new = build_forebay()?;
    let (from, to) = (version(&old)?, version(&new)?);
    println!("from {from}\nto   {to}");
    ensure!(from != to, "both programs are of one commit");
    let variable = ("FOREBAY_E2E_OLD_BIN", old.to_str().context("the path is not UTF-8")?.to_owned());
    e2e::run(&new, &["cluster::upgrade::"], &[variable], Network::Shared)
}

/// The program of a commit. It is built in a checkout of its own, which the next one is built in too.
fn old_program(folder: &Path, commit: &str) -> anyhow::Result<PathBuf> {
    let program = folder.join(format!("forebay-{commit}"));
    if program.exists() {
        return Ok(program);
    }
    let tree = folder.join("tree");
    if tree.exists() {
        git(&tree, &["checkout", "--quiet", "--detach", "--force", commit])?;
    } else {
        let path = tree.to_str().context("the path is not UTF-8")?;
        // Forced, because git may still know one that was deleted.
        git(&workspace(), &["worktree", "add", "--quiet", "--force", "--detach", path, commit])?;
    }
    fs::copy(build_forebay_of(&tree, &folder.join("target"))?, &program)?;
    Ok(program)
}

fn version(program: &Path) -> anyhow::Result<String> {
    let output = Command::new(program).arg("--version").output()?;
    ensure!(output.status.success(), "{} does not run", program.display());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Runs git. Returns what it prints.
fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").current_dir(folder).args(arguments).output().context("git")?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {}: {}", arguments.join(" "), why.trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
