//! ListConsumers.

use forebay_edge::rpc::page_token::{List, not_of_this_list};
use forebay_engine::ConsumerFigures;
use forebay_peers::looks::consumers::name_of;
use forebay_proto::v1;
use forebay_types::Refusal;
use prost::Message as _;

use super::{
    context::{Admin, page_rows},
    ctx::Ctx,
};

/// Bytes that the consumers of one node may take.
const CONSUMERS_BYTES: usize = 2 << 20;

/// Serves ListConsumers.
pub async fn list(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ListConsumersRequest,
) -> Result<v1::ListConsumersResponse, Refusal> {
    let namespace = admin.rules.namespace_or_all(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let list = List { tokens: &admin.tokens, name: "ListConsumers", namespace: &namespace, query: "" };
    let page_token = match list.position(&request.page_token)? {
        Some(position) => String::from_utf8(position)
            .ok()
            .filter(|at| name_of(at).is_some())
            .ok_or_else(not_of_this_list)?,
        None => String::new(),
    };
    // It had no pages in earlier releases: who knows of none is given as many as before.
    let limit = match request.page_size {
        0 => ConsumerFigures::CONSUMERS_MAX,
        size => page_rows(size),
    };
    let page_size = u32::try_from(limit).unwrap_or(u32::MAX);
    let asked = v1::ListConsumersRequest { namespace: namespace.to_string(), page_size, page_token };
    let _look = admin.gather.admit(&namespace, CONSUMERS_BYTES)?;
    let (mut response, through) = admin.gather.consumers(&asked).await?;
    response.next_page_token = through.map(|position| list.token(&position)).unwrap_or_default();
    ctx.call.reserve_answer(response.encoded_len())?;
    Ok(response)
}
