//! Common parts of all calls: fields and their rules, the frame, errors and their details, page tokens.

pub mod fields;
pub mod frame;
pub mod members;
mod overloaded;
pub mod page_token;
pub mod refused;
pub mod rules;
pub mod slices;
pub mod status;
pub mod token;

pub use overloaded::{overloaded, rate_limited};
pub use page_token::{List, PageTokens};
pub use refused::OTHER;
pub use rules::{ALL_NAMESPACES, RequestRules};
pub use status::of_call;
