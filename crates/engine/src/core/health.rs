//! How a shard is doing: whether it answers, its circuit breaker, and what operators are told of both. Each
//! change is one line of the log.

use std::time::Duration;

use forebay_store::{ErrorClass, StoreError};
use forebay_types::{Monotonic, ShardId, Timestamp};

use super::breaker::Breaker;
use crate::{api::BreakerPhase, clock::Moment};

/// Losses of a shard that are shown: the last ones.
const LOSSES_SHOWN: usize = 3;
/// How long a loss is shown.
const LOSSES_SHOWN_FOR: Duration = Duration::from_secs(24 * 3_600);

/// The health of one shard.
pub(crate) struct Health {
    /// The shard's number.
    id: ShardId,
    /// Where the store keeps it, for operators.
    server: String,
    /// The shard's circuit breaker.
    breaker: Breaker,
    /// Since when the breaker is not closed.
    breaker_since: Option<Monotonic>,
    /// Since when the shard does not answer.
    silent_since: Option<Monotonic>,
    /// The same, until it has answered in time and the log says so.
    said_silent: Option<Monotonic>,
    /// Something is not answered yet. Its answer will be late.
    answer_is_late: bool,
    /// Since when the node owns the shard. Both clocks, as a time shown twice must not differ.
    owned_since: Option<Moment>,
    /// Since when the node does not own the shard any more.
    lost_since: Option<Monotonic>,
    /// The address of the owner that is waited for.
    waits_for: Option<String>,
    /// The log has that this node waits for it.
    wait_was_said: bool,
    /// Warnings for operators about the server's settings.
    concerns: Vec<String>,
    /// Its losses, as take-overs of this node found.
    losses: Vec<(Monotonic, String)>,
    /// Whether its items took part in the merge when it was last maintained.
    was_merged: bool,
    /// The last failure, for operators.
    last_error: String,
    /// The server's clock is far from node time, and the log says so.
    clock_off: bool,
}

impl Health {
    /// Of a shard that nothing is known of yet, and that the store keeps on `server`.
    pub fn new(id: ShardId, server: String, at: Monotonic) -> Self {
        Self {
            id,
            server,
            breaker: Breaker::new(at),
            breaker_since: None,
            silent_since: None,
            said_silent: None,
            answer_is_late: false,
            owned_since: None,
            lost_since: None,
            waits_for: None,
            wait_was_said: false,
            concerns: Vec::new(),
            losses: Vec::new(),
            was_merged: true,
            last_error: String::new(),
            clock_off: false,
        }
    }

    /// A new owner begins with a closed breaker.
    pub fn taken_over(&mut self, moment: Moment) {
        let at = moment.at;
        let Self { id, server, lost_since, .. } = self;
        metrics::counter!("forebay_take_overs_total", "shard" => id.to_string()).increment(1);
        if let Some(since) = lost_since.take() {
            let after = at.since(since);
            tracing::warn!(shard.id = id.0, "shard {id} ({server}) is owned again after {after:.1?}");
        }
        self.owned_since = Some(moment);
        (self.waits_for, self.wait_was_said) = (None, false);
        self.last_error.clear();
        self.answers(at);
    }

    /// The shard is lost: another node owns it, or it is taken over anew.
    pub fn lost(&mut self, at: Monotonic, epoch: u64) {
        let (id, server, owned) = (self.id, &self.server, self.owned_for(at));
        tracing::warn!(
            shard.id = id.0,
            epoch,
            "shard {id} ({server}) lost after {owned:.1?}; taking it over again once it has no other owner"
        );
        self.lost_since = Some(at);
        self.not_owned_any_more(at);
    }

    /// The shard was given up as asked.
    pub fn released(&mut self, at: Monotonic, epoch: u64) {
        let (id, server, owned) = (self.id, &self.server, self.owned_for(at));
        tracing::info!(shard.id = id.0, epoch, "shard {id} ({server}) released after {owned:.1?}");
        self.not_owned_any_more(at);
    }

    fn owned_for(&self, at: Monotonic) -> Duration {
        self.owned_since.map_or(Duration::ZERO, |since| at.since(since.at))
    }

    /// Of a shard that is not owned, nothing passes anyway.
    fn not_owned_any_more(&mut self, at: Monotonic) {
        self.owned_since = None;
        self.change_breaker(at, "the shard is lost", |breaker| *breaker = Breaker::new(at));
    }

    /// Another node owns the shard. `wanted`: this one is to own it.
    pub fn waits_for(&mut self, owner: String, wanted: bool, at: Monotonic) {
        self.answers(at);
        if owner.is_empty() {
            return;
        }
        let said = self.wait_was_said && self.waits_for.as_ref() == Some(&owner);
        self.wait_was_said = wanted || said;
        if wanted && !said {
            let Self { id, server, .. } = &*self;
            tracing::info!(
                shard.id = id.0,
                "shard {id} ({server}) is owned by {owner}; waiting until that node releases it or is silent"
            );
        }
        self.waits_for = Some(owner);
    }

    /// The address of the owner that is waited for.
    pub fn owner(&self) -> &str {
        self.waits_for.as_deref().unwrap_or_default()
    }

    /// Where the store keeps the shard.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Sets the warnings for operators about the server's settings.
    pub fn set_concerns(&mut self, concerns: Vec<String>) {
        self.concerns = concerns;
    }

    /// The warnings for operators about the server's settings.
    pub fn concerns(&self) -> &[String] {
        &self.concerns
    }

    /// A take-over found that it has lost something. Only the last few are shown.
    pub fn has_lost(&mut self, losses: Vec<String>, at: Monotonic) {
        self.losses.extend(losses.into_iter().map(|loss| (at, loss)));
        let surplus = self.losses.len().saturating_sub(LOSSES_SHOWN);
        self.losses.drain(..surplus);
    }

    /// Its losses of late.
    pub fn losses(&self, at: Monotonic) -> Vec<String> {
        let fresh = self.losses.iter().filter(|(since, _)| at.since(*since) < LOSSES_SHOWN_FOR);
        fresh.map(|(_, loss)| loss.clone()).collect()
    }

    /// The breaker's phase.
    pub fn phase(&self) -> BreakerPhase {
        self.breaker.phase()
    }

    /// Since when the breaker is not closed.
    pub fn breaker_since(&self) -> Option<Monotonic> {
        self.breaker_since
    }

    /// Since when this node owns the shard.
    pub fn owned_since(&self) -> Option<Timestamp> {
        self.owned_since.map(|since| since.now)
    }

    /// Since when the shard does not answer.
    pub fn silent_since(&self) -> Option<Monotonic> {
        self.silent_since
    }

    /// The last failure, for operators.
    pub fn last_error(&self) -> &str {
        &self.last_error
    }

    /// Something failed that says nothing about the shard's commits.
    pub fn note(&mut self, error: String) {
        self.last_error = error;
    }

    /// Something has not been answered in time.
    pub fn late(&mut self, why: &str, at: Monotonic) {
        self.answer_is_late = true;
        self.silent(why, at);
    }

    /// The shard does not answer.
    pub fn silent(&mut self, why: &str, at: Monotonic) {
        self.last_error = why.to_owned();
        self.silent_since.get_or_insert(at);
        if self.said_silent.is_none() {
            let Self { id, server, .. } = &*self;
            tracing::warn!(shard.id = id.0, "shard {id} ({server}) does not answer: {why}");
            self.said_silent = Some(at);
        }
    }

    /// The shard answers. The log waits for an answer in time: a shard whose answers are all late is told of
    /// once.
    pub fn answers(&mut self, at: Monotonic) {
        self.silent_since = None;
        if std::mem::take(&mut self.answer_is_late) {
            return;
        }
        if let Some(since) = self.said_silent.take() {
            let (Self { id, server, .. }, after) = (&*self, at.since(since));
            tracing::warn!(shard.id = id.0, "shard {id} ({server}) answers again after {after:.1?}");
        }
    }

    /// A renewal of the claim failed.
    pub fn renewal_failed(&mut self, error: &StoreError, at: Monotonic) {
        if error.class == ErrorClass::Disconnected {
            self.answer_is_late = false;
            self.silent(&error.message, at);
        }
        self.strike(error.to_string(), at);
    }

    /// A statement, a read or a commit failed.
    pub fn strike(&mut self, error: String, at: Monotonic) {
        self.last_error = error;
        let why = self.last_error.clone();
        self.change_breaker(at, &why, |breaker| breaker.strike(at));
    }

    /// A read failed. Where all connections of this node are in use, the database may be well.
    pub fn read_failed(&mut self, error: &StoreError, at: Monotonic) {
        if error.class == ErrorClass::NoConnection {
            metrics::counter!("forebay_reads_without_connection_total").increment(1);
            self.note(error.to_string());
        } else {
            self.strike(error.to_string(), at);
        }
    }

    /// A batch was committed after `took`.
    pub fn committed(&mut self, at: Monotonic, took: Duration) {
        self.change_breaker(at, "commits are slow", |breaker| breaker.committed(at, took));
    }

    /// A batch was not committed.
    pub fn undone(&mut self, at: Monotonic) {
        self.change_breaker(at, "the probe was not committed", |breaker| breaker.undone(at));
    }

    /// A batch is in flight for too long.
    pub fn slow(&mut self, at: Monotonic) {
        self.change_breaker(at, "a commit is slow", |breaker| breaker.open(at));
    }

    /// Time passes. `idle`: no batch is in flight. Returns whether the shard's items begin or cease to take
    /// part in the merge.
    pub fn tick(&mut self, at: Monotonic, idle: bool) -> bool {
        self.change_breaker(at, "", |breaker| breaker.tick(at, idle));
        let merged = self.breaker.phase() == BreakerPhase::Closed;
        std::mem::replace(&mut self.was_merged, merged) != merged
    }

    /// When [`Health::tick`] has something to do.
    pub fn next_wake(&self) -> Option<Monotonic> {
        self.breaker.next_wake()
    }

    /// Changes the breaker, perhaps. The log says when it opens and when it is closed, and nothing of its
    /// probes.
    fn change_breaker(&mut self, at: Monotonic, why: &str, change: impl FnOnce(&mut Breaker)) {
        let before = self.breaker.phase();
        change(&mut self.breaker);
        let phase = self.breaker.phase();
        if phase == before {
            return;
        }
        let Self { id, server, breaker_since, .. } = self;
        metrics::counter!(
            "forebay_breaker_changes_total", "shard" => id.to_string(), "to" => phase.as_str()
        )
        .increment(1);
        if phase == BreakerPhase::Closed {
            let after = breaker_since.take().map_or(Duration::ZERO, |since| at.since(since));
            tracing::info!(shard.id = id.0, "the breaker of shard {id} ({server}) closed after {after:.1?}");
        } else if breaker_since.is_none() {
            tracing::warn!(shard.id = id.0, "the breaker of shard {id} ({server}) opened: {why}");
            *breaker_since = Some(at);
        }
    }

    /// Whether the server's clock is off. Returns whether it is from now on.
    pub fn set_clock_off(&mut self, off: bool) -> bool {
        let was_off = std::mem::replace(&mut self.clock_off, off);
        off && !was_off
    }
}
