//! The settings of traces.

use std::path::PathBuf;

use http::HeaderMap;

/// Where spans go, and of which calls there are any.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSettings {
    /// The collector, as in `http://collector:4317`.
    pub endpoint: String,
    /// The share of calls without a trace of their own that begin one. A call with one is part of it if its
    /// caller says that it is recorded.
    pub ratio: f64,
    /// The authorities that the collector's certificate may be of, as PEM. `None`: those of the system.
    pub ca_file: Option<PathBuf>,
    /// Headers that each request to the collector carries. The values are secret.
    pub headers: HeaderMap,
}
