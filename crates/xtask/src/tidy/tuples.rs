//! Each argument of a function is a parameter.

use syn::{
    FnArg, ImplItemFn, Item, Pat, PatType, Signature, TraitItemFn,
    spanned::Spanned as _,
    visit::{self, Visit},
};

use super::{
    code_lines::ships,
    finding::Finding,
    imports::{Target, attributes, files_of_tests, only_tests},
    tree::Tree,
};

/// No function of a crate that ships takes two arguments as one parameter. For clippy such a tuple is one of
/// the seven that a function may have; for a reader it is not.
///
/// The only parameter besides `self` may be a tuple: it is an item of a map or of two lists. Unit tests are
/// free.
pub fn check(tree: &Tree, targets: &[Target]) -> Vec<Finding> {
    let of_tests = files_of_tests(targets);
    let of_tests: Vec<_> = of_tests.into_iter().map(|source| tree.sources[source].path.as_path()).collect();
    let mut findings = Vec::new();
    for (source, syntax) in tree.parsed() {
        if !ships(&tree.members[source.member].folder) || of_tests.contains(&source.path.as_path()) {
            continue;
        }
        let mut found = Tuples(Vec::new());
        found.visit_file(syntax);
        findings.extend(found.0.into_iter().map(|Tuple { function, names, line }| {
            let wrong = format!("the function `{function}` takes ({}) as one parameter", names.join(", "));
            let remedy = "make each a parameter, or give them a struct with a name".to_owned();
            source.finding("tuples", line, wrong, remedy)
        }));
    }
    findings
}

/// A parameter that is a tuple.
struct Tuple {
    function: String,
    names: Vec<String>,
    line: usize,
}

/// The parameters that are tuples.
struct Tuples(Vec<Tuple>);

impl Tuples {
    fn see(&mut self, signature: &Signature) {
        let parameters: Vec<_> = signature.inputs.iter().filter_map(typed).collect();
        for parameter in parameters.iter().filter(|_| parameters.len() > 1) {
            let mut names = Names(Vec::new());
            if let Pat::Tuple(tuple) = &*parameter.pat {
                names.visit_pat_tuple(tuple);
            }
            if names.0.len() > 1 {
                let (function, line) = (signature.ident.to_string(), parameter.span().start().line);
                self.0.push(Tuple { function, names: names.0, line });
            }
        }
    }
}

impl<'ast> Visit<'ast> for Tuples {
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

    fn visit_trait_item_fn(&mut self, node: &'ast TraitItemFn) {
        if !only_tests(&node.attrs) {
            visit::visit_trait_item_fn(self, node);
        }
    }

    fn visit_signature(&mut self, node: &'ast Signature) {
        self.see(node);
        visit::visit_signature(self, node);
    }
}

/// The parameter, unless it is `self`.
fn typed(parameter: &FnArg) -> Option<&PatType> {
    match parameter {
        FnArg::Typed(parameter) => Some(parameter),
        FnArg::Receiver(_) => None,
    }
}

/// The names that a pattern binds.
struct Names(Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, node: &'ast syn::PatIdent) {
        self.0.push(node.ident.to_string());
        visit::visit_pat_ident(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::{fixture::Fixture, imports::targets};

    fn found(tree: &Tree) -> Vec<Finding> {
        check(tree, &targets(tree))
    }

    #[test]
    fn a_tuple_among_parameters_is_found_wherever_the_function_stands() {
        let function = "fn f(a: A,\n(b, mut c): (B, C)) {}\n";
        for text in [
            function.to_owned(),
            format!("mod m {{\n{function}}}\n"),
            format!("impl A {{\n{function}}}\n"),
            format!("trait A {{\n{function}}}\n"),
            format!("fn g() {{\n{function}}}\n"),
            "fn f((b, (_, c)): (B, (D, C)), a: A) {}\n".to_owned(),
            "impl A {\nfn f(&self, a: A, (b, c): Alias) {}\n}\n".to_owned(),
        ] {
            let findings = found(&Fixture::of(&text));
            assert_eq!(findings.len(), 1, "{text}");
            assert_eq!(findings[0].wrong, "the function `f` takes (b, c) as one parameter");
        }
        assert_eq!(found(&Fixture::of(function))[0].line, Some(2));
    }

    #[test]
    fn an_item_a_closure_one_name_a_whole_tuple_and_tests_pass() {
        let text = "fn a((b, c): (B, C)) {}\nimpl A { fn a(&self, (b, c): (B, C)) {} }\n\
            fn d() { e.fold(0, |a, (b, c)| a + b + c); }\nfn f(a: A, (b, _): (B, C), c: (D, E)) {}\n\
            #[cfg(test)]\nmod tests { fn a(a: A, (b, c): (B, C)) {} }\n";
        assert!(found(&Fixture::of(text)).is_empty());
    }

    #[test]
    fn tools_and_files_of_tests_are_free() {
        let text = "fn f(a: A, (b, c): (B, C)) {}\n";
        let tree = Fixture::new()
            .member("a", "")
            .member("xtask", "")
            .file("crates/a/src/lib.rs", "#[cfg(test)] mod tests; mod code;")
            .file("crates/a/src/tests.rs", text)
            .file("crates/a/src/code.rs", text)
            .file("crates/xtask/src/lib.rs", text)
            .tree();
        let found: Vec<_> = found(&tree).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["crates/a/src/code.rs"]);
    }
}
