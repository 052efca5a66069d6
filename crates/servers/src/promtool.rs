//! Prometheus's own check of a metrics page: `promtool`, from the PATH, else from the distribution's package.

use std::{fs, path::PathBuf};

use anyhow::Context as _;

use crate::{
    find::{program_on_path, servers_folder},
    unpack,
};

/// The program. Several processes may call this at once: one unpacks, the others wait for it.
pub fn promtool() -> anyhow::Result<PathBuf> {
    match program_on_path("promtool") {
        Some(program) => Ok(program),
        None => unpacked().context("promtool is not on the PATH and could not be unpacked"),
    }
}

fn unpacked() -> anyhow::Result<PathBuf> {
    unpack::once(&servers_folder().join("promtool"), "promtool", false, |packages, program| {
        // It needs the C library alone, which every machine has.
        packages.download(&["prometheus"])?;
        let root = program.with_file_name("root");
        packages.extract(&root)?;
        // The package has a server too, which is not kept.
        fs::rename(root.join("usr/bin/promtool"), program).context("the package contains no promtool")
    })
}
