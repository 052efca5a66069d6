//! The targets of the workspace's crates, and their modules.

use std::{collections::HashSet, path::Path};

use super::modules::Modules;
use crate::tidy::{
    manifest::Member,
    tree::{Source, Tree},
};

/// A library, a binary, a test, an example, a benchmark or a build script.
pub struct Target {
    /// The place of its crate in the tree's members.
    pub member: usize,
    /// The file at which it begins: a place in the tree's sources.
    pub root: usize,
    /// Its modules.
    pub modules: Modules,
}

/// Every target of the workspace.
pub fn targets(tree: &Tree) -> Vec<Target> {
    let sources = tree.sources.iter().enumerate();
    let roots = sources.filter(|(_, source)| is_root(&tree.members[source.member], source));
    let targets =
        roots.map(|(root, source)| Target { member: source.member, root, modules: Modules::of(tree, root) });
    targets.collect()
}

/// The files that are there in unit tests alone, as places in the tree's sources.
pub fn files_of_tests(targets: &[Target]) -> HashSet<usize> {
    let modules = || targets.iter().flat_map(|target| &target.modules.0);
    let others: HashSet<_> = modules().filter(|module| !module.only_tests).map(|it| it.source).collect();
    let tests = modules().filter(|module| module.only_tests).map(|module| module.source);
    tests.filter(|source| !others.contains(source)).collect()
}

/// Whether a target begins at this file: its manifest says so, or Cargo takes it for one by its place.
fn is_root(member: &Member, source: &Source) -> bool {
    let below = source.path.strip_prefix(&member.folder);
    let parts = |path: &Path| path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let parts: Vec<String> = below.map(parts).unwrap_or_default();
    let parts: Vec<_> = parts.iter().map(String::as_str).collect();
    let by_place = matches!(
        parts.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "examples" | "benches", _]
            | ["tests" | "examples" | "benches", _, "main.rs"]
    );
    by_place || member.targets.contains(&source.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    #[test]
    fn targets_are_found_by_place_and_by_name() {
        let tree = Fixture::new()
            .member("a", "[lib]\npath = \"lib.rs\"\n[[test]]\nname = \"e2e\"\npath = \"e2e/main.rs\"\n")
            .file("crates/a/lib.rs", "")
            .file("crates/a/e2e/main.rs", "")
            .file("crates/a/e2e/rpc.rs", "")
            .file("crates/a/tests/one.rs", "")
            .file("crates/a/tests/one/part.rs", "")
            .tree();
        let targets = targets(&tree);
        let roots = targets.iter().map(|target| tree.sources[target.root].path.display().to_string());
        let expected = ["crates/a/e2e/main.rs", "crates/a/lib.rs", "crates/a/tests/one.rs"];
        assert_eq!(roots.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_file_is_of_tests_if_no_other_module_declares_it() {
        let tree = Fixture::new()
            .member("a", "")
            .file("crates/a/src/lib.rs", "#[cfg(test)] mod tests; mod code;")
            .file("crates/a/src/tests.rs", "mod deep;")
            .file("crates/a/src/tests/deep.rs", "")
            .file("crates/a/src/code.rs", "")
            .tree();
        let files = files_of_tests(&targets(&tree));
        let mut names: Vec<_> = files.iter().map(|&file| tree.sources[file].path.file_name()).collect();
        names.sort();
        assert_eq!(names, [Some("deep.rs".as_ref()), Some("tests.rs".as_ref())]);
    }
}
