//! Which spans a client makes.

/// Which spans a client makes ([traces](crate#traces)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceConfig {
    /// Each item of an enqueue of several, and of a [`Producer`](crate::Producer), has a span of its own, by
    /// which consumers find who created it. Otherwise they find the span of the call. By default it has one.
    pub create_spans: bool,
    /// The handler of a [`Consumer`](crate::Consumer) is part of the trace in which its item was created,
    /// which then lasts for as long as items wait, and is recorded if that is. By default it begins a trace
    /// of its own, with a link to there.
    pub process_is_child: bool,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self { create_spans: true, process_is_child: false }
    }
}
