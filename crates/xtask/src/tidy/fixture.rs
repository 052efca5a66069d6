//! A small workspace in a folder of its own, for the tests of the rules.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::tree::Tree;

/// The workspace; gone when it is dropped.
pub struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// A workspace without members.
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let manifest = "[workspace]\nmembers = [\"crates/*\"]\n[workspace.dependencies]\n";
        fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
        fs::create_dir(folder.path().join("crates")).unwrap();
        Self { folder }
    }

    /// One crate `a`, whose library is `text`.
    pub fn of(text: &str) -> Tree {
        Self::new().member("a", "").file("crates/a/src/lib.rs", text).tree()
    }

    /// Adds a line to what the members share.
    pub fn workspace_dependency(self, line: &str) -> Self {
        let path = self.folder.path().join("Cargo.toml");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, format!("{text}{line}\n")).unwrap();
        self
    }

    /// Adds a crate `crates/NAME`; `rest` is what its manifest holds from the third line on.
    pub fn member(self, name: &str, rest: &str) -> Self {
        let manifest = format!("[package]\nname = \"{name}\"\n{rest}");
        self.file(&format!("crates/{name}/Cargo.toml"), &manifest)
    }

    /// Adds a file.
    pub fn file(self, path: &str, text: &str) -> Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the tree as the rules see it.
    pub fn tree(&self) -> Tree {
        Tree::read(self.root()).unwrap()
    }
}
