//! The task behind a producer: takes what waits, sends it, hands out the answers.

use std::sync::Arc;

use tokio::sync::{Notify, Semaphore, mpsc};

use super::{
    ProducerConfig,
    gather::{Gather, Waiting},
};
use crate::Client;

/// Runs until every handle is gone and everything is sent.
pub(super) async fn run(
    client: Client,
    config: ProducerConfig,
    mut queue: mpsc::UnboundedReceiver<Waiting>,
    hurry: Arc<Notify>,
) {
    let calls = Arc::new(Semaphore::new(config.calls));
    let mut gather = Gather::default();
    loop {
        // The permit comes before the cut, so that a batch fills while all calls are under way.
        let Ok(call) = calls.clone().acquire_owned().await else { return };
        if gather.is_empty() {
            let Some(first) = queue.recv().await else { return };
            gather.push(first);
        }
        drain(&mut queue, &mut gather, &config);
        linger(&mut queue, &mut gather, &config, &hurry).await;
        let batch = gather.cut(&config);
        let client = client.clone();
        tokio::spawn(async move {
            send(&client, batch).await;
            drop(call);
        });
    }
}

/// Takes what is there already, up to a full batch.
fn drain(queue: &mut mpsc::UnboundedReceiver<Waiting>, gather: &mut Gather, config: &ProducerConfig) {
    while !gather.is_full(config) {
        match queue.try_recv() {
            Ok(next) => gather.push(next),
            Err(_) => break,
        }
    }
}

/// Waits for company, if asked to, until a batch is full or somebody flushes.
async fn linger(
    queue: &mut mpsc::UnboundedReceiver<Waiting>,
    gather: &mut Gather,
    config: &ProducerConfig,
    hurry: &Notify,
) {
    if config.linger.is_zero() {
        return;
    }
    let mut end = std::pin::pin!(tokio::time::sleep(config.linger));
    while !gather.is_full(config) {
        tokio::select! {
            biased;
            () = &mut end => return,
            next = queue.recv() => match next {
                Some(next) => gather.push(next),
                None => return,
            },
            () = hurry.notified() => return,
        }
    }
}

async fn send(client: &Client, batch: Vec<Waiting>) {
    let items = batch.iter().map(|waiting| waiting.item.clone()).collect();
    // A receiver that is gone did not want the answer.
    match client.enqueue(items).await {
        Ok(results) => {
            for (waiting, result) in batch.into_iter().zip(results) {
                let _ = waiting.answer.send(result);
            }
        }
        Err(error) => {
            for waiting in batch {
                let _ = waiting.answer.send(Err(error.clone()));
            }
        }
    }
}
