//! The refusal of a call for which there is no room.

use forebay_types::{Reason, Refusal};

/// The refusal of a call that would exceed a limit, which is named by its key. It is counted.
pub fn overloaded(limit: &'static str, message: &str) -> Refusal {
    metrics::counter!("forebay_limit_refusals_total", "limit" => limit).increment(1);
    Refusal::new(Reason::Overloaded, format!("{message} (the limit is `{limit}`)"))
}
