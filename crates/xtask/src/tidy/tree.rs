//! The workspace as the rules see it: its members, and their files, each read and parsed once.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use super::{
    finding::Finding,
    manifest::{Member, members},
};

/// Mark in the first line of a generated file.
const GENERATED: &str = "@generated";

/// Where generated files may be. Elsewhere the mark changes nothing.
const GENERATED_BELOW: &str = "crates/proto/";

/// The workspace below one folder.
pub struct Tree {
    /// The crates, by name.
    pub members: Vec<Member>,
    /// The files of all members, by path.
    pub sources: Vec<Source>,
    /// Files of Rust that are of no member.
    strays: Vec<PathBuf>,
}

/// One file of Rust.
pub struct Source {
    /// As seen from the tree's root.
    pub path: PathBuf,
    /// The place of its crate in [`Tree::members`].
    pub member: usize,
    /// Its text.
    pub text: String,
    /// The same, parsed; what is wrong if it is not Rust.
    pub syntax: Result<syn::File, syn::Error>,
    /// Whether it was written by a program.
    pub generated: bool,
}

impl Source {
    /// Something that a rule has found in this file.
    pub fn finding(&self, rule: &'static str, line: usize, wrong: String, remedy: String) -> Finding {
        Finding { path: self.path.display().to_string(), line: Some(line), rule, wrong, remedy }
    }
}

impl Tree {
    /// Reads the workspace at `root`.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        let members = members(root)?;
        let mut sources = Vec::new();
        for (member, Member { folder, .. }) in members.iter().enumerate() {
            for path in files(root, folder)? {
                let text = fs::read_to_string(root.join(&path));
                let text = text.with_context(|| format!("{} can't be read", path.display()))?;
                let marked = text.lines().next().is_some_and(|line| line.contains(GENERATED));
                let generated = marked && path.starts_with(GENERATED_BELOW);
                sources.push(Source { syntax: syn::parse_file(&text), path, member, text, generated });
            }
        }
        sources.sort_by(|a, b| a.path.cmp(&b.path));
        let mut tree = Self { members, sources, strays: Vec::new() };
        tree.strays =
            files(root, Path::new(""))?.into_iter().filter(|path| tree.source(path).is_none()).collect();
        Ok(tree)
    }

    /// The files that people write.
    pub fn written(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().filter(|source| !source.generated)
    }

    /// The same, parsed. What can't be parsed is left to [`Tree::check`].
    pub fn parsed(&self) -> impl Iterator<Item = (&Source, &syn::File)> {
        self.written().filter_map(|source| Some((source, source.syntax.as_ref().ok()?)))
    }

    /// The file at `path`.
    pub fn source(&self, path: &Path) -> Option<usize> {
        self.sources.binary_search_by(|source| source.path.as_path().cmp(path)).ok()
    }

    /// Every file is Rust, and of a crate.
    pub fn check(&self) -> Vec<Finding> {
        let stray = self.strays.iter().map(|path| Finding {
            path: path.display().to_string(),
            line: None,
            rule: "stray",
            wrong: "is of no crate, so nothing builds it".to_owned(),
            remedy: "delete it, or move it into one".to_owned(),
        });
        let broken = self.written().filter_map(|source| {
            let error = source.syntax.as_ref().err()?;
            let line = error.span().start().line;
            let wrong = format!("can't be parsed: {error}");
            Some(source.finding("syntax", line, wrong, "write it so that it compiles".to_owned()))
        });
        broken.chain(stray).collect()
    }
}

/// The Rust files below a folder, but for build output and hidden folders.
fn files(root: &Path, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let name = entry.file_name();
        let hidden = name.to_string_lossy().starts_with('.');
        if entry.file_type()?.is_dir() {
            if !hidden && name != "target" {
                files.extend(self::files(root, &path)?);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use crate::tidy::fixture::Fixture;

    #[test]
    fn build_output_is_not_read() {
        let tree = Fixture::new()
            .member("a", "")
            .file("crates/a/src/lib.rs", "//! A.\n")
            .file("crates/a/target/debug/x.rs", "")
            .tree();
        assert_eq!(tree.sources.len(), 1);
        assert!(tree.check().is_empty());
    }

    #[test]
    fn generated_files_are_known_by_their_mark_and_place() {
        let tree = Fixture::new()
            .member("a", "")
            .member("proto", "")
            .file("crates/a/src/lib.rs", "// @generated\n")
            .file("crates/proto/src/v1.rs", "// This file is @generated by prost-build.\n")
            .file("crates/proto/src/lib.rs", "//! Names @generated.\n")
            .file("crates/proto/src/by_hand.rs", "//! By hand.\n")
            .tree();
        let generated: Vec<_> = tree.sources.iter().filter(|source| source.generated).collect();
        assert!(generated.iter().any(|source| source.path.ends_with("v1.rs")));
        assert!(!generated.iter().any(|source| source.path.ends_with("by_hand.rs")));
        assert!(!generated.iter().any(|source| source.path.starts_with("crates/a")));
    }

    #[test]
    fn a_file_of_no_crate_is_found() {
        let tree = Fixture::new()
            .member("a", "")
            .file("crates/a/src/lib.rs", "//! A.\n")
            .file("left.rs", "fn left() {}\n")
            .tree();
        let found: Vec<String> = tree.check().iter().map(ToString::to_string).collect();
        assert_eq!(found, ["left.rs: is of no crate, so nothing builds it; delete it, or move it into one"]);
    }

    #[test]
    fn what_is_not_rust_is_found() {
        let tree = Fixture::new().member("a", "").file("crates/a/src/lib.rs", "//! A.\nfn {\n").tree();
        assert_eq!(tree.check()[0].line, Some(2));
    }
}
