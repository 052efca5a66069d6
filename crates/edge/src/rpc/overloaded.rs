//! The refusals of a call for which there is no room, or for which others came too soon before it.

use std::time::Duration;

use forebay_types::{Reason, Refusal};

/// The refusal of a call that would exceed a limit, which is named by its key. It is counted.
pub fn overloaded(limit: &'static str, message: &str) -> Refusal {
    count(limit);
    Refusal::new(Reason::Overloaded, format!("{message} (the limit is `{limit}`)"))
}

/// The refusal of a call that is over a rate, which is named by its key. It is counted. `after`: when it
/// would not be refused.
pub fn rate_limited(limit: &'static str, message: &str, after: Duration) -> Refusal {
    count(limit);
    let refusal = Refusal::new(Reason::RateLimited, format!("{message} (the limit is `{limit}`)"));
    Refusal { subject: Some(limit), ..refusal }.retry_after(after)
}

fn count(limit: &'static str) {
    metrics::counter!("forebay_limit_refusals_total", "limit" => limit).increment(1);
}
