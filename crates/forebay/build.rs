//! Finds the commit that the program is built from, for `--version`. Without git there is none.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let version = match commit(&folder) {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    // `cargo run` hands it to the program, which refuses variables of `FOREBAY_` that it does not know.
    println!("cargo::rustc-env=VERSION_AND_COMMIT={version}");
    println!("cargo::rerun-if-changed=build.rs");
    // Written at each commit and checkout.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&folder, &["rev-parse", "--git-path", file]) {
            let path = folder.join(path);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
}

/// The commit, if the sources are tracked: they may lie unpacked inside of another repository.
fn commit(folder: &Path) -> Option<String> {
    git(folder, &["ls-files", "--error-unmatch", "Cargo.toml"])?;
    git(folder, &["rev-parse", "--short=12", "HEAD"])
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
