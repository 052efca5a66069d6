//! `cargo xtask tidy`: rules of the tree that neither rustc nor clippy know. One rule a file.

mod circles;
mod code_lines;
mod crate_edges;
mod dependencies;
mod fields;
mod finding;
#[cfg(test)]
mod fixture;
mod folder_edges;
mod folder_table;
mod functions;
mod imports;
mod length;
mod lines;
mod manifest;
mod nouns;
mod opening;
mod packages;
mod subjects;
mod tree;
mod tuples;
mod words;

use std::path::Path;

use finding::Finding;
use subjects::Subjects;
use tree::Tree;

/// Options of `cargo xtask tidy`.
#[derive(Default, clap::Args)]
pub struct Arguments {
    /// Print the lines of code that ship, by crate, without tests and comments, and check nothing
    #[arg(long)]
    lines: bool,
}

/// Holds the workspace at `root` against every rule and prints what breaks one; says whether nothing does.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<bool> {
    let tree = Tree::read(root)?;
    if arguments.lines {
        code_lines::print(&tree);
        return Ok(true);
    }
    let mut findings = check(&tree);
    findings.extend(packages::check(root)?);
    match subjects::check(root) {
        Subjects::Read(found) => findings.extend(found),
        Subjects::NotThere(why) => println!("tidy: no commit's subject was looked at: {why}"),
    }
    findings.sort();
    // A file may belong to several targets.
    findings.dedup();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {}", summary(&findings));
    Ok(findings.is_empty())
}

/// Returns the findings of all rules in the tree.
fn check(tree: &Tree) -> Vec<Finding> {
    let targets = imports::targets(tree);
    let rules = [
        tree.check(),
        lines::check(tree),
        functions::check(tree),
        tuples::check(tree, &targets),
        length::check(tree),
        opening::check(tree),
        words::check(tree),
        nouns::check(tree),
        fields::check(tree, &targets),
        crate_edges::check(tree),
        folder_edges::check(tree, &targets),
        circles::check(tree, &targets),
        dependencies::check(tree),
    ];
    rules.into_iter().flatten().collect()
}

/// How many findings there are, by rule.
fn summary(findings: &[Finding]) -> String {
    let mut rules: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
    rules.sort_unstable();
    let counts = rules.chunk_by(|a, b| a == b).map(|same| format!("{} {}", same[0], same.len()));
    let counts: Vec<_> = counts.collect();
    match findings.len() {
        0 => "nothing found".to_owned(),
        number => format!("{number} findings ({})", counts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{fixture::Fixture, *};

    #[test]
    fn a_tree_that_breaks_a_rule_fails() {
        let broken = Fixture::new().member("types", "").file("crates/types/src/lib.rs", "fn f() {}\n");
        assert!(!run(broken.root(), &Arguments::default()).unwrap());
    }

    #[test]
    fn a_tree_that_keeps_the_rules_passes() {
        let tidy = Fixture::new()
            .member("forebay-types", "")
            .file("crates/forebay-types/src/lib.rs", "//! Types.\n\nfn f() {}\n");
        assert!(run(tidy.root(), &Arguments::default()).unwrap());
    }

    #[test]
    fn the_summary_counts_by_rule() {
        let tree = Fixture::new().member("x", "").file("crates/x/src/lib.rs", "fn f() {}\n").tree();
        assert_eq!(summary(&check(&tree)), "2 findings (crates 1, opening 1)");
        assert_eq!(summary(&[]), "nothing found");
    }
}
