//! Who may use the ports of a node: credentials of requests, and the table that they are looked up in.
//!
//! `check.rs` finds who makes a request, and whether it may. `bearer.rs` reads the header. `tokens.rs` is
//! what the table is made of. `follow.rs` is the table's one writer: it looks at the file of tokens from time
//! to time.

mod bearer;
mod check;
mod follow;
mod settings;
mod tokens;

pub use check::{Access, Authenticated};
pub use follow::{Following, Writer};
pub use settings::AccessSettings;
pub use tokens::AccessError;
