//! Spans of what a client does, by the conventions of OpenTelemetry for messaging, and the contexts that
//! calls and items carry.
//!
//! They are made by the tracer of the program's own provider. While it has set none, the tracer hands back
//! the span that there was before as a new one: then there is no span, nothing is put on items, and calls
//! carry what they would carry anyway. What takes time to put together, a span gets when it is known to be
//! recorded.
//!
//! Spans hold names and numbers: topics, counts, ids of items, reasons of errors. No payload, metadata or
//! header and no message of an error is in one.

mod codes;
mod context;
mod dequeue;
mod enqueue;
mod headers;
mod process;
mod settle;
mod span;
#[cfg(test)]
mod tests;

pub(crate) use context::carry;
pub(crate) use dequeue::DequeueSpan;
pub(crate) use enqueue::{create, enqueue};
pub(crate) use process::{HandlerContext, process};
pub(crate) use settle::settle;
