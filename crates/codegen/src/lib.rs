//! Generates the code of `forebay-proto` from `proto/`, with protox, so that no `protoc` is needed.
//!
//! The code is committed: who builds Forebay compiles no protobuf. `cargo xtask codegen` writes it anew.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use prost::Message as _;
use prost_types::{FileDescriptorSet, MethodDescriptorProto};

/// The folder of the protobuf files, from the workspace's folder.
const SOURCES: &str = "proto";
/// The files of the interface for clients and operators, from that folder.
const PUBLIC: &[&str] = &["forebay/v1/admin.proto", "forebay/v1/queue.proto"];
/// The file of the interface between nodes. It is not for clients, so reflection does not show it.
const PEER: &[&str] = &["forebay/peer/v1/peer.proto"];
/// The service of operators' calls.
const ADMIN: &str = "AdminService";
/// Where the generated files are, from the workspace's folder.
const FOLDER: &str = "crates/proto/src/generated";

/// A file that is generated.
#[derive(Debug, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Where it belongs.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The workspace's folder.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles the protobuf files of the workspace at `root`. Writes nothing there.
pub fn generate(root: &Path) -> anyhow::Result<Vec<GeneratedFile>> {
    let (public, descriptors) = code(root, PUBLIC, "forebay.v1")?;
    let (peer, _) = code(root, PEER, "forebay.peer.v1")?;
    let generated = |name: &str, bytes| GeneratedFile { path: root.join(FOLDER).join(name), bytes };
    Ok(vec![
        generated("forebay.v1.rs", public),
        generated("descriptors.bin", descriptors),
        generated("forebay.peer.v1.rs", peer),
    ])
}

/// The code of a package, and the descriptors of its files.
fn code(root: &Path, files: &[&str], package: &str) -> anyhow::Result<(Vec<u8>, Vec<u8>)> {
    let files = protox::compile(files, [root.join(SOURCES)])?;
    let descriptors = files.encode_to_vec();
    // No other package has the service of operators.
    let calls = if package == "forebay.v1" { admin_calls(&files) } else { String::new() };
    let folder = tempfile::tempdir()?;
    // The interface between nodes names messages of the public one.
    let public = (package != "forebay.v1").then_some((".forebay.v1", "crate::v1"));
    let configured = tonic_prost_build::configure();
    let configured = public.into_iter().fold(configured, |it, (proto, rust)| it.extern_path(proto, rust));
    configured
        .bytes(format!(".{package}"))
        .extern_path(".google.rpc.Status", "::tonic_types::Status")
        .out_dir(folder.path())
        .compile_fds(files)?;
    let mut code = fs::read(folder.path().join(format!("{package}.rs"))).context("no code was generated")?;
    code.extend(calls.into_bytes());
    Ok((code, descriptors))
}

/// Says of each request of operators' calls which call it is of. Requests and answers are named after calls.
fn admin_calls(files: &FileDescriptorSet) -> String {
    let services = files.file.iter().flat_map(|file| &file.service);
    let methods = services.filter(|service| service.name() == ADMIN).flat_map(|service| &service.method);
    let call = |method: &MethodDescriptorProto| {
        let name = method.name();
        format!(
            "impl crate::AdminCall for {name}Request {{\n    type Answer = {name}Response;\n    \
             const PATH: &'static str = \"/forebay.v1.{ADMIN}/{name}\";\n\n    \
             fn encoded(&self) -> ::prost::bytes::Bytes {{\n        \
             ::prost::Message::encode_to_vec(self).into()\n    }}\n\n    \
             fn decoded(answer: ::prost::bytes::Bytes) -> Result<{name}Response, tonic::Status> {{\n        \
             crate::admin_call::read(answer)\n    }}\n}}\n"
        )
    };
    methods.map(call).collect()
}
