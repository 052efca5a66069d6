//! Probes for supervisors and load balancers.

use axum::http::StatusCode;

use super::info::State;

/// Serves `/healthz`: the process is alive.
pub async fn alive() -> &'static str {
    "alive\n"
}

/// Serves `/readyz`: whether the node accepts calls.
pub async fn ready(state: State) -> (StatusCode, &'static str) {
    if *state.serving.borrow() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}
