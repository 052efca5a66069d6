//! Where what a path names is defined.

use super::modules::Modules;

/// How many re-exports a path may go through.
const DEPTH: usize = 8;

/// Target that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A module, itself.
    Module(usize),
    /// An item that this module defines.
    Item(usize),
}

impl Modules {
    /// Returns the target of a path in the module `from`; none if it leads out of the crate. Where an item
    /// can't be found, as one that a macro makes, it is taken to be in the last module that is named.
    pub fn resolve(&self, from: usize, parts: &[String]) -> Option<Target> {
        self.resolve_within(from, parts, DEPTH)
    }

    /// The path from the root, if it is written with `crate`, `self` or `super`.
    pub fn absolute(&self, from: usize, parts: &[String]) -> Option<Vec<String>> {
        let (start, used) = self.start(from, parts)?;
        Some([self.0[start].path.as_slice(), &parts[used..]].concat())
    }

    /// The module at which a path begins that is written with `crate`, `self` or `super`, and how many parts
    /// say so.
    fn start(&self, from: usize, parts: &[String]) -> Option<(usize, usize)> {
        let mut module = match parts.first()?.as_str() {
            "crate" => return Some((0, 1)),
            "self" | "super" => from,
            _ => return None,
        };
        let mut used = usize::from(parts[0] == "self");
        while parts.get(used).is_some_and(|part| part == "super") {
            module = self.0[module].parent?;
            used += 1;
        }
        Some((module, used))
    }

    fn resolve_within(&self, from: usize, parts: &[String], depth: usize) -> Option<Target> {
        let (mut module, mut used) = match self.start(from, parts) {
            Some(start) => start,
            // Only what the module itself knows by this name; else it is another crate or a local variable.
            None => match self.look_up(from, parts.first()?, parts.len() == 1, depth)? {
                Target::Module(module) => (module, 1),
                item => return Some(item),
            },
        };
        while let Some(part) = parts.get(used) {
            match self.look_up(module, part, used + 1 == parts.len(), depth) {
                Some(Target::Module(next)) => module = next,
                Some(item) => return Some(item),
                None => return Some(Target::Item(module)),
            }
            used += 1;
        }
        Some(Target::Module(module))
    }

    /// Looks up a name in a module. The last name of a path is rather an item than a module.
    fn look_up(&self, module: usize, name: &str, last: bool, depth: usize) -> Option<Target> {
        let depth = depth.checked_sub(1)?;
        let known = &self.0[module];
        let child = known.children.iter().copied().find(|&child| self.0[child].name() == name);
        let child = child.map(Target::Module);
        if !last && child.is_some() {
            return child;
        }
        if known.items.contains(name) {
            return Some(Target::Item(module));
        }
        let brought = known.brought.iter().filter(|brought| brought.name.as_deref() == Some(name));
        // A `use` of a name that is itself in scope, as `use rand;`, would lead here again.
        let brought = brought.filter(|brought| brought.parts != [name]);
        let mut brought = brought.filter_map(|it| self.resolve_within(module, &it.parts, depth));
        brought.next().or(child).or_else(|| {
            let globs = known.brought.iter().filter(|brought| brought.name.is_none());
            let mut modules =
                globs.filter_map(|glob| match self.resolve_within(module, &glob.parts, depth)? {
                    Target::Module(target) if target != module => Some(target),
                    _ => None,
                });
            modules.find_map(|target| self.look_up(target, name, last, depth))
        })
    }
}
