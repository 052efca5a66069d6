//! All settings of a namespace, or of all namespaces: read at once, and changed at once.

use std::{collections::BTreeMap, time::Duration};

use forebay_access::Identity;
use forebay_edge::{rpc::ALL_NAMESPACES, turns::Turn};
use forebay_store::{PolicyBounds, PolicyOutcome, SettingsDocument, SettingsSnapshot};
use forebay_types::{Namespace, Reason, Refusal, TopicName, TopicSettings};

use super::book::{PolicyBook, failed, full, late, root_of, unread, unread_late};

/// How long the catalog may take to read or to write all of them.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(15);

/// The turn of a caller who is about all settings of a namespace, or of all namespaces.
pub struct AllSettings<'a> {
    /// Reads and changes them.
    book: &'a PolicyBook,
    /// The namespace. `None`: all.
    namespace: Option<Namespace>,
    /// Ends with the value. There are many rows, on the one connection for changes.
    _turn: Turn,
}

impl PolicyBook {
    /// Begins the turn of a caller who is about all settings of a namespace, or with `-` of all namespaces.
    pub fn all_settings(&self, namespace: &Namespace) -> Result<AllSettings<'_>, Refusal> {
        let turn = self.turns.take(namespace)?;
        let namespace = (&**namespace != ALL_NAMESPACES).then(|| namespace.clone());
        Ok(AllSettings { book: self, namespace, _turn: turn })
    }
}

impl AllSettings<'_> {
    /// The settings that there are, and their version.
    pub async fn read(&self) -> Result<SettingsSnapshot, Refusal> {
        let read = self.book.catalog.all_settings(self.namespace.as_ref());
        match tokio::time::timeout(DOCUMENT_TIMEOUT, read).await {
            Ok(read) => read.map_err(|error| unread(&error)),
            Err(_) => Err(unread_late(DOCUMENT_TIMEOUT)),
        }
    }

    /// Writes settings of many names in one change, if none have changed since a version. Returns the version
    /// from then on.
    pub async fn put(
        &self,
        caller: &Identity,
        from_version: u64,
        wanted: BTreeMap<TopicName, TopicSettings>,
    ) -> Result<u64, Refusal> {
        let namespace = self.namespace.clone();
        let (root, bounds) = (root_of(caller), PolicyBounds::DEFAULT);
        let document = SettingsDocument { namespace, from_version, wanted, root, bounds };
        let put = self.book.catalog.put_all_settings(&document);
        let written = match tokio::time::timeout(DOCUMENT_TIMEOUT, put).await {
            Ok(written) => written.map_err(|error| failed(&error))?,
            Err(_) => return Err(late(DOCUMENT_TIMEOUT)),
        };
        match written {
            PolicyOutcome::Yes(version) => {
                self.book.tell(version, true).await?;
                Ok(version)
            }
            PolicyOutcome::Stale => Err(changed_meanwhile()),
            full_one @ (PolicyOutcome::NamespaceFull | PolicyOutcome::RootFull | PolicyOutcome::Full) => {
                Err(full("settings", full_one))
            }
        }
    }
}

/// Somebody has changed settings since they were looked at.
pub fn changed_meanwhile() -> Refusal {
    let message = "settings have changed since they were looked at: look at the differences again";
    Refusal { field: Some("version".to_owned()), ..Refusal::new(Reason::VersionMismatch, message) }
}
