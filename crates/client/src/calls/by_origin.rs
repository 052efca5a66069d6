//! Deliveries are settled at the server that handed them out, which most likely owns their items' shards.
//! Deliveries of a shard that does not answer go in a call of their own.

use std::{future::poll_fn, task::Poll, time::Duration};

use forebay_types::ShardId;

use super::member_results::Member;
use crate::{client::Client, endpoints::Route, error::Error, retry::Attempts};

/// Sends `members` in one call to each server that handed out some of them. Returns one answer per member.
/// The call fails only if it fails everywhere.
pub(super) async fn by_origin<M, R, F>(
    client: &Client,
    members: Vec<M>,
    receipt: impl Fn(&M) -> &str,
    send: impl Fn(Attempts, Vec<M>) -> F,
) -> Result<Vec<Member<R>>, Error>
where
    F: Future<Output = Result<Vec<Member<R>>, Error>>,
{
    let attempts = |origin: Option<u32>| match origin {
        Some(id) => client.attempts_by(Route::To(id), Duration::ZERO),
        None => client.attempts(Duration::ZERO),
    };
    let mut groups: Vec<Group<M>> = Vec::new();
    let (count, several) = (members.len(), client.endpoints.are_several());
    for (at, member) in members.into_iter().enumerate() {
        let receipt = receipt(&member);
        let origin = several.then(|| client.endpoints.origins.of(receipt)).flatten();
        let sick = client.endpoints.sick_shards.of(client.namespace(), receipt);
        let same = |group: &Group<M>| (group.origin, group.sick) == (origin, sick);
        let index = groups.iter().position(same).unwrap_or_else(|| {
            groups.push(Group { origin, sick, at: Vec::new(), members: Vec::new() });
            groups.len() - 1
        });
        groups[index].at.push(at);
        groups[index].members.push(member);
    }
    let (places, calls): (Vec<_>, Vec<_>) =
        groups.into_iter().map(|group| (group.at, send(attempts(group.origin), group.members))).unzip();
    merge(count, places.into_iter().zip(join_all(calls).await).collect())
}

/// The members from one server.
struct Group<M> {
    /// The server's endpoint, if it is known.
    origin: Option<u32>,
    /// Their shard, if it does not answer.
    sick: Option<ShardId>,
    /// Where the members are in the call.
    at: Vec<usize>,
    /// Themselves.
    members: Vec<M>,
}

/// The answer of one server: where its members are in the call, and what became of them.
type Answer<R> = (Vec<usize>, Result<Vec<Member<R>>, Error>);

/// The answers in the order of the call.
fn merge<R>(count: usize, groups: Vec<Answer<R>>) -> Result<Vec<Member<R>>, Error> {
    if groups.iter().all(|(_, answer)| answer.is_err()) {
        let unknown = groups.iter().any(|(_, answer)| answer.as_ref().is_err_and(Error::maybe_done));
        let error = groups.into_iter().find_map(|(_, answer)| answer.err());
        return match error {
            Some(error) => Err(if unknown { error.or_done() } else { error }),
            None => Ok(Vec::new()),
        };
    }
    let mut answers: Vec<Option<Member<R>>> = (0..count).map(|_| None).collect();
    for (at, answer) in groups {
        match answer {
            Ok(group) => at.into_iter().zip(group).for_each(|(at, one)| answers[at] = Some(one)),
            Err(error) => at.into_iter().for_each(|at| answers[at] = Some(Err(error.clone()))),
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

/// Runs futures together.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    let mut running: Vec<_> = futures.into_iter().map(Box::pin).collect();
    poll_fn(|context| {
        for (future, output) in running.iter_mut().zip(&mut outputs).filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(ready) = future.as_mut().poll(context) {
                *output = Some(ready);
            }
        }
        if outputs.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn failed(maybe_done: bool) -> Result<Vec<Member<u8>>, Error> {
        let error = Error::local(Code::Unavailable, "scripted");
        Err(if maybe_done { error.or_done() } else { error })
    }

    #[test]
    fn answers_are_merged_in_the_order_of_the_call() {
        let error = failed(false).unwrap_err();
        let merged = merge(4, vec![(vec![0, 3], Ok(vec![Ok(10), Ok(13)])), (vec![1, 2], failed(false))]);
        assert_eq!(merged.unwrap(), [Ok(10), Err(error.clone()), Err(error.clone()), Ok(13)]);
        assert_eq!(merge::<u8>(0, Vec::new()).unwrap(), []);
    }

    #[test]
    fn a_call_that_fails_everywhere_fails() {
        let error = merge(2, vec![(vec![0], failed(false)), (vec![1], failed(true))]).unwrap_err();
        assert!(error.maybe_done());
        let error = merge(2, vec![(vec![0], failed(false)), (vec![1], failed(false))]).unwrap_err();
        assert!(!error.maybe_done());
    }

    #[tokio::test(start_paused = true)]
    async fn futures_run_together() {
        let began = tokio::time::Instant::now();
        let slept = join_all(
            (0..3)
                .map(|number| async move {
                    tokio::time::sleep(Duration::from_secs(5 - number)).await;
                    number
                })
                .collect(),
        );
        assert_eq!(slept.await, [0, 1, 2]);
        assert_eq!(began.elapsed(), Duration::from_secs(5));
    }
}
