//! The engine's part of an orderly stop: no new work, what was accepted is committed and answered, the
//! shards are given up.

use tokio::sync::oneshot;

use crate::{
    api::ShardState,
    core::Core,
    dispatch::answer,
    messages::shard::ShardOrder,
    planted::{Bug, on},
};

/// Long polls that one turn answers.
const POLLS_PER_TURN: usize = 500;

/// Begins to stop. Long polls are answered empty.
pub(crate) fn serve(core: &mut Core, reply: oneshot::Sender<()>) {
    core.stopping.begin(reply, || core.polls.ids());
    answer_polls(core);
}

/// Answers a slice of the polls that waited when the stop began.
fn answer_polls(core: &mut Core) {
    for _ in 0..POLLS_PER_TURN {
        let Some(id) = core.stopping.next_poll() else { return };
        answer::empty(core, id);
    }
}

/// Gives the shards up once everything accepted is committed and answered, and tells who waits when that is
/// done.
pub(crate) fn advance(core: &mut Core) {
    if !core.stopping.is_stopping() {
        return;
    }
    answer_polls(core);
    if !core.stopping.is_releasing() {
        let idle = core.slots.iter().all(|slot| slot.owned().is_none_or(|shard| shard.is_idle()));
        // An answer may need no more than a read of the store: where the item of a lost lease is.
        let answered = core.polls.is_empty() && core.calls.is_empty();
        if (!idle || !answered) && !on(Bug::StopHasty) {
            return;
        }
        core.stopping.begin_releasing();
        for slot in core.slots.iter() {
            let _ = slot.tasks.send(ShardOrder::Stop);
        }
    }
    if has_stopped(core) {
        for reply in core.stopping.take_waiting() {
            let _ = reply.send(());
        }
    }
}

/// Every shard is given up.
pub(crate) fn has_stopped(core: &Core) -> bool {
    core.stopping.is_releasing() && core.slots.iter().all(|slot| slot.state == ShardState::Stopped)
}
