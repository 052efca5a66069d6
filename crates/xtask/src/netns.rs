//! A network of its own for a command.

use std::{fs, os::unix::fs::MetadataExt as _, process::Command};

use anyhow::{Context as _, bail, ensure};

/// Runs the command that follows where nobody else's interfaces and names of namespaces are. All of it is
/// gone when the last process has ended.
const ALONE: &str =
    "mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up && exec \"$@\"";
/// Programs that a walk in namespaces runs, with the package of Debian that has each.
const TOOLS: [(&str, &str); 4] =
    [("unshare", "util-linux"), ("mount", "mount"), ("ip", "iproute2"), ("nft", "nftables")];

/// Fails unless a network can be made here, and says what is missing.
pub fn check() -> anyhow::Result<()> {
    let owner = fs::metadata("/proc/self").context("--netns needs Linux")?.uid();
    ensure!(owner == 0, "--netns makes network namespaces, which takes root: run it with sudo");
    let missing = |(tool, _): &(&str, &str)| Command::new(tool).arg("--version").output().is_err();
    let packages: Vec<&str> = TOOLS.into_iter().filter(missing).map(|(_, package)| package).collect();
    if !packages.is_empty() {
        let packages = packages.join(" ");
        bail!("--netns needs {packages}, as in `apt-get install {packages}`");
    }
    let tried = alone(Command::new("true")).output()?;
    let errors = String::from_utf8_lossy(&tried.stderr);
    ensure!(tried.status.success(), "--netns: this machine makes no network namespace: {errors}");
    Ok(())
}

/// The command in a network of its own.
pub fn alone(command: Command) -> Command {
    let mut alone = Command::new("unshare");
    alone.args(["--net", "--mount", "--propagation", "private", "sh", "-c", ALONE, "sh"]);
    alone.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        alone.current_dir(folder);
    }
    alone
}
