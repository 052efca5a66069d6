//! Which crate may depend on which.

use super::{
    finding::Finding,
    manifest::{Dependency, Member, Section},
    tree::Tree,
};

/// The table: a crate of the workspace, and those of the workspace that its `[dependencies]` may name. A row
/// is needed for each crate. The code map in `docs/ARCHITECTURE.md` shows the same.
const ROWS: &[(&str, &[&str])] = &[
    ("forebay-types", &[]),
    ("forebay-proto", &["forebay-types"]),
    ("forebay-access", &["forebay-types"]),
    ("forebay-store", &["forebay-types"]),
    ("forebay-cluster", &["forebay-types", "forebay-store"]),
    ("forebay-engine", &["forebay-types", "forebay-store"]),
    ("forebay-front", &["forebay-types", "forebay-engine"]),
    ("forebay-membership", &["forebay-types", "forebay-store", "forebay-cluster", "forebay-engine"]),
    (
        "forebay-edge",
        &["forebay-types", "forebay-access", "forebay-store", "forebay-engine", "forebay-proto"],
    ),
    (
        "forebay-config",
        &["forebay-types", "forebay-access", "forebay-store", "forebay-engine", "forebay-edge"],
    ),
    (
        "forebay-peers",
        &[
            "forebay-types",
            "forebay-store",
            "forebay-engine",
            "forebay-front",
            "forebay-membership",
            "forebay-proto",
            "forebay-edge",
            "forebay-config",
        ],
    ),
    (
        "forebay-operators",
        &[
            "forebay-types",
            "forebay-access",
            "forebay-store",
            "forebay-engine",
            "forebay-membership",
            "forebay-proto",
            "forebay-edge",
            "forebay-config",
            "forebay-peers",
        ],
    ),
    (
        "forebay-web",
        &[
            "forebay-types",
            "forebay-access",
            "forebay-store",
            "forebay-engine",
            "forebay-membership",
            "forebay-proto",
            "forebay-edge",
            "forebay-config",
            "forebay-peers",
            "forebay-operators",
        ],
    ),
    (
        "forebay-node",
        &[
            "forebay-types",
            "forebay-access",
            "forebay-engine",
            "forebay-front",
            "forebay-membership",
            "forebay-proto",
            "forebay-edge",
            "forebay-config",
            "forebay-peers",
            "forebay-operators",
            "forebay-web",
        ],
    ),
    ("forebay-client", &["forebay-types", "forebay-proto"]),
    (
        "forebay",
        &[
            "forebay-types",
            "forebay-access",
            "forebay-proto",
            "forebay-edge",
            "forebay-config",
            "forebay-operators",
            "forebay-web",
            "forebay-node",
            "forebay-client",
        ],
    ),
    // Not in the binary.
    ("forebay-codegen", &[]),
    ("forebay-model", &["forebay-types", "forebay-store", "forebay-cluster", "forebay-engine"]),
    ("forebay-fuzz", &["forebay-types", "forebay-store", "forebay-peers", "forebay-node"]),
    ("forebay-servers", &[]),
    (
        "forebay-testkit",
        &[
            "forebay-types",
            "forebay-store",
            "forebay-engine",
            "forebay-front",
            "forebay-membership",
            "forebay-servers",
        ],
    ),
    (
        "forebay-bench",
        &["forebay-types", "forebay-store", "forebay-engine", "forebay-proto", "forebay-servers"],
    ),
    ("forebay-tests", &[]),
    ("xtask", &["forebay-servers"]),
];

/// The file with the table, for those who are told to change it.
const TABLE: &str = "crates/xtask/src/tidy/crate_edges.rs";

/// Crates depend on each other only as the table says. What is only for tests is free.
pub fn check(tree: &Tree) -> Vec<Finding> {
    check_against(tree, ROWS)
}

fn check_against(tree: &Tree, rows: &[(&str, &[&str])]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &tree.members {
        let Some((_, allowed)) = rows.iter().find(|(name, _)| *name == member.name) else {
            let wrong = format!("the crate `{}` is not in the table of crates", member.name);
            findings.push(finding(member, 1, wrong, format!("give it a row in {TABLE}")));
            continue;
        };
        let dependencies = member.dependencies.iter().filter(|it| it.section == Section::Normal);
        for Dependency { package, line, .. } in dependencies {
            let ours = tree.members.iter().any(|other| other.name == *package);
            if ours && !allowed.contains(&package.as_str()) {
                let wrong = format!("`{}` must not depend on `{package}`", member.name);
                let remedy = format!("do without it; the table of crates is in {TABLE}");
                findings.push(finding(member, *line, wrong, remedy));
            }
        }
    }
    findings
}

fn finding(member: &Member, line: usize, wrong: String, remedy: String) -> Finding {
    Finding { path: member.manifest(), line: Some(line), rule: "crates", wrong, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    const TWO: &[(&str, &[&str])] = &[("lower", &[]), ("upper", &["lower"])];

    #[test]
    fn an_edge_that_is_not_in_the_table_is_found() {
        let tree = Fixture::new()
            .member("lower", "[dependencies]\nserde = \"1\"\nupper = { path = \"../upper\" }\n")
            .member("upper", "")
            .member("third", "")
            .tree();
        let findings: Vec<_> = check_against(&tree, TWO).iter().map(|it| it.wrong.clone()).collect();
        let third = "the crate `third` is not in the table of crates";
        assert_eq!(findings, ["`lower` must not depend on `upper`", third]);
        assert_eq!(check_against(&tree, TWO)[0].line, Some(5));
    }

    #[test]
    fn a_renamed_edge_is_found() {
        let tree = Fixture::new()
            .workspace_dependency("u = { path = \"crates/upper\", package = \"upper\" }")
            .member("lower", "[dependencies]\nu.workspace = true\n")
            .member("upper", "")
            .tree();
        assert_eq!(check_against(&tree, TWO).len(), 1);
    }

    #[test]
    fn edges_of_the_table_and_those_of_tests_pass() {
        let tree = Fixture::new()
            .member("lower", "[dev-dependencies]\nupper = { path = \"../upper\" }\n")
            .member("upper", "[dependencies]\nlower = { path = \"../lower\" }\n")
            .tree();
        assert!(check_against(&tree, TWO).is_empty());
    }
}
