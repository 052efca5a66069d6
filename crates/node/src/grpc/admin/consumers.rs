//! ListConsumers.

use forebay_engine::{ConsumerFigures, ConsumerName, ConsumersCall};
use forebay_proto::v1;
use forebay_types::Refusal;
use prost::Message as _;

use super::context::{Admin, page_rows};
use crate::grpc::{admission::Call, page_token::List, queue::ALL_NAMESPACES};

/// What the consumers of one node may take.
const CONSUMERS_BYTES: usize = 2 << 20;

/// Serves ListConsumers.
pub async fn list(
    admin: &Admin,
    call: &Call,
    request: v1::ListConsumersRequest,
) -> Result<v1::ListConsumersResponse, Refusal> {
    let namespace = admin.rules.namespace_or_all(&request.namespace)?;
    call.request().count_for(&namespace)?;
    let list = List { tokens: &admin.tokens, name: "ListConsumers", namespace: &namespace, query: "" };
    let after = list.position(&request.page_token)?.map(name_of).transpose()?;
    // It had no pages in earlier releases: who knows of none is given as many as before.
    let limit = match request.page_size {
        0 => ConsumerFigures::CONSUMERS_MAX,
        size => page_rows(size),
    };
    let all = &*namespace == ALL_NAMESPACES;
    let asked = ConsumersCall { namespace: (!all).then(|| namespace.clone()), after, limit };
    let _look = admin.gather.admit(&namespace, CONSUMERS_BYTES)?;
    let found = admin.gather.consumers(&asked).await?;
    let next = found.next.map(|(namespace, name)| [namespace.as_bytes(), b"\0", name.as_bytes()].concat());
    let response = v1::ListConsumersResponse {
        consumers: found.consumers,
        consumers_cut: found.cut,
        incomplete_shards: found.incomplete,
        next_page_token: next.map(|position| list.token(&position)).unwrap_or_default(),
    };
    call.reserve_answer(response.encoded_len())?;
    Ok(response)
}

/// The consumer that a position names. A namespace has no zero byte.
fn name_of(position: Vec<u8>) -> Result<ConsumerName, Refusal> {
    let wrong = || Refusal::field("page_token", "is not a page token of this list");
    let text = String::from_utf8(position).map_err(|_| wrong())?;
    let (namespace, name) = text.split_once('\0').ok_or_else(wrong)?;
    Ok((namespace.into(), name.to_owned()))
}
