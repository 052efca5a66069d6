//! Violated invariants: a state that only a bug of the engine can bring about.

use crate::planted;

/// Reports a broken invariant. Debug builds panic; others log it and go on, because the rest of the node
/// works.
#[track_caller]
pub(crate) fn broken(what: &str) {
    // A planted bug is for the simulation's checker to find.
    if planted::any() {
        return;
    }
    let place = std::panic::Location::caller();
    tracing::error!(what, %place, "broken invariant: {what} (at {place}); report this as a bug");
    debug_assert!(false, "broken invariant: {what} (at {place})");
}
