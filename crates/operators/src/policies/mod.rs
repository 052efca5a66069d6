//! Policies and settings of topics and namespaces: written into the catalog, from where every node learns of
//! them.

mod book;
mod document;
mod settings;

pub use book::PolicyBook;
pub use document::changed_meanwhile;
