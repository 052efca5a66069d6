//! The start of a node of a cluster: it reads the catalog as it is now, or begins with an image of it.

use std::{sync::Arc, time::Duration};

use forebay_cluster::CatalogCopy;
use forebay_store::{
    Catalog, CatalogChanges, CatalogImage, CatalogShard, ErrorClass, ImageVersions, StoreError, Tokens,
    Versions,
};
use forebay_types::ClusterId;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::{member::no_answer, until_answered::RETRY_EVERY};

/// A catalog that has not answered for so long is away, and a node begins with an image of it. A server that
/// is started at the same time as the node should answer within it.
const AWAY_AFTER: Duration = Duration::from_secs(5);

/// How long one reading may take: the rows of a catalog at all of its bounds have 35 MiB.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a node can't take part in its cluster.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The catalog's schema is missing or of another version, or its URL is malformed.
    #[error("the catalog: {0}")]
    Catalog(StoreError),
    /// It has no shards.
    #[error("the catalog has no shards: list them as [[shard]] and run `forebay migrate`")]
    NoShards,
}

/// The catalog as a node begins with it.
pub struct InitialCatalog {
    /// The catalog.
    pub catalog: Arc<dyn Catalog>,
    /// The cluster.
    pub cluster: ClusterId,
    /// The copy that the node begins with.
    pub copy: CatalogCopy,
    /// The tokens of the image with which the node begins. `None`: the catalog answers.
    pub tokens: Option<Tokens>,
}

impl InitialCatalog {
    fn with(
        catalog: Arc<dyn Catalog>,
        changes: CatalogChanges,
        tokens: Option<Tokens>,
    ) -> Result<Self, BeginError> {
        let (cluster, mut copy) = (changes.cluster, CatalogCopy::default());
        copy.apply(changes);
        let begun = Self { catalog, cluster, copy, tokens };
        if begun.shards().is_empty() { Err(BeginError::NoShards) } else { Ok(begun) }
    }

    /// The versions of the image with which the node begins. `None`: the catalog answers.
    pub fn image(&self) -> Option<ImageVersions> {
        let tokens = self.tokens.as_ref()?.version;
        Some(ImageVersions { cluster: self.cluster, rows: self.copy.known(), tokens })
    }

    /// The shards. There is one at least.
    pub fn shards(&self) -> &[CatalogShard] {
        self.copy.view().map(|view| view.shards.as_slice()).unwrap_or_default()
    }
}

/// Reads the catalog. While it is away, `image` is asked for the newest image of it; without one, the node
/// waits until the catalog answers.
pub async fn begin<'a>(
    catalog: Arc<dyn Catalog>,
    image: impl Fn() -> BoxFuture<'a, Option<CatalogImage>>,
) -> Result<InitialCatalog, BeginError> {
    let (begun, mut said) = (Instant::now(), false);
    loop {
        let error = match tokio::time::timeout(READ_TIMEOUT, read(&*catalog)).await {
            Ok(Ok(changes)) => return InitialCatalog::with(catalog, changes, None),
            Ok(Err(error)) if error.class == ErrorClass::Schema => return Err(BeginError::Catalog(error)),
            Ok(Err(error)) => error,
            Err(_) => no_answer(READ_TIMEOUT),
        };
        if !std::mem::replace(&mut said, true) {
            tracing::warn!(%error, "the catalog does not answer: {error}; waiting for it");
        }
        if begun.elapsed() >= AWAY_AFTER
            && let Some(CatalogImage { changes, tokens }) = image().await
        {
            tracing::warn!("starting without the catalog; this node joins the cluster once it answers");
            return InitialCatalog::with(catalog, changes, Some(tokens));
        }
        tokio::time::sleep(RETRY_EVERY).await;
    }
}

async fn read(catalog: &dyn Catalog) -> Result<CatalogChanges, StoreError> {
    catalog.check().await?;
    catalog.read(Versions::default()).await
}
