//! A private PostgreSQL server.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};

use crate::other_queues::server_process::ServerProcess;

/// The user that the server packages create. The server refuses to run as root.
const ACCOUNT: &str = "postgres";

/// Settings for a queue; all others are defaults. With `mmap` the shared memory is in the folder and is
/// removed with it.
const SETTINGS: [(&str, &str); 16] = [
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
    ("dynamic_shared_memory_type", "mmap"),
    ("max_connections", "400"),
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("shared_buffers", "1GB"),
    ("wal_buffers", "16MB"),
    ("max_wal_size", "2GB"),
    ("checkpoint_timeout", "15min"),
    ("random_page_cost", "1.1"),
    ("jit", "off"),
    ("autovacuum", "on"),
    ("autovacuum_naptime", "5s"),
    ("autovacuum_vacuum_insert_scale_factor", "0.2"),
];

/// Settings that reports show.
pub const REPORTED: [&str; 10] = [
    "server_version",
    "fsync",
    "synchronous_commit",
    "wal_sync_method",
    "full_page_writes",
    "wal_level",
    "shared_buffers",
    "max_wal_size",
    "autovacuum",
    "autovacuum_naptime",
];

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// The process.
    process: ServerProcess,
    /// Path of the server program.
    program: PathBuf,
}

impl Server {
    /// The server's process.
    pub fn process(&self) -> &ServerProcess {
        &self.process
    }
}

impl Drop for Server {
    /// Stops the server cleanly: without its own IPC namespace, a killed server leaves a System V shared
    /// memory segment behind.
    fn drop(&mut self) {
        let mut stop = as_account(&self.program.with_file_name("pg_ctl"));
        stop.args(["stop", "--mode=immediate", "--silent", "-D"]).arg(data(self.process.folder()));
        // A server that does not stop is killed next.
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Creates an empty database and starts the server program.
pub async fn start(program: PathBuf) -> anyhow::Result<Server> {
    let process = ServerProcess::start("postgres", |folder, port| {
        initialize(&program, folder)?;
        let mut command = as_account(&program);
        command.arg("-D").arg(data(folder)).args(["-p", &port.to_string()]);
        for (name, value) in SETTINGS {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        Ok(command)
    });
    Ok(Server { process: process.await?, program })
}

fn initialize(program: &Path, folder: &Path) -> anyhow::Result<()> {
    if is_root() {
        run(Command::new("chown").arg(ACCOUNT).arg(folder))?;
    }
    let mut initdb = as_account(&program.with_file_name("initdb"));
    initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
    run(initdb.arg(data(folder)))
}

fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// A command that runs the program as a user that may run it. Each wrapper replaces itself by the next
/// program, so that the process is the server itself.
fn as_account(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("unshare");
    command.args(["--ipc", "--", "setpriv"]);
    command.args([format!("--reuid={ACCOUNT}"), format!("--regid={ACCOUNT}"), "--init-groups".to_owned()]);
    command.arg("--").arg(program);
    // That user may have no access to our current folder.
    command.current_dir("/");
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}, {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
