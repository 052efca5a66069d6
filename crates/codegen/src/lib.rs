//! Generates the code of `forebay-proto` from `proto/`, with protox, so that no `protoc` is needed.
//!
//! The code is committed: who builds Forebay compiles no protobuf. `cargo xtask codegen` writes it anew.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use prost::Message as _;

/// The protobuf files, from the workspace's folder.
const SOURCES: &str = "proto";
/// Where the generated files are, from the workspace's folder.
const FOLDER: &str = "crates/proto/src/generated";

/// A file that is generated.
#[derive(Debug, PartialEq, Eq)]
pub struct Generated {
    /// Where it belongs.
    pub path: PathBuf,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// The workspace's folder.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles the protobuf files of the workspace at `root`. Writes nothing there.
pub fn generate(root: &Path) -> anyhow::Result<Vec<Generated>> {
    let files = protox::compile(["forebay/v1/queue.proto"], [root.join(SOURCES)])?;
    let descriptors = files.encode_to_vec();
    let folder = tempfile::tempdir()?;
    tonic_prost_build::configure()
        .bytes(".forebay.v1")
        .extern_path(".google.rpc.Status", "::tonic_types::Status")
        .out_dir(folder.path())
        .compile_fds(files)?;
    let code = fs::read(folder.path().join("forebay.v1.rs")).context("no code was generated")?;
    let generated = |name: &str, bytes| Generated { path: root.join(FOLDER).join(name), bytes };
    Ok(vec![generated("forebay.v1.rs", code), generated("descriptors.bin", descriptors)])
}
