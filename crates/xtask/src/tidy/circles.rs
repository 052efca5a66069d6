//! Files of a crate do not import from each other in circles.

use std::collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry};

use super::{
    finding::Finding,
    imports::{Target, imports},
    tree::Tree,
};

/// A file, and from which others it imports, each with the lines and what they name. Files are places in
/// the tree's sources.
type Graph = BTreeMap<usize, BTreeMap<usize, BTreeSet<(usize, String)>>>;

/// No circle of imports between the files of a target. Neither a `mod` declaration nor a re-export of a
/// module that declares others is an import. Unit tests are free.
///
/// Each circle is named with one import in it: the one named in the fewest places, but rather none from a
/// module to its own parts. Without this one the search goes on, so that all findings together say what to
/// cut.
pub fn check(tree: &Tree, targets: &[Target]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for target in targets {
        let folder = &tree.members[target.member].folder;
        let short = |file: usize| {
            let path = &tree.sources[file].path;
            path.strip_prefix(folder).unwrap_or(path).display().to_string()
        };
        let mut graph = graph(target);
        while let Some(circle) = shortest_circle(&graph) {
            let edges = circle.iter().zip(circle.iter().cycle().skip(1));
            let weakest = edges.min_by_key(|(from, to)| {
                (is_part(target, **from, **to), graph[from][to].len(), short(**from))
            });
            let Some((&from, &to)) = weakest else { break };
            let named = graph.get_mut(&from).and_then(|edges| edges.remove(&to)).unwrap_or_default();
            let start = circle.iter().position(|&file| file == from).unwrap_or_default();
            let files = circle.iter().cycle().skip(start).take(circle.len() + 1);
            let names: Vec<_> = files.map(|&file| short(file)).collect();
            let wrong = format!("imports go in a circle: {}", names.join(" -> "));
            let line = named.first().map_or(1, |(line, _)| *line);
            findings.push(tree.sources[from].finding("circles", line, wrong, remedy(&named)));
        }
    }
    findings
}

fn remedy(named: &BTreeSet<(usize, String)>) -> String {
    let mut paths: Vec<_> = named.iter().map(|(line, path)| format!("`{path}` (line {line})")).collect();
    let more = paths.len().saturating_sub(3);
    paths.truncate(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("look at {}{more}", paths.join(", "))
}

/// Whether the module in the file `inner` is below the one in the file `outer`.
fn is_part(target: &Target, outer: usize, inner: usize) -> bool {
    let path = |file| target.modules.0.iter().find(|module| module.source == file).map(|it| &it.path);
    path(outer).zip(path(inner)).is_some_and(|(outer, inner)| inner.starts_with(outer))
}

fn graph(target: &Target) -> Graph {
    let modules = &target.modules.0;
    let mut graph = Graph::new();
    for import in imports(&target.modules) {
        let (from, to) = (modules[import.from].source, modules[import.to].source);
        if from != to && !import.passed_on && !import.only_tests {
            let named = graph.entry(from).or_default().entry(to).or_default();
            named.insert((import.line, import.written));
        }
    }
    graph
}

/// The files of a circle, each of which imports from the next, and the last one from the first.
fn shortest_circle(graph: &Graph) -> Option<Vec<usize>> {
    graph.keys().filter_map(|&file| circle_of(graph, file)).min_by_key(Vec::len)
}

/// The shortest circle through a file.
fn circle_of(graph: &Graph, file: usize) -> Option<Vec<usize>> {
    let mut importers = BTreeMap::new();
    let mut queue = VecDeque::from([file]);
    while let Some(from) = queue.pop_front() {
        for &to in graph.get(&from).into_iter().flat_map(BTreeMap::keys) {
            if to == file {
                let mut circle = vec![from];
                while let Some(importer) = circle.last().and_then(|file| importers.get(file)) {
                    circle.push(*importer);
                }
                circle.reverse();
                return Some(circle);
            }
            if let Entry::Vacant(importer) = importers.entry(to) {
                importer.insert(from);
                queue.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::{fixture::Fixture, imports::targets};

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut fixture = Fixture::new().member("a", "");
        for (path, text) in files {
            fixture = fixture.file(&format!("crates/a/src/{path}"), text);
        }
        let tree = fixture.tree();
        check(&tree, &targets(&tree)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_is_found_and_its_weakest_import_named() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B;\nuse crate::b::BB;\npub struct A;"),
            ("b.rs", "use crate::c::C;\nuse crate::c::CC;\npub struct B; pub struct BB;"),
            ("c.rs", "\nuse super::a::A;\npub struct C; pub struct CC;"),
        ];
        let text = "crates/a/src/c.rs:2: imports go in a circle: \
            src/c.rs -> src/a.rs -> src/b.rs -> src/c.rs; look at `super::a::A` (line 2)";
        assert_eq!(found(&files), [text]);
    }

    #[test]
    fn two_circles_through_one_file_are_both_found() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::{b::B, c::C}; pub struct A;"),
            ("b.rs", "use crate::a::A; pub struct B;"),
            ("c.rs", "use crate::a::A; pub struct C;"),
        ];
        assert_eq!(found(&files).len(), 2);
    }

    #[test]
    fn a_folder_that_calls_its_part_which_imports_from_the_folder_is_a_circle() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; pub struct A; fn f() { b::f() }"),
            ("a/b.rs", "use super::A; pub fn f() {}"),
        ];
        let found = found(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].ends_with("look at `super::A` (line 1)"), "{found:?}");
    }

    #[test]
    fn declarations_re_exports_and_tests_are_no_imports() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A;"),
            ("a/mod.rs", "mod one; mod two; pub(crate) use one::One; pub struct A;"),
            ("a/one.rs", "use super::A; pub struct One;"),
            ("a/two.rs", "use super::One; use crate::A;"),
            ("b.rs", "#[cfg(test)] mod tests { use crate::c::C; }"),
            ("c.rs", "use crate::b::B; pub struct C;"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }
}
