//! Finds a server program: on the PATH, else unpacked from packages.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use crate::{kind::Kind, unpack};

/// A server program that can be run.
#[derive(Debug, Clone)]
pub struct Install {
    /// The kind of server.
    pub kind: Kind,
    /// The version that `--version` states.
    pub version: String,
    /// Where the program comes from, as text for people.
    pub origin: String,
    /// The program, followed by the arguments that must precede all others.
    pub(crate) program: Vec<OsString>,
    /// Error messages, character sets and the SQL of the system tables.
    pub(crate) share: PathBuf,
    /// A folder that only this install uses, for the template of a data folder.
    pub(crate) home: PathBuf,
}

impl Install {
    /// A command that runs the server program.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]);
        command
    }
}

/// A server of `kind`: from the PATH, else the distribution's packages unpacked under `target/servers`.
/// Several processes may call this at once: one unpacks, the others wait for it.
pub fn locate(kind: Kind) -> anyhow::Result<Install> {
    if let Some(program) = on_path(kind) {
        return installed(kind, &program);
    }
    let folder = servers_folder().join(kind.name());
    let unpacked = unpack::unpack(kind, &folder)
        .with_context(|| format!("{kind} is not on the PATH and could not be unpacked"))?;
    let mut program = unpacked.program;
    program.push("--no-defaults".into());
    let version = version_of(&program).context("the unpacked server does not run")?;
    let origin = format!("unpacked in {}", folder.display());
    Ok(Install { kind, version, origin, program, share: unpacked.share, home: folder })
}

fn installed(kind: Kind, program: &Path) -> anyhow::Result<Install> {
    let base = program.parent().and_then(Path::parent).unwrap_or(Path::new("/usr"));
    let share = ["share/mysql", "share/mariadb", "share"]
        .into_iter()
        .map(|folder| base.join(folder))
        .find(|folder| folder.join("english/errmsg.sys").exists())
        .with_context(|| format!("found no share/…/english/errmsg.sys for {}", program.display()))?;
    let origin = program.display().to_string();
    let program = vec![program.into(), "--no-defaults".into()];
    let version = version_of(&program).context("the installed server does not run")?;
    let home = servers_folder().join(format!("{kind}-{version}"));
    fs::create_dir_all(&home)?;
    Ok(Install { kind, version, origin, program, share, home })
}

/// `mysqld` is often MariaDB under its old name, so `--version` decides.
fn on_path(kind: Kind) -> Option<PathBuf> {
    let names: &[&str] = match kind {
        Kind::MariaDb => &["mariadbd", "mysqld"],
        Kind::MySql => &["mysqld"],
    };
    let path = env::var_os("PATH").unwrap_or_default();
    // Servers are often in folders that only root has on its PATH.
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let candidates = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    candidates.filter(|program| program.is_file()).find(|program| {
        let output = Command::new(program).args(["--no-defaults", "--version"]).output();
        output.is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout);
            output.status.success() && text.contains("MariaDB") == (kind == Kind::MariaDb)
        })
    })
}

/// The word after `Ver` in what `--version` prints.
fn version_of(program: &[OsString]) -> anyhow::Result<String> {
    let output = Command::new(&program[0]).args(&program[1..]).arg("--version").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace().skip_while(|word| *word != "Ver");
    match words.nth(1) {
        Some(version) if output.status.success() => Ok(version.to_owned()),
        _ => bail!("--version: {}, {text} {}", output.status, String::from_utf8_lossy(&output.stderr)),
    }
}

/// A program that is on the PATH.
pub(crate) fn program_on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// One folder for the whole checkout, whatever the target folder of a build is: no two builds unpack the same
/// server.
pub(crate) fn servers_folder() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = crate_folder.ancestors().nth(2).unwrap_or(crate_folder);
    workspace.join("target/servers")
}
