//! Verdict on an item by the end of its command.

use std::{io, time::Duration};

use forebay_client::{Outcome, ReceivedItem};
use rand::{RngExt as _, rngs::StdRng};

use super::{
    child::End,
    result_file::{CommandOutcome, CommandResult},
    stderr_tail,
};

/// Exit statuses of shells for a command that can't be run.
const CANNOT_RUN: [u8; 2] = [126, 127];
/// The delivery of an item without a failure that counts as one if the command can't be run for it. Before
/// that it may be the worker that lacks something.
const CANNOT_RUN_MAX: u32 = 3;

/// Which exit status means what, and how long failed items wait.
#[derive(Debug)]
pub struct Rules {
    /// Statuses that mean that an item is done.
    pub ack_on: Vec<u8>,
    /// Statuses that make it a dead letter.
    pub dead_letter_on: Vec<u8>,
    /// The delay after the first failure.
    pub retry_delay: Duration,
    /// The longest delay.
    pub retry_max: Duration,
    /// How long a command may take, to be named.
    pub timeout: Option<Duration>,
}

/// Verdict on an item.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Outcome that the server is told.
    pub outcome: Outcome,
    /// Why, if it is not simply done.
    pub why: String,
    /// The command could not be run, if so.
    pub cannot_run: Option<CannotRun>,
}

/// Object that can't be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CannotRun {
    /// The command itself: whatever the item, it would be the same.
    Command,
    /// Something for this item, perhaps.
    Item,
}

/// How an item fared before, with this delivery.
#[derive(Debug, Clone, Copy)]
pub struct Past {
    /// Deliveries that ended in a failure.
    pub failures: u32,
    /// Deliveries that ended without one, and this one.
    pub others: u32,
}

impl Past {
    /// Counts them by a delivery.
    pub fn of(item: &ReceivedItem) -> Self {
        Self { failures: item.failures, others: item.attempt.saturating_sub(item.failures) }
    }
}

impl Rules {
    /// Judges an item.
    pub fn judge(
        &self,
        end: End,
        stderr: &[u8],
        said: Result<Option<CommandResult>, String>,
        past: Past,
    ) -> Verdict {
        let because = |why: String| match stderr_tail::reason(stderr) {
            reason if reason.is_empty() => why,
            reason => reason,
        };
        let retry = |why: String| Verdict {
            outcome: Outcome::retry(self.delay(past.failures), &why),
            why,
            cannot_run: None,
        };
        let release =
            |why: &str| Verdict { outcome: Outcome::Release, why: why.to_owned(), cannot_run: None };
        let cannot_run = |why: String, which| {
            let why = format!("the command cannot be run: {why}");
            let counts = which == CannotRun::Item && past.others >= CANNOT_RUN_MAX;
            Verdict { cannot_run: Some(which), ..if counts { retry(why) } else { release(&why) } }
        };
        let status = match end {
            End::Exited(status) => status,
            End::Signalled(signal) => return retry(because(format!("killed by signal {signal}"))),
            // The environment that an item makes may be too large.
            End::NotRun(io::ErrorKind::ArgumentListTooLong, why) => return cannot_run(why, CannotRun::Item),
            End::NotRun(_, why) => return cannot_run(why, CannotRun::Command),
            End::Stopped => return release("the worker stops"),
            End::LeaseLost => return release("LEASE_LOST: another consumer may have the item"),
            End::TimedOut => {
                let after = humantime::format_duration(self.timeout.unwrap_or_default());
                return retry(format!("timed out after {after}"));
            }
        };
        match said {
            Ok(Some(said)) => {
                return self.obey(said, past.failures, &because(format!("exit status {status}")));
            }
            Err(wrong) => return retry(format!("FOREBAY_RESULT_FILE is not valid: {wrong}")),
            Ok(None) => {}
        }
        if self.ack_on.contains(&status) {
            return Verdict { outcome: Outcome::Ack, why: String::new(), cannot_run: None };
        }
        let why = because(format!("exit status {status}"));
        if self.dead_letter_on.contains(&status) {
            return Verdict { outcome: Outcome::reject(&why), why, cannot_run: None };
        }
        if CANNOT_RUN.contains(&status) {
            return cannot_run(why, CannotRun::Item);
        }
        retry(why)
    }

    /// Follows the wish of the command itself.
    fn obey(&self, said: CommandResult, failures: u32, otherwise: &str) -> Verdict {
        let why = said.reason.unwrap_or_else(|| otherwise.to_owned());
        let outcome = match said.outcome {
            CommandOutcome::Ack => Outcome::Ack,
            CommandOutcome::Release => Outcome::Release,
            CommandOutcome::DeadLetter => Outcome::reject(&why),
            CommandOutcome::Nack => Outcome::Retry {
                delay: said.delay.unwrap_or_else(|| self.delay(failures)),
                reason: why.clone(),
                metadata: said.metadata,
            },
        };
        Verdict { outcome, why, cannot_run: None }
    }

    /// Doubled by each failure, up to the longest; and then a random part of it, at least half.
    fn delay(&self, failures: u32) -> Duration {
        let factor = 2_u32.saturating_pow(failures);
        let delay = self.retry_delay.saturating_mul(factor).min(self.retry_max);
        delay.mul_f64(rand::make_rng::<StdRng>().random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            ack_on: vec![0],
            dead_letter_on: vec![65, 100],
            retry_delay: Duration::from_secs(5),
            retry_max: Duration::from_secs(600),
            timeout: Some(Duration::from_secs(300)),
        }
    }

    /// It is the first delivery.
    const FIRST: Past = Past { failures: 0, others: 1 };

    fn judged(end: End, stderr: &[u8]) -> Verdict {
        rules().judge(end, stderr, Ok(None), FIRST)
    }

    #[test]
    fn what_cannot_be_run_for_an_item_counts_as_a_failure_the_third_time() {
        let judge = |end, failures, others| rules().judge(end, b"", Ok(None), Past { failures, others });
        for status in [126, 127] {
            for (failures, others) in [(0, 1), (0, 2), (3, 2)] {
                let verdict = judge(End::Exited(status), failures, others);
                assert_eq!((verdict.outcome, verdict.cannot_run), (Outcome::Release, Some(CannotRun::Item)));
            }
            for (failures, others) in [(0, 3), (2, 3), (0, 9)] {
                let verdict = judge(End::Exited(status), failures, others);
                assert!(matches!(verdict.outcome, Outcome::Retry { .. }), "{failures} {others}");
                assert_eq!(verdict.cannot_run, Some(CannotRun::Item), "it may end the worker with others");
            }
        }
        let too_large = || End::NotRun(io::ErrorKind::ArgumentListTooLong, "too long".to_owned());
        assert_eq!(judge(too_large(), 0, 1).outcome, Outcome::Release);
        assert!(
            matches!(judge(too_large(), 0, 3).outcome, Outcome::Retry { .. }),
            "its headers are too large"
        );
        let nowhere = judge(End::NotRun(io::ErrorKind::NotFound, "not there".to_owned()), 0, 99);
        assert_eq!(nowhere.outcome, Outcome::Release, "no item is to blame");
        assert_eq!(nowhere.cannot_run, Some(CannotRun::Command));
    }

    #[test]
    fn delays_are_doubled_by_failures_and_have_jitter() {
        for (failures, most) in [(0, 5), (1, 10), (3, 40), (7, 600), (999, 600)] {
            let most = Duration::from_secs(most);
            let delay = rules().delay(failures);
            assert!(delay >= most / 2 && delay <= most, "{failures}: {delay:?}");
        }
    }

    #[test]
    fn each_end_has_its_outcome() {
        assert_eq!(judged(End::Exited(0), b"noise").outcome, Outcome::Ack);
        assert_eq!(judged(End::Exited(65), b"bad\n").outcome, Outcome::reject("bad"));
        assert_eq!(judged(End::Exited(100), b"").outcome, Outcome::reject("exit status 100"));
        for status in [126, 127] {
            let verdict = judged(End::Exited(status), b"sh: nothing");
            assert!(verdict.outcome == Outcome::Release && verdict.cannot_run.is_some());
        }
        for (end, why) in [
            (End::Exited(75), "exit status 75"),
            (End::Exited(1), "exit status 1"),
            (End::Signalled(9), "killed by signal 9"),
            (End::TimedOut, "timed out after 5m"),
        ] {
            let verdict = judged(end, b"");
            assert!(
                matches!(verdict.outcome, Outcome::Retry { ref reason, .. } if reason == why),
                "{verdict:?}"
            );
        }
        assert_eq!(judged(End::Stopped, b"x").outcome, Outcome::Release);
        assert_eq!(judged(End::LeaseLost, b"x").outcome, Outcome::Release);
    }

    #[test]
    fn the_file_says_more_than_the_status() {
        let said = |outcome| CommandResult { outcome, delay: None, reason: None, metadata: None };
        let judge = |status, said| rules().judge(End::Exited(status), b"", said, FIRST).outcome;
        assert_eq!(judge(1, Ok(Some(said(CommandOutcome::Ack)))), Outcome::Ack);
        assert_eq!(judge(0, Ok(Some(said(CommandOutcome::DeadLetter)))), Outcome::reject("exit status 0"));
        assert_eq!(judge(0, Ok(Some(said(CommandOutcome::Release)))), Outcome::Release);
        let nack = CommandResult {
            delay: Some(Duration::from_secs(7)),
            metadata: Some("m".into()),
            ..said(CommandOutcome::Nack)
        };
        let Outcome::Retry { delay, metadata, .. } = judge(0, Ok(Some(nack))) else { panic!() };
        assert_eq!((delay, metadata.as_deref()), (Duration::from_secs(7), Some(&b"m"[..])));
        // An ack of something that went wrong would lose the item.
        let Outcome::Retry { reason, .. } = judge(0, Err("EOF".to_owned())) else { panic!() };
        assert!(reason.contains("FOREBAY_RESULT_FILE") && reason.contains("EOF"));
    }
}
