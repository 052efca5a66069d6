//! Waiting for something to happen in the containers, which run on real time.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The time since the beginning of a run.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins now.
    #[expect(clippy::disallowed_methods, reason = "what a run takes is only displayed")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Prints a line with the seconds until now.
    pub fn say(&self, what: &str) {
        println!("{:4} s  {what}", self.0.elapsed().as_secs());
    }
}

/// Looks until there is something. Fails after `timeout`, or as soon as a look fails.
#[expect(clippy::disallowed_methods, reason = "the processes in containers run on real time")]
pub fn until<T>(
    what: &str,
    timeout: Duration,
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("not within {timeout:?}: {what}");
        }
        thread::sleep(LOOK_EVERY);
    }
}
