//! What a worker does with each item.

use std::{
    ffi::OsString,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use forebay_client::{Client, Delivery, Outcome};
use tempfile::TempDir;
use tokio::{sync::watch, time::Instant};

use super::{
    child::Runner,
    flags::Worker,
    result_file,
    stopping::{Stage, Stopping},
    verdict::{Rules, Verdict},
};
use crate::{failure::Failure, output::visible};

/// Commands in a row that could not be run, after which the worker ends.
const CANNOT_RUN_MAX: u32 = 5;

/// What the runs of the command share.
pub struct Jobs {
    /// Runs it.
    runner: Runner,
    /// What its ends mean.
    rules: Rules,
    /// How many items to take.
    max_items: Option<u64>,
    /// Items that were taken.
    taken: AtomicU64,
    /// Runs under way, and since when there are so many.
    running: watch::Sender<(usize, Instant)>,
    /// How often in a row the command could not be run.
    cannot_run: AtomicU32,
    /// Why the worker ends before it is told to.
    failure: Mutex<Option<String>>,
    /// Where commands write more about their results.
    folder: TempDir,
    /// Nothing is said of single items.
    quiet: bool,
    /// Whether the worker stops.
    stopping: Stopping,
}

impl Jobs {
    /// None running yet.
    pub fn new(
        flags: &Worker,
        command: Vec<OsString>,
        namespace: &str,
        max_items: Option<u64>,
        stopping: Stopping,
    ) -> Result<Self, Failure> {
        Ok(Self {
            runner: Runner {
                command,
                namespace: namespace.to_owned(),
                timeout: flags.timeout,
                kill_after: flags.kill_after,
                stopping: stopping.clone(),
            },
            rules: Rules {
                ack_on: flags.ack_on.clone(),
                dead_letter_on: flags.dead_letter_on.clone(),
                retry_delay: flags.retry_delay,
                retry_max: flags.retry_max,
                timeout: flags.timeout,
            },
            max_items,
            taken: AtomicU64::new(0),
            running: watch::Sender::new((0, Instant::now())),
            cannot_run: AtomicU32::new(0),
            failure: Mutex::new(None),
            folder: tempfile::Builder::new().prefix("forebay-worker-").tempdir()?,
            quiet: flags.quiet,
            stopping,
        })
    }

    /// Runs the command on an item.
    pub async fn handle(self: Arc<Self>, mut delivery: Delivery) -> Outcome {
        let number = self.taken.fetch_add(1, Relaxed) + 1;
        if self.max_items.is_some_and(|most| number >= most) {
            self.stopping.advance(Stage::Enough);
        }
        let _running = Running::begin(&self.running);
        let path = self.folder.path().join(format!("{number}.json"));
        let (end, stderr) = self.runner.run(&mut delivery, &path).await;
        let item = &delivery.item;
        let verdict = self.rules.judge(end, &stderr, result_file::take(&path), item.failures);
        self.note(&item.item_id, &verdict);
        self.count(&verdict);
        verdict.outcome
    }

    /// Why the worker ended before it was told to.
    pub fn failed(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until nothing ran for so long, and the server still answers: else it may have items.
    pub async fn idle(&self, span: Option<Duration>, client: &Client) {
        let Some(span) = span else { return std::future::pending().await };
        let mut running = self.running.subscribe();
        loop {
            let (count, since) = *running.borrow_and_update();
            let until = since + span;
            if count == 0 && Instant::now() >= until {
                match client.check_server().await {
                    Ok(()) => return,
                    Err(error) => eprintln!("forebay: idle, but no server answers: {error}"),
                }
                tokio::time::sleep(span.max(Duration::from_secs(1))).await;
                continue;
            }
            tokio::select! {
                // The sender lives: it is in this.
                _ = running.changed() => {}
                () = tokio::time::sleep_until(until), if count == 0 => {}
            }
        }
    }

    fn note(&self, item_id: &str, verdict: &Verdict) {
        let why = visible(&verdict.why);
        let line = match &verdict.outcome {
            Outcome::Ack => return,
            Outcome::Retry { delay, .. } => {
                format!(
                    "retried in {}: {why}",
                    humantime::format_duration(Duration::from_secs(delay.as_secs()))
                )
            }
            Outcome::Reject { .. } => format!("dead letter: {why}"),
            Outcome::Release => format!("released: {why}"),
        };
        if !self.quiet {
            eprintln!("forebay: {item_id}: {line}");
        }
    }

    fn count(&self, verdict: &Verdict) {
        if !verdict.cannot_run {
            return self.cannot_run.store(0, Relaxed);
        }
        if self.cannot_run.fetch_add(1, Relaxed) + 1 >= CANNOT_RUN_MAX {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| format!("{CANNOT_RUN_MAX} times in a row: {}", verdict.why));
            self.stopping.advance(Stage::Enough);
        }
    }
}

/// Counts a run for as long as it lives.
struct Running<'a>(&'a watch::Sender<(usize, Instant)>);

impl<'a> Running<'a> {
    fn begin(running: &'a watch::Sender<(usize, Instant)>) -> Self {
        running.send_modify(|(count, since)| (*count, *since) = (*count + 1, Instant::now()));
        Self(running)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|(count, since)| (*count, *since) = (count.saturating_sub(1), Instant::now()));
    }
}
