//! Whether, when and where a failed call is retried.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tonic::Code;

use crate::{
    config::RetryPolicy,
    endpoints::{Endpoint, Endpoints, Route},
    error::Error,
    rng::SharedRng,
};

/// Attempts of a call that follow one another without a pause, each as a new call.
const AT_ONCE_MAX: u32 = 4;

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Attempts {
    /// Limits pauses and attempts.
    policy: RetryPolicy,
    /// When the call must be over.
    until: Instant,
    /// Attempts so far.
    made: u32,
    /// Attempts in a row that had no pause before them: see [`Attempts::retry_at_once`].
    at_once: u32,
    /// Pauses so far; they grow.
    pauses: u32,
    /// Where attempts may go.
    endpoints: Arc<Endpoints>,
    /// Where they would rather go.
    route: Route,
    /// The endpoints of this round.
    tried: Vec<u32>,
    /// The endpoint of the last attempt.
    last: Option<Arc<Endpoint>>,
    /// The next attempt goes where the last one went.
    stay: bool,
    /// Last error of each endpoint that could not be reached.
    unreachable: Vec<(u32, Error)>,
    /// Makes pauses random.
    rng: Arc<SharedRng>,
}

/// Where and until when one attempt is made.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Where.
    pub(crate) endpoint: Arc<Endpoint>,
    /// When the call must be over.
    pub(crate) until: Instant,
}

impl Attempts {
    /// For a call that must be over at `until`.
    pub(crate) fn new(
        policy: RetryPolicy,
        until: Instant,
        endpoints: Arc<Endpoints>,
        route: Route,
        rng: Arc<SharedRng>,
    ) -> Self {
        let (tried, unreachable) = (Vec::new(), Vec::new());
        let (made, at_once, pauses, last, stay) = (0, 0, 0, None, false);
        Self { policy, until, made, at_once, pauses, endpoints, route, tried, last, stay, unreachable, rng }
    }

    /// Where the next attempt goes.
    pub(crate) fn target(&mut self) -> Result<Target, Error> {
        let stay = self.last.as_ref().filter(|_| self.stay).map(|endpoint| endpoint.id());
        if stay.is_some() {
            self.tried.retain(|id| Some(*id) != stay);
        }
        let endpoint = self.endpoints.choose(&self.route, stay, &mut self.tried);
        // Clients are only made with an endpoint.
        let none = || Error::local(Code::Internal, "there is no endpoint");
        let endpoint = endpoint.ok_or_else(none)?;
        self.last = Some(endpoint.clone());
        Ok(Target { endpoint, until: self.until })
    }

    /// Waits until the next attempt, after one in which these errors prevented the answer of the call or of
    /// members. `false`: there is none, and the errors are final.
    pub(crate) async fn wait_for_retry(&mut self, after: &[&Error]) -> bool {
        self.made += 1;
        after.iter().for_each(|error| self.remember(error));
        if !after.iter().all(|error| error.is_transient()) || self.made >= self.policy.attempts {
            return false;
        }
        // A server that has no room for now works: to leave it would break the order of what is sent there.
        self.stay = after.iter().any(|error| error.code() == Code::ResourceExhausted);
        if after.iter().all(|error| error.another_may_serve()) && self.can_move_on() {
            return Instant::now() < self.until;
        }
        self.pauses += 1;
        let retry_after = after.iter().filter_map(|error| error.retry_after()).max();
        let pause = pause(self.policy, self.pauses, retry_after, &self.rng);
        if Instant::now() + pause >= self.until {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }

    /// Whether the next attempt may be made without a pause, as a call of its own that another shard serves.
    /// Several in a row may; then there is a pause.
    pub(crate) fn retry_at_once(&mut self, after: &[&Error]) -> bool {
        // Another server is asked without a pause anyway.
        if self.can_move_on() {
            return false;
        }
        if self.at_once >= AT_ONCE_MAX || self.made + 1 >= self.policy.attempts {
            self.at_once = 0;
            return false;
        }
        (self.made, self.at_once) = (self.made + 1, self.at_once + 1);
        after.iter().for_each(|error| self.remember(error));
        // A server that has said so for one shard serves others.
        self.stay = true;
        Instant::now() < self.until
    }

    /// Whether there is an endpoint that works and was not asked in this round.
    pub(crate) fn can_move_on(&self) -> bool {
        self.endpoints.has_fresh(&self.tried)
    }

    /// The call's error, after its last attempt failed as a whole. If several servers could not be reached,
    /// it names them all.
    pub(crate) fn final_error(&self, last: Error) -> Error {
        match self.unreachable.len() {
            2.. if last.is_disconnected() => {
                last.with_others(self.unreachable.iter().map(|(_, error)| error))
            }
            _ => last,
        }
    }

    fn remember(&mut self, error: &Error) {
        let Some(id) = self.last.as_ref().map(|endpoint| endpoint.id()) else { return };
        self.unreachable.retain(|(other, _)| *other != id);
        if error.is_disconnected() {
            self.unreachable.push((id, error.clone()));
        }
    }
}

/// The n-th pause of a call, or of something else that is repeated.
pub(crate) fn pause(
    policy: RetryPolicy,
    nth: u32,
    retry_after: Option<Duration>,
    rng: &SharedRng,
) -> Duration {
    let factor = 1u32.checked_shl(nth.saturating_sub(1)).unwrap_or(u32::MAX);
    let bound = policy.initial.saturating_mul(factor).min(policy.max);
    rng.up_to(bound).saturating_add(retry_after.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_maximum_and_respect_the_server() {
        let rng = SharedRng::new(Some(1));
        let policy = RetryPolicy::default();
        let mut longest = Duration::ZERO;
        for nth in 1..40 {
            let random = pause(policy, nth, None, &rng);
            assert!(random <= policy.max.min(policy.initial * 2u32.saturating_pow(nth - 1)));
            longest = longest.max(random);
            assert!(pause(policy, nth, Some(Duration::from_secs(7)), &rng) >= Duration::from_secs(7));
        }
        assert!(longest > policy.max / 2, "{longest:?}");
    }
}
