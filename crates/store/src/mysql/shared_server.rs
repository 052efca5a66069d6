//! A server that several shards share: looks at them and renewals of their claims cost by server, not by
//! shard.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use forebay_types::ShardId;
use tokio::time::Instant;

use super::{
    links::{Link, Links},
    looks::Look,
    renewals::Renew,
    settings,
    together::Together,
};
use crate::{error::StoreError, mysql_address::Target, rows::Settings};

/// The settings of a server are read once for all shards that are checked within this time.
const SETTINGS_AGE_MAX: Duration = Duration::from_secs(1);

/// State that the shards of one server share.
pub(super) struct SharedServer {
    /// Connections of those who look alone, and of what no other shard needs at the same moment.
    pub(super) links: Arc<Links>,
    /// Looks for the owners of the shards.
    pub(super) looks: Together<Look>,
    /// Renews claims.
    pub(super) renewals: Together<Renew>,
    /// The shards that are known.
    shards: Mutex<BTreeSet<ShardId>>,
    /// The server's settings, and when they were read.
    settings: Mutex<Option<(Settings, Instant)>>,
}

impl SharedServer {
    /// Connects when first used.
    pub(super) fn new(target: Target) -> Self {
        let links = Arc::new(Links::new(target.clone()));
        // A renewal must not wait for anything else.
        let renewing = Arc::new(Links::new(target));
        Self {
            looks: Together::new(links.clone()),
            links,
            renewals: Together::new(renewing),
            shards: Mutex::default(),
            settings: Mutex::default(),
        }
    }

    /// The shards that are known.
    pub(super) fn shards(&self) -> MutexGuard<'_, BTreeSet<ShardId>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server's settings.
    pub(super) async fn settings(&self, link: &mut Link) -> Result<Settings, StoreError> {
        if let Some((settings, read)) = &*self.settings.lock().unwrap_or_else(PoisonError::into_inner)
            && read.elapsed() < SETTINGS_AGE_MAX
        {
            return Ok(settings.clone());
        }
        let began = Instant::now();
        let shards = self.shards().len();
        let settings = settings::read(&mut link.session, shards).await?;
        let known = (settings.clone(), began);
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Ok(settings)
    }

    /// Forgets the looks and the settings: they may be of a server that was switched off.
    pub(super) fn forget(&self) {
        self.looks.forget();
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
