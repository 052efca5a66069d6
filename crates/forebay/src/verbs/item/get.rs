//! `forebay item get`

use std::collections::BTreeMap;

use forebay_client::v1::{GetItemRequest, GetItemResponse, Item, ItemView};
use serde_json::Value;

use super::{flags::Get, show};
use crate::{
    failure::Failure,
    output::{self, Cell, One, PayloadForm, Style, Table},
};

/// An item, and how its payload is printed.
struct PrintedItem {
    /// The item.
    item: Item,
    /// How its payload is printed.
    payload: PayloadForm,
}

/// Shows an item.
pub async fn run(flags: &Get) -> Result<(), Failure> {
    let client = flags.connection.client().await?;
    let request = GetItemRequest {
        namespace: client.namespace().to_owned(),
        item_id: flags.item.clone(),
        view: ItemView::Full.into(),
        max_payload_bytes: flags.max_payload_bytes,
    };
    let item = client.ask(request).await?.item.unwrap_or_default();
    output::print_one(&PrintedItem { item, payload: flags.payload }, &flags.format)
}

impl One for PrintedItem {
    fn name(&self) -> String {
        self.item.item_id.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        let answer = GetItemResponse { item: Some(self.item.clone()) };
        output::to_json("GetItemResponse", &answer)
    }

    fn table(&self, style: &Style) -> Table {
        let item = &self.item;
        let mut table = Table::new(["ITEM", ""]);
        let mut row = |name: &str, value: Cell| table.row([name.into(), value]);
        row("id", Cell::from(&item.item_id));
        row("topic", Cell::from(&item.topic));
        row("state", format!("{} {}", show::state(item.state()), show::detail(item, style)).into());
        if !item.unreadable.is_empty() {
            row("unreadable", Cell::from(&item.unreadable));
        }
        row("priority", item.priority.into());
        let failed = format!("{} ({} of {} failed)", item.attempt, item.failures, item.max_attempts);
        row("attempt", failed.into());
        if item.redrives > 0 {
            row("redrives", item.redrives.into());
        }
        row("enqueued", style.optional_time(item.enqueued_at).into());
        row("expires", style.optional_time(item.expires_at).into());
        row("metadata", output::payload(&item.metadata, PayloadForm::Text).into());
        for (name, value) in item.headers.iter().collect::<BTreeMap<_, _>>() {
            row(&format!("header {name}"), Cell::from(value));
        }
        for failure in &item.last_failures {
            row(&format!("failed {}", failure.attempt), show::failure(failure, style).into());
        }
        row("bytes", item.payload_size.into());
        if self.payload != PayloadForm::None {
            row("payload", show::payload(item, self.payload).into());
        }
        table
    }
}
