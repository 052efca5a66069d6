//! One server: its address, its connection, and whether it works.

use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_proto::v1::{admin_service_client::AdminServiceClient, queue_service_client::QueueServiceClient};
use tokio::time::Instant;
use tonic::transport::Channel;

use super::health::Health;
use crate::{address::Address, rng::SharedRng};

/// The largest response that is accepted: 15 MiB of items and their encoding.
const RESPONSE_BYTES_MAX: usize = 24 << 20;

/// One server.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Tells the endpoints of a client apart. Never used again.
    id: u32,
    /// As the user wrote it, or as its node says.
    address: String,
    /// The same as `host:port`; empty for a channel of the caller's own.
    host_port: String,
    /// Its connection, opened by the first call and reopened after it broke.
    channel: Channel,
    /// What calls have shown of it.
    health: Mutex<Health>,
}

impl Endpoint {
    /// Nothing is known of its health.
    pub(super) fn new(id: u32, address: String, host_port: String, channel: Channel) -> Self {
        Self { id, address, host_port, channel, health: Mutex::default() }
    }

    /// Tells it apart from others.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// For messages.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// For comparisons.
    pub(super) fn host_port(&self) -> &str {
        &self.host_port
    }

    /// Where it is; `None` for a channel of the caller's own.
    pub(crate) fn checked_address(&self) -> Option<Address> {
        Address::parse(&self.host_port).ok()
    }

    /// For calls of the queue.
    pub(crate) fn queue(&self) -> QueueServiceClient<Channel> {
        QueueServiceClient::new(self.channel.clone()).max_decoding_message_size(RESPONSE_BYTES_MAX)
    }

    /// For calls of the administration.
    pub(crate) fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel.clone())
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

    /// What calls have shown of it.
    pub(super) fn health(&self) -> MutexGuard<'_, Health> {
        // A panic while the lock is held leaves valid values.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
