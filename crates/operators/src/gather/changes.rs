//! Changes of items, wherever they are. All nodes are asked at once, and each changes those in its shards.

use std::time::Duration;

use forebay_engine::{ChangeCall, ChangeResult, RETRY_AFTER};
use forebay_peers::NoAnswer;
use forebay_types::{ItemId, Reason, Refusal};

use super::Gather;

/// How long this node's shards may take. Other nodes have as long as a look.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(8);

impl Gather {
    /// Changes items. Returns one answer for each of them, in their order.
    pub async fn change_items(&self, call: &ChangeCall) -> Vec<ChangeResult> {
        let own = tokio::time::timeout(CHANGE_TIMEOUT, self.engine.change_items(call.clone()));
        let asked =
            self.ask_others(|links, address| async move { Some(links.change_items(&address, call).await) });
        let (own, others) = tokio::join!(own, asked);
        let (mut answers, mut without) = (Vec::new(), Vec::new());
        for other in others {
            match other {
                Ok(answer) => answers.push(answer),
                Err(why) => without.push(why),
            }
        }
        // It tells nothing of items of other nodes.
        let mut refused = None;
        match own {
            Ok(Ok(answer)) => answers.push(answer),
            Ok(Err(refusal)) => refused = Some(refusal),
            Err(_) => {
                let late = unknown("this node has had no answer of its shard");
                answers.push(vec![Err(late); call.items.len()]);
            }
        }
        let mut changed = Vec::with_capacity(call.items.len());
        for (at, id) in call.items.iter().enumerate() {
            let of_nodes = answers.iter_mut().filter(|answer| answer.len() == call.items.len());
            let best = of_nodes.map(|answer| answer[at].clone()).max_by_key(says);
            changed.push(match best {
                Some(told) if says(&told) > Says::NotMine => told,
                // The owner of the shard may be the one that is silent.
                _ if without.contains(&NoAnswer::Lost) && !call.dry_run => {
                    Err(unknown("a node has not answered, which may own its shard"))
                }
                _ => Err(match &refused {
                    Some(refusal) => refusal.clone(),
                    None => self.unserved(*id, &without).await,
                }),
            });
        }
        changed
    }

    /// Nobody who answered owns the shard of an item, and nobody else can have changed it. A shard that
    /// nobody knows has no items.
    async fn unserved(&self, id: ItemId, without: &[NoAnswer]) -> Refusal {
        if !self.knows(id.shard) {
            return Refusal::new(Reason::ItemNotFound, format!("there is no item {id}"));
        }
        if without.contains(&NoAnswer::UnknownChange) {
            let message = format!(
                "a node of an earlier release, which may own shard {}, does not know this change: nothing \
                 was changed",
                id.shard
            );
            return Refusal::new(Reason::Unimplemented, message);
        }
        let message = format!("shard {} could not be asked: nothing was changed", id.shard);
        Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER)
    }
}

/// How much a node knows of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Says {
    /// Its shard is not this node's, or is not served.
    NotMine,
    /// Why it was not changed.
    Why,
    /// It may have been changed.
    Maybe,
    /// It was changed.
    Done,
}

fn says(told: &ChangeResult) -> Says {
    match told {
        Ok(_) => Says::Done,
        Err(refusal) => match refusal.reason {
            Reason::NotOwner | Reason::ShardUnavailable | Reason::NodeDraining => Says::NotMine,
            Reason::OutcomeUnknown => Says::Maybe,
            _ => Says::Why,
        },
    }
}

fn unknown(why: &str) -> Refusal {
    let message = format!("{why}: the item may or may not have been changed; ask again");
    Refusal::new(Reason::OutcomeUnknown, message).retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use forebay_engine::ItemState;

    use super::*;

    #[test]
    fn who_has_done_it_counts_before_who_has_not_found_it() {
        let err = |reason| Err(Refusal::new(reason, ""));
        let mut told = [
            Ok(ItemState::Ready),
            err(Reason::NotOwner),
            err(Reason::ItemNotFound),
            err(Reason::OutcomeUnknown),
        ];
        told.sort_by_key(says);
        let reasons: Vec<_> = told.iter().map(|it| it.as_ref().err().map(|it| it.reason)).collect();
        let order = [Reason::NotOwner, Reason::ItemNotFound, Reason::OutcomeUnknown];
        assert_eq!(reasons, [Some(order[0]), Some(order[1]), Some(order[2]), None]);
    }
}
