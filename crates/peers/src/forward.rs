//! Passes calls on to the owners of their shards.

use std::{error::Error as _, time::Duration};

use async_trait::async_trait;
use forebay_edge::traces;
use forebay_engine::{
    ActiveTopics, ActiveTopicsCall, EnqueueCall, EnqueueOutcome, ExtendOf, NackOf, NewItem, OverBudget,
    RETRY_AFTER, Settlement, Subscription,
};
use forebay_front::{Answers, LinkError, Links, Reports, WatchError};
use forebay_types::{Namespace, Reason, Receipt, Refusal, Timestamp};
use futures_util::stream::BoxStream;
use tonic::{Code, ConnectError, Request, Response, Status};

use super::{
    channels::Client,
    links::PeerLinks,
    room::{Load, NoRoom},
    wire,
};

/// How long the owner of a shard may take. A caller that waits less has its own deadline.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a node may take to list active topics. What it has is left out of the page then.
const ACTIVE_TOPICS_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Bytes that a member takes on its way beside what it carries.
const MEMBER_BYTES: usize = 256;

#[async_trait]
impl Links for PeerLinks {
    fn own(&self) -> &str {
        self.own_address()
    }

    async fn watch(
        &self,
        node: &str,
        subscriptions: BoxStream<'static, Vec<Subscription>>,
    ) -> Result<Reports, WatchError> {
        self.reports_of(node, subscriptions).await
    }

    async fn active_topics(&self, node: &str, call: ActiveTopicsCall) -> Result<ActiveTopics, LinkError> {
        let request = wire::active_topics_request(call);
        let list = async |mut client: Client| client.list_active_topics(request).await;
        let response = self.exchange(node, ACTIVE_TOPICS_TIMEOUT, list).await?;
        wire::active_topics(response).map_err(|refusal| LinkError::Unreached(refusal.message))
    }

    async fn enqueue(&self, owner: &str, call: EnqueueCall) -> Answers<EnqueueOutcome> {
        let carried = |item: &NewItem| {
            let key = item.dedupe_key.as_ref().map_or(0, String::len);
            item.body.bytes() + item.topic.len() + key + MEMBER_BYTES
        };
        let namespace = call.namespace.clone();
        let passage = Passage {
            verb: "enqueue",
            namespace: &namespace,
            load: Load::Enqueue,
            members: call.items.len(),
            bytes: call.items.iter().map(carried).sum(),
        };
        let send = async |mut client: Client| client.enqueue(limited(wire::enqueue_request(call))).await;
        self.pass_on(owner, passage, send, wire::enqueued).await
    }

    async fn ack(&self, owner: &str, namespace: Namespace, acks: Vec<Receipt>) -> Answers<Settlement> {
        let (members, bytes) = (acks.len(), acks.len() * MEMBER_BYTES);
        let passage = Passage { verb: "ack", namespace: &namespace, load: Load::Settle, members, bytes };
        let request = wire::ack_request(&namespace, acks);
        let send = async |mut client: Client| client.ack(limited(request)).await;
        self.pass_on(owner, passage, send, wire::settled).await
    }

    async fn nack(&self, owner: &str, namespace: Namespace, nacks: Vec<NackOf>) -> Answers<Settlement> {
        let carried = |nack: &NackOf| nack.metadata.as_ref().map_or(0, Vec::len) + nack.reason.len();
        let bytes = nacks.iter().map(|nack| carried(nack) + MEMBER_BYTES).sum();
        let members = nacks.len();
        let passage = Passage { verb: "nack", namespace: &namespace, load: Load::Settle, members, bytes };
        let request = wire::nack_request(&namespace, nacks);
        let send = async |mut client: Client| client.nack(limited(request)).await;
        self.pass_on(owner, passage, send, wire::settled).await
    }

    async fn extend_lease(
        &self,
        owner: &str,
        namespace: Namespace,
        extensions: Vec<ExtendOf>,
    ) -> Answers<Timestamp> {
        let (members, bytes) = (extensions.len(), extensions.len() * MEMBER_BYTES);
        let passage =
            Passage { verb: "extend_lease", namespace: &namespace, load: Load::Settle, members, bytes };
        let request = wire::extend_request(&namespace, extensions);
        let send = async |mut client: Client| client.extend_lease(limited(request)).await;
        self.pass_on(owner, passage, send, wire::extended).await
    }
}

/// A call that is passed on.
struct Passage<'a> {
    /// The verb, for metrics.
    verb: &'static str,
    /// Whose call it is.
    namespace: &'a Namespace,
    /// Purpose of the call.
    load: Load,
    /// How many members it has.
    members: usize,
    /// How much it carries.
    bytes: usize,
}

impl PeerLinks {
    /// Asks a node for something of its own shards, for so long at most.
    pub(super) async fn exchange<R>(
        &self,
        node: &str,
        limit: Duration,
        send: impl AsyncFnOnce(Client) -> Result<Response<R>, Status>,
    ) -> Result<R, LinkError> {
        let link = self.bulk(node).ok_or_else(not_another_node)?;
        let (number, client) = link.client().await.map_err(LinkError::Unreached)?;
        match tokio::time::timeout(limit, send(client)).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => {
                link.broke(number).await;
                Err(failure(&status))
            }
            Err(_) => Err(LinkError::Lost(format!("no answer within {limit:?}"))),
        }
    }

    /// Sends a call to the owner of a shard, and reads its answers.
    async fn pass_on<R, A>(
        &self,
        owner: &str,
        passage: Passage<'_>,
        send: impl AsyncFnOnce(Client) -> Result<Response<R>, Status>,
        answers: impl FnOnce(R) -> Vec<Result<A, Refusal>>,
    ) -> Answers<A> {
        let Passage { verb, namespace, load, members, bytes } = passage;
        let link = self.bulk(owner).ok_or_else(not_another_node)?;
        let _place = match link.room.take(namespace, load, bytes) {
            Ok(place) => place,
            Err(full) => {
                count(verb, "refused");
                let refusal = no_room(&full);
                return Ok((0..members).map(|_| Err(refusal.clone())).collect());
            }
        };
        let (number, client) = link.client().await.map_err(|why| {
            count(verb, "unreached");
            LinkError::Unreached(why)
        })?;
        let error = match tokio::time::timeout(FORWARD_TIMEOUT, send(client)).await {
            Ok(Ok(response)) => {
                count(verb, "answered");
                return Ok(answers(response.into_inner()));
            }
            Ok(Err(status)) => failure(&status),
            Err(_) => LinkError::Lost(format!("no answer within {FORWARD_TIMEOUT:?}")),
        };
        link.broke(number).await;
        count(verb, if matches!(error, LinkError::Lost(_)) { "lost" } else { "unreached" });
        Err(error)
    }
}

fn not_another_node() -> LinkError {
    LinkError::Unreached("it is not the address of another node".to_owned())
}

fn count(verb: &'static str, outcome: &'static str) {
    metrics::counter!("forebay_forwarded_calls_total", "verb" => verb, "outcome" => outcome).increment(1);
}

/// A call to the owner of a shard. It is part of the trace of the client's call.
fn limited<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(FORWARD_TIMEOUT);
    traces::carry(request.metadata_mut());
    request
}

/// Whether a call that failed may have taken effect.
pub(super) fn failure(status: &Status) -> LinkError {
    let why = status.message().to_owned();
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return LinkError::Unreached(why);
        }
        cause = error.source();
    }
    match status.code() {
        // The other node says this before it looks at the call: it is of another cluster or release.
        Code::Unauthenticated | Code::FailedPrecondition | Code::Unimplemented | Code::InvalidArgument => {
            LinkError::Unreached(why)
        }
        _ => LinkError::Lost(why),
    }
}

fn no_room(full: &NoRoom) -> Refusal {
    let limit = full.limit;
    metrics::counter!("forebay_limit_refusals_total", "limit" => limit).increment(1);
    let whose = match full.over {
        OverBudget::Tenant => "of this namespace ",
        OverBudget::Node => "",
    };
    let message =
        format!("too much {whose}is on its way to the node that owns the shard (the limit is `{limit}`)");
    Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use forebay_types::ClusterId;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;
    use crate::{Credentials, Dial};
    use forebay_config::Secret;

    fn links() -> PeerLinks {
        let credentials = Credentials::new(ClusterId::default(), vec![Secret::new("secret")]);
        PeerLinks::new("own:1", Dial::default(), credentials, 2_000)
    }

    fn ack_of(size: usize) -> Vec<Receipt> {
        vec![Receipt::decode("ns", &receipt()).unwrap(); size]
    }

    fn receipt() -> String {
        let item = "1-2".parse().unwrap();
        Receipt { item, delivery: 1, nonce: 1 }.encode("ns")
    }

    #[tokio::test]
    async fn a_node_that_was_not_reached_has_done_nothing() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        for owner in [closed.to_string(), "own:1".to_owned(), "no address".to_owned()] {
            let failed = links().ack(&owner, "ns".into(), ack_of(1)).await;
            assert!(matches!(failed, Err(LinkError::Unreached(_))), "{owner}: {failed:?}");
        }
    }

    #[tokio::test]
    async fn a_connection_that_breaks_leaves_the_outcome_unknown() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let owner = listener.local_addr().unwrap().to_string();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            // Settings without content: the other side may send its request.
            stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
            let mut read = Vec::new();
            // The request's data: its frame holds the namespace.
            while !read.windows(2).any(|bytes| bytes == b"ns") {
                stream.read_buf(&mut read).await.unwrap();
            }
        });
        let failed = links().ack(&owner, "ns".into(), ack_of(1)).await;
        server.await.unwrap();
        assert!(matches!(failed, Err(LinkError::Lost(_))), "{failed:?}");
    }

    #[tokio::test]
    async fn a_tenant_has_a_quarter_of_the_bytes_on_the_way_to_a_node() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let owner = listener.local_addr().unwrap().to_string();
        let links = std::sync::Arc::new(links());
        let first = {
            let (links, owner) = (links.clone(), owner.clone());
            tokio::spawn(async move { links.ack(&owner, "ns".into(), ack_of(1)).await })
        };
        // The first one is on its way once it connects; nobody answers it.
        let _stream = listener.accept().await.unwrap();
        let refused = links.ack(&owner, "ns".into(), ack_of(3)).await.unwrap();
        let reasons = refused.iter().map(|answer| answer.as_ref().unwrap_err().reason);
        assert_eq!(reasons.collect::<Vec<_>>(), [Reason::Overloaded; 3]);
        first.abort();
    }
}
