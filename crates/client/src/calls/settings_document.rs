//! ExportSettings and ApplySettings: all settings as one document.

use forebay_proto::v1;
use forebay_types::TopicSettings;

use super::{
    namespaces::{of_namespace, to_namespace},
    topic_settings::ChangeNote,
};
use crate::{client::Client, error::Error};

/// What is set of one topic, or of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsEntry {
    /// The namespace.
    pub namespace: String,
    /// The topic. Empty: these are the settings of the namespace.
    pub topic: String,
    /// What is set. A topic has no dedupe window.
    pub settings: TopicSettings,
}

/// A page of a document of settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsPage {
    /// By namespace and topic.
    pub entries: Vec<SettingsEntry>,
    /// The token of the next page; `None` after the last one.
    pub next: Option<String>,
    /// The version of all settings.
    pub version: u64,
}

/// A document that is to be applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettingsDocument {
    /// What is to be set.
    pub entries: Vec<SettingsEntry>,
    /// What the document does not name stays as it is. If not, it is removed.
    pub keep_others: bool,
    /// If any settings have changed since this version, nothing is done. `None`: whatever they were.
    pub version: Option<u64>,
}

/// What a document changes of one topic, or of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsDifference {
    /// The namespace.
    pub namespace: String,
    /// The topic. Empty: the namespace itself.
    pub topic: String,
    /// What was set. `None`: nothing.
    pub before: Option<TopicSettings>,
    /// What is set from now on. `None`: nothing.
    pub after: Option<TopicSettings>,
}

/// What applying a document has changed, or would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedSettings {
    /// By namespace and topic.
    pub differences: Vec<SettingsDifference>,
    /// The version of all settings.
    pub version: u64,
}

impl From<v1::SettingsEntry> for SettingsEntry {
    fn from(it: v1::SettingsEntry) -> Self {
        let settings = it.settings.map(of_namespace).unwrap_or_default();
        Self { namespace: it.namespace, topic: it.topic, settings }
    }
}

impl From<SettingsEntry> for v1::SettingsEntry {
    fn from(it: SettingsEntry) -> Self {
        Self { namespace: it.namespace, topic: it.topic, settings: Some(to_namespace(it.settings)) }
    }
}

impl Client {
    /// A page of what is set in the client's namespace, or in all of them if that is `-`.
    pub async fn export_settings(&self, page_size: u32, page_token: String) -> Result<SettingsPage, Error> {
        let namespace = self.config.namespace.clone();
        let request = v1::ExportSettingsRequest { namespace, page_size, page_token };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.export_settings(request).await }
            })
            .await?;
        Ok(SettingsPage {
            entries: answer.entries.into_iter().map(SettingsEntry::from).collect(),
            next: Some(answer.next_page_token).filter(|token| !token.is_empty()),
            version: answer.version,
        })
    }

    /// Sets what a document says of the client's namespace, or of all of them if that is `-`, in one change
    /// or not at all.
    pub async fn apply_settings(
        &self,
        document: SettingsDocument,
        note: ChangeNote,
    ) -> Result<AppliedSettings, Error> {
        let request = v1::ApplySettingsRequest {
            namespace: self.config.namespace.clone(),
            entries: document.entries.into_iter().map(v1::SettingsEntry::from).collect(),
            keep_others: document.keep_others,
            version: document.version,
            reason: note.reason,
            dry_run: note.dry_run,
            request_id: self.rng.request_id(),
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.apply_settings(request).await }
            })
            .await?;
        let difference = |it: v1::SettingsDifference| SettingsDifference {
            namespace: it.namespace,
            topic: it.topic,
            before: it.before.map(of_namespace),
            after: it.after.map(of_namespace),
        };
        Ok(AppliedSettings {
            differences: answer.differences.into_iter().map(difference).collect(),
            version: answer.version,
        })
    }
}
