//! ExportSettings.

use forebay_edge::rpc::page_token::List;
use forebay_proto::v1;
use forebay_store::SettingsSnapshot;
use forebay_types::{Refusal, SettingsRow};
use prost::Message as _;

use super::{
    context::{Admin, page_rows},
    ctx::Ctx,
    settings,
};

/// Serves ExportSettings.
pub async fn export(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ExportSettingsRequest,
) -> Result<v1::ExportSettingsResponse, Refusal> {
    let namespace = admin.rules.namespace_or_all(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let list = List { tokens: &admin.tokens, name: "ExportSettings", namespace: &namespace, query: "" };
    let behind = list.position(&request.page_token)?;
    let SettingsSnapshot { mut rows, version } = admin.policies.all_settings(&namespace)?.read().await?;
    if let Some(behind) = behind {
        rows.retain(|row| position(row) > behind);
    }
    let limit = page_rows(request.page_size);
    let next = rows.get(limit).and_then(|_| rows.get(limit - 1)).map(position);
    rows.truncate(limit);
    let entries: Vec<v1::SettingsEntry> = rows.iter().map(entry).collect();
    ctx.call.reserve_answer(entries.iter().map(v1::SettingsEntry::encoded_len).sum())?;
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
