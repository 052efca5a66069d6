//! A real browser for the tests of the dashboard: Chromium and its driver, from the PATH, else from the
//! distribution's packages. Unlike database servers they are installed, since a browser needs its fonts,
//! helpers and settings where the system has them.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail, ensure};

/// What is installed where no browser is on the PATH. Without a font a page has no text.
const PACKAGES: [&str; 3] = ["chromium", "chromium-driver", "fonts-dejavu-core"];
/// The programs, by the names under which distributions have them.
const NAMES: [&str; 2] = ["chromium", "chromedriver"];

/// Chromium and its driver.
pub struct Browser {
    /// The browser.
    pub chromium: PathBuf,
    /// Takes the commands of a test.
    pub driver: PathBuf,
}

/// The browser. If it is not on the PATH, root installs it; anyone else is told how.
pub fn browser() -> anyhow::Result<Browser> {
    if let Some(found) = on_path() {
        return Ok(found);
    }
    let how = format!("apt-get install --no-install-recommends {}", PACKAGES.join(" "));
    if !is_root() {
        bail!("chromium and chromedriver are not on the PATH; install them: {how}");
    }
    println!("browser: {how}");
    for arguments in [vec!["-qq", "update"], install()] {
        let mut command = Command::new("apt-get");
        let status = command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
        let status = status.context("cannot run apt-get: browsers are installed on Debian only")?;
        ensure!(status.success(), "{how}: {status}");
    }
    on_path().context("the packages contain no chromium")
}

fn install() -> Vec<&'static str> {
    // Another process may be at it.
    ["-qq", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends"]
        .into_iter()
        .chain(PACKAGES)
        .collect()
}

fn on_path() -> Option<Browser> {
    let [chromium, driver] = NAMES.map(find);
    Some(Browser { chromium: chromium?, driver: driver? })
}

fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| Path::is_file(file))
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
