//! Distributed traces: one span for each call that is served, sent to a collector with OTLP over gRPC.
//!
//! `context.rs` reads what calls carry of their trace. `call_span.rs` is the span of a call, `current.rs`
//! how it is known to what serves the call, `stages.rs` what it waits for within the engine. A span that has
//! ended goes into a queue (`queue.rs`), and a task sends what is there to the collector (`export.rs`). A
//! call never waits for either: where the queue is full, or the collector does not answer, spans are dropped
//! and counted. `dial.rs` opens the connection.
//!
//! An item stays with the trace in which it was created (`item.rs`), whether this node has spans or not.
//!
//! A span holds names and numbers of this program. Nothing that callers have sent is in it but the ids of
//! traces: no payload, no header, no name of a topic or tenant.

mod call_span;
mod context;
mod current;
mod dial;
mod export;
mod item;
mod queue;
mod settings;
mod stages;
mod tracer;

pub use call_span::{CallSpan, Outcome, System};
pub use current::{carry, note_items, note_origins, trace_id_of};
pub use dial::TracesError;
pub use export::ExportTask;
pub use item::{Origin, name_origin};
pub use settings::TraceSettings;
pub use tracer::{SpanMarker, Traces, forwarded};
