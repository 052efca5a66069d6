//! State that all workers of a run share.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::limit::{InFlightLimit, StopFlag};
use crate::{delivery_check::DeliveryCheck, load::Load, payload::Payloads};

/// State that all workers of a run share.
#[derive(Debug)]
pub struct RunState {
    /// The work of the workers.
    pub load: Load,
    /// Records what was enqueued and checks what is delivered.
    pub delivery_check: DeliveryCheck,
    /// Set when producers must stop.
    pub stop_producing: Arc<StopFlag>,
    /// Limits the items in the queue.
    pub in_flight_limit: InFlightLimit,
    /// Limits the items that consumers take; unset while they may take all.
    pub dequeue_limit: OnceLock<InFlightLimit>,
    /// Items acked so far.
    pub settled: AtomicU64,
    /// Whether all producers have ended.
    pub all_sent: AtomicBool,
    /// Set when consumers must stop although items are left.
    pub stop_consuming: Arc<StopFlag>,
}

impl RunState {
    /// The state before anything was sent.
    pub fn new(load: &Load) -> anyhow::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            delivery_check: DeliveryCheck::new(Payloads::new(load.seed, load.item_bytes)?),
            stop_producing: StopFlag::new(),
            in_flight_limit: InFlightLimit::new(load.max_queued),
            dequeue_limit: OnceLock::new(),
            settled: AtomicU64::new(0),
            all_sent: AtomicBool::new(false),
            stop_consuming: StopFlag::new(),
            load: load.clone(),
        }))
    }

    /// Items acked so far.
    pub fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// Stops the producers, also those that wait for the in-flight limit of a queue that has stalled.
    pub fn stop_producers(&self) {
        self.stop_producing.set();
        self.in_flight_limit.close();
    }

    /// Keeps the present backlog: from now on consumers take as many items as producers enqueue.
    pub fn keep_backlog(&self) {
        self.dequeue_limit.get_or_init(|| InFlightLimit::new(0));
    }

    /// Stops the consumers although items are left.
    pub fn stop_consumers(&self) {
        self.stop_consuming.set();
        self.dequeue_limit.get().into_iter().for_each(InFlightLimit::close);
    }

    /// Whether all producers have ended and all confirmed items were delivered.
    pub fn is_done(&self) -> bool {
        self.all_sent.load(Ordering::Acquire)
            && self.delivery_check.delivered() >= self.delivery_check.confirmed()
    }
}
