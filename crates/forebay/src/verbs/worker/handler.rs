//! Work of a worker on each item.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use forebay_client::{Delivery, Outcome};
use tempfile::TempDir;

use super::{
    child::Runner,
    flags::Worker,
    result_file,
    stopping::{Stage, StopSignal},
    verdict::{CannotRun, Past, Rules, Verdict},
};
use crate::{failure::Failure, output::visible};

/// Items in a row that could not be worked on, or starts of the command that failed, after which the worker
/// ends.
const CANNOT_RUN_MAX: usize = 5;

/// State that the runs of the command share.
pub struct Jobs {
    /// Runs it.
    runner: Runner,
    /// Rules for its ends.
    rules: Rules,
    /// How many items to take.
    max_items: Option<u64>,
    /// Items that were taken.
    taken: AtomicU64,
    /// Failures to run it since an item could be worked on.
    cannot_run: Mutex<CannotRunSince>,
    /// Why the worker ends before it is told to.
    failure: Mutex<Option<String>>,
    /// Where commands write more about their results.
    folder: TempDir,
    /// Nothing is said of single items.
    quiet: bool,
    /// Whether the worker stops.
    stopping: StopSignal,
}

impl Jobs {
    /// None running yet.
    pub fn new(
        flags: &Worker,
        command: Vec<OsString>,
        namespace: &str,
        max_items: Option<u64>,
        stopping: StopSignal,
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
            cannot_run: Mutex::default(),
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
        let path = self.folder.path().join(format!("{number}.json"));
        let (end, stderr) = self.runner.run(&mut delivery, &path).await;
        let item = &delivery.item;
        let verdict = self.rules.judge(end, &stderr, result_file::take(&path), Past::of(item));
        self.note(&item.item_id, &verdict);
        self.count(&item.item_id, &verdict);
        verdict.outcome
    }

    /// Why the worker ended before it was told to.
    pub fn failed(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

    /// Ends the worker once it is not single items that can't be worked on.
    fn count(&self, item_id: &str, verdict: &Verdict) {
        let mut failed = self.cannot_run.lock().unwrap_or_else(PoisonError::into_inner);
        let why = match &verdict.cannot_run {
            None => return *failed = CannotRunSince::default(),
            Some(CannotRun::Command) => {
                failed.runs += 1;
                (failed.runs >= CANNOT_RUN_MAX).then(|| format!("{CANNOT_RUN_MAX} times in a row"))
            }
            Some(CannotRun::Item) => {
                failed.items.insert(item_id.to_owned());
                (failed.items.len() >= CANNOT_RUN_MAX).then(|| format!("{CANNOT_RUN_MAX} items in a row"))
            }
        };
        if let Some(often) = why {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| format!("{often}: {}", verdict.why));
            self.stopping.advance(Stage::Enough);
        }
    }
}

/// Failures to run the command since an item could be worked on.
#[derive(Debug, Default)]
struct CannotRunSince {
    /// Items, at most [`CANNOT_RUN_MAX`].
    items: BTreeSet<String>,
    /// How often the command could not be started.
    runs: usize,
}
