//! Tells the server how deliveries ended, in batches.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use super::{ConsumerReport, Outcome, in_hand::InHand};
use crate::{Client, Error, Nack, NackAction, Reason};

/// Members of one call.
const MEMBERS: usize = 1_000;
/// Calls under way at a time.
const CALLS: usize = 4;
/// Bytes of a reason that the server takes.
const REASON_BYTES: usize = 1 << 10;

/// How one delivery ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) receipt: String,
    pub(super) outcome: Outcome,
}

/// What a consumer did so far.
#[derive(Debug, Default)]
pub(super) struct Counts {
    acked: AtomicU64,
    retried: AtomicU64,
    rejected: AtomicU64,
    released: AtomicU64,
    lost: AtomicU64,
    unsettled: AtomicU64,
}

impl Counts {
    pub(super) fn report(&self) -> ConsumerReport {
        ConsumerReport {
            acked: self.acked.load(Relaxed),
            retried: self.retried.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            released: self.released.load(Relaxed),
            lost: self.lost.load(Relaxed),
            unsettled: self.unsettled.load(Relaxed),
        }
    }

    /// Counts an end that the server knows of, or needs not know of.
    pub(super) fn count(&self, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Ack => &self.acked,
            Outcome::Retry { .. } => &self.retried,
            Outcome::Reject { .. } => &self.rejected,
            Outcome::Release => &self.released,
        };
        counter.fetch_add(1, Relaxed);
    }
}

/// Settles until every sender is gone and everything is told.
pub(super) async fn settle(
    client: Client,
    mut ends: mpsc::Receiver<Ended>,
    in_hand: Arc<InHand>,
    counts: Arc<Counts>,
) {
    let calls = Arc::new(Semaphore::new(CALLS));
    let mut under_way = JoinSet::new();
    loop {
        let Ok(call) = calls.clone().acquire_owned().await else { break };
        let mut batch = Vec::new();
        if ends.recv_many(&mut batch, MEMBERS).await == 0 {
            break;
        }
        while under_way.try_join_next().is_some() {}
        let (client, in_hand, counts) = (client.clone(), in_hand.clone(), counts.clone());
        under_way.spawn(async move {
            tell(&client, batch, &in_hand, &counts).await;
            drop(call);
        });
    }
    while under_way.join_next().await.is_some() {}
}

async fn tell(client: &Client, batch: Vec<Ended>, in_hand: &InHand, counts: &Counts) {
    let (acks, nacks): (Vec<_>, Vec<_>) = batch.into_iter().partition(|end| end.outcome == Outcome::Ack);
    let told = tokio::join!(
        async {
            match acks.len() {
                0 => Ok(Vec::new()),
                _ => client.ack(acks.iter().map(|end| end.receipt.clone()).collect()).await,
            }
        },
        async {
            match nacks.len() {
                0 => Ok(Vec::new()),
                _ => client.nack(nacks.iter().map(nack).collect()).await,
            }
        },
    );
    for (ends, told) in [(acks, told.0), (nacks, told.1)] {
        let results = match told {
            Ok(results) => results,
            Err(error) => {
                tracing::warn!(%error, items = ends.len(), "deliveries were not settled");
                vec![Err(error); ends.len()]
            }
        };
        for (end, result) in ends.into_iter().zip(results) {
            in_hand.let_go(&end.receipt);
            note(&end, result, counts);
        }
    }
}

fn note(end: &Ended, result: Result<(), Error>, counts: &Counts) {
    match result {
        Ok(()) => counts.count(&end.outcome),
        Err(error) if error.reason() == Some(Reason::LeaseLost) => {
            tracing::debug!(%error, "a delivery was over before it was settled");
            counts.lost.fetch_add(1, Relaxed);
        }
        Err(_) => {
            counts.unsettled.fetch_add(1, Relaxed);
        }
    }
}

fn nack(end: &Ended) -> Nack {
    let (action, reason) = match &end.outcome {
        Outcome::Retry { delay, reason } => (NackAction::Fail(*delay), reason.as_str()),
        Outcome::Reject { reason } => (NackAction::DeadLetter, reason.as_str()),
        Outcome::Ack | Outcome::Release => (NackAction::Release(Duration::ZERO), ""),
    };
    let cut = reason.floor_char_boundary(REASON_BYTES);
    Nack::new(end.receipt.as_str(), action).reason(&reason[..cut])
}
