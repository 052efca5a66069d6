//! ListNamespaces, GetNamespace, PutNamespace and DeleteNamespace.

use forebay_proto::v1;
use forebay_types::{Timestamp, TopicSettings};

use super::{
    pauses::{TopicPause, pause},
    topic_settings::{ChangeNote, SettingsReport},
    topics::{Counts, Rates, counts, rates},
};
use crate::{
    client::Client,
    durations::{self, time_from_proto},
    error::Error,
};

/// How a namespace is.
#[derive(Debug, Clone, PartialEq)]
pub struct NamespaceFigures {
    /// Its name.
    pub namespace: String,
    /// Its own settings.
    pub settings: TopicSettings,
    /// Their version. 0: there are none.
    pub settings_version: u64,
    /// Topics with items, and those that have been empty for a short time.
    pub topics: u64,
    /// Items that are ready.
    pub ready: u64,
    /// Items that are leased.
    pub leased: u64,
    /// Items that are not due yet.
    pub scheduled: u64,
    /// Dead letters.
    pub dead: u64,
    /// The oldest of its topics' heads became ready then.
    pub oldest_ready_at: Option<Timestamp>,
    /// Dequeue calls that wait for its topics.
    pub waiting: u64,
    /// Pauses of the whole namespace.
    pub pauses: Vec<TopicPause>,
    /// It has more topics than were looked at: the figures are too small.
    pub topics_cut: bool,
    /// The counts of its topics.
    pub counts: Option<Counts>,
    /// How much happens in its topics, if the server knows.
    pub rates: Option<Rates>,
}

/// A page of namespaces.
#[derive(Debug, Clone, PartialEq)]
pub struct NamespaceList {
    /// By name.
    pub namespaces: Vec<NamespaceFigures>,
    /// The token of the next page; `None` after the last one.
    pub next: Option<String>,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
    /// Shards of which the counts lack what they had counted before they changed their owner.
    pub uncounted_shards: Vec<u32>,
    /// How many topics were looked at.
    pub scanned: u64,
}

/// One namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct NamespaceReport {
    /// How it is.
    pub figures: NamespaceFigures,
    /// What counts for topics without settings of their own.
    pub effective: TopicSettings,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
    /// Shards of which the counts lack what they had counted before they changed their owner.
    pub uncounted_shards: Vec<u32>,
}

/// What became of a namespace that was to be removed.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletedNamespace {
    /// As it last was.
    pub figures: NamespaceFigures,
    /// The operations that remove its items.
    pub operation_ids: Vec<String>,
    /// Shards that still have its counts. To repeat the call tells them.
    pub uncounted_shards: Vec<u32>,
    /// More of its topics have items: repeat the call with its request id.
    pub goes_on: bool,
    /// What names the operations of the call.
    pub request_id: String,
}

impl Client {
    /// One page of the namespaces, of at most 1,000; a size of 0 is 100. An empty token is the first page.
    pub async fn list_namespaces(&self, page_size: u32, page_token: String) -> Result<NamespaceList, Error> {
        let request = v1::ListNamespacesRequest { page_size, page_token };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.list_namespaces(request).await }
            })
            .await?;
        Ok(NamespaceList {
            namespaces: answer.namespaces.into_iter().map(figures).collect(),
            next: Some(answer.next_page_token).filter(|token| !token.is_empty()),
            incomplete_shards: answer.incomplete_shards,
            uncounted_shards: answer.uncounted_shards,
            scanned: answer.scanned,
        })
    }

    /// The client's own namespace.
    pub async fn get_namespace(&self) -> Result<NamespaceReport, Error> {
        let request = v1::GetNamespaceRequest { namespace: self.config.namespace.clone() };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.get_namespace(request).await }
            })
            .await?;
        Ok(NamespaceReport {
            figures: figures(answer.namespace.unwrap_or_default()),
            effective: answer.effective_settings.map(of_namespace).unwrap_or_default(),
            incomplete_shards: answer.incomplete_shards,
            uncounted_shards: answer.uncounted_shards,
        })
    }

    /// Replaces all settings of the client's namespace that have this version, as
    /// [`put_topic`](Self::put_topic).
    pub async fn put_namespace(
        &self,
        settings: TopicSettings,
        version: u64,
        note: ChangeNote,
    ) -> Result<SettingsReport, Error> {
        let request = v1::PutNamespaceRequest {
            namespace: self.config.namespace.clone(),
            settings: Some(to_namespace(settings)),
            version,
            reason: note.reason,
            dry_run: note.dry_run,
            request_id: self.rng.request_id(),
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.put_namespace(request).await }
            })
            .await?;
        Ok(SettingsReport {
            settings: answer.settings.map(of_namespace).unwrap_or_default(),
            version: answer.version,
            effective: answer.effective_settings.map(of_namespace).unwrap_or_default(),
        })
    }

    /// Removes the settings and the pauses of the client's namespace and of all of its topics, and its
    /// counts, if none of them has items, or with `force` also these. `request_id`: that of an answer which
    /// goes on.
    pub async fn delete_namespace(
        &self,
        force: bool,
        request_id: Option<String>,
        note: ChangeNote,
    ) -> Result<DeletedNamespace, Error> {
        // The call is repeated where its answer is lost.
        let new = || if force { self.rng.request_id() } else { String::new() };
        let request_id = request_id.unwrap_or_else(new);
        let request = v1::DeleteNamespaceRequest {
            namespace: self.config.namespace.clone(),
            force,
            request_id: request_id.clone(),
            reason: note.reason,
            dry_run: note.dry_run,
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.delete_namespace(request).await }
            })
            .await?;
        Ok(DeletedNamespace {
            figures: figures(answer.namespace.unwrap_or_default()),
            operation_ids: answer.operation_ids,
            uncounted_shards: answer.uncounted_shards,
            goes_on: answer.goes_on,
            request_id,
        })
    }
}

fn figures(it: v1::Namespace) -> NamespaceFigures {
    NamespaceFigures {
        namespace: it.namespace,
        settings: it.settings.map(of_namespace).unwrap_or_default(),
        settings_version: it.settings_version,
        topics: it.topic_count,
        ready: it.ready_count,
        leased: it.leased_count,
        scheduled: it.scheduled_count,
        dead: it.dead_count,
        oldest_ready_at: it.oldest_ready_at.map(time_from_proto),
        waiting: it.waiting_calls,
        pauses: it.pauses.into_iter().map(pause).collect(),
        topics_cut: it.topics_cut,
        counts: it.counts.map(counts),
        rates: it.rates.map(rates),
    }
}

pub(super) fn to_namespace(settings: TopicSettings) -> v1::NamespaceSettings {
    v1::NamespaceSettings {
        dedupe_window: settings.dedupe_window.map(durations::to_proto),
        dead_letter_retention: settings.dead_letter_retention.map(durations::to_proto),
        default_lease: settings.default_lease.map(durations::to_proto),
        default_max_attempts: settings.default_max_attempts.unwrap_or(0),
        retry_delay: settings.retry_delay.map(durations::to_proto),
    }
}

pub(super) fn of_namespace(settings: v1::NamespaceSettings) -> TopicSettings {
    TopicSettings {
        dedupe_window: settings.dedupe_window.map(durations::from_proto),
        dead_letter_retention: settings.dead_letter_retention.map(durations::from_proto),
        default_lease: settings.default_lease.map(durations::from_proto),
        default_max_attempts: Some(settings.default_max_attempts).filter(|number| *number > 0),
        retry_delay: settings.retry_delay.map(durations::from_proto),
    }
}
