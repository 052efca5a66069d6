//! The program `forebay`, for tests that run it.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

/// The path of the program. `cargo xtask test` names it in `FOREBAY_BIN`. Otherwise this builds it.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(path) = std::env::var_os("FOREBAY_BIN") {
            return path.into();
        }
        let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["build", "--package", "forebay", "--message-format", "json-render-diagnostics"])
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "forebay does not build");
        let messages = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
        messages.lines().rev().find_map(executable).expect("cargo names the executable that it built")
    })
}

/// The executable that one of cargo's messages, a line of JSON, names.
fn executable(message: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    Some(PathBuf::from(message.get("executable")?.as_str()?))
}
