//! Calls that change something or show payloads are written down: in the catalog before they take effect and
//! after, and in the log.
//!
//! A layer does it for every call (`admission/audited.rs`, by `auditor.rs`), so that no handler can forget
//! it. `methods.rs` says which calls these are. `request.rs` says what a request is about, and `text.rs`
//! keeps texts harmless. `ended.rs` says what is kept of a call's end, `denials.rs` notes calls to which
//! their callers have no right. `budget.rs` bounds what a tenant can have written. `sweep.rs` deletes old
//! records.

mod auditor;
mod budget;
mod denials;
mod ended;
mod lines;
mod methods;
mod record;
mod request;
mod sweep;
mod text;

pub use auditor::{AuditedCall, Auditor, principal_name};
pub use denials::DeniedCall;
pub use record::AuditNote;
pub use sweep::follow as sweep;
pub use text::clean;
