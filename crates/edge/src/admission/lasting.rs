//! A caller's rights while its call lasts, and the note of a call to which it has none.

use std::{pin::pin, time::Duration};

use forebay_types::{Reason, Refusal};
use http::request::Parts;
use tokio::time::{Instant, timeout_at};

use super::{connection::ClientName, rights::Rights};
use crate::{
    audit::{Auditor, DeniedCall},
    traces::trace_id_of,
};

/// How often a call that lasts looks whether its caller still has the right to it.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Waits for an answer until the deadline, and while the caller may have it, if its `rights` may end. What
/// has lasted is not handed out before one more look.
pub async fn until<T>(
    deadline: Instant,
    rights: Option<&Rights>,
    served: impl Future<Output = T>,
) -> Result<T, Refusal> {
    let mut served = pin!(served);
    let mut lasts = false;
    loop {
        let look = rights.map_or(deadline, |_| deadline.min(Instant::now() + LOOK_EVERY));
        match timeout_at(look, &mut served).await {
            Ok(answer) => {
                rights.filter(|_| lasts).map_or(Ok(()), Rights::check_again)?;
                return Ok(answer);
            }
            Err(_) if look == deadline => {
                let message = "the deadline passed before the call completed";
                return Err(Refusal::new(Reason::DeadlineExceeded, message));
            }
            Err(_) => {
                lasts = true;
                rights.map_or(Ok(()), Rights::check_again)?;
            }
        }
    }
}

/// Notes that a caller has no right to its call, if that is why it is refused.
pub async fn deny(
    audit: &Auditor,
    head: &Parts,
    request: Option<&[u8]>,
    rights: &Rights,
    peer: ClientName,
    refusal: &Refusal,
) {
    let Some(caller) = rights.identity() else { return };
    if matches!(refusal.reason, Reason::WrongNamespace | Reason::ScopeMissing) {
        let (path, trace_id) = (head.uri.path(), trace_id_of(&head.headers).unwrap_or_default());
        let peer = peer.to_string();
        let call = DeniedCall { path, request, namespace: rights.namespace(), peer: &peer, trace_id };
        audit.deny_call(call, caller, refusal).await;
    }
}
