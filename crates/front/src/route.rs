//! The way of a call's members to the nodes that serve them.
//!
//! A call goes in rounds. In the first one this node's engine gets all members. It says at once which of them
//! belong to shards of other nodes, and those are sent there while the others wait for their commit. What
//! found no owner is tried again after a pause: where the node that was asked named another one, there;
//! otherwise the engine is asked anew. A planned move of a shard is over by then.
//!
//! A member is sent again only if it is certain that nothing of it has happened. An answer that did not come
//! back is the end of its members: their outcome is unknown. A round ends when all of its answers are there.

use std::{collections::BTreeMap, future::Future, sync::OnceLock, time::Duration};

use forebay_engine::{AnswerBy, Avoid, MemberPlaces, MisplacedMember, Notice, RETRY_AFTER};
use forebay_types::{Elsewhere, Reason, Refusal, ShardId};
use futures_util::future::{join, join_all};
use tokio::{sync::oneshot, time::Instant};

use crate::links::{Answers, LinkError};

/// The pauses before the second round and those after it, in milliseconds. Together they are longer than a
/// planned move takes. They are short where most moves end, between 150 and 320 ms, so that a call does not
/// wait long in vain.
const PAUSES: [u64; 11] = [20, 60, 70, 40, 40, 40, 50, 80, 100, 150, 350];

/// A verb, and what is the same for all members of its call.
pub(crate) trait Verb: Sync {
    /// A member of a call.
    type Member: Clone + Send + Sync;
    /// The answer to a member.
    type Answer: Send;

    /// Has this node's engine serve members.
    fn here(
        &self,
        members: Vec<Self::Member>,
        avoid: Avoid,
        notice: Notice,
    ) -> impl Future<Output = Result<Vec<Result<Self::Answer, Refusal>>, Refusal>> + Send;

    /// Has another node serve members of one of its shards.
    fn there(
        &self,
        owner: &str,
        shard: ShardId,
        members: Vec<Self::Member>,
    ) -> impl Future<Output = Answers<Self::Answer>> + Send;

    /// Gives a member its rank, if it has one.
    fn rank(&self, _member: &mut Self::Member, _rank: i64) {}

    /// This node's engine has said where the members belong.
    fn note(&self, _places: &MemberPlaces) {}

    /// Whether any shard may serve a member.
    fn is_free(&self, _member: &Self::Member) -> bool {
        false
    }
}

/// The answer to one member.
struct MemberAnswer<A> {
    /// The member's place in the call.
    index: usize,
    /// The answer.
    result: Result<A, Refusal>,
    /// The node that gave it. `None`: this one.
    from: Option<Elsewhere>,
    /// That node was not reached.
    unreached: bool,
}

/// Members that are asked for at one place.
struct Group {
    /// The other node and its shard. `None`: this node.
    at: Option<Elsewhere>,
    /// Their places in the call.
    members: Vec<usize>,
}

/// The answers to a group's members, or why this node refused all of them.
type GroupAnswers<A> = Result<Vec<MemberAnswer<A>>, Refusal>;

/// A call under way.
struct Call<'a, V: Verb> {
    /// The verb.
    verb: &'a V,
    /// The address of this node.
    own: &'a str,
    /// All members.
    members: Vec<V::Member>,
    /// The rank of the first, once this node has given it: it is kept wherever the member goes.
    first_rank: OnceLock<i64>,
    /// The shards and nodes that did not take members that any shard may take.
    avoid: Avoid,
}

/// Serves a call. The outer error refuses all of it: nothing happened. `own`: this node's address.
pub(crate) async fn route<V: Verb>(
    verb: &V,
    own: &str,
    members: Vec<V::Member>,
) -> Result<Vec<Result<V::Answer, Refusal>>, Refusal> {
    let count = members.len();
    let mut call = Call { verb, own, members, first_rank: OnceLock::new(), avoid: Avoid::default() };
    let mut results: Vec<Option<Result<V::Answer, Refusal>>> = (0..count).map(|_| None).collect();
    let mut groups = vec![Group { at: None, members: (0..count).collect() }];
    let mut pauses = PAUSES.into_iter();
    loop {
        let mut again: Vec<(Option<Elsewhere>, usize)> = Vec::new();
        let asked = groups.iter().map(|group| call.ask(group));
        for (group, answers) in groups.iter().zip(join_all(asked.collect::<Vec<_>>()).await) {
            let answers = match answers {
                Ok(answers) => answers,
                Err(refusal) if group.members.len() == count => return Err(refusal),
                Err(refusal) => refused(&group.members, None, &refusal),
            };
            for answer in answers {
                let free = verb.is_free(&call.members[answer.index]);
                if let Some(at) = place_to_try(&answer, free, own) {
                    if free {
                        call.avoid(&answer);
                    }
                    again.push((at, answer.index));
                }
                results[answer.index] = Some(answer.result);
            }
        }
        let Some(pause) = pauses.next().filter(|_| !again.is_empty()) else { break };
        let pause = Duration::from_millis(pause);
        if AnswerBy::current().is_some_and(|by| Instant::now() + pause >= by) {
            break;
        }
        tokio::time::sleep(pause).await;
        // At last whatever this node owns will do. Its shards may be the only ones that are reached.
        call.avoid.others = pauses.len() == 0;
        groups = grouped(again);
    }
    let unanswered = || Refusal::new(Reason::OutcomeUnknown, "a member of the call was not answered");
    Ok(results.into_iter().map(|result| result.unwrap_or_else(|| Err(unanswered()))).collect())
}

/// Where a member is tried again that was refused. `Some(None)`: here. `None`: it is not.
fn place_to_try<A>(answer: &MemberAnswer<A>, free: bool, own: &str) -> Option<Option<Elsewhere>> {
    let refusal = answer.result.as_ref().err()?;
    match (refusal.reason, &answer.from) {
        // A shard that this node knows nothing of stays unknown.
        (Reason::NotOwner, None) => refusal.elsewhere.as_ref().map(|_| None),
        (Reason::NotOwner, Some(from)) => {
            let named = refusal.elsewhere.clone().map(|at| match at.owner.as_str() {
                // The node that was asked owns another shard, which is the right one.
                "" if at.shard != from.shard => Elsewhere { owner: from.owner.clone(), ..at },
                _ => at,
            });
            Some(named.filter(|at| !at.owner.is_empty() && at.owner != own && at != from))
        }
        (Reason::NodeDraining, Some(_)) => Some(None),
        // No shard takes it, perhaps because all of them are moved.
        (Reason::ShardUnavailable, None) if free => Some(None),
        (reason, Some(_)) if free && is_of_the_shard(reason) => Some(None),
        _ => None,
    }
}

/// Another shard may take what is refused for this reason.
const fn is_of_the_shard(reason: Reason) -> bool {
    matches!(reason, Reason::ShardUnavailable | Reason::ShardDraining | Reason::DiskFull | Reason::Overloaded)
}

/// The members that are tried at one place go there together.
fn grouped(members: Vec<(Option<Elsewhere>, usize)>) -> Vec<Group> {
    let mut groups: BTreeMap<Option<(ShardId, String)>, Vec<usize>> = BTreeMap::new();
    for (at, index) in members {
        groups.entry(at.map(|at| (at.shard, at.owner))).or_default().push(index);
    }
    let group = |(at, members): (Option<(ShardId, String)>, _)| Group {
        at: at.map(|(shard, owner)| Elsewhere { shard, owner }),
        members,
    };
    groups.into_iter().map(group).collect()
}

impl<V: Verb> Call<'_, V> {
    /// Notes a shard or node that refused a member, so that it gets no other member that any shard may take.
    /// A shard that is moved is not noted.
    fn avoid(&mut self, answer: &MemberAnswer<V::Answer>) {
        let (Err(refusal), Some(from)) = (&answer.result, &answer.from) else { return };
        if answer.unreached && !self.avoid.nodes.contains(&from.owner) {
            self.avoid.nodes.push(from.owner.clone());
        }
        if is_of_the_shard(refusal.reason) && !self.avoid.shards.contains(&from.shard) {
            self.avoid.shards.push(from.shard);
        }
    }

    async fn ask(&self, group: &Group) -> GroupAnswers<V::Answer> {
        match &group.at {
            Some(at) => Ok(self.ask_there(at, &group.members).await),
            None => self.ask_here(&group.members).await,
        }
    }

    /// Asks this node's engine, and the owners of what it does not own.
    async fn ask_here(&self, places: &[usize]) -> GroupAnswers<V::Answer> {
        let (notice, told) = oneshot::channel();
        let here = self.verb.here(self.members(places), self.avoid.clone(), notice);
        let (here, there) = join(here, self.ask_owners(told, places)).await;
        let mut answers = match here {
            Ok(here) => {
                let answered = |(index, result): (&usize, _)| MemberAnswer {
                    index: *index,
                    result,
                    from: None,
                    unreached: false,
                };
                places.iter().zip(here).map(answered).collect()
            }
            Err(refusal) if there.is_empty() => return Err(refusal),
            Err(refusal) => refused(places, None, &refusal),
        };
        // Before what this node said of the same members.
        answers.sort_by_key(|answer| answer.index);
        for answer in there {
            if let Ok(place) = answers.binary_search_by_key(&answer.index, |answer| answer.index) {
                answers[place] = answer;
            }
        }
        Ok(answers)
    }

    /// Asks the owners of what this node's engine says is theirs.
    async fn ask_owners(
        &self,
        told: oneshot::Receiver<MemberPlaces>,
        places: &[usize],
    ) -> Vec<MemberAnswer<V::Answer>> {
        let Ok(told) = told.await else { return Vec::new() };
        self.verb.note(&told);
        let MemberPlaces { first_rank, misplaced, .. } = told;
        self.first_rank.get_or_init(|| first_rank);
        let is_known = |owner: &str| !owner.is_empty() && owner != self.own;
        let known = misplaced.into_iter().filter(|member| is_known(&member.elsewhere.owner));
        let known = known.map(|MisplacedMember { index, elsewhere }| (Some(elsewhere), places[index]));
        let groups = grouped(known.collect());
        let asked =
            groups.iter().filter_map(|group| group.at.as_ref().map(|at| self.ask_there(at, &group.members)));
        join_all(asked.collect::<Vec<_>>()).await.into_iter().flatten().collect()
    }

    /// Asks the owner of a shard.
    async fn ask_there(&self, at: &Elsewhere, places: &[usize]) -> Vec<MemberAnswer<V::Answer>> {
        let Elsewhere { shard, owner } = at;
        let mut unreached = false;
        let asked = self.verb.there(owner, *shard, self.members(places));
        let told = match AnswerBy::current() {
            Some(by) => tokio::time::timeout_at(by, asked).await,
            None => Ok(asked.await),
        };
        let told = told.unwrap_or_else(|_| Err(LinkError::Lost("no answer in time".to_owned())));
        let refusal = match told {
            Ok(results) if results.len() == places.len() => {
                let from = || Some(at.clone());
                let answered = |(index, result): (&usize, _)| MemberAnswer {
                    index: *index,
                    result,
                    from: from(),
                    unreached: false,
                };
                return places.iter().zip(results).map(answered).collect();
            }
            Ok(_) => unknown(*shard, owner, "it answered another number of members"),
            Err(LinkError::Lost(why)) => unknown(*shard, owner, &why),
            Err(LinkError::Unreached(why)) => {
                let message = format!("shard {shard} is owned by {owner}, which can't be reached: {why}");
                let nobody = Elsewhere { shard: *shard, owner: String::new() };
                unreached = true;
                Refusal::not_owner(nobody, message).retry_after(RETRY_AFTER)
            }
        };
        let mut answers = refused(places, Some(at), &refusal);
        answers.iter_mut().for_each(|answer| answer.unreached = unreached);
        answers
    }

    /// The members at these places, with the ranks that they have got.
    fn members(&self, places: &[usize]) -> Vec<V::Member> {
        let member = |place: &usize| {
            let mut member = self.members[*place].clone();
            if let Some(first) = self.first_rank.get() {
                self.verb.rank(&mut member, first.saturating_add(i64::try_from(*place).unwrap_or(i64::MAX)));
            }
            member
        };
        places.iter().map(member).collect()
    }
}

fn unknown(shard: ShardId, owner: &str, why: &str) -> Refusal {
    let message = format!(
        "the call was passed on to {owner}, the owner of shard {shard}, and no answer came back: it may or \
         may not have taken effect ({why})"
    );
    Refusal::new(Reason::OutcomeUnknown, message).retry_after(RETRY_AFTER)
}

fn refused<A>(places: &[usize], from: Option<&Elsewhere>, refusal: &Refusal) -> Vec<MemberAnswer<A>> {
    let refused = |index: &usize| MemberAnswer {
        index: *index,
        result: Err(refusal.clone()),
        from: from.cloned(),
        unreached: false,
    };
    places.iter().map(refused).collect()
}

#[cfg(test)]
mod tests;
