//! Settings of topics and namespaces are written.

use async_trait::async_trait;

use super::{
    super::{
        call::{Change, End},
        columns,
        rows::{PolicyWritten, SettingsWish},
    },
    named_rows::{NamedRows, next_version},
};
use crate::{error::StoreError, sql::Session};

/// Writes settings, if their row has not changed.
pub(in super::super) struct PutSettings<'a>(pub(in super::super) &'a SettingsWish);

#[async_trait]
impl Change for PutSettings<'_> {
    type Answer = PolicyWritten;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<PolicyWritten>, StoreError> {
        let SettingsWish { name, from_version, settings, bounds } = self.0;
        let rows = NamedRows { table: "setting", bounds: *bounds };
        let version = next_version(session).await?;
        let (found, is_there) = rows.found(session, name).await?;
        if found != *from_version {
            return Ok(End::RollBack(PolicyWritten::Stale));
        }
        if !is_there
            && !settings.is_nothing()
            && let Some(full) = rows.no_room(session, name).await?
        {
            return Ok(End::RollBack(full));
        }
        rows.write(session, name, version, &columns::OF_SETTINGS, columns::of_settings(settings)).await?;
        rows.forget_removed(session).await?;
        Ok(End::Commit(PolicyWritten::Yes(version)))
    }
}
