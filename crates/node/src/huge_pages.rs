//! Huge pages, which a node does without.
//!
//! The allocator asks for them, and the system clears two megabytes whenever it gives one. In the midst of a
//! turn of the event loop that took up to 20 ms, and nodes grew by a quarter more
//! ([measurements](../../../docs/PERFORMANCE.md#what-was-tried)).

/// Has the system give this process small pages alone from now on.
pub(crate) fn refuse() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::warn!(%error, "cannot do without huge pages: calls may be slower from time to time");
    }
}
