//! First reading of the catalog, before a node starts.
//!
//! While the catalog is away, the only node of a cluster starts with the copy in its file: nobody else has
//! changed anything. One of several asks the others that the copy names, which have followed the catalog
//! until it went: a pause or a revoked token that this node has missed must not be forgotten. If none
//! answers, it waits for the catalog.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use forebay_config::Config;
use forebay_edge::tls::{Live, PeerTls};
use forebay_membership::{BeginError, Begun};
use forebay_peers::{Credentials, Dial, PeerLinks};
use forebay_store::CatalogImage;
use forebay_types::Timestamp;
use futures_util::{FutureExt as _, future::join_all};

use super::{
    catalog::open_catalog,
    copy_file::{CopyFile, decode},
};
use crate::shards::mysql_options;

/// Reads the catalog, or an image of it.
pub async fn begin(config: &Config, tls: Option<Arc<Live<PeerTls>>>) -> Result<Begun, BeginError> {
    let catalog = open_catalog(&config.catalog, &mysql_options(config)).map_err(BeginError::Catalog)?;
    forebay_membership::begin(catalog, || image(config, tls.clone()).boxed()).await
}

/// The newest image of the catalog that there is.
async fn image(config: &Config, tls: Option<Arc<Live<PeerTls>>>) -> Option<CatalogImage> {
    let own = CopyFile::at(config.catalog_copy.clone()?).read()?;
    let image = if config.is_alone() { own } else { newest(config, own, tls).await? };
    tracing::info!("the copy of the catalog is as it was at {}", text(image.read_at));
    Some(image)
}

/// A time for people.
fn text(time: Timestamp) -> humantime::Rfc3339Timestamp {
    let micros = u64::try_from(time.as_micros()).unwrap_or(0);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_micros(micros))
}

/// The newest image that another node has.
async fn newest(config: &Config, own: CatalogImage, tls: Option<Arc<Live<PeerTls>>>) -> Option<CatalogImage> {
    let cluster = own.changes.cluster;
    let credentials = Credentials::new(cluster, config.peer_secrets.clone());
    let links = PeerLinks::new("", Dial::new(tls), credentials, 0);
    let asked = own.changes.nodes.iter().map(async |node| {
        let copy = links.copy_catalog(&node.peer_address).await?;
        match decode(&copy) {
            Ok(image) => Some(image).filter(|image| image.changes.cluster == cluster),
            Err(error) => {
                tracing::warn!("node {} has sent no copy of the catalog: {error}", node.name);
                None
            }
        }
    });
    let images: Vec<CatalogImage> = join_all(asked).await.into_iter().flatten().collect();
    if images.is_empty() {
        tracing::warn!("no other node has sent its copy of the catalog; waiting for the catalog");
    }
    // Each version grows only, and no image has one that is ahead where another is behind, but for the moment
    // between the reading of the two.
    images.into_iter().max_by_key(|image| {
        let (rows, tokens) = image.versions();
        (rows.policies, tokens, rows.shards, rows.assignment, rows.nodes)
    })
}
