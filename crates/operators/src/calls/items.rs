//! ListItems and GetItem.

use forebay_access::{Identity, Scope};
use forebay_edge::rpc::{
    fields,
    page_token::{List, not_of_this_list},
};
use forebay_engine::{ItemsCall, RETRY_AFTER, list_fields};
use forebay_peers::looks::items::{bytes_of, position_of, state};
use forebay_proto::v1;
use forebay_types::{ItemId, Namespace, Reason, Refusal, TopicName, filter::Filter};
use prost::Message as _;

use super::{
    context::{Admin, page_rows},
    ctx::Ctx,
};
use crate::gather::ItemScan;

/// The most bytes of a payload that are shown.
const PAYLOAD_BYTES_MAX: usize = 256 << 10;
/// Bytes of a payload that are shown in a full view that does not say.
const PAYLOAD_BYTES_DEFAULT: usize = 1 << 10;
/// Bytes that the items of one answer may take.
const ITEMS_BYTES: usize = 4 << 20;
/// Bytes that one item may take beside its payload.
const ITEM_BYTES: usize = 16 << 10;

/// How much of an item is shown.
#[derive(Debug, Clone, Copy)]
struct DetailLevel {
    /// Headers and metadata, too.
    all: bool,
    /// Bytes of the payload that are shown at most.
    payload_max: usize,
}

/// Serves ListItems.
pub async fn list(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ListItemsRequest,
) -> Result<v1::ListItemsResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let topic = fields::topic(&admin.rules.limits, "topic", &request.topic)?;
    let wanted = v1::ItemState::try_from(request.state).ok().and_then(state);
    let state = wanted
        .ok_or_else(|| Refusal::field("state", "must be ITEM_STATE_READY, _LEASED, _SCHEDULED or _DEAD"))?;
    let asked_for = shown(request.view, request.max_payload_bytes)?;
    let shown = asked_for.to(&ctx.caller, &namespace);
    let limit = page_rows(request.page_size);
    Filter::parse(&request.filter, list_fields(state))?;
    let query = format!("{}\0{}\0{}", request.state, request.topic, request.filter);
    let list =
        List { tokens: &admin.tokens, name: "ListItems", namespace: &request.namespace, query: &query };
    let position = list.position(&request.page_token)?;
    let after = position.map(|bytes| position_of(&bytes).ok_or_else(not_of_this_list)).transpose()?;
    let _look = admin.gather.admit(&namespace, ITEMS_BYTES)?;
    let name = TopicName { namespace, topic };
    let (payload_max, now) = (shown.payload_max, admin.clock.wall());
    let asked = ItemsCall { name, state, after, limit, payload_max, filter: request.filter, now };
    let ItemScan { mut items, through, shards, scanned } = admin.gather.items(&asked).await?;
    items.iter_mut().for_each(|item| shown.cut(item));
    if !asked_for.all {
        items.iter_mut().for_each(|item| item.last_failures.clear());
    }
    ctx.call.reserve_answer(items.iter().map(v1::Item::encoded_len).sum())?;
    Ok(v1::ListItemsResponse {
        unreadable: items.iter().filter(|item| !item.unreadable.is_empty()).count() as u64,
        items,
        next_page_token: through.map(|position| list.token(&bytes_of(position))).unwrap_or_default(),
        incomplete_shards: admin.gather.incomplete(&shards),
        scanned,
    })
}

/// Serves GetItem.
pub async fn get(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::GetItemRequest,
) -> Result<v1::GetItemResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let id: ItemId =
        request.item_id.parse().map_err(|error| Refusal::field("item_id", format!("{error}")))?;
    let shown = shown(request.view, request.max_payload_bytes)?.to(&ctx.caller, &namespace);
    let _look = admin.gather.admit(&namespace, shown.payload_max + ITEM_BYTES)?;
    match admin.gather.item(&namespace, id, shown.payload_max).await? {
        Some(Some(mut item)) => {
            shown.cut(&mut item);
            ctx.call.reserve_answer(item.encoded_len())?;
            Ok(v1::GetItemResponse { item: Some(item) })
        }
        // A shard that nobody knows has no items.
        None if admin.gather.knows(id.shard) => {
            let message = format!("shard {} could not be asked", id.shard);
            Err(Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER))
        }
        _ => Err(not_found(id)),
    }
}

/// There is no such item.
pub fn not_found(id: ItemId) -> Refusal {
    Refusal::new(Reason::ItemNotFound, format!("there is no item {id}"))
}

fn shown(view: i32, max_payload_bytes: u32) -> Result<DetailLevel, Refusal> {
    let all = match v1::ItemView::try_from(view) {
        Ok(v1::ItemView::Unspecified | v1::ItemView::Basic) => false,
        Ok(v1::ItemView::Full) => true,
        Err(_) => return Err(Refusal::field("view", "must be ITEM_VIEW_BASIC or ITEM_VIEW_FULL")),
    };
    let payload_max = match (max_payload_bytes as usize, all) {
        (0, false) => 0,
        (0, true) => PAYLOAD_BYTES_DEFAULT,
        (bytes, _) => fields::within("max_payload_bytes", bytes, 0, PAYLOAD_BYTES_MAX)?,
    };
    Ok(DetailLevel { all, payload_max })
}

impl DetailLevel {
    /// Contents of items are shown to those alone who have the right `inspect`.
    fn to(self, caller: &Identity, namespace: &Namespace) -> Self {
        match caller.may(Scope::Inspect, namespace) {
            true => self,
            false => Self { all: false, payload_max: 0 },
        }
    }

    fn cut(self, item: &mut v1::Item) {
        if !self.all {
            item.metadata.clear();
            item.headers.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_says_how_much_is_shown() {
        let shown = |view: v1::ItemView, bytes| shown(view.into(), bytes).map(|it| (it.all, it.payload_max));
        assert_eq!(shown(v1::ItemView::Unspecified, 0).unwrap(), (false, 0));
        assert_eq!(shown(v1::ItemView::Basic, 9).unwrap(), (false, 9));
        assert_eq!(shown(v1::ItemView::Full, 0).unwrap(), (true, 1_024));
        let refusal = shown(v1::ItemView::Full, 256 * 1_024 + 1).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("max_payload_bytes"));
        assert!(super::shown(9, 0).is_err());
    }
}
