//! The copy of the catalog in a file, with which the node starts while the catalog is away.
//!
//! The file is the node's own, and this task is the only one that writes it while the node runs. It is
//! replaced as a whole: whoever reads it finds the one or the next. Its time is when the catalog was last
//! found to be so. It is behind the catalog by [`LOOK_EVERY`] and the time that it takes to write it. A
//! catalog that went back, or is another one, is not followed, as the node itself does not follow it. If the
//! file can't be written, that is logged once, and the one before stays.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use forebay_config::Config;
use forebay_store::{Catalog, CatalogImage, ImageVersions, StoreError};
use forebay_types::{Clock, ShardId};
use serde::{Deserialize, Serialize};

use super::catalog::open_catalog;
use crate::shards::mysql_options;

/// How often the catalog is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The node rests so many times as long as it took to read a changed catalog and to write it: tenants who
/// change much make the copy late, and nothing else.
const REST: u32 = 20;
/// The format of the file. It grows with each that earlier programs must not read.
const FORMAT: u32 = 1;

/// The file.
pub struct CopyFile(PathBuf);

/// The file's content.
#[derive(Serialize, Deserialize)]
struct Content<T> {
    /// Its format.
    format: u32,
    /// The copy.
    image: T,
}

impl CopyFile {
    /// The one that the configuration names.
    pub fn of(config: &Config) -> Option<Self> {
        config.catalog_copy.clone().map(Self)
    }

    /// Checks that there is a folder for it.
    pub fn check(&self) -> Result<(), NoFolder> {
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder {
            Some(folder) if !folder.is_dir() => Err(NoFolder(folder.to_owned())),
            _ => Ok(()),
        }
    }

    /// The copy, and when the catalog was last found to be so.
    pub fn read(&self) -> Result<(CatalogImage, SystemTime), CopyError> {
        let image = decode(&fs::read(&self.0)?)?;
        Ok((image, fs::metadata(&self.0)?.modified()?))
    }

    /// Keeps the copy as the catalog is, over connections of its own: nobody waits behind so much.
    /// `began_with`: the image with which the node has begun; without one, the catalog is followed as it is
    /// found.
    async fn follow(
        self,
        catalog: Arc<dyn Catalog>,
        began_with: Option<ImageVersions>,
        clock: Arc<dyn Clock>,
    ) {
        let (file, mut kept, mut is_failing) = (Arc::new(self), began_with, false);
        loop {
            let begun = clock.monotonic();
            match file.look(&*catalog, kept.as_ref(), is_failing, &*clock).await {
                Ok(changed) => {
                    if std::mem::take(&mut is_failing) {
                        tracing::info!("{} is written again", file.0.display());
                    }
                    kept = changed.or(kept);
                }
                // The membership task says that the catalog is away, or is not followed.
                Err(CopyError::Catalog(_) | CopyError::WentBack) => {}
                Err(error) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        let path = file.0.display();
                        tracing::error!("cannot write {path}, the copy of the catalog: {error}");
                    }
                }
            }
            tokio::time::sleep(LOOK_EVERY.max(clock.monotonic().since(begun) * REST)).await;
        }
    }

    /// Writes the copy if the catalog has other versions than what is kept. Returns these then. `anew`: the
    /// file is not as it should be, and is written in any case.
    async fn look(
        self: &Arc<Self>,
        catalog: &dyn Catalog,
        kept: Option<&ImageVersions>,
        anew: bool,
        clock: &dyn Clock,
    ) -> Result<Option<ImageVersions>, CopyError> {
        let image = CatalogImage::read(catalog, kept.filter(|_| !anew)).await?;
        let versions = image.as_ref().map(CatalogImage::versions);
        if versions.zip(kept).is_some_and(|(now, kept)| !now.follows(kept)) {
            return Err(CopyError::WentBack);
        }
        let (file, now) = (self.clone(), clock.wall());
        let written = tokio::task::spawn_blocking(move || match image {
            Some(image) => file.write(&image),
            None => fs::File::open(&file.0)?.set_modified(now.into()),
        });
        written.await.unwrap_or_else(|panic| Err(io::Error::other(panic)))?;
        metrics::gauge!("forebay_catalog_copy_timestamp_seconds").set(now.as_micros() as f64 / 1e6);
        Ok(versions)
    }

    /// Replaces the file. Nobody else may read it: it names tenants, and holds hashes of tokens.
    pub fn write(&self, image: &CatalogImage) -> io::Result<()> {
        let mut beside = self.0.clone().into_os_string();
        beside.push(".new");
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(&serde_json::to_vec(&Content { format: FORMAT, image })?)?;
        file.sync_all()?;
        fs::rename(&beside, &self.0)
    }
}

/// Keeps a copy of the catalog, if the configuration says where.
pub fn keep_copy(
    config: &Config,
    began_with: Option<ImageVersions>,
    clock: Arc<dyn Clock>,
) -> Option<impl Future<Output = ()> + Send + 'static> {
    let file = CopyFile::of(config)?;
    // The node has begun with this address.
    let catalog = open_catalog(&config.catalog, &mysql_options(config)).ok()?;
    Some(file.follow(catalog, began_with, clock))
}

/// The folder of the file is not there.
#[derive(Debug, thiserror::Error)]
#[error("catalog.copy_file: {} is not a folder", .0.display())]
pub struct NoFolder(PathBuf);

/// A copy, from the bytes of a file.
pub fn decode(bytes: &[u8]) -> Result<CatalogImage, CopyError> {
    let Content { format, image } = serde_json::from_slice::<Content<serde_json::Value>>(bytes)?;
    if format > FORMAT {
        return Err(CopyError::Format(format));
    }
    Ok(serde_json::from_value(image)?)
}

/// Why there is no copy, or why it was not written.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] StoreError),
    /// It went back, or is another one.
    #[error("the catalog is older than its copy, or another one")]
    WentBack,
    /// The file can't be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The file holds something else.
    #[error("it is no copy of a catalog: {0}")]
    Content(#[from] serde_json::Error),
    /// A shard has been moved since.
    #[error("it has shard {0} elsewhere than it is listed")]
    Misplaced(ShardId),
    /// A later program has written it.
    #[error("it is of format {0}, and this program reads up to {FORMAT}")]
    Format(u32),
}
