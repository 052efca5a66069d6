//! `forebay item get`

use std::io::Write as _;

use forebay_proto::v1;

use super::{flags::Get, show};
use crate::{
    failure::Failure,
    output::{self, Cell, Output, PayloadForm, Table},
};

/// Shows an item.
pub async fn run(flags: &Get) -> Result<(), Failure> {
    let item = flags.connection.client().await?.item(&flags.item, flags.max_payload_bytes).await?;
    let json = || {
        let answer = v1::GetItemResponse { item: Some(output::item(&item)) };
        output::to_json("GetItemResponse", &answer)
    };
    let line = match flags.format.output {
        Output::Json => format!("{:#}", json()?),
        Output::Jsonl => json()?.to_string(),
        Output::Name => output::visible(&item.id),
        Output::Table | Output::Wide => {
            let style = flags.format.look.style();
            let mut table = Table::new(["ITEM", ""]);
            let mut row = |name: &str, value: Cell| table.row([name.into(), value]);
            row("id", Cell::from(&item.id));
            row("topic", Cell::from(&item.topic));
            row("state", format!("{} {}", show::state(item.state), show::detail(&item, &style)).into());
            row("priority", item.priority.into());
            let failed = format!("{} ({} of {} failed)", item.attempt, item.failures, item.max_attempts);
            row("attempt", failed.into());
            row("enqueued", style.optional_time(item.enqueued_at).into());
            row("expires", style.optional_time(item.expires_at).into());
            row("metadata", output::payload(&item.metadata, PayloadForm::Text).into());
            for (name, value) in &item.headers {
                row(&format!("header {name}"), Cell::from(value));
            }
            row("bytes", item.payload_size.into());
            if flags.payload != PayloadForm::None {
                row("payload", show::payload(&item, flags.payload).into());
            }
            return Ok(table.print(&style)?);
        }
    };
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}
