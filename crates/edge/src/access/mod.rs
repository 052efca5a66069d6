//! Access to the ports of a node: credentials of requests, and the table that they are looked up in.
//!
//! `check.rs` finds who makes a request, and whether it may. `bearer.rs` reads the header. `sources.rs` is
//! what the table is made of. `tokens.rs` reads the file of tokens, and `follow.rs` looks at it from time to
//! time. `catalog.rs` does the same with the tokens of the catalog, and `book.rs` changes these.
//! `rechecks.rs` looks again while an answer lasts.

mod bearer;
mod book;
mod catalog;
mod check;
mod follow;
mod rechecks;
mod settings;
mod sources;
mod tokens;

pub use book::{TokenBook, not_found as token_not_found};
pub use catalog::bootstrap;
pub use check::{Access, AuthenticatedCaller};
pub use follow::{FollowTask, Writer};
pub use rechecks::Rechecks;
pub use settings::AccessSettings;
pub use tokens::AccessError;
