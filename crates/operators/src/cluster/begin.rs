//! First reading of the catalog, before a node starts.
//!
//! While the catalog is away, the only node of a cluster starts with the copy in its file: nobody else has
//! changed anything. One of several asks the others that the copy names for theirs, which have followed the
//! catalog until it went: a pause or a revoked token that this node has missed must not be forgotten. It
//! starts with the newest rows and the newest tokens of all, its own included, and keeps these in its file
//! first, for those that ask it. If no other node answers, it waits for the catalog.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use forebay_config::Config;
use forebay_edge::tls::{Live, PeerTls};
use forebay_membership::{BeginError, InitialCatalog};
use forebay_peers::{Credentials, Dial, PeerLinks};
use forebay_store::CatalogImage;
use futures_util::{FutureExt as _, StreamExt as _, future::ready, stream};

use super::{
    catalog::open_catalog,
    copy_file::{CopyError, CopyFile, decode},
    migrate::misplaced,
};
use crate::shards::mysql_options;

/// Copies that are asked for, and held, at one time.
const COPIES_AT_ONCE: usize = 4;

/// Reads the catalog, or an image of it.
pub async fn begin(config: &Config, tls: Option<Arc<Live<PeerTls>>>) -> Result<InitialCatalog, BeginError> {
    let catalog = open_catalog(&config.catalog, &mysql_options(config)).map_err(BeginError::Catalog)?;
    let said = AtomicBool::default();
    let image = || image(config, tls.clone(), &said).boxed();
    forebay_membership::begin(catalog, image).await
}

/// The newest image of the catalog that there is. Why there is none is logged once.
async fn image(config: &Config, tls: Option<Arc<Live<PeerTls>>>, said: &AtomicBool) -> Option<CatalogImage> {
    let file = CopyFile::of(config)?;
    let found = match file.read() {
        Ok((own, at)) if config.is_alone() => in_place(config, own).inspect(|_| say_age(at)),
        Ok((own, _)) => match newest(config, own, tls).await {
            Some(image) => file.write(&image).map(|()| image).map_err(CopyError::File),
            None => {
                if !said.swap(true, Ordering::Relaxed) {
                    tracing::warn!("no other node has sent its copy of the catalog; waiting for the catalog");
                }
                return None;
            }
        },
        Err(error) => Err(error),
    };
    if let Err(error) = &found
        && !said.swap(true, Ordering::Relaxed)
    {
        tracing::error!("the copy of the catalog (catalog.copy_file) can't be used: {error}");
    }
    found.ok()
}

/// The copy of the only node, if its shards are where they are listed. `forebay migrate` may have moved some
/// since, and it can't be run now.
fn in_place(config: &Config, own: CatalogImage) -> Result<CatalogImage, CopyError> {
    match misplaced(config, own.changes.shards.as_deref().unwrap_or_default()).first() {
        Some(elsewhere) => Err(CopyError::Misplaced(elsewhere.shard)),
        None => Ok(own),
    }
}

fn say_age(at: SystemTime) {
    let time = humantime::format_rfc3339_seconds(at);
    tracing::info!("the copy of the catalog is as that was at {time}");
}

/// The newest rows and the newest tokens of this node's image and of those of others. `None`: no other node
/// has sent one.
async fn newest(config: &Config, own: CatalogImage, tls: Option<Arc<Live<PeerTls>>>) -> Option<CatalogImage> {
    let (cluster, nodes) = (own.changes.cluster, own.changes.nodes.clone());
    let credentials = Credentials::new(cluster, config.peer_secrets.clone());
    let links = &PeerLinks::new("", Dial::new(tls), credentials, 0);
    let asked = nodes.into_iter().map(move |node| async move {
        let copy = links.copy_catalog(&node.peer_address).await?;
        match decode(&copy) {
            Ok(image) => Some(image).filter(|image| image.changes.cluster == cluster),
            Err(error) => {
                tracing::warn!("node {} has sent no copy of the catalog: {error}", node.name);
                None
            }
        }
    });
    let mut copies = pin!(stream::iter(asked).buffer_unordered(COPIES_AT_ONCE).filter_map(ready));
    let mut found = newer(own, copies.next().await?);
    while let Some(other) = copies.next().await {
        found = newer(found, other);
    }
    Some(found)
}

/// The newer rows and the newer tokens of two images.
fn newer(one: CatalogImage, other: CatalogImage) -> CatalogImage {
    // All versions of rows are of one moment, and each only grows.
    let of = |image: &CatalogImage| {
        let versions = image.changes.versions;
        (versions.policies, versions.shards, versions.assignment, versions.nodes)
    };
    let changes = if of(&other) > of(&one) { other.changes } else { one.changes };
    let newer_tokens = other.tokens.version > one.tokens.version;
    CatalogImage { changes, tokens: if newer_tokens { other.tokens } else { one.tokens } }
}
