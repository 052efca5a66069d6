//! Rights of callers. No I/O and no clock: texts and times come in, decisions come out.
#![doc = include_str!("../README.md")]

mod base62;
mod credential;
mod decide;
mod grant;
mod identity;
mod needs;
mod rotate;
mod scope;
mod secret_hash;
mod table;
mod token;
mod tokens_file;
mod toml_error;

pub use credential::Credential;
pub use decide::{Denial, decide};
pub use grant::{Grant, GrantError, Namespaces};
pub use identity::{Identity, Kind};
pub use needs::{
    CALLS, EVENTS, FIRST_PAGE, FORMS, Needs, PAGES, Reader, of_call, of_events, of_form, of_page,
};
pub use rotate::rotate;
pub use scope::{Scope, Scopes};
pub use secret_hash::SecretHash;
pub use table::{AuthFailure, Record, Table};
pub use token::{ID_BYTES, RANDOM_BYTES, SECRET_BYTES, Token, TokenId};
pub use tokens_file::{TokensFileError, append, parse, revoke};
pub use toml_error::{toml_error, toml_message};
