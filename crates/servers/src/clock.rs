//! A wall clock that a test sets, for processes of its choice: libfaketime, from the machine, else from the
//! distribution's package.

use std::{
    env::consts::ARCH,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use crate::{find::servers_folder, unpack};

/// The library's name.
const LIBRARY: &str = "libfaketimeMT.so.1";
/// Processes look at the clock's file so often, in seconds.
const SEEN_WITHIN_SECONDS: u32 = 1;
/// Where the library leaves files of processes that were killed.
const LEFT_OVER: &str = "/dev/shm";

/// A wall clock for the processes that are started behind it. The monotonic clock stays as it is.
#[derive(Debug)]
pub struct WallClock {
    /// The library.
    library: PathBuf,
    /// Holds the file that says what the clock shows.
    folder: tempfile::TempDir,
}

impl WallClock {
    /// A clock that is right.
    pub fn new() -> anyhow::Result<Self> {
        let clock = Self { library: library()?, folder: tempfile::tempdir()? };
        clock.set(0)?;
        Ok(clock)
    }

    /// The words before the command of a process, which then has this clock.
    pub fn before(&self) -> Vec<String> {
        vec![
            "env".to_owned(),
            format!("LD_PRELOAD={}", self.library.display()),
            format!("FAKETIME_TIMESTAMP_FILE={}", self.file().display()),
            format!("FAKETIME_CACHE_DURATION={SEEN_WITHIN_SECONDS}"),
            "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
            "NO_FAKE_STAT=1".to_owned(),
        ]
    }

    /// From now on, or a second later, it is ahead of the true time by so many seconds.
    pub fn set(&self, ahead: i64) -> anyhow::Result<()> {
        // Renamed when complete: nobody reads a part of it.
        let new = self.folder.path().join("new");
        fs::write(&new, format!("{ahead:+}\n"))?;
        Ok(fs::rename(new, self.file())?)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("clock")
    }
}

impl Drop for WallClock {
    fn drop(&mut self) {
        // A later process with the same number would not start.
        for entry in fs::read_dir(LEFT_OVER).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number =
                ["faketime_shm_", "sem.faketime_sem_"].iter().find_map(|kind| name.strip_prefix(kind));
            if number.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
                // Another test may have removed it.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Several processes may call this at once: one unpacks, the others wait for it.
fn library() -> anyhow::Result<PathBuf> {
    let below = PathBuf::from(format!("usr/lib/{ARCH}-linux-gnu/faketime")).join(LIBRARY);
    let installed = Path::new("/").join(&below);
    if installed.is_file() {
        return Ok(installed);
    }
    let unpacked = unpack::once(&servers_folder().join("faketime"), LIBRARY, false, |packages, library| {
        // It needs the C library alone, which every machine has.
        packages.download(&["libfaketime"])?;
        let root = library.with_file_name("root");
        packages.extract(&root)?;
        fs::rename(root.join(&below), library).with_context(|| format!("the package contains no {LIBRARY}"))
    });
    unpacked.context("libfaketime, which sets the clocks of processes, is not installed and not to be had")
}
