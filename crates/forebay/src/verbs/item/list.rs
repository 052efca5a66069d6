//! `forebay item list`

use std::collections::BTreeSet;

use forebay_client::v1::{Item, ItemState, ItemView, ListItemsRequest};
use serde_json::Value;

use super::{flags, show};
use crate::{
    failure::Failure,
    output::{self, Cell, Column, List, PayloadForm, Row},
    verbs::pages,
};

/// An entry of the list.
struct ItemListEntry {
    /// The item.
    item: Item,
    /// How its payload is printed.
    payload: PayloadForm,
}

/// Lists items.
pub async fn run(flags: &flags::List) -> Result<(), Failure> {
    let listing = &flags.listing;
    let client = listing.connection.client().await?;
    let mut incomplete = BTreeSet::new();
    let pages = pages::collect(listing.limit, async |page_size, page_token| {
        let is_full = listing.payload != PayloadForm::None;
        let request = ListItemsRequest {
            namespace: client.namespace().to_owned(),
            topic: flags.topic.clone(),
            state: ItemState::from(flags.state).into(),
            view: if is_full { ItemView::Full } else { ItemView::Basic }.into(),
            max_payload_bytes: listing.max_payload_bytes,
            page_size,
            page_token,
            filter: listing.filter.clone(),
        };
        let page = client.ask(request).await?;
        incomplete.extend(page.incomplete_shards);
        let listed = |item| ItemListEntry { item, payload: listing.payload };
        Ok((page.items.into_iter().map(listed).collect(), page.next_page_token))
    });
    let (items, next) = pages.await?;
    let incomplete: Vec<u32> = incomplete.into_iter().collect();
    output::note_incomplete(&listing.format.look, &incomplete);
    let rest = vec![("nextPageToken", next.into()), ("incompleteShards", incomplete.into())];
    List { field: "items", rows: &items, rest }.print(listing.format.output, &listing.format.look)
}

impl Row for ItemListEntry {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("ITEM", |it, _| Cell::from(&it.item.item_id)),
        Column::new("STATE", |it, _| show::state(it.item.state()).into()),
        Column::new("PRIORITY", |it, _| it.item.priority.into()),
        Column::new("ATTEMPT", |it, _| it.item.attempt.into()),
        Column::wide("FAILURES", |it, _| it.item.failures.into()),
        Column::wide("REDRIVES", |it, _| it.item.redrives.into()),
        Column::wide("ENQUEUED", |it, style| style.optional_time(it.item.enqueued_at).into()),
        Column::wide("EXPIRES", |it, style| style.optional_time(it.item.expires_at).into()),
        Column::new("BYTES", |it, _| it.item.payload_size.into()),
        Column::new("DETAIL", |it, style| show::detail(&it.item, style).into()),
        Column::new("PAYLOAD", |it, _| show::payload(&it.item, it.payload).into()),
    ];

    fn name(&self) -> String {
        self.item.item_id.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Item", &self.item)
    }
}
