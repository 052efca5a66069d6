//! Where the members of a call belong.

use forebay_types::{Elsewhere, Refusal, ShardId};
use tokio::sync::oneshot;

/// Where the members of a call belong.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemberPlaces {
    /// The shard that this node would take for the next items of the call's first topic, if callers may name
    /// one: every node that lives knows of that.
    pub next_shard: Option<ShardId>,
    /// The rank of the first item of an enqueue; those of the others follow it one by one.
    pub first_rank: i64,
    /// The members that are for other nodes.
    pub misplaced: Vec<MisplacedMember>,
}

/// A member of a call whose shard another node owns. Nothing of it has happened here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisplacedMember {
    /// Its place in the call.
    pub index: usize,
    /// The shard, and who owns it.
    pub elsewhere: Elsewhere,
}

impl MisplacedMember {
    /// The member, if that is why it is refused.
    pub(crate) fn of(index: usize, refusal: &Refusal) -> Option<Self> {
        refusal.elsewhere.clone().map(|elsewhere| Self { index, elsewhere })
    }
}

/// Is told where the members of a call belong as soon as that is known, while some of them may still wait for
/// their commit. Each misplaced one is refused in the call's answer too. Dropped if the call is refused as a
/// whole.
pub type Notice = oneshot::Sender<MemberPlaces>;
