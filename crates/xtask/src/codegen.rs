//! `cargo xtask codegen`.

use crate::cargo::cargo;

/// Writes the code that is generated from `proto/`. A package of its own does it, so that xtask builds no
/// protobuf compiler; its test compares what is committed.
pub fn run() -> anyhow::Result<bool> {
    Ok(cargo().args(["run", "--quiet", "--package", "forebay-codegen"]).status()?.success())
}
