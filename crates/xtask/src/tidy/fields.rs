//! Fields of structs that other files see say what they are.

use syn::{
    Field, Fields, ImplItemFn, Item, ItemStruct,
    visit::{self, Visit},
};

use super::{
    finding::Finding,
    imports::{Target, attributes, files_of_tests, is_visible, only_tests},
    tree::Tree,
};

/// Every named field of a struct that is visible outside of its file has a doc comment. Unit tests are free.
pub fn check(tree: &Tree, targets: &[Target]) -> Vec<Finding> {
    let of_tests = files_of_tests(targets);
    let of_tests: Vec<_> = of_tests.into_iter().map(|source| tree.sources[source].path.as_path()).collect();
    let mut findings = Vec::new();
    for (source, syntax) in tree.parsed().filter(|(source, _)| !of_tests.contains(&source.path.as_path())) {
        let mut silent = Silent(Vec::new());
        silent.visit_file(syntax);
        findings.extend(silent.0.into_iter().map(|(name, line)| {
            let wrong = format!("the field `{name}` has no doc comment");
            source.finding("fields", line, wrong, "say with `///` what it holds".to_owned())
        }));
    }
    findings
}

/// Names of structs and fields, and their lines.
struct Silent(Vec<(String, usize)>);

impl<'ast> Visit<'ast> for Silent {
    fn visit_item(&mut self, node: &'ast Item) {
        if !only_tests(attributes(node)) {
            visit::visit_item(self, node);
        }
    }

    fn visit_impl_item_fn(&mut self, node: &'ast ImplItemFn) {
        if !only_tests(&node.attrs) {
            visit::visit_impl_item_fn(self, node);
        }
    }

    fn visit_item_struct(&mut self, node: &'ast ItemStruct) {
        if let Fields::Named(fields) = &node.fields
            && is_visible(&node.vis)
        {
            let silent = fields.named.iter().filter(|field| !is_documented(field));
            let named = silent.filter_map(|field| field.ident.as_ref());
            self.0.extend(named.map(|name| (format!("{}::{name}", node.ident), name.span().start().line)));
        }
    }
}

fn is_documented(field: &Field) -> bool {
    field.attrs.iter().any(|attribute| attribute.path().is_ident("doc"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::{fixture::Fixture, imports::targets};

    fn found(tree: &Tree) -> Vec<String> {
        check(tree, &targets(tree)).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn a_silent_field_of_a_visible_struct_is_found() {
        for visibility in ["pub", "pub(crate)", "pub(super)", "pub(in crate::a)"] {
            let text =
                format!("{visibility} struct A {{\n    /// One.\n    pub one: u8,\n    two: u8,\n}}\n");
            let tree = Fixture::of(&text);
            assert_eq!(found(&tree), ["the field `A::two` has no doc comment"], "{visibility}");
            assert_eq!(check(&tree, &[])[0].line, Some(4));
        }
    }

    #[test]
    fn private_structs_tuples_enums_and_tests_are_free() {
        let text = "struct A { a: u8 }\npub(self) struct B { b: u8 }\npub struct C(u8);\n\
            pub enum D { E { e: u8 } }\n#[cfg(test)]\nmod tests { pub struct F { f: u8 } }\n\
            pub struct G {\n/// G.\ng: u8 }\n";
        assert!(found(&Fixture::of(text)).is_empty());
    }

    #[test]
    fn the_file_of_a_module_of_tests_is_free() {
        let tree = Fixture::new()
            .member("a", "")
            .file("crates/a/src/lib.rs", "#[cfg(test)] mod tests; mod code;")
            .file("crates/a/src/tests.rs", "pub struct F { f: u8 }")
            .file("crates/a/src/code.rs", "pub struct G { g: u8 }")
            .tree();
        assert_eq!(found(&tree), ["the field `G::g` has no doc comment"]);
    }
}
