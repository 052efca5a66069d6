//! A real browser for the tests of the dashboard: Chromium and its driver, from the PATH, else from the
//! distribution's packages. Unlike database servers they are installed, since a browser needs its fonts,
//! helpers and settings where the system has them.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, bail, ensure};

use crate::find::program_on_path;

/// Packages that are installed where no browser is on the PATH. Without a font a page has no text.
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
    if let Some(found) = installed() {
        return Ok(found);
    }
    let how = format!("apt-get install --no-install-recommends {}", PACKAGES.join(" "));
    if !rustix::process::geteuid().is_root() {
        bail!("chromium and chromedriver are not on the PATH; install them: {how}");
    }
    println!("browser: {how}");
    for arguments in [vec!["-qq", "update"], install()] {
        let mut command = Command::new("apt-get");
        let status = command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
        let status = status.context("cannot run apt-get: browsers are installed on Debian only")?;
        ensure!(status.success(), "{how}: {status}");
    }
    installed().context("the packages contain no chromium")
}

fn install() -> Vec<&'static str> {
    // Another process may be at it.
    ["-qq", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends"]
        .into_iter()
        .chain(PACKAGES)
        .collect()
}

fn installed() -> Option<Browser> {
    let [chromium, driver] = NAMES.map(program_on_path);
    Some(Browser { chromium: chromium?, driver: driver? })
}
