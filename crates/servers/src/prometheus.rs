//! Prometheus, and its own check of a metrics page, `promtool`: from the PATH, else from the distribution's
//! package.

use std::{fs, path::PathBuf};

use anyhow::Context as _;

use crate::{
    find::{program_on_path, servers_folder},
    unpack,
};

/// The server. Several processes may call this at once: one unpacks, the others wait for it.
pub fn prometheus() -> anyhow::Result<PathBuf> {
    program("prometheus")
}

/// The check. The same holds for it.
pub fn promtool() -> anyhow::Result<PathBuf> {
    program("promtool")
}

fn program(name: &str) -> anyhow::Result<PathBuf> {
    match program_on_path(name) {
        Some(program) => Ok(program),
        None => {
            unpacked(name).with_context(|| format!("{name} is not on the PATH and could not be unpacked"))
        }
    }
}

fn unpacked(name: &str) -> anyhow::Result<PathBuf> {
    let folder = unpack::once(&servers_folder().join("prometheus"), "bin", false, |packages, bin| {
        // Both need the C library alone, which every machine has.
        packages.download(&["prometheus"])?;
        let root = bin.with_file_name("root");
        packages.extract(&root)?;
        fs::rename(root.join("usr/bin"), bin).context("the package contains no programs")
    })?;
    let program = folder.join(name);
    program.exists().then_some(program).with_context(|| format!("the package contains no {name}"))
}
