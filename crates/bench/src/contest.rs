//! Who takes part in a measurement, and their turns: every round starts each one anew with nothing in it, so
//! that what the machine does over time befalls all alike.

use std::time::Duration;

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::{
    database::StatementTime,
    outcome::Outcome,
    peers,
    scenario::{delay, drain, enqueue, floor, idle, latency, lifecycle, topics},
    system::{
        Setup, System,
        floor::{Floor, Steps},
        forebay::Forebay,
    },
    workload::{Load, Span},
};

/// What is measured against what.
#[derive(Debug, Clone)]
pub enum Contestant {
    /// Forebay on the setup's database.
    Forebay,
    /// The floor of the setup's database, with so many items a transaction.
    Floor(usize),
    /// Another queue, by its name.
    Peer(&'static str),
}

/// What is done with a contestant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// Enqueue, dequeue and ack all at once, on top of what waits.
    Lifecycle(lifecycle::Backlog),
    /// So many items in.
    Enqueue(u64),
    /// So many items out.
    Drain(u64),
    /// So many single items a second to waiting consumers.
    Latency(u32),
    /// So many items a second that become due.
    Delay(u32),
    /// The lifecycle with consumers that ask which topics are active.
    Topics,
    /// Nothing happens, measured after it has done so for a while.
    Idle {
        /// For how long.
        settle: Duration,
    },
}

/// One line of a table.
#[derive(Debug, Clone)]
pub struct Entry {
    /// As it is called in the table.
    pub label: String,
    /// Who.
    pub contestant: Contestant,
    /// On what.
    pub setup: Setup,
    /// Under which load.
    pub load: Load,
    /// Doing what.
    pub scenario: Scenario,
}

/// What came of an entry.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    /// As it is called in the table.
    pub label: String,
    /// What its OK means.
    pub promise: &'static str,
    /// Version and settings.
    pub settings: Vec<(String, String)>,
    /// One a round.
    pub rounds: Vec<Outcome>,
    /// Where the database spent its time in the last round, the start of the node included; empty unless asked for.
    pub statements: Vec<StatementTime>,
}

/// A measurement: the entries in the order of their turns, the first one being what the others are compared with.
#[derive(Debug, Clone)]
pub struct Contest {
    /// What it is about, in words.
    pub title: String,
    /// Who takes part.
    pub entries: Vec<Entry>,
    /// How often each has its turn.
    pub rounds: u32,
    /// How long a turn is.
    pub span: Span,
}

/// What came of a contest.
#[derive(Debug, Clone, Serialize)]
pub struct Result {
    /// What it was about.
    pub title: String,
    /// In the order of the turns.
    pub standings: Vec<Standing>,
    /// Who could not take part, and why.
    pub absent: Vec<(String, String)>,
}

impl Contest {
    /// Runs all rounds. A peer whose server is not there, or that fails its checks, is absent with the reason; any other
    /// failure ends the contest.
    pub async fn run(&self) -> anyhow::Result<Result> {
        let mut absent = Vec::new();
        let mut present = Vec::new();
        for entry in &self.entries {
            match entry.contestant {
                Contestant::Peer(name) => match peers::available(name, entry.setup.database) {
                    Ok(()) => present.push(entry),
                    Err(why) => absent.push((entry.label.clone(), format!("{why:#}"))),
                },
                _ => present.push(entry),
            }
        }
        let bar = progress(u64::from(self.rounds) * present.len() as u64, &self.title);
        let mut standings: Vec<Option<Standing>> = vec![None; present.len()];
        for round in 1..=self.rounds {
            for (entry, standing) in present.iter().zip(&mut standings) {
                let out = absent.iter().any(|(label, _)| *label == entry.label);
                bar.set_message(format!("round {round}: {}", entry.label));
                bar.inc(1);
                if out {
                    continue;
                }
                match entry.turn(self.span).await {
                    Ok((mut new, outcome)) => {
                        let statements = std::mem::take(&mut new.statements);
                        let standing = standing.get_or_insert(new);
                        standing.rounds.push(outcome);
                        standing.statements = statements;
                    }
                    // A peer that fails is out, and says why; a failure of our own ends everything.
                    Err(error) if matches!(entry.contestant, Contestant::Peer(_)) => {
                        *standing = None;
                        absent.push((entry.label.clone(), format!("failed in round {round}: {error:#}")));
                    }
                    Err(error) => return Err(error.context(format!("{}, round {round}", entry.label))),
                }
            }
        }
        bar.finish_and_clear();
        Ok(Result { title: self.title.clone(), standings: standings.into_iter().flatten().collect(), absent })
    }
}

fn progress(turns: u64, title: &str) -> ProgressBar {
    let bar = ProgressBar::new(turns);
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {elapsed} {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(title.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

impl Entry {
    async fn turn(&self, span: Span) -> anyhow::Result<(Standing, Outcome)> {
        let standing = |promise, settings| Standing {
            label: self.label.clone(),
            promise,
            settings,
            rounds: Vec::new(),
            statements: Vec::new(),
        };
        match self.contestant {
            Contestant::Floor(batch) => {
                let mut floor = Floor::start(&self.setup).await?;
                let mut standing = standing("on disk", floor.settings().await?);
                let outcome = self.floor(&mut floor, batch, span).await?;
                standing.statements = floor.statements().await?;
                Ok((standing, outcome))
            }
            Contestant::Forebay => {
                let system = Forebay::start(&self.setup).await?;
                let mut standing = standing(system.promise().words(), system.settings().await?);
                let outcome = match self.scenario {
                    Scenario::Topics => topics::run(&system, &self.load, span).await,
                    _ => self.queue(&system, span).await,
                };
                match outcome {
                    Ok(outcome) => {
                        standing.statements = system.statements().await?;
                        Ok((standing, outcome))
                    }
                    Err(error) => Err(anyhow!("{error:#}\n{}", system.last_words().await)),
                }
            }
            Contestant::Peer(name) => {
                let system = peers::start(name, &self.setup).await?;
                let standing = standing(system.promise().words(), system.settings().await?);
                Ok((standing, self.queue(&*system, span).await?))
            }
        }
    }

    async fn queue(&self, system: &dyn System, span: Span) -> anyhow::Result<Outcome> {
        match self.scenario {
            Scenario::Lifecycle(backlog) => lifecycle::run(system, &self.load, span, backlog).await,
            Scenario::Enqueue(items) => enqueue::run(system, &self.load, items).await,
            Scenario::Drain(items) => drain::run(system, &self.load, items).await,
            Scenario::Latency(rate) => latency::run(system, &self.load, span, rate).await,
            Scenario::Delay(rate) => delay::run(system, &self.load, span, rate).await,
            Scenario::Idle { settle } => idle::run(system, &self.load, settle, span.measured).await,
            Scenario::Topics => anyhow::bail!("only Forebay tells which topics are active"),
        }
    }

    async fn floor(&self, floor: &mut Floor, batch: usize, span: Span) -> anyhow::Result<Outcome> {
        let (steps, backlog) = match self.scenario {
            Scenario::Lifecycle(lifecycle::Backlog::Empty) | Scenario::Topics => (Steps::All, 0),
            Scenario::Lifecycle(lifecycle::Backlog::LessUrgent(count) | lifecycle::Backlog::Alike(count)) => {
                (Steps::All, count)
            }
            Scenario::Enqueue(_) => (Steps::Insert, 0),
            Scenario::Drain(count) => (Steps::Drain, count),
            Scenario::Latency(_) | Scenario::Delay(_) | Scenario::Idle { .. } => {
                anyhow::bail!("the floor has no such scenario")
            }
        };
        floor::run(floor, &self.load, steps, batch, span, backlog).await
    }
}
