//! Which folder of the engine may import from which; the table is in `folder_table.rs`.

use std::collections::BTreeSet;

use super::{
    finding::Finding,
    folder_table::{ENGINE, Rows, Table},
    imports::{Import, Target, imports},
    tree::Tree,
};

/// The library that the table is about.
const LIBRARY: &str = "crates/engine/src/lib.rs";

/// The file with the table, for those who are told to change it.
const TABLE: &str = "crates/xtask/src/tidy/folder_table.rs";

/// The engine's folders import from each other only as the table says. Unit tests are free.
pub fn check(tree: &Tree, targets: &[Target]) -> Vec<Finding> {
    let root = tree.source(LIBRARY.as_ref());
    let library = targets.iter().find(|target| Some(target.root) == root);
    let Some(target) = library else { return Vec::new() };
    let mut findings = without_row(tree, target);
    for import in imports(&target.modules).iter().filter(|import| !import.only_tests) {
        let importer = target.modules.0[import.from].path.as_slice();
        let parts = named(target, import);
        let (Some(from), Some(to)) = (importer.first(), parts.first()) else { continue };
        let defined = target.modules.0[import.to].path.as_slice();
        let Some(because) = forbidden(&ENGINE, importer, &parts, defined) else { continue };
        let wrong = match because {
            Because::Folder => format!("`{from}` must not import from `{to}`: `{}`", import.written),
            Because::Part => {
                let (part, other) = (&importer[1], &defined[1]);
                format!("`{from}::{part}` must not import from `{from}::{other}`: `{}`", import.written)
            }
        };
        let remedy = format!("move what it needs to where both may see it; the table is in {TABLE}");
        let source = &tree.sources[target.modules.0[import.from].source];
        findings.push(source.finding("folders", import.line, wrong, remedy));
    }
    findings
}

/// The modules at the top that the table does not know.
fn without_row(tree: &Tree, target: &Target) -> Vec<Finding> {
    let modules = &target.modules.0;
    let known = |name: &str| ENGINE.rows.iter().chain(ENGINE.leaves).any(|(row, _)| *row == name);
    let top = modules[0].children.iter().map(|&child| &modules[child]);
    let mut seen = BTreeSet::new();
    let unknown =
        top.filter(|module| !module.only_tests && !known(module.name()) && seen.insert(module.name()));
    let findings = unknown.map(|module| {
        let wrong = format!("the module `{}` is not in the table of the engine's folders", module.name());
        let remedy = format!("move it into one of them, or give it a row in {TABLE}");
        tree.sources[module.source].finding("folders", 1, wrong, remedy)
    });
    findings.collect()
}

/// The path as the table means it: what a re-export at the crate's root names is where it is defined.
fn named(target: &Target, import: &Import) -> Vec<String> {
    let modules = &target.modules.0;
    let at_top = |name: &String| modules[0].children.iter().any(|&child| modules[child].name() == name);
    match import.named.first() {
        Some(first) if at_top(first) => import.named.clone(),
        _ => modules[import.to].path.clone(),
    }
}

/// Part of the table that forbids an import.
#[derive(Debug, PartialEq, Eq)]
enum Because {
    /// The rows.
    Folder,
    /// Parts of one folder are kept apart.
    Part,
}

/// Whether the table forbids that the module at `from` imports what is named `to` and defined at `defined`.
/// A module that the table does not know may import everything: it is itself a finding.
fn forbidden(table: &Table, from: &[String], to: &[String], defined: &[String]) -> Option<Because> {
    let row = |rows: Rows, name: &str| rows.iter().find(|(row, _)| *row == name).map(|(_, it)| *it);
    let (importer, imported) = (from.first()?.as_str(), to.first()?.as_str());
    if importer == imported {
        let exceptions = table.apart.iter().find(|(folder, _)| *folder == importer)?.1;
        let (part, other) = (from.get(1)?, defined.get(1)?);
        let allowed = row(exceptions, part).unwrap_or_default();
        return (part != other && !allowed.contains(&other.as_str())).then_some(Because::Part);
    }
    let own_leaf = row(table.leaves, importer);
    let allowed = own_leaf.or_else(|| row(table.rows, importer))?;
    let to_leaf = own_leaf.is_none() && row(table.leaves, imported).is_some();
    let within = |path: &[String], entry: &str| {
        let entry: Vec<_> = entry.split("::").collect();
        path.len() >= entry.len() && path.iter().zip(&entry).all(|(part, entry)| part == entry)
    };
    // A name that `io` re-exports from `io::reads` is as good as one that is defined there.
    let may = allowed.iter().any(|entry| {
        let folder = entry.split("::").next() == Some(imported);
        folder && (within(to, entry) || within(defined, entry))
    });
    (!may && !to_leaf).then_some(Because::Folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::{fixture::Fixture, imports::targets};

    /// Returns the findings in an engine with the folders of the table and these files.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut fixture = Fixture::new().member("engine", "");
        let lib = "mod api; mod calls; mod clock; mod core; mod dispatch; mod index; mod io; mod planted;\n\
            mod routing; mod shard; pub use api::Settings; pub use core::Core;";
        let usual = [
            ("lib.rs", lib),
            ("api.rs", "pub struct Settings;"),
            (
                "calls/mod.rs",
                "mod ack; mod dedupe; mod enqueue; mod settle; pub use dedupe::Key; pub struct Call;",
            ),
            ("calls/ack.rs", ""),
            ("calls/dedupe.rs", "pub struct Key;"),
            ("calls/enqueue.rs", ""),
            ("calls/settle.rs", "pub struct End;"),
            ("clock.rs", ""),
            ("core.rs", "pub struct Core;"),
            ("dispatch.rs", ""),
            ("index.rs", "pub struct Index;"),
            ("io/mod.rs", "pub mod reads; mod writes; pub use reads::Page; pub use writes::Write;"),
            ("io/reads.rs", "pub struct Page;"),
            ("io/writes.rs", "pub struct Write;"),
            ("planted.rs", ""),
            ("routing.rs", ""),
            ("shard/mod.rs", "pub mod work; pub struct Shard;"),
            ("shard/work.rs", "pub struct Work;"),
        ];
        for (path, text) in usual.iter().chain(files) {
            fixture = fixture.file(&format!("crates/engine/src/{path}"), text);
        }
        let tree = fixture.tree();
        check(&tree, &targets(&tree)).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn an_import_that_is_not_in_the_table_is_found() {
        for (path, text, wrong) in [
            ("dispatch.rs", "use crate::calls::Call;", "`dispatch` must not import from `calls`"),
            ("dispatch.rs", "fn f() { super::calls::Call; }", "`dispatch` must not import from `calls`"),
            ("dispatch.rs", "use crate::io;", "`dispatch` must not import from `io`"),
            ("dispatch.rs", "use crate::io::Write;", "`dispatch` must not import from `io`"),
            ("shard/work.rs", "use crate::Core;", "`shard` must not import from `core`"),
            ("routing.rs", "use crate::shard::Shard;", "`routing` must not import from `shard`"),
            ("index.rs", "use crate::Settings;", "`index` must not import from `api`"),
            ("index.rs", "use crate::clock::now;", "`index` must not import from `clock`"),
            ("calls/ack.rs", "use super::enqueue::X;", "`calls::ack` must not import from `calls::enqueue`"),
            ("calls/ack.rs", "use super::Key;", "`calls::ack` must not import from `calls::dedupe`"),
            ("calls/settle.rs", "use super::ack::X;", "`calls::settle` must not import from `calls::ack`"),
        ] {
            let found = found(&[(path, text)]);
            assert_eq!(found.len(), 1, "{path}: {text}: {found:?}");
            assert!(found[0].starts_with(wrong), "{path}: {text}: {found:?}");
        }
    }

    #[test]
    fn imports_of_the_table_pass() {
        let files = [
            ("dispatch.rs", "use crate::{core::Core, io::reads::Page, Settings, index::Index, planted};"),
            ("core.rs", "use crate::{io::Write, shard::Shard}; pub struct Core;"),
            ("routing.rs", "use crate::shard::work::Work;"),
            ("clock.rs", "use crate::index::Index; pub fn now() {}"),
            ("calls/ack.rs", "use crate::io::Page; use super::{settle::End, Call};"),
            ("calls/enqueue.rs", "use super::dedupe::Key;"),
            (
                "shard/mod.rs",
                "pub mod work; pub struct Shard; #[cfg(test)] mod tests { use crate::calls::Call; }",
            ),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn a_module_without_a_row_is_found() {
        let lib = "mod api; mod helpers;";
        let found = found(&[("lib.rs", lib), ("helpers.rs", "use crate::api::Settings;")]);
        assert_eq!(found, ["the module `helpers` is not in the table of the engine's folders"]);
    }
}
