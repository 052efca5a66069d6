//! The paths that a module names.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    Attribute, ImplItemFn, Item, ItemUse, Macro, Path, UseTree, VisRestricted, Visibility,
    visit::{self, Visit},
};

use super::attributes::{attributes, only_tests};

/// A path as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenPath {
    /// Its parts; without the `*` of a glob.
    pub parts: Vec<String>,
    /// The file's line, from 1.
    pub line: usize,
    /// Whether it passes a name on: a `use` with a visibility.
    pub passed_on: bool,
    /// Whether only tests name it.
    pub only_tests: bool,
}

/// Name that one `use` brings in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedName {
    /// The name by which it is known; none for a glob.
    pub name: Option<String>,
    /// The path.
    pub parts: Vec<String>,
    /// The file's line, from 1.
    pub line: usize,
    /// Whether it is passed on: the `use` has a visibility.
    pub passed_on: bool,
}

/// Returns the names that a `use` brings in; none if it names another crate by `::`.
pub fn brought(item: &ItemUse) -> Vec<ImportedName> {
    let mut all = Vec::new();
    if item.leading_colon.is_none() {
        flatten(&item.tree, &[], is_visible(&item.vis), &mut all);
    }
    all
}

fn flatten(tree: &UseTree, before: &[String], passed_on: bool, all: &mut Vec<ImportedName>) {
    let with = |last: &dyn ToString| {
        let mut parts = before.to_vec();
        parts.push(last.to_string());
        parts
    };
    // `use a::{self}` names `a`.
    let whole = |parts: Vec<String>| match parts.split_last() {
        Some((last, rest)) if last == "self" && !rest.is_empty() => rest.to_vec(),
        _ => parts,
    };
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &with(&path.ident), passed_on, all),
        UseTree::Group(group) => group.items.iter().for_each(|item| flatten(item, before, passed_on, all)),
        UseTree::Glob(glob) => {
            let line = line(glob.star_token.span);
            all.push(ImportedName { name: None, parts: before.to_vec(), line, passed_on });
        }
        UseTree::Name(name) => {
            let parts = whole(with(&name.ident));
            let line = line(name.ident.span());
            all.push(ImportedName { name: parts.last().cloned(), parts, line, passed_on });
        }
        UseTree::Rename(rename) => {
            let name = Some(rename.rename.to_string());
            let line = line(rename.ident.span());
            all.push(ImportedName { name, parts: whole(with(&rename.ident)), line, passed_on });
        }
    }
}

fn line(span: Span) -> usize {
    span.start().line
}

/// Whether the visibility passes a name on to other files.
pub fn is_visible(visibility: &Visibility) -> bool {
    match visibility {
        Visibility::Public(_) => true,
        Visibility::Restricted(restricted) => !restricted.path.is_ident("self"),
        Visibility::Inherited => false,
    }
}

/// Every path that the items name, but for those in modules among them.
pub fn named(items: &[Item], only_tests: bool) -> Vec<WrittenPath> {
    let mut collector = Collector { named: Vec::new(), only_tests };
    items.iter().for_each(|item| collector.visit_item(item));
    collector.named
}

struct Collector {
    named: Vec<WrittenPath>,
    only_tests: bool,
}

impl Collector {
    fn add(&mut self, parts: Vec<String>, line: usize) {
        self.named.push(WrittenPath { parts, line, passed_on: false, only_tests: self.only_tests });
    }

    /// Visits something that stands under these attributes.
    fn under(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        let before = self.only_tests;
        self.only_tests |= only_tests(attributes);
        visit(self);
        self.only_tests = before;
    }

    /// The paths among the tokens of a macro: two names or more, with `::` between them.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut begin, mut colons, mut foreign) = (0, 0, false);
        for token in tokens {
            match &token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(ident) if colons == 2 && !path.is_empty() => path.push(ident.to_string()),
                TokenTree::Ident(ident) => {
                    self.end(&mut path, begin);
                    // `$crate::a` and `::a` begin elsewhere.
                    let elsewhere = foreign || colons == 2;
                    begin = line(ident.span());
                    path = if elsewhere { Vec::new() } else { vec![ident.to_string()] };
                }
                TokenTree::Group(group) => {
                    self.end(&mut path, begin);
                    self.tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => self.end(&mut path, begin),
            }
            foreign = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '$');
            colons = 0;
        }
        self.end(&mut path, begin);
    }

    fn end(&mut self, path: &mut Vec<String>, line: usize) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.add(path, line);
        }
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, node: &'ast Item) {
        if !matches!(node, Item::Mod(_)) {
            self.under(attributes(node), |collector| visit::visit_item(collector, node));
        }
    }

    fn visit_impl_item_fn(&mut self, node: &'ast ImplItemFn) {
        self.under(&node.attrs, |collector| visit::visit_impl_item_fn(collector, node));
    }

    fn visit_item_use(&mut self, node: &'ast ItemUse) {
        let only_tests = self.only_tests;
        let named = brought(node).into_iter();
        self.named.extend(named.map(|ImportedName { parts, line, passed_on, .. }| WrittenPath {
            parts,
            line,
            passed_on,
            only_tests,
        }));
    }

    fn visit_path(&mut self, node: &'ast Path) {
        if node.leading_colon.is_none() {
            let parts = node.segments.iter().map(|segment| segment.ident.to_string());
            let line = node.segments.first().map_or(1, |segment| line(segment.ident.span()));
            self.add(parts.collect(), line);
        }
        visit::visit_path(self, node);
    }

    fn visit_macro(&mut self, node: &'ast Macro) {
        self.visit_path(&node.path);
        self.tokens(node.tokens.clone());
    }

    /// `pub(in crate::a)` imports nothing.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}

    /// Attributes are other crates' macros.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let named = named(&syn::parse_file(text).unwrap().items, false);
        named.into_iter().map(|named| named.parts.join("::")).collect()
    }

    #[test]
    fn a_use_names_all_its_leaves() {
        let text = "use crate::{a::{self, B}, c::*, d::E as F};";
        assert_eq!(paths(text), ["crate::a", "crate::a::B", "crate::c", "crate::d::E"]);
        let item = syn::parse_str(text).unwrap();
        let names: Vec<_> = brought(&item).into_iter().map(|brought| brought.name).collect();
        assert_eq!(names, [Some("a".to_owned()), Some("B".to_owned()), None, Some("F".to_owned())]);
        assert!(paths("use ::tokio::spawn;").is_empty());
    }

    #[test]
    fn paths_are_found_in_types_calls_and_macros() {
        let text =
            "fn f(a: super::A) { crate::b::c(); assert!(x.y == crate::d::E && $crate::f::G, h::I { j }) }";
        assert_eq!(paths(text), ["super::A", "crate::b::c", "assert", "crate::d::E", "h::I"]);
        assert!(paths("pub(in crate::a) struct A;").is_empty());
    }

    #[test]
    fn what_tests_alone_name_is_marked() {
        let text = "#[cfg(test)] use crate::a::A; use crate::b::B; pub use crate::c::C;";
        let named = named(&syn::parse_file(text).unwrap().items, false);
        let marks: Vec<_> = named.iter().map(|named| (named.only_tests, named.passed_on)).collect();
        assert_eq!(marks, [(true, false), (false, false), (false, true)]);
    }
}
