//! What supervisors and balancers ask.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;

use super::State;

/// The process lives.
pub async fn alive() -> &'static str {
    "alive\n"
}

/// The node serves.
pub async fn ready(state: State) -> (StatusCode, &'static str) {
    if state.serving.load(Ordering::Acquire) {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}
