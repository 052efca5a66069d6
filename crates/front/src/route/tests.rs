//! Members are plain numbers here, and both places answer by a script.

use std::sync::Mutex;

use forebay_types::Fate;
use tokio::time::Instant;

use super::*;

const OWN: &str = "own:1";

/// The answer of a node to a member.
type Reply = Result<u32, Refusal>;

/// Answers of this node and of others: the next one for each member.
#[derive(Default)]
struct Script {
    /// This node's, by round.
    here: Mutex<Vec<Vec<Reply>>>,
    /// The other nodes' answers, by round.
    there: Mutex<Vec<Answers<u32>>>,
    /// Each question: the node, and the members.
    asked: Mutex<Vec<String>>,
    /// Any shard may serve the members.
    free: bool,
}

impl Script {
    fn new(here: impl Into<Vec<Vec<Reply>>>, there: impl Into<Vec<Answers<u32>>>) -> Self {
        Self { here: Mutex::new(here.into()), there: Mutex::new(there.into()), ..Self::default() }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// The shards and nodes to avoid, as text.
fn shown(avoid: &Avoid) -> String {
    let Avoid { shards, nodes, others } = avoid;
    let shards = shards.iter().map(|shard| format!(" not in {shard}"));
    let nodes = nodes.iter().map(|node| format!(" not at {node}"));
    shards.chain(nodes).chain(others.then(|| " only here".to_owned())).collect()
}

impl Verb for Script {
    type Member = i64;
    type Answer = u32;

    async fn here(&self, members: Vec<i64>, avoid: Avoid, notice: Notice) -> Result<Vec<Reply>, Refusal> {
        self.asked.lock().unwrap().push(format!("here {members:?}{}", shown(&avoid)));
        let replies = self.here.lock().unwrap().remove(0);
        assert_eq!(replies.len(), members.len());
        let misplaced = replies.iter().enumerate().filter_map(|(index, reply)| {
            let elsewhere = reply.as_ref().err()?.elsewhere.clone()?;
            Some(MisplacedMember { index, elsewhere })
        });
        let misplaced = misplaced.collect();
        let _ = notice.send(MemberPlaces { first_rank: 100, misplaced, next_shard: None });
        Ok(replies)
    }

    async fn there(&self, owner: &str, shard: ShardId, members: Vec<i64>) -> Answers<u32> {
        self.asked.lock().unwrap().push(format!("{owner} {shard} {members:?}"));
        self.there.lock().unwrap().remove(0)
    }

    fn rank(&self, member: &mut i64, rank: i64) {
        *member = rank;
    }

    fn is_free(&self, _member: &i64) -> bool {
        self.free
    }
}

fn owned_by(owner: &str) -> Refusal {
    Refusal::not_owner(Elsewhere { shard: ShardId(7), owner: owner.to_owned() }, "elsewhere")
}

fn reasons(answers: &[Reply]) -> Vec<Result<u32, Reason>> {
    answers.iter().map(|answer| answer.as_ref().copied().map_err(|refusal| refusal.reason)).collect()
}

#[tokio::test(start_paused = true)]
async fn what_belongs_elsewhere_is_sent_there_with_its_rank() {
    let script = Script::new(
        [vec![Ok(1), Err(owned_by("b:1")), Err(owned_by("b:1"))]],
        [Ok(vec![Ok(2), Err(Refusal::lease_lost(Fate::Gone))])],
    );
    let answers = route(&script, OWN, vec![0, 0, 0]).await.unwrap();
    assert_eq!(reasons(&answers), [Ok(1), Ok(2), Err(Reason::LeaseLost)]);
    assert_eq!(script.asked(), ["here [0, 0, 0]", "b:1 7 [101, 102]"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_named_instead_is_asked_after_a_pause() {
    let script = Script::new([vec![Err(owned_by("b:1"))]], [Ok(vec![Err(owned_by("c:1"))]), Ok(vec![Ok(5)])]);
    let begun = Instant::now();
    assert_eq!(reasons(&route(&script, OWN, vec![0]).await.unwrap()), [Ok(5)]);
    assert_eq!(script.asked()[1..], ["b:1 7 [100]", "c:1 7 [100]"]);
    assert_eq!(begun.elapsed(), Duration::from_millis(PAUSES[0]));
}

#[tokio::test(start_paused = true)]
async fn where_this_node_or_nobody_is_named_its_engine_is_asked_again() {
    for named in [OWN, "", "b:1"] {
        let script = Script::new([vec![Err(owned_by("b:1"))], vec![Ok(3)]], [Ok(vec![Err(owned_by(named))])]);
        assert_eq!(reasons(&route(&script, OWN, vec![0]).await.unwrap()), [Ok(3)]);
        assert_eq!(script.asked()[2], "here [100]", "named: {named:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_lost_is_the_end() {
    let lost = || Err(LinkError::Lost("reset".to_owned()));
    let script = Script { free: true, ..Script::new([vec![Err(owned_by("b:1"))]], [lost()]) };
    let answers = route(&script, OWN, vec![0]).await.unwrap();
    assert_eq!(reasons(&answers), [Err(Reason::OutcomeUnknown)]);
    let miscounted = Script::new([vec![Err(owned_by("b:1"))]], [Ok(vec![])]);
    assert_eq!(reasons(&route(&miscounted, OWN, vec![0]).await.unwrap()), [Err(Reason::OutcomeUnknown)]);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_does_not_take_a_member_is_avoided_if_any_may_serve_it() {
    let full = || Ok(vec![Err(Refusal::new(Reason::DiskFull, "full"))]);
    let unreached = || Err(LinkError::Unreached("refused".to_owned()));
    let moved = || Ok(vec![Err(owned_by(OWN))]);
    for (there, avoided) in [(full(), " not in 7"), (unreached(), " not at b:1"), (moved(), "")] {
        let here = [vec![Err(owned_by("b:1"))], vec![Ok(4)]];
        let script = Script { free: true, ..Script::new(here, [there]) };
        assert_eq!(reasons(&route(&script, OWN, vec![0]).await.unwrap()), [Ok(4)]);
        assert_eq!(script.asked()[2], format!("here [100]{avoided}"));
    }
    let bound = Script::new([vec![Err(owned_by("b:1"))]], [full()]);
    assert_eq!(reasons(&route(&bound, OWN, vec![0]).await.unwrap()), [Err(Reason::DiskFull)]);
}

#[tokio::test(start_paused = true)]
async fn after_a_second_the_refusal_is_final() {
    let nobody = [0; PAUSES.len() + 1].map(|_| vec![Err(owned_by(""))]);
    let script = Script::new(nobody, []);
    let begun = Instant::now();
    let answers = route(&script, OWN, vec![0]).await.unwrap();
    assert_eq!(reasons(&answers), [Err(Reason::NotOwner)]);
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    assert_eq!(script.asked()[PAUSES.len() - 1..], ["here [100]", "here [100] only here"]);
}

#[tokio::test(start_paused = true)]
async fn the_right_shard_may_be_another_one_of_the_same_node() {
    let other = Refusal::not_owner(Elsewhere { shard: ShardId(9), owner: String::new() }, "home");
    let script = Script::new([vec![Err(owned_by("b:1"))]], [Ok(vec![Err(other)]), Ok(vec![Ok(6)])]);
    assert_eq!(reasons(&route(&script, OWN, vec![0]).await.unwrap()), [Ok(6)]);
    assert_eq!(script.asked()[2], "b:1 9 [100]");
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_not_known_is_not_looked_for() {
    let script = Script::new([vec![Err(Refusal::new(Reason::NotOwner, "no such shard"))]], []);
    assert_eq!(reasons(&route(&script, OWN, vec![0]).await.unwrap()), [Err(Reason::NotOwner)]);
    assert_eq!(script.asked().len(), 1);
}
