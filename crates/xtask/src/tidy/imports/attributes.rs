//! Whether an item is there in tests alone.

use syn::{Attribute, Item, Meta, Token, parse::Parser as _, punctuated::Punctuated};

/// Whether the attributes leave what they stand on to tests alone.
pub fn only_tests(attributes: &[Attribute]) -> bool {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.filter_map(|attribute| attribute.parse_args::<Meta>().ok()).any(|meta| needs_test(&meta))
}

fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => {
            let parts = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(list.tokens.clone());
            let Ok(parts) = parts else { return false };
            match list.path.get_ident().map(ToString::to_string).as_deref() {
                Some("all") => parts.iter().any(needs_test),
                Some("any") => parts.iter().all(needs_test),
                _ => false,
            }
        }
        Meta::NameValue(_) => false,
    }
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> bool {
        only_tests(attributes(&syn::parse_str(text).unwrap()))
    }

    #[test]
    fn conditions_that_need_tests_are_known() {
        assert!(only("#[cfg(test)] mod a {}"));
        assert!(only("#[cfg(all(unix, test))] fn a() {}"));
        assert!(!only("#[cfg(not(test))] mod a {}"));
        assert!(!only("#[cfg(any(test, feature = \"planted-bugs\"))] mod a {}"));
        assert!(!only("#[test] fn a() {}"));
    }
}
