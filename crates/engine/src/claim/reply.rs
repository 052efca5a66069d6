//! The reply of a node to a candidate that asks whether it owns a shard.

use forebay_types::Incarnation;

use crate::planted::{Bug, on};

/// The reply of a node to a candidate's question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It says yes: it owns the shard in that tenure, and trusts its claim.
    Owns,
    /// It keeps the shard without being sure of its claim: where the server is slow, so are renewals, and no
    /// other node would do better.
    Unsure,
    /// It drops the shard's memory, and then says no.
    StepDown,
    /// It says no, and will serve nobody in that tenure: see [`DeniedTenure`].
    Deny,
}

/// Decides the reply to a question. `tenure`: whether the node owns the shard in the tenure that the
/// candidate names, and if so, whether it trusts its claim. `server_slow`: so it is for the candidate.
pub fn reply(tenure: Option<bool>, server_slow: bool) -> Reply {
    match tenure {
        Some(true) => Reply::Owns,
        Some(false) if on(Bug::DeniesAndStays) => Reply::Deny,
        Some(false) if server_slow && !on(Bug::UnsureStepsDown) => Reply::Unsure,
        Some(false) => Reply::StepDown,
        None => Reply::Deny,
    }
}

/// The newest tenure that a node has denied. It may be taking the shard over in just that tenure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct DeniedTenure(Option<(u64, Incarnation)>);

impl DeniedTenure {
    /// A candidate was told that the node does not own the shard in this tenure. A question about an earlier
    /// one may have come late: what was said since then stays true.
    pub fn note(&mut self, epoch: u64, incarnation: Incarnation) {
        if self.0.is_none_or(|(newest, _)| newest <= epoch) {
            self.0 = Some((epoch, incarnation));
        }
    }

    /// Whether the node may serve the shard in a tenure that it has just begun.
    pub fn allows(&self, epoch: u64, incarnation: Incarnation) -> bool {
        self.0 != Some((epoch, incarnation)) || on(Bug::DeniedAndServed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_sure_steps_down_and_who_does_not_own_denies() {
        let replies = |slow| [Some(true), Some(false), None].map(|tenure| reply(tenure, slow));
        assert_eq!(replies(false), [Reply::Owns, Reply::StepDown, Reply::Deny]);
        assert_eq!(replies(true), [Reply::Owns, Reply::Unsure, Reply::Deny], "nobody would do better");
    }

    #[test]
    fn a_tenure_that_was_denied_is_not_served() {
        let incarnation = Incarnation([7; 16]);
        let mut denied = DeniedTenure::default();
        assert!(denied.allows(3, incarnation));
        denied.note(3, incarnation);
        assert!(!denied.allows(3, incarnation));
        assert!(denied.allows(4, incarnation) && denied.allows(3, Incarnation([8; 16])));
    }

    #[test]
    fn a_late_question_about_an_earlier_tenure_takes_no_denial_back() {
        let (first, second) = (Incarnation([1; 16]), Incarnation([2; 16]));
        let mut denied = DeniedTenure::default();
        denied.note(4, second);
        denied.note(3, first);
        assert!(!denied.allows(4, second));
        denied.note(5, first);
        assert!(!denied.allows(5, first));
    }
}
