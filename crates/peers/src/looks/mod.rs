//! Looks of operators at the shards of one node. Here, and nowhere else, the engine's figures become public
//! messages: for this node's callers as for another node, which gets them as bytes. `gather` puts the answers
//! of all nodes together.

pub mod consumers;
pub mod dead_groups;
pub mod history;
pub mod items;
pub mod latencies;
pub mod topics;

use bytes::Bytes;
use forebay_engine::Engine;
use forebay_proto::{peer, v1};
use forebay_types::{Namespace, Refusal, ShardId};
use prost::Message;

use crate::history::History;

/// The longest request. The longest field of one is a filter, of 1 KiB.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// The request of a look, as nodes ask each other.
pub trait Look: Message + Clone + Default {
    /// Its name.
    const NAME: &'static str;
    /// The public answer.
    type Answer: Message + Default;

    /// Whose look it is: it takes the room of this tenant on the way to other nodes.
    fn caller(&self) -> Namespace;

    /// Looks at the shards of this node. Larger numbers than a node asks for count as the largest.
    fn look(
        self,
        engine: &Engine,
        history: &History,
    ) -> impl Future<Output = Result<Part<Self::Answer>, Refusal>> + Send;
}

/// The answer of one node.
#[derive(Debug, Clone, Default)]
pub struct Part<T> {
    /// The public answer, without the shards that could not be asked and without a page token.
    pub answer: T,
    /// Whatever else is told between nodes. Its own `answer` is empty.
    pub rest: peer::AskResponse,
}

/// A look as a message to another node.
pub fn request<L: Look>(look: &L) -> peer::AskRequest {
    peer::AskRequest { look: L::NAME.to_owned(), request: look.encode_to_vec().into() }
}

/// Answers another node. `None`: the look is not known here.
pub async fn answer(
    engine: &Engine,
    history: &History,
    request: peer::AskRequest,
) -> Result<Option<peer::AskResponse>, Refusal> {
    let peer::AskRequest { look, request } = request;
    let answer = match &*look {
        peer::ListTopicsRequest::NAME => one::<peer::ListTopicsRequest>(engine, history, request).await,
        v1::GetTopicRequest::NAME => one::<v1::GetTopicRequest>(engine, history, request).await,
        peer::ListItemsRequest::NAME => one::<peer::ListItemsRequest>(engine, history, request).await,
        v1::GetItemRequest::NAME => one::<v1::GetItemRequest>(engine, history, request).await,
        v1::GroupDeadLettersRequest::NAME => {
            one::<v1::GroupDeadLettersRequest>(engine, history, request).await
        }
        v1::ListConsumersRequest::NAME => one::<v1::ListConsumersRequest>(engine, history, request).await,
        peer::GetHistoryRequest::NAME => one::<peer::GetHistoryRequest>(engine, history, request).await,
        _ => return Ok(None),
    };
    answer.map(Some)
}

async fn one<L: Look>(
    engine: &Engine,
    history: &History,
    request: Bytes,
) -> Result<peer::AskResponse, Refusal> {
    if request.len() > REQUEST_BYTES_MAX {
        return Err(malformed("request"));
    }
    let look = L::decode(request).map_err(|_| malformed("request"))?;
    Ok(look.look(engine, history).await?.message())
}

/// A request that no node of this program sends.
fn malformed(field: &str) -> Refusal {
    Refusal::field(field, "is missing or not valid")
}

impl<T: Message + Default> Part<T> {
    /// An answer, and the shards that were looked at.
    fn new(answer: T, shards: Vec<ShardId>) -> Self {
        let shards = shards.into_iter().map(|id| id.0).collect();
        Self { answer, rest: peer::AskResponse { shards, ..peer::AskResponse::default() } }
    }

    /// As another node is told.
    pub fn message(self) -> peer::AskResponse {
        peer::AskResponse { answer: self.answer.encode_to_vec().into(), ..self.rest }
    }

    /// As another node has told. `None`: it is no such answer.
    pub fn of(mut message: peer::AskResponse) -> Option<Self> {
        let answer = T::decode(std::mem::take(&mut message.answer)).ok()?;
        Some(Self { answer, rest: message })
    }

    /// The position up to which all is told. `None`: there is no more.
    pub fn through(&self) -> Option<Bytes> {
        Some(self.rest.through.clone()).filter(|through| !through.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_arrives_as_it_was() {
        let item = v1::Item { item_id: "3-1041".to_owned(), ..v1::Item::default() };
        let answer = v1::GetItemResponse { item: Some(item) };
        let mut part = Part::new(answer.clone(), vec![ShardId(3)]);
        part.rest.through = vec![7].into();
        let Part { answer: arrived, rest } = Part::of(part.message()).unwrap();
        assert_eq!((arrived, rest.shards, &rest.through[..]), (answer, vec![3], &[7][..]));
        let wrong = peer::AskResponse { answer: vec![255; 9].into(), ..peer::AskResponse::default() };
        assert!(Part::<v1::GetItemResponse>::of(wrong).is_none());
    }
}
