//! ExportSettings.

use forebay_proto::v1;
use forebay_types::{Refusal, SettingsRow};
use prost::Message as _;

use super::{
    context::{Admin, PAGE_ROWS},
    pauses::book,
    settings,
};
use crate::grpc::{admission::Call, page_token::List};

/// As the namespace: all of them.
const ALL: &str = "-";

/// Serves ExportSettings.
pub async fn export(
    admin: &Admin,
    call: &Call,
    request: v1::ExportSettingsRequest,
) -> Result<v1::ExportSettingsResponse, Refusal> {
    let namespace = &request.namespace;
    if namespace != ALL {
        admin.rules.namespace(namespace)?;
    }
    let list = List { tokens: &admin.tokens, name: "ExportSettings", namespace, query: "" };
    let behind = list.position(&request.page_token)?;
    let (mut rows, version) = book(admin)?.all_settings().await?;
    rows.retain(|row| namespace == ALL || *row.name.namespace == **namespace);
    if let Some(behind) = behind {
        rows.retain(|row| position(row) > behind);
    }
    let (default, most) = PAGE_ROWS;
    let limit = if request.page_size == 0 { default } else { most.min(request.page_size as usize) };
    let next = rows.get(limit).and_then(|_| rows.get(limit - 1)).map(position);
    rows.truncate(limit);
    let entries: Vec<v1::SettingsEntry> = rows.iter().map(entry).collect();
    call.reserve_answer(entries.iter().map(v1::SettingsEntry::encoded_len).sum())?;
    Ok(v1::ExportSettingsResponse {
        entries,
        next_page_token: next.map(|position| list.token(&position)).unwrap_or_default(),
        version,
    })
}

/// Names have no zero bytes.
fn position(row: &SettingsRow) -> Vec<u8> {
    [row.name.namespace.as_bytes(), b"\0", row.name.topic.as_bytes()].concat()
}

fn entry(row: &SettingsRow) -> v1::SettingsEntry {
    v1::SettingsEntry {
        namespace: row.name.namespace.to_string(),
        topic: row.name.topic.to_string(),
        settings: Some(settings::namespace_message(&row.settings)),
    }
}
