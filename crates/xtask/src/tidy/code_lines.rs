//! Lines of code: those that hold more than a comment, without tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Item, spanned::Spanned as _};

use super::tree::{Source, Tree};

/// Crates whose code does not ship.
const TOOLS: &[&str] = &["bench", "codegen", "fuzz", "model", "servers", "testkit", "xtask"];

/// Prints the lines of code of each crate that ships, and their sum.
pub fn print(tree: &Tree) {
    let of_tests = files_of_tests(tree);
    let mut by_crate: BTreeMap<&Path, usize> = BTreeMap::new();
    for source in tree.written().filter(|source| !is_of_tests(&source.path, &of_tests)) {
        *by_crate.entry(&tree.members[source.member].folder).or_default() += count(source);
    }
    by_crate.retain(|folder, _| ships(folder));
    for (folder, lines) in &by_crate {
        println!("{lines:>7}  {}", folder.display());
    }
    println!("{:>7}  all that ships", by_crate.values().sum::<usize>());
}

/// Whether the code of the crate in this folder ships.
pub fn ships(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    folder.starts_with("crates") && !TOOLS.contains(&name)
}

/// The number of lines of a file that hold code, without its inline tests.
pub fn count(source: &Source) -> usize {
    let Ok(syntax) = &source.syntax else { return source.text.lines().count() };
    let mut lines = BTreeSet::new();
    if let Ok(tokens) = source.text.parse() {
        add(tokens, &mut lines);
    }
    for item in syntax.items.iter().filter(|item| is_for_tests(attributes(item))) {
        let span = item.span();
        let first = attributes(item).first().map_or(span, |attribute| attribute.span()).start().line;
        lines.retain(|line| !(first..=span.end().line).contains(line));
    }
    lines.len()
}

/// Adds the lines on which tokens stand, but for those of documentation.
fn add(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if let TokenTree::Punct(punct) = &token
            && punct.as_char() == '#'
        {
            let is_inner =
                |next: &TokenTree| matches!(next, TokenTree::Punct(punct) if punct.as_char() == '!');
            tokens.next_if(is_inner);
            let is_documentation =
                |next: &TokenTree| matches!(next, TokenTree::Group(group) if begins_with_doc(group.stream()));
            if tokens.next_if(is_documentation).is_some() {
                continue;
            }
        }
        let span = token.span();
        match token {
            TokenTree::Group(group) => {
                lines.extend([group.span_open().start().line, group.span_close().end().line]);
                add(group.stream(), lines);
            }
            _ => lines.extend(span.start().line..=span.end().line),
        }
    }
}

fn begins_with_doc(tokens: TokenStream) -> bool {
    matches!(tokens.into_iter().next(), Some(TokenTree::Ident(ident)) if ident == "doc")
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = |attribute: &Attribute| {
            attribute.parse_args::<syn::Path>().is_ok_and(|argument| argument.is_ident("test"))
        };
        attribute.path().is_ident("cfg") && is_test(attribute)
    })
}

/// The files, and folders, of modules that are built for tests alone.
fn files_of_tests(tree: &Tree) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for (source, syntax) in tree.parsed() {
        let folder = match source.path.file_stem().and_then(|stem| stem.to_str()) {
            Some("mod" | "lib" | "main") => source.path.with_file_name(""),
            _ => source.path.with_extension(""),
        };
        for item in &syntax.items {
            if let Item::Mod(module) = item
                && module.content.is_none()
                && is_for_tests(&module.attrs)
            {
                let path = folder.join(module.ident.to_string());
                found.extend([path.with_extension("rs"), path]);
            }
        }
    }
    found
}

/// Whether a file is of tests alone: below such a module, or beside `src`.
fn is_of_tests(path: &Path, of_tests: &BTreeSet<PathBuf>) -> bool {
    let is_aside = |part: &std::ffi::OsStr| ["tests", "benches", "examples"].iter().any(|name| part == *name);
    path.ancestors().any(|folder| of_tests.contains(folder)) || path.iter().any(is_aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    #[test]
    fn comments_blank_lines_and_inline_tests_do_not_count() {
        let used = "//! A.\n\nuse std::fs; // why\n/// B.\n#[derive(Debug)]\n";
        let code = format!("{used}pub struct B {{\n    /// C.\n    c: u8,\n}}");
        let text = format!("{code}\n\n#[cfg(test)]\nmod tests {{\n    fn f() {{}}\n}}\n");
        let tree = Fixture::of(&text);
        assert_eq!(count(&tree.sources[0]), 5);
    }

    #[test]
    fn each_line_of_a_long_string_counts() {
        assert_eq!(count(&Fixture::of("//! A.\nconst A: &str = \"a\nb\nc\";\n").sources[0]), 3);
    }

    #[test]
    fn files_of_modules_for_tests_are_known() {
        let fixture = Fixture::new().member("a", "");
        let fixture = fixture.file("crates/a/src/lib.rs", "//! A.\n#[cfg(test)]\nmod fixture;\nmod b;\n");
        let fixture =
            fixture.file("crates/a/src/fixture.rs", "//! B.\n").file("crates/a/src/b.rs", "//! C.\n");
        let tree = fixture.file("crates/a/tests/c.rs", "//! D.\n").tree();
        let of_tests = files_of_tests(&tree);
        let found = tree.sources.iter().filter(|source| is_of_tests(&source.path, &of_tests));
        let found: Vec<_> = found.map(|source| source.path.display().to_string()).collect();
        assert_eq!(found, ["crates/a/src/fixture.rs", "crates/a/tests/c.rs"]);
    }
}
