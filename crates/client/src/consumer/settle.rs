//! Settles deliveries in batches: acks and nacks them.

use std::{sync::Arc, time::Duration};

use forebay_types::{Reason, cut_text};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use super::{delivery::Outcome, open_deliveries::OpenDeliveries, report::ReportCounters};
use crate::{
    calls::nack::{Nack, NackAction, NackOutcome},
    client::Client,
    error::Error,
    slow::without_others,
    traces::HandlerContext,
};

/// Members of one call.
const CALL_MEMBERS_MAX: usize = 1_000;
/// Batches that are settled at a time.
const BATCHES_IN_FLIGHT_MAX: usize = 4;

/// Bytes of a reason. So many nacks of one call fit into a request.
const REASON_BYTES_MAX: usize = 1 << 10;

/// How one delivery ended.
#[derive(Debug)]
pub(super) struct Settlement {
    /// Identifies the delivery.
    pub(super) receipt: String,
    /// Decides between ack and nack.
    pub(super) outcome: Outcome,
    /// The handler's span.
    pub(super) processed: HandlerContext,
}

/// Runs until every sender is dropped and everything is settled.
pub(super) async fn settle(
    client: Client,
    mut settlements: mpsc::Receiver<Settlement>,
    deliveries: Arc<OpenDeliveries>,
    counters: Arc<ReportCounters>,
) {
    let in_flight = Arc::new(Semaphore::new(BATCHES_IN_FLIGHT_MAX));
    let mut tasks = JoinSet::new();
    loop {
        let Ok(permit) = in_flight.clone().acquire_owned().await else { break };
        let mut batch = Vec::new();
        if settlements.recv_many(&mut batch, CALL_MEMBERS_MAX).await == 0 {
            break;
        }
        while tasks.try_join_next().is_some() {}
        let (client, deliveries, counters) = (client.clone(), deliveries.clone(), counters.clone());
        tasks.spawn(async move {
            without_others(settle_batch(&client, batch, &deliveries, &counters), permit).await;
        });
    }
    while tasks.join_next().await.is_some() {}
}

async fn settle_batch(
    client: &Client,
    batch: Vec<Settlement>,
    deliveries: &OpenDeliveries,
    counters: &ReportCounters,
) {
    let (acks, nacks): (Vec<_>, Vec<_>) = batch.into_iter().partition(|one| one.outcome == Outcome::Ack);
    let (acked, nacked) = tokio::join!(
        async {
            match acks.len() {
                0 => Ok(Vec::new()),
                _ => {
                    let receipts = acks.iter().map(|one| one.receipt.clone()).collect();
                    let acked = client.ack_processed(receipts, &processed(&acks)).await?;
                    Ok(acked.into_iter().map(|result| result.map(|()| NackOutcome::default())).collect())
                }
            }
        },
        async {
            match nacks.len() {
                0 => Ok(Vec::new()),
                _ => client.nack_processed(nacks.iter().map(nack).collect(), &processed(&nacks)).await,
            }
        },
    );
    for (settlements, answer) in [(acks, acked), (nacks, nacked)] {
        let results = match answer {
            Ok(results) => results,
            Err(error) => {
                let count = settlements.len();
                tracing::warn!(%error, count, "cannot settle {count} deliveries; their leases will end");
                vec![Err(error); count]
            }
        };
        for (settlement, result) in settlements.into_iter().zip(results) {
            deliveries.remove(&settlement.receipt);
            count(&settlement, result, counters);
        }
    }
}

fn processed(settlements: &[Settlement]) -> Vec<HandlerContext> {
    settlements.iter().map(|one| one.processed.clone()).collect()
}

fn count(settlement: &Settlement, result: Result<NackOutcome, Error>, counters: &ReportCounters) {
    match result {
        Ok(NackOutcome { delay_cut }) => {
            if delay_cut {
                let receipt = &settlement.receipt;
                tracing::info!(receipt, "an item that expires soon is tried again earlier than it was to be");
            }
            counters.count_settled(&settlement.outcome);
        }
        Err(error) if error.reason() == Some(Reason::LeaseLost) => {
            tracing::debug!(%error, "delivery ended before it was settled");
            counters.count_lost();
        }
        Err(_) => counters.count_unsettled(),
    }
}

fn nack(settlement: &Settlement) -> Nack {
    let (action, reason, metadata) = match &settlement.outcome {
        Outcome::Retry { delay, reason, metadata } => (
            NackAction::Fail(Some(*delay).filter(|delay| !delay.is_zero())),
            reason.as_str(),
            metadata.clone(),
        ),
        Outcome::Reject { reason } => (NackAction::DeadLetter, reason.as_str(), None),
        Outcome::Ack | Outcome::Release => (NackAction::Release(Duration::ZERO), "", None),
    };
    let mut reason = reason.to_owned();
    cut_text(&mut reason, REASON_BYTES_MAX);
    Nack { metadata, ..Nack::new(settlement.receipt.as_str(), action).reason(reason) }
}
