//! Compiles `proto/` with protox, so that no `protoc` is needed on the machine.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());

    let files = protox::compile(["forebay/v1/queue.proto"], [&root])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("forebay_descriptor.bin"), files.encode_to_vec())?;

    tonic_prost_build::configure()
        .bytes(".forebay.v1")
        .extern_path(".google.rpc.Status", "::tonic_types::Status")
        .compile_fds(files)?;
    Ok(())
}
