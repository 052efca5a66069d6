//! The task behind a producer: batches queued items, sends them, distributes the answers.

use std::sync::Arc;

use tokio::sync::{Notify, Semaphore, mpsc};

use super::{
    batcher::{Batcher, QueuedItem},
    config::ProducerConfig,
};
use crate::{client::Client, slow::without_others};

/// Runs until every handle is dropped and everything is sent.
pub(super) async fn run(
    client: Client,
    config: ProducerConfig,
    mut queue: mpsc::UnboundedReceiver<QueuedItem>,
    flush: Arc<Notify>,
) {
    let calls = Arc::new(Semaphore::new(config.calls));
    let mut batcher = Batcher::default();
    loop {
        // The permit is acquired first, so that a batch fills while all calls are in flight.
        let Ok(permit) = calls.clone().acquire_owned().await else { return };
        if batcher.is_empty() {
            let Some(first) = queue.recv().await else { return };
            batcher.push(first);
        }
        drain(&mut queue, &mut batcher, &config);
        linger(&mut queue, &mut batcher, &config, &flush).await;
        let batch = batcher.next_batch(&config);
        let (client, keeps_order) = (client.clone(), config.calls == 1);
        tokio::spawn(async move {
            let sent = send(&client, batch);
            if keeps_order { sent.await } else { without_others(sent, permit).await }
        });
    }
}

/// Takes items that are queued already, until a batch is full.
fn drain(queue: &mut mpsc::UnboundedReceiver<QueuedItem>, batcher: &mut Batcher, config: &ProducerConfig) {
    while !batcher.is_full(config) {
        match queue.try_recv() {
            Ok(next) => batcher.push(next),
            Err(_) => break,
        }
    }
}

/// Waits for more items until the linger ends, a batch is full, or a flush.
async fn linger(
    queue: &mut mpsc::UnboundedReceiver<QueuedItem>,
    batcher: &mut Batcher,
    config: &ProducerConfig,
    flush: &Notify,
) {
    if config.linger.is_zero() {
        return;
    }
    let mut end = std::pin::pin!(tokio::time::sleep(config.linger));
    while !batcher.is_full(config) {
        tokio::select! {
            biased;
            () = &mut end => return,
            next = queue.recv() => match next {
                Some(next) => batcher.push(next),
                None => return,
            },
            () = flush.notified() => return,
        }
    }
}

async fn send(client: &Client, batch: Vec<QueuedItem>) {
    let items = batch.iter().map(|queued| queued.item.clone()).collect();
    // A dropped receiver did not want the answer.
    match client.enqueue_encoded(items).await {
        Ok(results) => {
            for (queued, result) in batch.into_iter().zip(results) {
                let _ = queued.answer.send(result);
            }
        }
        Err(error) => {
            for queued in batch {
                let _ = queued.answer.send(Err(error.clone()));
            }
        }
    }
}
