//! Files of a crate do not import from each other in circles, and neither do its folders.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    path::Path,
};

use super::{
    finding::Finding,
    imports::{Import, Target, imports},
    tree::Tree,
};

/// A file or folder, and from which others it imports, each with the places and what they name.
type Graph = BTreeMap<usize, BTreeMap<usize, BTreeSet<Place>>>;

/// The file of an import, as a place in the tree's sources, its line, and the path that is named.
type Place = (usize, usize, String);

/// No circle of imports between the files of a target, nor between the modules at its top, each with all
/// that is below it. Neither a `mod` declaration nor a re-export of a module that declares others is an
/// import. Unit tests are free.
///
/// Each circle is named with one import in it: the one named in the fewest places, but rather none from a
/// module to its own parts. Without this one the search goes on, so that all findings together say what to
/// cut.
pub fn check(tree: &Tree, targets: &[Target]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for target in targets {
        let folder = &tree.members[target.member].folder;
        let short = |file: usize| {
            let path: &Path = &tree.sources[file].path;
            path.strip_prefix(folder).unwrap_or(path).display().to_string()
        };
        let finding = |what: &str, names: &[String], places: BTreeSet<Place>, remedy: String| {
            let wrong = format!("{what} in a circle: {}", names.join(" -> "));
            let (file, line) = places.first().map_or((target.root, 1), |(file, line, _)| (*file, *line));
            tree.sources[file].finding("circles", line, wrong, remedy)
        };
        let files = circles(files(target), short, |from, to| is_part(target, from, to));
        let files = files.into_iter().map(|(names, places)| {
            let remedy = remedy(&places, |_, line| format!("line {line}"));
            finding("imports go", &names, places, remedy)
        });
        findings.extend(files);
        let folders = circles(folders(target), |top| target.modules.0[top].name().to_owned(), |_, _| false);
        let folders = folders.into_iter().map(|(names, places)| {
            let remedy = remedy(&places, |file, line| format!("{}:{line}", short(file)));
            finding("folders import", &names, places, remedy)
        });
        findings.extend(folders);
    }
    findings
}

/// The circles of a graph: names on the way, and the places of the import at which it is best cut.
fn circles(
    mut graph: Graph,
    name: impl Fn(usize) -> String,
    is_part: impl Fn(usize, usize) -> bool,
) -> Vec<(Vec<String>, BTreeSet<Place>)> {
    let mut found = Vec::new();
    while let Some(circle) = shortest_circle(&graph) {
        let edges = circle.iter().zip(circle.iter().cycle().skip(1));
        let weakest =
            edges.min_by_key(|(from, to)| (is_part(**from, **to), graph[from][to].len(), name(**from)));
        let Some((&from, &to)) = weakest else { break };
        let places = graph.get_mut(&from).and_then(|edges| edges.remove(&to)).unwrap_or_default();
        let start = circle.iter().position(|&it| it == from).unwrap_or_default();
        let names = circle.iter().cycle().skip(start).take(circle.len() + 1).map(|&it| name(it));
        found.push((names.collect(), places));
    }
    found
}

fn remedy(places: &BTreeSet<Place>, place: impl Fn(usize, usize) -> String) -> String {
    let mut paths: Vec<_> =
        places.iter().map(|(file, line, path)| format!("`{path}` ({})", place(*file, *line))).collect();
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

/// The files of a target, as places in the tree's sources.
fn files(target: &Target) -> Graph {
    graph(target, |import| {
        let modules = &target.modules.0;
        Some((modules[import.from].source, modules[import.to].source))
    })
}

/// The modules at the top of a target. What its root itself holds is of none.
fn folders(target: &Target) -> Graph {
    let modules = &target.modules.0;
    let top = |module: usize| {
        let first = modules[module].path.first()?;
        modules[0].children.iter().copied().find(|&child| modules[child].name() == first)
    };
    graph(target, |import| top(import.from).zip(top(import.to)))
}

/// The imports of a target. `ends`: between which of the graph's an import is, if between any.
fn graph(target: &Target, ends: impl Fn(&Import) -> Option<(usize, usize)>) -> Graph {
    let mut graph = Graph::new();
    for import in imports(&target.modules) {
        if let Some((from, to)) = ends(&import)
            && from != to
            && !import.passed_on
            && !import.only_tests
        {
            let places = graph.entry(from).or_default().entry(to).or_default();
            places.insert((target.modules.0[import.from].source, import.line, import.written));
        }
    }
    graph
}

/// The members of a circle, each of which imports from the next, and the last one from the first.
fn shortest_circle(graph: &Graph) -> Option<Vec<usize>> {
    graph.keys().filter_map(|&it| circle_of(graph, it)).min_by_key(Vec::len)
}

/// The shortest circle through a file or folder.
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
        let found = found(&files);
        assert!(found.iter().any(|found| found == text), "{found:?}");
    }

    #[test]
    fn two_circles_through_one_file_are_both_found() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::{b::B, c::C}; pub struct A;"),
            ("b.rs", "use crate::a::A; pub struct B;"),
            ("c.rs", "use crate::a::A; pub struct C;"),
        ];
        let found = found(&files).into_iter().filter(|found| found.contains("imports go in a circle"));
        assert_eq!(found.count(), 2);
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
    fn folders_whose_files_import_from_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "pub mod one; pub mod two;"),
            ("a/one.rs", "use crate::b::B; use crate::b::BB;"),
            ("a/two.rs", "pub struct Two;"),
            ("b/mod.rs", "mod part; pub struct B; pub struct BB;"),
            ("b/part.rs", "\nuse crate::a::two::Two;"),
        ];
        let text = "crates/a/src/b/part.rs:2: folders import in a circle: b -> a -> b; \
            look at `crate::a::two::Two` (src/b/part.rs:2)";
        assert_eq!(found(&files), [text]);
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
