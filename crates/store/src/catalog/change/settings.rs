//! Settings of topics and namespaces are written.

use async_trait::async_trait;

use super::{
    super::{
        call::{Change, End},
        columns,
        read_policy::settings_version,
        rows::{PolicyOutcome, SettingsDocument, SettingsWish},
    },
    named_rows::{NamedRows, next_version},
};
use crate::{
    error::StoreError,
    sql::{Session, int_of},
};

/// Writes settings, if their row has not changed.
pub(in super::super) struct PutSettings<'a>(pub(in super::super) &'a SettingsWish);

#[async_trait]
impl Change for PutSettings<'_> {
    type Answer = PolicyOutcome;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<PolicyOutcome>, StoreError> {
        let SettingsWish { name, from_version, settings, root, bounds } = self.0;
        let rows = NamedRows { table: "setting", bounds: *bounds, root };
        let version = next_version(session).await?;
        let (found, is_there) = rows.found(session, name).await?;
        if found != *from_version {
            return Ok(End::RollBack(PolicyOutcome::Stale));
        }
        if !is_there
            && !settings.is_nothing()
            && let Some(full) = rows.no_room(session, name).await?
        {
            return Ok(End::RollBack(full));
        }
        let written = (name, columns::of_settings(settings));
        rows.write(session, version, &columns::OF_SETTINGS, [written].into_iter()).await?;
        rows.forget_removed(session).await?;
        Ok(End::Commit(PolicyOutcome::Yes(version)))
    }
}

/// Writes settings of many names, if none have changed of those among which they are.
pub(in super::super) struct PutAllSettings<'a>(pub(in super::super) &'a SettingsDocument);

#[async_trait]
impl Change for PutAllSettings<'_> {
    type Answer = PolicyOutcome;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<PolicyOutcome>, StoreError> {
        let SettingsDocument { namespace, from_version, wanted, root, bounds } = self.0;
        let rows = NamedRows { table: "setting", bounds: *bounds, root };
        let version = next_version(session).await?;
        let found = int_of(&session.fetch(settings_version(namespace.as_ref())).await?)?.unwrap_or(0);
        let found = found.cast_unsigned();
        if found != *from_version {
            return Ok(End::RollBack(PolicyOutcome::Stale));
        }
        let before = rows.in_all(session).await?;
        let written = wanted.iter().map(|(name, settings)| (name, columns::of_settings(settings)));
        rows.write(session, version, &columns::OF_SETTINGS, written).await?;
        // Some may have made room for others, so it is counted in the end.
        if let Some(full) = rows.too_many(session, wanted.keys(), before).await? {
            return Ok(End::RollBack(full));
        }
        rows.forget_removed(session).await?;
        Ok(End::Commit(PolicyOutcome::Yes(version)))
    }
}
