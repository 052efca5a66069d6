//! Stand-in for `traces` without the feature of this name: the same functions, which do nothing.

use forebay_proto::v1;
use tonic::metadata::MetadataMap;

use crate::{address::Address, dequeued::Dequeued, error::Error, trace_config::TraceConfig};

/// No call carries anything.
pub(crate) fn carry(_: &mut MetadataMap) {}

/// No span of an enqueue.
pub(crate) fn enqueue(
    _: &mut [v1::EnqueueItem],
    _: TraceConfig,
    _: impl FnOnce() -> Option<Address>,
) -> CallSpan {
    CallSpan
}

/// No span of an item that is created.
pub(crate) fn create(_: &mut v1::EnqueueItem, _: TraceConfig) -> CallSpan {
    CallSpan
}

/// No span of an ack, nack or extension.
pub(crate) fn settle(
    _: &'static str,
    _: usize,
    _: &[Processed],
    _: impl FnOnce() -> Option<Address>,
) -> CallSpan {
    CallSpan
}

/// Where the span of a call would be.
pub(crate) struct CallSpan;

impl CallSpan {
    /// Makes the call.
    pub(crate) async fn around<T>(self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        call.await
    }

    /// Makes a call of which each member has an answer.
    pub(crate) async fn around_members<R>(
        self,
        call: impl Future<Output = Result<Vec<Result<R, Error>>, Error>>,
        _: impl FnOnce(&R) -> Option<&str>,
    ) -> Result<Vec<Result<R, Error>>, Error> {
        call.await
    }
}

/// Where the span of a dequeue would be.
pub(crate) struct Receiving;

impl Receiving {
    /// A dequeue begins.
    pub(crate) fn begin() -> Self {
        Self
    }

    /// It has ended.
    pub(crate) fn end(
        self,
        _: &v1::DequeueRequest,
        _: &Result<Vec<v1::DequeuedItem>, Error>,
        _: impl FnOnce() -> Option<Address>,
    ) {
    }
}

/// No span of a handler.
pub(crate) fn process(_: &Dequeued, _: TraceConfig) -> Processing {
    Processing
}

/// Where the span of a handler would be.
pub(crate) struct Processing;

impl Processing {
    /// The handler as it is.
    pub(crate) fn around<F: Future>(&self, handler: F) -> F {
        handler
    }

    /// The handler has ended.
    pub(crate) fn end(self, _: Option<&'static str>) -> Processed {
        Processed
    }
}

/// Where the span of a handler that has ended would be named.
#[derive(Debug, Clone)]
pub(crate) struct Processed;

impl Processed {
    /// No handler has run.
    pub(crate) fn none() -> Self {
        Self
    }
}
