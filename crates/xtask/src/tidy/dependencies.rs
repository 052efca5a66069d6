//! Every dependency is used.

use proc_macro2::{TokenStream, TokenTree};

use super::{
    finding::Finding,
    manifest::{Dependency, Member, Section},
    tree::{Source, Tree},
};

/// Dependencies that no code names, with the reason why they are there: crate, dependency, reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("forebay-proto", "bytes", "the code that is generated names it"),
    ("forebay-proto", "tonic-prost", "the code that is generated names it"),
];

/// Words after which `::a` begins a path.
const BEFORE_A_PATH: &[&str] = &["as", "dyn", "for", "impl", "in", "mut", "return", "use", "where"];

/// The file with the list, for those who are told to change it.
const LIST: &str = "crates/xtask/src/tidy/dependencies.rs";

/// Each entry of `[dependencies]` and `[dev-dependencies]` is named by the crate's code.
pub fn check(tree: &Tree) -> Vec<Finding> {
    check_against(tree, ALLOWED)
}

fn check_against(tree: &Tree, allowed: &[(&str, &str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, member) in tree.members.iter().enumerate() {
        for dependency in &member.dependencies {
            let Dependency { name, section, line, .. } = dependency;
            let excused = allowed.iter().any(|(of, what, _)| *of == member.name && what == name);
            let sources = tree.sources.iter().filter(|source| source.member == index);
            let mut sources = sources.filter(|source| may_use(member, source, *section));
            let ident = name.replace('-', "_");
            if excused || sources.any(|source| names(source, &ident)) {
                continue;
            }
            findings.push(Finding {
                path: member.manifest(),
                line: Some(*line),
                rule: "dependencies",
                wrong: format!("no code names `{name}` of [{}]", section.name()),
                remedy: format!("remove it, or say in {LIST} why it is there"),
            });
        }
    }
    findings
}

/// Whether a file may be why the dependency is there: tests and benchmarks have dependencies of their own.
fn may_use(member: &Member, source: &Source, section: Section) -> bool {
    let below = source.path.strip_prefix(&member.folder).unwrap_or(&source.path);
    section == Section::Dev || !(below.starts_with("tests") || below.starts_with("benches"))
}

/// Whether the code names a crate.
fn names(source: &Source, ident: &str) -> bool {
    source.text.contains(ident) && source.text.parse().is_ok_and(|tokens| any_names(tokens, ident))
}

/// Whether the name begins a path among the tokens, or is part of a `use` or `extern crate`.
fn any_names(tokens: TokenStream, ident: &str) -> bool {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let punct = |place: Option<usize>, character: char| {
        let token = place.and_then(|place| tokens.get(place));
        matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
    };
    let word = |place: Option<usize>, words: &[&str]| {
        let token = place.and_then(|place| tokens.get(place));
        matches!(token, Some(TokenTree::Ident(ident)) if words.iter().any(|word| ident == word))
    };
    tokens.iter().enumerate().any(|(place, token)| match token {
        TokenTree::Group(group) => any_names(group.stream(), ident),
        TokenTree::Ident(found) if found == ident => {
            let before = |back| place.checked_sub(back);
            let begins_path = punct(Some(place + 1), ':') && punct(Some(place + 2), ':');
            // `a::tokio::b` and `T::tokio::b` are not the crate; `::tokio::b` is.
            let joined = punct(before(1), ':') && punct(before(2), ':');
            let before_joint = before(3).and_then(|place| tokens.get(place));
            let goes_on = match before_joint {
                Some(TokenTree::Ident(ident)) => !BEFORE_A_PATH.iter().any(|it| ident == it),
                Some(TokenTree::Punct(punct)) => punct.as_char() == '>',
                _ => false,
            };
            (begins_path && !(joined && goes_on)) || word(before(1), &["use", "crate"])
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    fn found(manifest: &str, files: &[(&str, &str)]) -> Vec<String> {
        let mut fixture = Fixture::new().member("a", manifest);
        for (path, text) in files {
            fixture = fixture.file(&format!("crates/a/{path}"), text);
        }
        let allowed = [("a", "allowed", "switches on a feature")];
        check_against(&fixture.tree(), &allowed).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn a_dependency_that_no_code_names_is_found() {
        let text =
            "// tokio::spawn\nmod x { fn tokio() { let tokio = \"tokio::\"; crate::tokio::f(tokio) } }";
        let found = found("[dependencies]\ntokio = \"1\"\nallowed = \"1\"\n", &[("src/lib.rs", text)]);
        assert_eq!(found, ["no code names `tokio` of [dependencies]"]);
    }

    #[test]
    fn what_only_tests_name_belongs_to_the_dev_dependencies() {
        let files = [("src/lib.rs", ""), ("tests/a.rs", "use rand::random;")];
        assert_eq!(found("[dependencies]\nrand = \"1\"\n", &files).len(), 1);
        assert!(found("[dev-dependencies]\nrand = \"1\"\n", &files).is_empty());
    }

    #[test]
    fn a_dependency_that_is_named_passes() {
        for text in [
            "use prost_types::Any;",
            "use prost_types;",
            "use {std::fs, prost_types::Any};",
            "use ::prost_types::Any;",
            "fn f(a: &dyn ::prost_types::Any) {}",
            "#[prost_types::test] fn f() {}",
            "#[cfg(feature = \"x\")] fn f() { g!(a = prost_types::b()) }",
            "extern crate prost_types;",
        ] {
            let found = found("[dependencies]\nprost-types = \"1\"\n", &[("src/lib.rs", text)]);
            assert!(found.is_empty(), "{text}: {found:?}");
        }
    }
}
