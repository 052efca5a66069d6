//! ApplySettings.

use std::collections::BTreeMap;

use forebay_edge::rpc::{fields, rules::ALL_NAMESPACES};
use forebay_proto::v1;
use forebay_store::SettingsSnapshot;
use forebay_types::{Reason, Refusal, TopicName, TopicSettings, cut_text};
use prost::Message as _;

use super::{
    context::{Admin, REASON_BYTES},
    ctx::Ctx,
    settings,
};
use crate::policies::changed_meanwhile;

/// Entries of a document. Some more fit into a request, and the catalog makes one change at a time, for which
/// others wait.
const ENTRIES_MAX: usize = 2_000;
/// Names that are changed at once, those that the document does not name included.
const CHANGES_MAX: usize = ENTRIES_MAX;
/// How often it is tried again because somebody else was faster.
const TRIES_MAX: u32 = 3;

/// Settings of names.
type Document = BTreeMap<TopicName, TopicSettings>;

/// Serves ApplySettings.
pub async fn apply(
    admin: &Admin,
    ctx: &Ctx,
    mut request: v1::ApplySettingsRequest,
) -> Result<v1::ApplySettingsResponse, Refusal> {
    let namespace = admin.rules.namespace_or_all(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    cut_text(&mut request.reason, REASON_BYTES);
    let wanted = document(admin, &request)?;
    let settings = admin.policies.all_settings(&namespace)?;
    for tries_left in (0..TRIES_MAX).rev() {
        let SettingsSnapshot { rows, version: found } = settings.read().await?;
        let rows: Document = rows.into_iter().map(|row| (row.name, row.settings)).collect();
        let changes = changes(&request, &rows, &wanted);
        // A call that is repeated finds nothing to do, and another version than the one that it names.
        if changes.is_empty() {
            return Ok(v1::ApplySettingsResponse { differences: Vec::new(), version: found });
        }
        if request.version.is_some_and(|version| version != found) {
            return Err(changed_meanwhile());
        }
        if changes.len() > CHANGES_MAX {
            let message = format!(
                "change the settings of {} topics and namespaces, of {CHANGES_MAX} at most at a time: apply \
                 those of one namespace after the other",
                changes.len()
            );
            return Err(Refusal::too_large("entries", message));
        }
        let differences: Vec<_> =
            changes.iter().map(|(name, after)| difference(name, after, &rows)).collect();
        ctx.call.reserve_answer(differences.iter().map(v1::SettingsDifference::encoded_len).sum())?;
        if request.dry_run {
            return Ok(v1::ApplySettingsResponse { differences, version: found });
        }
        let count = changes.len();
        match settings.put(&ctx.caller, found, changes).await {
            Ok(version) => {
                let (who, reason) = (&*ctx.caller.id, &request.reason);
                tracing::info!(
                    who,
                    reason,
                    version,
                    "settings of {count} topics and namespaces were applied"
                );
                return Ok(v1::ApplySettingsResponse { differences, version });
            }
            Err(refusal) if refusal.reason == Reason::VersionMismatch && tries_left > 0 => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Err(changed_meanwhile())
}

/// Settings that the request wants, checked.
fn document(admin: &Admin, request: &v1::ApplySettingsRequest) -> Result<Document, Refusal> {
    if !request.entries.is_empty() {
        fields::members("entries", request.entries.len(), ENTRIES_MAX)?;
    }
    let mut wanted = Document::new();
    for (at, entry) in request.entries.iter().enumerate() {
        let below = |refusal| fields::below(format_args!("entries[{at}]"), refusal);
        let (name, settings) = self::entry(admin, request, entry).map_err(below)?;
        if wanted.insert(name, settings).is_some() {
            return Err(below(Refusal::field("topic", "is named twice in its namespace")));
        }
    }
    Ok(wanted)
}

fn entry(
    admin: &Admin,
    request: &v1::ApplySettingsRequest,
    entry: &v1::SettingsEntry,
) -> Result<(TopicName, TopicSettings), Refusal> {
    let namespace = admin.rules.namespace(&entry.namespace)?;
    if request.namespace != ALL_NAMESPACES && *request.namespace != *namespace {
        let message = format!("is not {}, which the document is about", request.namespace);
        return Err(Refusal::field("namespace", message));
    }
    let limits = &admin.rules.limits;
    let settings = settings::of_namespace(&admin.settings, limits, entry.settings.as_ref())?;
    if entry.topic.is_empty() {
        return Ok((TopicName::new(namespace, ""), settings));
    }
    let topic = fields::topic_or_pattern(limits, "topic", &entry.topic)?;
    match settings.dedupe_window {
        Some(_) => Err(Refusal::field("settings.dedupe_window", "is of a namespace, not of a topic")),
        None => Ok((TopicName { namespace, topic }, settings)),
    }
}

/// Settings that are to be written.
fn changes(request: &v1::ApplySettingsRequest, rows: &Document, wanted: &Document) -> Document {
    let mut changes: Document = wanted
        .iter()
        .filter(|(name, settings)| rows.get(name).copied().unwrap_or_default() != **settings)
        .map(|(name, settings)| (name.clone(), *settings))
        .collect();
    if !request.keep_others {
        let others = rows.keys().filter(|name| !wanted.contains_key(name));
        changes.extend(others.map(|name| (name.clone(), TopicSettings::default())));
    }
    changes
}

fn difference(name: &TopicName, after: &TopicSettings, rows: &Document) -> v1::SettingsDifference {
    let before = rows.get(name).copied();
    let message = |settings: TopicSettings| settings::namespace_message(&settings);
    v1::SettingsDifference {
        namespace: name.namespace.to_string(),
        topic: name.topic.to_string(),
        before: before.map(message),
        after: (!after.is_nothing()).then(|| message(*after)),
    }
}
