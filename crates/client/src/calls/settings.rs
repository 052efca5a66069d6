//! PutTopic and DeleteTopic: what is set for the items of a topic.

use forebay_proto::v1;
use forebay_types::TopicSettings;

use super::{
    topic_settings::{ChangeNote, SettingsReport, of_topic, to_topic},
    topics::{TopicFigures, figures},
};
use crate::{client::Client, error::Error};

impl Client {
    /// Replaces all settings of a topic that have this version; 0: there are none. What is absent is not set
    /// any more. Somebody else's change since then fails it with
    /// [`Reason::VersionMismatch`](crate::Reason::VersionMismatch). A topic has no dedupe window.
    pub async fn put_topic(
        &self,
        topic: &str,
        settings: TopicSettings,
        version: u64,
        note: ChangeNote,
    ) -> Result<SettingsReport, Error> {
        let request = v1::PutTopicRequest {
            namespace: self.config.namespace.clone(),
            topic: topic.to_owned(),
            settings: Some(to_topic(settings)),
            version,
            reason: note.reason,
            dry_run: note.dry_run,
            request_id: self.rng.request_id(),
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.put_topic(request).await }
            })
            .await?;
        Ok(SettingsReport {
            settings: answer.settings.map(of_topic).unwrap_or_default(),
            version: answer.version,
            effective: answer.effective_settings.map(of_topic).unwrap_or_default(),
        })
    }

    /// Removes the settings and the pauses of a topic that has no items, or with `force` also its items.
    /// Returns it as it last was, and the operation that removes its items, if there is one.
    pub async fn delete_topic(
        &self,
        topic: &str,
        force: bool,
        note: ChangeNote,
    ) -> Result<(TopicFigures, Option<String>), Error> {
        let request = v1::DeleteTopicRequest {
            namespace: self.config.namespace.clone(),
            topic: topic.to_owned(),
            force,
            // The call is repeated where its answer is lost.
            request_id: if force { self.rng.request_id() } else { String::new() },
            reason: note.reason,
            dry_run: note.dry_run,
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.delete_topic(request).await }
            })
            .await?;
        let operation = Some(answer.operation_id).filter(|id| !id.is_empty());
        Ok((figures(answer.topic.unwrap_or_default()), operation))
    }
}
