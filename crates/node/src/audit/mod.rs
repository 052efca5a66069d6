//! Calls that change something or show payloads are written down: in the catalog before they take effect and
//! after, and in the log.
//!
//! The admission layer does it for every call (`auditor.rs`), so that no handler can forget it. `methods.rs`
//! says which calls these are. `request.rs` says what a request is about, and `text.rs` keeps texts harmless.
//! `budget.rs` bounds what a tenant can have written. `sweep.rs` deletes old records.

mod auditor;
mod budget;
mod methods;
mod request;
mod sweep;
mod text;

pub use auditor::{AuditNote, AuditedCall, Auditor, REPEATED, principal_name};
pub use sweep::follow as sweep;
pub use text::clean;
