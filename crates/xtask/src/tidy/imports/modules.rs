//! The modules of one target, by following its `mod` declarations.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use syn::{Expr, ExprLit, Item, ItemMod, Lit, Meta};

use super::{
    attributes::only_tests,
    paths::{ImportedName, WrittenPath, brought, named},
};
use crate::tidy::tree::Tree;

/// The modules of one target; the first one is its root.
pub struct Modules(pub Vec<Module>);

/// A file, or a part of one in braces.
#[derive(Default)]
pub struct Module {
    /// The names from the root down.
    pub path: Vec<String>,
    /// The file: a place in the tree's sources.
    pub source: usize,
    /// The module in which it is declared.
    pub parent: Option<usize>,
    /// Whether it is there in tests alone.
    pub only_tests: bool,
    /// The modules that it declares.
    pub children: Vec<usize>,
    /// The other items that it defines.
    pub items: HashSet<String>,
    /// Names that its `use` declarations bring in.
    pub brought: Vec<ImportedName>,
    /// Every path that it names.
    pub named: Vec<WrittenPath>,
}

impl Module {
    /// The last name of its path; empty for the root.
    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }
}

impl Modules {
    /// The modules of the target that begins at the file `root`.
    pub fn of(tree: &Tree, root: usize) -> Self {
        let mut modules = Self(Vec::new());
        let folder = tree.sources[root].path.parent().unwrap_or(Path::new("")).to_owned();
        modules.add_file(tree, Module { source: root, ..Module::default() }, folder);
        modules
    }

    /// Adds a file and what it declares; the files of its modules are in `folder`.
    fn add_file(&mut self, tree: &Tree, mut module: Module, folder: PathBuf) -> Option<usize> {
        let syntax = tree.sources[module.source].syntax.as_ref().ok()?;
        module.only_tests |= only_tests(&syntax.attrs);
        Some(self.add(tree, module, &syntax.items, folder))
    }

    fn add(&mut self, tree: &Tree, mut module: Module, items: &[Item], folder: PathBuf) -> usize {
        module.named = named(items, module.only_tests);
        for item in items {
            match item {
                Item::Use(item) => module.brought.extend(brought(item)),
                item => module.items.extend(name(item)),
            }
        }
        self.0.push(module);
        let place = self.0.len() - 1;
        for item in items {
            if let Item::Mod(item) = item
                && let Some(child) = self.add_child(tree, place, item, &folder)
            {
                self.0[place].children.push(child);
            }
        }
        place
    }

    fn add_child(&mut self, tree: &Tree, parent: usize, item: &ItemMod, folder: &Path) -> Option<usize> {
        let name = item.ident.to_string();
        let declarer = &self.0[parent];
        let mut module = Module {
            path: [declarer.path.as_slice(), std::slice::from_ref(&name)].concat(),
            source: declarer.source,
            parent: Some(parent),
            only_tests: declarer.only_tests || only_tests(&item.attrs),
            ..Module::default()
        };
        if let Some((_, items)) = &item.content {
            return Some(self.add(tree, module, items, folder.join(name)));
        }
        let (path, folder) = match moved(item) {
            Some(path) => {
                let path = tree.sources[declarer.source].path.parent()?.join(path);
                let folder = path.parent()?.to_owned();
                (path, folder)
            }
            None => {
                let inner = folder.join(&name);
                let own = folder.join(format!("{name}.rs"));
                let path = if tree.source(&own).is_some() { own } else { inner.join("mod.rs") };
                (path, inner)
            }
        };
        module.source = tree.source(&path)?;
        self.add_file(tree, module, folder)
    }
}

/// Where a declaration with `#[path = ..]` says its file is.
fn moved(item: &ItemMod) -> Option<String> {
    let values = item.attrs.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("path") => Some(&meta.value),
        _ => None,
    });
    let mut paths = values.filter_map(|value| match value {
        Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
        _ => None,
    });
    paths.next()
}

/// The name that an item gives itself, if it is neither a module nor a `use`.
fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
