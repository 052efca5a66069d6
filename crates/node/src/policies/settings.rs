//! Changes settings in the catalog, and removes what is wanted of topics and namespaces.

use std::{collections::BTreeMap, time::Duration};

use forebay_engine::RETRY_AFTER;
use forebay_store::{PolicyBounds, PolicyRemoval, PolicyWritten, SettingsDocument, SettingsWish};
use forebay_types::{Namespace, Reason, Refusal, SettingsRow, Topic, TopicName, TopicSettings};

use super::book::{PolicyBook, Written, failed, full, in_time};

/// How long the catalog may take to write a document.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(15);

impl PolicyBook {
    /// Sets all settings of a name in place of those of a version. Without settings the version is 0. Where
    /// they are so already nothing is written, whatever the version: so a call can be repeated. Tried without
    /// effect, it tells the version that is there.
    pub async fn put_settings(
        &self,
        name: &TopicName,
        from_version: u64,
        settings: TopicSettings,
        dry_run: bool,
    ) -> Result<SettingsRow, Refusal> {
        let _turn = self.turns.take(&name.namespace)?;
        let Written { wanted, version, is_new } =
            in_time(self.write_settings(name, from_version, settings, dry_run)).await?;
        self.tell(version, is_new).await?;
        Ok(wanted)
    }

    async fn write_settings(
        &self,
        name: &TopicName,
        from_version: u64,
        settings: TopicSettings,
        dry_run: bool,
    ) -> Result<Written<SettingsRow>, Refusal> {
        let found = self.catalog.settings(name).await.map_err(|error| failed(&error))?;
        let version = told_version(&found);
        let row = SettingsRow { name: name.clone(), version, settings };
        if found.settings == settings {
            return Ok(Written { wanted: row, version: found.version, is_new: false });
        }
        if from_version != version {
            return Err(mismatch(name, from_version, version));
        }
        if dry_run {
            return Ok(Written { wanted: row, version: found.version, is_new: false });
        }
        let wish = SettingsWish {
            name: name.clone(),
            from_version: found.version,
            settings,
            bounds: PolicyBounds::DEFAULT,
        };
        match self.catalog.put_settings(&wish).await.map_err(|error| failed(&error))? {
            PolicyWritten::Yes(version) => {
                let row = SettingsRow { version, ..row };
                Ok(Written {
                    wanted: SettingsRow { version: told_version(&row), ..row },
                    version,
                    is_new: true,
                })
            }
            // Somebody else was faster.
            PolicyWritten::Stale => {
                let found = self.catalog.settings(name).await.map_err(|error| failed(&error))?;
                Err(mismatch(name, from_version, told_version(&found)))
            }
            written @ (PolicyWritten::NamespaceFull | PolicyWritten::Full) => Err(full("settings", written)),
        }
    }

    /// All settings that there are, and the version of all of them.
    pub async fn all_settings(&self) -> Result<(Vec<SettingsRow>, u64), Refusal> {
        let read = async { self.catalog.all_settings().await.map_err(|error| failed(&error)) };
        let mut rows = in_time(read).await?;
        let version = rows.iter().map(|row| row.version).max().unwrap_or(0);
        rows.retain(|row| !row.settings.is_nothing());
        Ok((rows, version))
    }

    /// Writes settings of many names in one change, if none at all have changed since a version. Returns the
    /// version from then on.
    pub async fn put_all_settings(
        &self,
        namespace: &Namespace,
        from_version: u64,
        wanted: BTreeMap<TopicName, TopicSettings>,
    ) -> Result<u64, Refusal> {
        let _turn = self.turns.take(namespace)?;
        let document = SettingsDocument { from_version, wanted, bounds: PolicyBounds::DEFAULT };
        let put = async { self.catalog.put_all_settings(&document).await.map_err(|error| failed(&error)) };
        let late = |_| failed_late();
        let written = tokio::time::timeout(DOCUMENT_TIMEOUT, put).await.map_err(late)??;
        match written {
            PolicyWritten::Yes(version) => {
                self.tell(version, true).await?;
                Ok(version)
            }
            PolicyWritten::Stale => Err(changed_meanwhile()),
            full_one @ (PolicyWritten::NamespaceFull | PolicyWritten::Full) => {
                Err(full("settings", full_one))
            }
        }
    }

    /// Removes the policy and the settings of a topic, or all of a namespace. Returns whether there were any.
    pub async fn remove(&self, namespace: &Namespace, topic: Option<&Topic>) -> Result<bool, Refusal> {
        let _turn = self.turns.take(namespace)?;
        let removal = PolicyRemoval {
            namespace: namespace.clone(),
            topic: topic.cloned(),
            bounds: PolicyBounds::DEFAULT,
        };
        let remove = async { self.catalog.remove_policies(&removal).await.map_err(|error| failed(&error)) };
        let Some(version) = in_time(remove).await? else { return Ok(false) };
        self.tell(version, true).await?;
        Ok(true)
    }
}

/// Somebody has changed settings since they were looked at.
pub fn changed_meanwhile() -> Refusal {
    let message = "settings have changed since they were looked at: look at the differences again";
    Refusal { field: Some("version".to_owned()), ..Refusal::new(Reason::VersionMismatch, message) }
}

fn failed_late() -> Refusal {
    let message = format!("the catalog: no answer within {DOCUMENT_TIMEOUT:?}; it may or may not be done");
    Refusal::new(Reason::CatalogUnavailable, message).retry_after(RETRY_AFTER)
}

/// The version that callers are told: a removed row counts as none.
fn told_version(row: &SettingsRow) -> u64 {
    if row.settings.is_nothing() { 0 } else { row.version }
}

fn mismatch(name: &TopicName, named: u64, found: u64) -> Refusal {
    let what = match name.topic.is_empty() {
        true => format!("namespace {}", name.namespace),
        false => format!("topic {}", name.topic),
    };
    let version = |version: u64| match version {
        0 => "none".to_owned(),
        version => format!("version {version}"),
    };
    let message = format!(
        "the settings of {what} have changed: {} was expected, and there is {}",
        version(named),
        version(found)
    );
    Refusal { field: Some("version".to_owned()), ..Refusal::new(Reason::VersionMismatch, message) }
}
