//! Mistakes that tests plant, to see whether the model finds them.

use forebay_engine::planted::{Bug, plant};

/// A mistake that somebody could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// In the program's own decisions.
    Planted(Bug),
    /// A renewal is a sign of life as of its end.
    TrustFromRenewalsEnd,
    /// The fence and the heartbeat are compared with the epoch alone.
    NoIncarnation,
    /// A shard is released while the outcome of its batch is not known.
    ReleaseBeforeOutcome,
    /// The claim is renewed only once the shard is loaded.
    NoRenewalWhileLoading,
    /// A take-over is compared with the epoch alone.
    ClaimIgnoresSignsOfLife,
    /// The assignment is written whatever its version is.
    AssignedBlindly,
}

impl Mistake {
    /// Plants what is in the program, or pulls it out. It is a matter of the thread, and stateright has its
    /// own threads: so the model does it before each step.
    pub(crate) fn plant(mistake: Option<Self>) {
        plant(match mistake {
            Some(Self::Planted(bug)) => Some(bug),
            _ => None,
        });
    }
}
