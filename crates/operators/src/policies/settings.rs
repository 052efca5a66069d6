//! Changes settings in the catalog, and removes what is wanted of topics and namespaces.

use forebay_access::Identity;
use forebay_store::{PolicyBounds, PolicyOutcome, PolicyRemoval, SettingsWish};
use forebay_types::{Namespace, Reason, Refusal, SettingsRow, Topic, TopicName, TopicSettings};

use super::book::{PolicyBook, WriteOutcome, failed, full, in_time, root_of, unread};

impl PolicyBook {
    /// Sets all settings of a name in place of those of a version. Without settings the version is 0. Where
    /// they are so already nothing is written, whatever the version: so a call can be repeated. Tried without
    /// effect, it tells the version that is there.
    pub async fn put_settings(
        &self,
        caller: &Identity,
        name: &TopicName,
        from_version: u64,
        settings: TopicSettings,
        dry_run: bool,
    ) -> Result<SettingsRow, Refusal> {
        let _turn = self.turns.take(&name.namespace)?;
        let WriteOutcome { wanted, version, is_new } =
            in_time(self.write_settings(root_of(caller), name, from_version, settings, dry_run)).await?;
        self.tell(version, is_new).await?;
        Ok(wanted)
    }

    async fn write_settings(
        &self,
        root: String,
        name: &TopicName,
        from_version: u64,
        settings: TopicSettings,
        dry_run: bool,
    ) -> Result<WriteOutcome<SettingsRow>, Refusal> {
        let found = self.catalog.settings(name).await.map_err(|error| unread(&error))?;
        let version = told_version(&found);
        let row = SettingsRow { name: name.clone(), version, settings };
        if found.settings == settings {
            return Ok(WriteOutcome { wanted: row, version: found.version, is_new: false });
        }
        if from_version != version {
            return Err(mismatch(name, from_version, version));
        }
        if dry_run {
            return Ok(WriteOutcome { wanted: row, version: found.version, is_new: false });
        }
        let wish = SettingsWish {
            name: name.clone(),
            from_version: found.version,
            settings,
            root,
            bounds: PolicyBounds::DEFAULT,
        };
        match self.catalog.put_settings(&wish).await.map_err(|error| failed(&error))? {
            PolicyOutcome::Yes(version) => {
                let row = SettingsRow { version, ..row };
                Ok(WriteOutcome {
                    wanted: SettingsRow { version: told_version(&row), ..row },
                    version,
                    is_new: true,
                })
            }
            // Somebody else was faster.
            PolicyOutcome::Stale => {
                let found = self.catalog.settings(name).await.map_err(|error| unread(&error))?;
                Err(mismatch(name, from_version, told_version(&found)))
            }
            written @ (PolicyOutcome::NamespaceFull | PolicyOutcome::RootFull | PolicyOutcome::Full) => {
                Err(full("settings", written))
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
