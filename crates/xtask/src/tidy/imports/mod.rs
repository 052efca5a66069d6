//! Which file of a crate imports from which: the modules of each target, the paths that they name, and where
//! what a path names is defined.

mod attributes;
mod imported;
mod modules;
mod paths;
mod resolve;
mod targets;

pub use attributes::{attributes, only_tests};
pub use imported::{Import, imports};
pub use paths::is_visible;
pub use targets::{Target, files_of_tests, targets};
