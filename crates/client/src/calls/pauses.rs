//! PauseTopic and ResumeTopic.

use forebay_proto::v1;
use forebay_types::{Side, Timestamp};

use super::topic_settings::ChangeNote;
use crate::{
    client::Client,
    durations::{time_from_proto, time_to_proto},
    error::Error,
};

/// A side of a topic, or of a whole namespace, that is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicPause {
    /// Which side. `None`: it is not known to this program.
    pub side: Option<Side>,
    /// Who paused it.
    pub by: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// When it ends by itself. `None`: it does not.
    pub until: Option<Timestamp>,
    /// Why.
    pub note: String,
    /// It is of the whole namespace.
    pub of_namespace: bool,
}

fn numbers(sides: &[Side]) -> Vec<i32> {
    let number = |side: &Side| match side {
        Side::Enqueue => v1::Side::Enqueue.into(),
        Side::Dequeue => v1::Side::Dequeue.into(),
    };
    sides.iter().map(number).collect()
}

impl Client {
    /// Pauses sides of a topic, or of the whole namespace if the topic is empty. Returns all of its
    /// pauses. Tried without effect, it returns those that there would be.
    pub async fn pause_topic(
        &self,
        topic: &str,
        sides: &[Side],
        until: Option<Timestamp>,
        note: &str,
        dry_run: bool,
    ) -> Result<Vec<TopicPause>, Error> {
        let request = v1::PauseTopicRequest {
            namespace: self.config.namespace.clone(),
            topic: topic.to_owned(),
            sides: numbers(sides),
            until: until.map(time_to_proto),
            note: note.to_owned(),
            dry_run,
            request_id: self.rng.request_id(),
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.pause_topic(request).await }
            })
            .await?;
        Ok(answer.pauses.into_iter().map(pause).collect())
    }

    /// Ends pauses of a topic, or of the whole namespace if the topic is empty. Returns those that are left.
    pub async fn resume_topic(
        &self,
        topic: &str,
        sides: &[Side],
        note: ChangeNote,
    ) -> Result<Vec<TopicPause>, Error> {
        let request = v1::ResumeTopicRequest {
            namespace: self.config.namespace.clone(),
            topic: topic.to_owned(),
            sides: numbers(sides),
            reason: note.reason,
            dry_run: note.dry_run,
            request_id: self.rng.request_id(),
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.resume_topic(request).await }
            })
            .await?;
        Ok(answer.pauses.into_iter().map(pause).collect())
    }
}

pub(super) fn pause(it: v1::Pause) -> TopicPause {
    let side = match it.side() {
        v1::Side::Enqueue => Some(Side::Enqueue),
        v1::Side::Dequeue => Some(Side::Dequeue),
        v1::Side::Unspecified => None,
    };
    TopicPause {
        side,
        by: it.by,
        since: it.since.map(time_from_proto),
        until: it.until.map(time_from_proto),
        note: it.note,
        of_namespace: it.of_namespace,
    }
}
