//! The imports between the modules of one target.

use super::{modules::Modules, resolve::Target};

/// A path in one module that leads to another one of the same crate.
#[derive(Debug)]
pub struct Import {
    /// The module that names it.
    pub from: usize,
    /// The module that defines what is named.
    pub to: usize,
    /// The path from the crate's root as it is named; where it is named by a short name, the path of the
    /// module that defines it.
    pub named: Vec<String>,
    /// As it is written.
    pub written: String,
    /// The file's line, from 1.
    pub line: usize,
    /// Whether it only passes a name on: a re-export of a module that declares others.
    pub passed_on: bool,
    /// Whether it is there in tests alone.
    pub only_tests: bool,
}

/// Every import between the modules of a target, those within one file included.
pub fn imports(modules: &Modules) -> Vec<Import> {
    let mut imports = Vec::new();
    for (from, module) in modules.0.iter().enumerate() {
        for named in &module.named {
            if is_said_already(modules, from, &named.parts) {
                continue;
            }
            let to = match modules.resolve(from, &named.parts) {
                Some(Target::Item(module)) => module,
                // A module can't stand alone: a local variable has its name.
                Some(Target::Module(module)) if named.parts.len() > 1 => module,
                Some(Target::Module(module)) if named.parts == ["super"] => module,
                _ => continue,
            };
            let absolute = modules.absolute(from, &named.parts);
            imports.push(Import {
                from,
                to,
                named: absolute.unwrap_or_else(|| modules.0[to].path.clone()),
                written: named.parts.join("::"),
                line: named.line,
                passed_on: named.passed_on && (from == 0 || !module.children.is_empty()),
                only_tests: named.only_tests,
            });
        }
    }
    imports
}

/// Whether a path begins with an item that a `use` of the same module names. The `use` is the import. A
/// re-export is none, and with a module more is to come.
fn is_said_already(modules: &Modules, from: usize, parts: &[String]) -> bool {
    let mut brought = modules.0[from].brought.iter().filter(|brought| !brought.passed_on);
    brought.any(|brought| {
        brought.name == parts.first().cloned()
            && matches!(modules.resolve(from, &brought.parts), Some(Target::Item(_)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    /// `from -> to` for every import between two files.
    fn between(files: &[(&str, &str)]) -> Vec<String> {
        let mut fixture = Fixture::new().member("a", "");
        for (path, text) in files {
            fixture = fixture.file(&format!("crates/a/src/{path}"), text);
        }
        let tree = fixture.tree();
        let root = tree.source("crates/a/src/lib.rs".as_ref()).unwrap();
        let modules = Modules::of(&tree, root);
        let found = imports(&modules).into_iter().filter(|import| {
            modules.0[import.from].source != modules.0[import.to].source && !import.passed_on
        });
        let arrow = |import: Import| {
            format!("{} -> {}", modules.0[import.from].path.join("/"), modules.0[import.to].path.join("/"))
        };
        found.map(arrow).collect()
    }

    #[test]
    fn a_re_export_leads_to_the_file_that_defines_the_item() {
        let lib = "mod api; mod engine; pub use api::Settings;";
        let api = "mod settings; pub use settings::*;";
        let files = [
            ("lib.rs", lib),
            ("api/mod.rs", api),
            ("api/settings.rs", "pub struct Settings;"),
            ("engine.rs", "use crate::Settings;"),
        ];
        assert_eq!(between(&files), ["engine -> api/settings"]);
    }

    #[test]
    fn super_self_and_short_names_are_followed() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod c; mod d; use crate::b; fn f() { c::g(); b::h(); }"),
            ("a/c.rs", "pub fn g() -> super::d::D { super::super::b::h() }"),
            ("a/d.rs", "pub struct D;"),
            ("b.rs", "pub fn h() { tokio::spawn(); }"),
        ];
        let expected = ["a -> b", "a -> a/c", "a -> b", "a/c -> a/d", "a/c -> b"];
        assert_eq!(between(&files), expected);
    }

    #[test]
    fn a_name_that_a_use_brings_is_imported_once_and_one_that_is_passed_on_where_it_is_used() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use b::B; fn f(b: B) {}"),
            ("a.rs", "use crate::b::{self, B}; fn f(b: B) -> B { B::new(); b::C }"),
            ("b.rs", "pub struct B; pub struct C;"),
        ];
        let imports = [" -> b", "a -> b", "a -> b", "a -> b"];
        assert_eq!(between(&files), imports);
    }

    #[test]
    fn what_a_macro_makes_is_taken_to_be_where_it_is_named() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "macro_rules! m { () => {} } m!();"),
            ("b.rs", "fn f(a: crate::a::Made) { vec![crate::a::Made::new()]; }"),
        ];
        assert_eq!(between(&files), ["b -> a", "b -> a"]);
    }

    #[test]
    fn re_exports_in_a_ring_end() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "pub use crate::b::X;"),
            ("b.rs", "pub use crate::a::X;"),
            ("c.rs", "use crate::a::X;"),
        ];
        assert!(between(&files).iter().any(|arrow| arrow.starts_with("c -> ")));
    }
}
