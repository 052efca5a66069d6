//! Names of types are nouns.

use proc_macro2::Ident;
use syn::{
    ItemEnum, ItemStruct, ItemTrait, ItemType,
    visit::{self, Visit},
};

use super::{finding::Finding, tree::Tree};

/// Nouns that look like participles.
const NOUNS: &str = "Bed Deed Feed Need Seed Speed";

/// Participles that do not end in "ed".
const IRREGULAR: &str = "Begun Born Bought Broken Brought Built Caught Chosen Done Drawn Fallen Forgotten \
    Found Frozen Given Gone Grown Held Hidden Kept Known Laid Learnt Left Lent Lost Made Met Paid Proven Ran \
    Said Seen Sent Shown Sold Spent Stuck Taken Thrown Told Undone Woken Written";

/// Present participles that name nothing. Others are nouns: a finding, a listing, a ranking.
const PRESENT: &str = "Asking Checking Counting Exporting Following Hanging Holding Incoming Joining Lasting \
    Leaving Migrating Outgoing Pausing Pending Processing Reading Receiving Reloading Resuming Rolling \
    Running Serving Stopping Waiting Working";

/// The name of a struct, an enum, a trait or a type alias does not end with a participle: it says what the
/// thing is. Variants and associated types are free.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, syntax) in tree.parsed() {
        let mut names = Names(Vec::new());
        names.visit_file(syntax);
        findings.extend(names.0.into_iter().filter(|(name, _)| is_participle(last_word(name))).map(
            |(name, line)| {
                let wrong = format!("the name of the type `{name}` ends with a participle");
                source.finding("nouns", line, wrong, "name what it is, with a noun".to_owned())
            },
        ));
    }
    findings
}

/// Names of types, and their lines.
struct Names(Vec<(String, usize)>);

impl Names {
    fn see(&mut self, name: &Ident) {
        self.0.push((name.to_string(), name.span().start().line));
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_struct(&mut self, node: &'ast ItemStruct) {
        self.see(&node.ident);
        visit::visit_item_struct(self, node);
    }

    fn visit_item_enum(&mut self, node: &'ast ItemEnum) {
        self.see(&node.ident);
        visit::visit_item_enum(self, node);
    }

    fn visit_item_trait(&mut self, node: &'ast ItemTrait) {
        self.see(&node.ident);
        visit::visit_item_trait(self, node);
    }

    fn visit_item_type(&mut self, node: &'ast ItemType) {
        self.see(&node.ident);
        visit::visit_item_type(self, node);
    }
}

/// The last word of a name in camel case.
fn last_word(name: &str) -> &str {
    name.rfind(char::is_uppercase).map_or(name, |start| &name[start..])
}

fn is_participle(word: &str) -> bool {
    let is_of = |list: &str| list.split(' ').any(|of_list| of_list == word);
    word.ends_with("ed") && !is_of(NOUNS) || is_of(IRREGULAR) || is_of(PRESENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    #[test]
    fn a_participle_at_the_end_of_a_name_is_found_wherever_the_type_stands() {
        for text in [
            "\nstruct Measured;\n",
            "\nenum PolicyWritten { A }\n",
            "\ntrait Waiting {}\n",
            "\ntype TopicsSeen = A;\n",
            "mod m {\nstruct Kept<T>(T);\n}\n",
            "fn f() {\nstruct Held;\n}\n",
        ] {
            let findings = check(&Fixture::of(text));
            assert_eq!(findings.len(), 1, "{text}");
            assert_eq!(findings[0].line, Some(2));
        }
        let found = check(&Fixture::of("struct TokenChanged;\n"));
        assert_eq!(found[0].wrong, "the name of the type `TokenChanged` ends with a participle");
    }

    #[test]
    fn nouns_variants_associated_types_and_participles_before_a_noun_pass() {
        let text = "struct StoredItem;\nstruct WaitingPoll;\nstruct Speed;\nstruct Need;\nstruct Finding;\n\
            enum A { Held, Waiting { a: u8 } }\ntrait B { type Known; }\nimpl B for A { type Known = u8; }\n";
        assert!(check(&Fixture::of(text)).is_empty());
    }
}
