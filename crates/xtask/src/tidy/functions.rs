//! Functions are short enough to see at once.

use proc_macro2::Span;
use syn::{
    Block, ImplItemFn, ItemFn, Signature, TraitItemFn,
    visit::{self, Visit},
};

use super::{finding::Finding, tree::Tree};

const LINES: usize = 70;

/// No function is longer than 70 lines, from `fn` to its closing brace. A closure is part of its function.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, syntax) in tree.parsed() {
        let mut long = Long(Vec::new());
        long.visit_file(syntax);
        findings.extend(long.0.into_iter().map(|Function { name, line, lines }| {
            let wrong = format!("the function `{name}` has {lines} lines");
            source.finding("functions", line, wrong, format!("split it into ones of at most {LINES}"))
        }));
    }
    findings
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// The functions that are too long.
struct Long(Vec<Function>);

impl Long {
    fn see(&mut self, signature: &Signature, body: &Block) {
        let first = line(signature.fn_token.span);
        let lines = line(body.brace_token.span.close()) - first + 1;
        if lines > LINES {
            self.0.push(Function { name: signature.ident.to_string(), line: first, lines });
        }
    }
}

impl<'ast> Visit<'ast> for Long {
    fn visit_item_fn(&mut self, node: &'ast ItemFn) {
        self.see(&node.sig, &node.block);
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast ImplItemFn) {
        self.see(&node.sig, &node.block);
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast TraitItemFn) {
        if let Some(body) = &node.default {
            self.see(&node.sig, body);
        }
        visit::visit_trait_item_fn(self, node);
    }
}

fn line(span: Span) -> usize {
    span.start().line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    /// A function of so many lines.
    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    call();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_71_lines_is_found_wherever_it_stands() {
        let function = function(71);
        for text in [
            function.clone(),
            format!("#[cfg(test)]\nmod tests {{\n#[test]\n{function}}}\n"),
            format!("impl A {{\n{function}}}\n"),
            format!("trait A {{\n{function}}}\n"),
            format!("const A: () = {{\n{function}}};\n"),
        ] {
            let findings = check(&Fixture::of(&text));
            assert_eq!(findings.len(), 1, "{text}");
            assert_eq!(findings[0].wrong, "the function `long` has 71 lines");
        }
    }

    #[test]
    fn a_closure_is_part_of_its_function() {
        let closure = format!("    let f = || {{\n{}    }};\n", "        call();\n".repeat(68));
        assert_eq!(check(&Fixture::of(&format!("fn outer() {{\n{closure}}}\n"))).len(), 1);
    }

    #[test]
    fn a_function_of_70_lines_passes() {
        let attributed = format!("/// Does.\n#[inline]\n{}", function(70));
        assert!(check(&Fixture::of(&attributed)).is_empty());
    }
}
