//! Hands a shard over to another node: nothing new is taken, what was accepted is committed, then the shard
//! is released in the name of its successor.

use std::collections::BTreeMap;

use forebay_types::{Monotonic, ShardId};

use crate::{api::Duty, claim::HandOver, core::Core, index::ShardIndex, messages::shard::ShardOrder};

/// Sets the node's duties for these shards from now on.
pub(crate) fn set_duties(core: &mut Core, duties: BTreeMap<ShardId, Duty>) {
    for (id, duty) in duties {
        let Some(index) = core.slots.index_of(id) else { continue };
        let slot = &mut core.slots[index];
        slot.duty.send_if_modified(|now| {
            *now != duty && {
                now.clone_from(&duty);
                true
            }
        });
        match duty {
            Duty::Leave { successor } => begin(core, index, successor),
            // Once its task was told to release it, it is taken over again after that.
            Duty::Own => {
                if slot.hand_over.take_if(|hand_over| !hand_over.ordered).is_some() {
                    core.begin_walk(index);
                }
            }
        }
    }
    core.report_served();
}

/// Begins to hand a shard over, if the node owns it.
pub(super) fn begin(core: &mut Core, index: ShardIndex, successor: String) {
    let at = core.time.monotonic();
    let slot = &mut core.slots[index];
    if slot.holding.is_none() {
        return;
    }
    let Some(hand_over) = HandOver::begin(slot.hand_over.as_ref(), successor, at) else { return };
    if slot.hand_over.is_none() {
        let successor = &hand_over.successor;
        let to = if successor.is_empty() { "any node" } else { successor };
        tracing::info!(shard.id = slot.id.0, "shard {} is handed over to {to}", slot.id);
    }
    slot.hand_over = Some(hand_over);
    // Its items take no part in the merge any more.
    core.begin_walk(index);
}

/// Releases a shard that is to be handed over, once nothing of it waits, or the time is over.
pub(crate) fn advance(core: &mut Core, index: ShardIndex, at: Monotonic) {
    let slot = &mut core.slots[index];
    let (Some(hand_over), Some(holding)) = (&mut slot.hand_over, &mut slot.holding) else { return };
    if !hand_over.is_due(holding.shard.is_idle(), at) {
        return;
    }
    hand_over.ordered = true;
    // From now on its successor may own it.
    holding.shard.resign();
    let successor = hand_over.successor.clone();
    let _ = slot.tasks.send(ShardOrder::Release { term: slot.term, successor });
}

#[cfg(test)]
mod tests {
    use forebay_types::{Incarnation, Reason};

    use super::*;
    use crate::{
        api::{OwnerAnswer, OwnerQuestion, ShardState},
        ownership::owns,
    };

    const SHARD: ShardId = ShardId(1);
    const INDEX: ShardIndex = ShardIndex(0);

    fn leave(core: &mut Core, successor: &str) {
        set_duties(core, BTreeMap::from([(SHARD, Duty::Leave { successor: successor.to_owned() })]));
    }

    #[test]
    fn a_shard_that_is_handed_over_takes_nothing_and_is_released_once_nothing_waits() {
        let (mut core, mut orders) = Core::for_test_with_shard();
        leave(&mut core, "b:1");
        let slot = &core.slots[INDEX];
        assert!(!slot.is_healthy() && !slot.is_merged());
        assert_eq!(slot.refusal().reason, Reason::NotOwner);
        let at = core.time.monotonic();
        advance(&mut core, INDEX, at);
        match orders.try_recv() {
            Ok(ShardOrder::Release { successor, .. }) => assert_eq!(successor, "b:1"),
            _ => panic!("it is idle, and is released at once"),
        }
        assert!(!core.slots.owned(INDEX).unwrap().is_trusted(at), "its successor may own it already");
        advance(&mut core, INDEX, at);
        assert!(orders.try_recv().is_err(), "once");
    }

    #[test]
    fn a_shard_that_the_node_is_to_keep_after_all_is_served_again() {
        let (mut core, mut orders) = Core::for_test_with_shard();
        leave(&mut core, "");
        set_duties(&mut core, BTreeMap::from([(SHARD, Duty::Own)]));
        assert!(core.slots[INDEX].is_merged());
        let at = core.time.monotonic();
        advance(&mut core, INDEX, at);
        assert!(orders.try_recv().is_err());
    }

    #[test]
    fn an_owner_that_is_not_sure_any_more_steps_down_before_it_says_no() {
        let (mut core, mut orders) = Core::for_test_with_shard();
        let incarnation = Incarnation([0; 16]);
        let question = OwnerQuestion { shard: SHARD, epoch: 3, incarnation, server_slow: false };
        assert_eq!(owns(&mut core, question), OwnerAnswer::Owns);
        let others = [
            OwnerQuestion { epoch: 4, ..question },
            OwnerQuestion { incarnation: Incarnation([1; 16]), ..question },
            OwnerQuestion { shard: ShardId(2), ..question },
        ];
        assert!(
            others.into_iter().all(|other| owns(&mut core, other) == OwnerAnswer::Resigned)
                && core.slots[INDEX].holding.is_some()
        );
        core.slots.owned_mut(INDEX).unwrap().resign();
        let beside_a_slow_server = OwnerQuestion { server_slow: true, ..question };
        assert_eq!(owns(&mut core, beside_a_slow_server), OwnerAnswer::Unsure);
        assert!(core.slots[INDEX].holding.is_some(), "nobody would do better");
        assert_eq!(owns(&mut core, question), OwnerAnswer::Resigned);
        assert!(core.slots[INDEX].holding.is_none());
        assert_eq!(core.slots[INDEX].state, ShardState::Waiting);
        assert!(matches!(orders.try_recv(), Ok(ShardOrder::Dropped { .. })), "its connections end");
    }
}
