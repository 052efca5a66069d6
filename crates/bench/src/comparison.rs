//! A comparison: candidates take turns, and each turn starts with a new and empty system, so that changes of
//! the machine's speed over time affect all candidates alike.

use std::time::Duration;

use anyhow::{anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::{
    load::{Load, Phases},
    other_queues,
    round_result::RoundResult,
    scenario::{baseline, delay, drain, enqueue, idle, latency, lifecycle, topics},
    system::{
        System, SystemConfig,
        baseline::{Baseline, Steps},
        forebay::Forebay,
        server::StatementTime,
    },
};

/// System that is measured.
#[derive(Debug, Clone)]
pub enum Candidate {
    /// Forebay on the configured database.
    Forebay,
    /// The baseline of the configured database, with this many items per transaction.
    Baseline(usize),
    /// Another queue, by its name.
    OtherQueue(&'static str),
}

/// Task of the candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// Enqueue, dequeue and ack at the same time, on top of a backlog.
    Lifecycle(lifecycle::Backlog),
    /// Enqueue this many items.
    Enqueue(u64),
    /// Dequeue and ack this many items.
    Drain(u64),
    /// Deliver single items to waiting consumers, at this rate per second.
    Latency(u32),
    /// Deliver items that become due, at this rate per second.
    Delay(u32),
    /// The lifecycle, with consumers that ask for active topics.
    Topics(topics::Selection),
    /// Do nothing.
    Idle {
        /// Pause before the measurement.
        settle: Duration,
    },
}

/// One row of a comparison.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name in reports.
    pub label: String,
    /// The system that is measured.
    pub candidate: Candidate,
    /// Configuration of the candidate.
    pub config: SystemConfig,
    /// The load by producers and consumers.
    pub load: Load,
    /// The task of the candidate.
    pub scenario: Scenario,
}

/// The results of one entry.
#[derive(Debug, Clone, Serialize)]
pub struct CandidateResult {
    /// Its name in reports.
    pub label: String,
    /// Meaning of its OK to an enqueue.
    pub durability: &'static str,
    /// Version and settings.
    pub settings: Vec<(String, String)>,
    /// One result per round.
    pub rounds: Vec<RoundResult>,
    /// The database's time by statement in the last round, including the node's start. Empty unless
    /// requested.
    pub statements: Vec<StatementTime>,
}

/// A comparison. Its entries take turns in this order; the first one is compared with each of the others.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Title of the comparison, for reports.
    pub title: String,
    /// The entries in the order of their turns.
    pub entries: Vec<Entry>,
    /// Turns per entry.
    pub rounds: u32,
    /// Phases of a turn.
    pub phases: Phases,
}

/// The results of a comparison.
#[derive(Debug, Clone, Serialize)]
pub struct ComparisonResult {
    /// Title of the comparison.
    pub title: String,
    /// Results in the order of the turns.
    pub candidates: Vec<CandidateResult>,
    /// Label of each entry without a result, and the reason.
    pub absent: Vec<(String, String)>,
}

impl Comparison {
    /// Runs all rounds. Another queue that is not installed, or that fails a check, is absent with the
    /// reason. Any other failure ends the comparison.
    pub async fn run(&self) -> anyhow::Result<ComparisonResult> {
        let (present, mut absent) = self.available();
        let bar = progress_bar(u64::from(self.rounds) * present.len() as u64, &self.title);
        let mut candidates: Vec<Option<CandidateResult>> = vec![None; present.len()];
        for round in 1..=self.rounds {
            for (entry, candidate) in present.iter().zip(&mut candidates) {
                let has_failed = absent.iter().any(|(label, _)| *label == entry.label);
                bar.set_message(format!("round {round}: {}", entry.label));
                bar.inc(1);
                if has_failed {
                    continue;
                }
                match entry.run(self.phases).await {
                    Ok((mut new, result)) => {
                        let statements = std::mem::take(&mut new.statements);
                        let candidate = candidate.get_or_insert(new);
                        candidate.rounds.push(result);
                        candidate.statements = statements;
                    }
                    Err(error) if matches!(entry.candidate, Candidate::OtherQueue(_)) => {
                        *candidate = None;
                        absent.push((entry.label.clone(), format!("failed in round {round}: {error:#}")));
                    }
                    Err(error) => return Err(error.context(format!("{}, round {round}", entry.label))),
                }
            }
        }
        bar.finish_and_clear();
        let candidates = candidates.into_iter().flatten().collect();
        Ok(ComparisonResult { title: self.title.clone(), candidates, absent })
    }

    /// The entries that can be measured on this machine, and the labels of the others with the reason.
    fn available(&self) -> (Vec<&Entry>, Vec<(String, String)>) {
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            match entry.candidate {
                Candidate::OtherQueue(name) => match other_queues::available(name, entry.config.database) {
                    Ok(()) => present.push(entry),
                    Err(why) => absent.push((entry.label.clone(), format!("{why:#}"))),
                },
                _ => present.push(entry),
            }
        }
        (present, absent)
    }
}

fn progress_bar(turns: u64, title: &str) -> ProgressBar {
    let bar = ProgressBar::new(turns);
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {elapsed} {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(title.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

impl Entry {
    /// Runs one turn. The candidate's result comes without rounds.
    async fn run(&self, phases: Phases) -> anyhow::Result<(CandidateResult, RoundResult)> {
        let candidate = |durability, settings| CandidateResult {
            label: self.label.clone(),
            durability,
            settings,
            rounds: Vec::new(),
            statements: Vec::new(),
        };
        match self.candidate {
            Candidate::Baseline(batch) => {
                let mut system = Baseline::start(&self.config).await?;
                let mut candidate = candidate("on disk", system.settings().await?);
                let result = self.run_baseline(&mut system, batch, phases).await?;
                candidate.statements = system.statements().await?;
                Ok((candidate, result))
            }
            Candidate::Forebay => {
                let system = Forebay::start(&self.config).await?;
                let mut candidate = candidate(system.durability().text(), system.settings().await?);
                let result = match self.scenario {
                    Scenario::Topics(selection) => topics::run(&system, &self.load, phases, selection).await,
                    _ => self.run_queue(&system, phases).await,
                };
                match result {
                    Ok(result) => {
                        candidate.statements = system.statements().await?;
                        Ok((candidate, result))
                    }
                    Err(error) => Err(anyhow!("{error:#}\n{}", system.describe_nodes().await)),
                }
            }
            Candidate::OtherQueue(name) => {
                let system = other_queues::start(name, &self.config).await?;
                let candidate = candidate(system.durability().text(), system.settings().await?);
                Ok((candidate, self.run_queue(&*system, phases).await?))
            }
        }
    }

    async fn run_queue(&self, system: &dyn System, phases: Phases) -> anyhow::Result<RoundResult> {
        match self.scenario {
            Scenario::Lifecycle(backlog) => lifecycle::run(system, &self.load, phases, backlog).await,
            Scenario::Enqueue(items) => enqueue::run(system, &self.load, items).await,
            Scenario::Drain(items) => drain::run(system, &self.load, items).await,
            Scenario::Latency(rate) => latency::run(system, &self.load, phases, rate).await,
            Scenario::Delay(rate) => delay::run(system, &self.load, phases, rate).await,
            Scenario::Idle { settle } => idle::run(system, &self.load, settle, phases.measured).await,
            Scenario::Topics(_) => bail!("the topics scenario runs on Forebay only"),
        }
    }

    async fn run_baseline(
        &self,
        system: &mut Baseline,
        batch: usize,
        phases: Phases,
    ) -> anyhow::Result<RoundResult> {
        let (steps, backlog) = match self.scenario {
            Scenario::Lifecycle(lifecycle::Backlog::Empty) | Scenario::Topics(_) => (Steps::All, 0),
            Scenario::Lifecycle(lifecycle::Backlog::LessUrgent(count) | lifecycle::Backlog::Equal(count)) => {
                (Steps::All, count)
            }
            Scenario::Enqueue(_) => (Steps::Insert, 0),
            Scenario::Drain(count) => (Steps::Drain, count),
            Scenario::Latency(_) | Scenario::Delay(_) | Scenario::Idle { .. } => {
                bail!("the baseline measures throughput only")
            }
        };
        baseline::run(system, &self.load, steps, batch, phases, backlog).await
    }
}
