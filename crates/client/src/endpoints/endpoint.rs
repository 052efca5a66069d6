//! One server: its address, its connection, and whether it works.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use forebay_proto::{AdminCall, call_encoded, v1::queue_service_client::QueueServiceClient};
use tokio::time::Instant;
use tonic::Request;

use super::health::Health;
use crate::{address::Address, error::Error, rng::SharedRng, token::Link};

/// The largest response that is accepted: 15 MiB of items and their encoding.
const RESPONSE_BYTES_MAX: usize = 24 << 20;

/// One server.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Tells the endpoints of a client apart. Never used again.
    id: u32,
    /// As the user wrote it, or as its node says.
    address: String,
    /// The same, checked. `None`: a channel of the caller's own.
    at: Option<Address>,
    /// Its connection, opened by the first call and reopened after it broke.
    channel: Link,
    /// Health, as calls have shown it.
    health: Mutex<Health>,
}

impl Endpoint {
    /// Nothing is known of its health.
    pub(super) fn new(id: u32, address: String, at: Option<Address>, channel: Link) -> Self {
        Self { id, address, at, channel, health: Mutex::default() }
    }

    /// Tells it apart from others.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// For messages.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// For comparisons. Empty for a channel of the caller's own.
    pub(super) fn host_port(&self) -> &str {
        self.at.as_ref().map_or("", Address::host_port)
    }

    /// Where it is; `None` for a channel of the caller's own.
    pub(crate) fn checked_address(&self) -> Option<Address> {
        self.at.clone()
    }

    /// For calls of the queue.
    pub(crate) fn queue(&self) -> QueueServiceClient<Link> {
        QueueServiceClient::new(self.channel.clone()).max_decoding_message_size(RESPONSE_BYTES_MAX)
    }

    /// Makes an operator's call, once.
    pub(crate) async fn ask<Q: AdminCall>(&self, request: Q, timeout: Duration) -> Result<Q::Answer, Error> {
        let answer = self.ask_encoded(Q::PATH, request.encoded(), timeout).await?;
        Q::decoded(answer).map_err(|status| Error::of_call(&status).at(self.address()))
    }

    /// The same for all calls.
    pub(crate) async fn ask_encoded(
        &self,
        path: &'static str,
        request: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, Error> {
        let answer = call_encoded(self.channel.clone(), path, Request::new(request), RESPONSE_BYTES_MAX);
        match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) => Err(Error::of_call(&status).at(self.address())),
            Err(_) => Err(Error::timed_out(self.address(), timeout)),
        }
    }

    /// A call that began at `began` was answered.
    pub(crate) fn works(&self, began: Instant) {
        self.health().works(began);
    }

    /// A call that began at `began` could not be answered here. Returns whether the last one was.
    pub(crate) fn failed(&self, began: Instant, rng: &SharedRng) -> bool {
        // At least half of the longest time.
        self.health().failed(began, Instant::now(), |longest| longest / 2 + rng.up_to(longest / 2))
    }

    /// Health, as calls have shown it.
    pub(super) fn health(&self) -> MutexGuard<'_, Health> {
        // A panic while the lock is held leaves valid values.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
