//! The copy of the catalog in a file, with which the node starts while the catalog is away.
//!
//! The file is the node's own, and this task is the only one that writes it. It is replaced as a whole:
//! whoever reads it finds the one or the next. It is behind the catalog by [`LOOK_EVERY`] and the time that
//! it takes to write it. If it can't be written, that is logged once, and the file before stays.

use std::{
    fs, io, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::PathBuf, sync::Arc, time::Duration,
};

use forebay_store::{Catalog, CatalogImage, StoreError};
use forebay_types::Clock;

/// How often the catalog is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The node rests so many times as long as it took to read a changed catalog and to write it: tenants who
/// change much make the copy late, and nothing else.
const REST: u32 = 20;

/// The file.
pub struct CopyFile(PathBuf);

impl CopyFile {
    /// Keeps it here.
    pub const fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Checks that there is a folder for it.
    pub fn check(&self) -> Result<(), NoFolder> {
        let folder = self.0.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder {
            Some(folder) if !folder.is_dir() => Err(NoFolder(folder.to_owned())),
            _ => Ok(()),
        }
    }

    /// The copy. `None`: there is none, or none that this program understands, which is logged.
    pub fn read(&self) -> Option<CatalogImage> {
        let path = self.0.display();
        let said =
            |error: &dyn std::fmt::Display| tracing::error!("{path} is no copy of the catalog: {error}");
        match fs::read(&self.0) {
            Ok(bytes) => decode(&bytes).map_err(|error| said(&error)).ok(),
            Err(error) => {
                said(&error);
                None
            }
        }
    }

    /// Keeps the copy as the catalog is.
    pub async fn follow(self, catalog: Arc<dyn Catalog>, clock: Arc<dyn Clock>) {
        let (file, mut known, mut is_failing) = (Arc::new(self), Default::default(), false);
        loop {
            let begun = clock.monotonic();
            let mut pause = LOOK_EVERY;
            match file.look(&*catalog, known, &*clock).await {
                Ok(Some(now_known)) => {
                    if std::mem::take(&mut is_failing) {
                        tracing::info!("{} is written again", file.0.display());
                    }
                    known = now_known;
                    pause = pause.max(clock.monotonic().since(begun) * REST);
                }
                // The catalog is away or as before: the copy is as good as it can be.
                Ok(None) | Err(CopyError::Catalog(_)) => {}
                Err(CopyError::File(error)) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        let path = file.0.display();
                        tracing::error!("cannot write {path}, the copy of the catalog: {error}");
                    }
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Writes the copy if the catalog has other versions than these. Returns them then.
    async fn look(
        self: &Arc<Self>,
        catalog: &dyn Catalog,
        known: Known,
        clock: &dyn Clock,
    ) -> Result<Option<Known>, CopyError> {
        let Some(image) = CatalogImage::read(catalog, known, clock.wall()).await? else { return Ok(None) };
        let (file, versions) = (self.clone(), image.versions());
        let written = tokio::task::spawn_blocking(move || file.write(&image)).await;
        written.unwrap_or_else(|panic| Err(io::Error::other(panic)))?;
        Ok(Some(versions))
    }

    /// Nobody else may read it: it names tenants, and holds hashes of tokens.
    fn write(&self, image: &CatalogImage) -> io::Result<()> {
        let beside = self.0.with_extension("new");
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&serde_json::to_vec(image)?)?;
        file.sync_all()?;
        fs::rename(&beside, &self.0)
    }
}

/// The folder of the file is not there.
#[derive(Debug, thiserror::Error)]
#[error("catalog.copy_file: {} is not a folder", .0.display())]
pub struct NoFolder(PathBuf);

/// A copy, from the bytes of a file.
pub fn decode(bytes: &[u8]) -> Result<CatalogImage, serde_json::Error> {
    serde_json::from_slice(bytes)
}

/// Versions of a catalog: of its rows, and of its tokens.
type Known = (forebay_store::Versions, u64);

/// Why the copy was not written.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] StoreError),
    /// The file can't be written.
    #[error(transparent)]
    File(#[from] io::Error),
}
