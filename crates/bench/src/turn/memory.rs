//! The memory of a measurement. The kernel clears a page when a process touches it for the first time, and
//! the host of a virtual machine may have to find one for it: that can take milliseconds, and is not the
//! engine's. So the allocator keeps all memory that it was given, and another round finds it there.

use std::{env, os::unix::process::CommandExt as _, process::Command};

use anyhow::Context as _;

/// After how many milliseconds the allocator gives unused memory back; `-1`: never. Read when the process
/// starts.
const PURGE_DELAY: &str = "MIMALLOC_PURGE_DELAY";

/// Starts this program again if its allocator does not keep its memory.
pub fn keep() -> anyhow::Result<()> {
    if env::var_os(PURGE_DELAY).is_some() {
        return Ok(());
    }
    let program = env::current_exe().context("cannot find this program")?;
    let error = Command::new(program).args(env::args_os().skip(1)).env(PURGE_DELAY, "-1").exec();
    Err(error).context("cannot start this program again")
}
