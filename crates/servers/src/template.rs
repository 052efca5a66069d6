//! Data folders: one is initialised per install and then copied, which is many times faster.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};

use crate::{find::Install, kind::Kind, supervised_child::as_root};

/// Creates `data`, which must not exist, with a new server's data. The only account is `root`, from any host
/// and without a password.
pub(crate) fn fill(install: &Install, data: &Path) -> anyhow::Result<()> {
    copy(&template(install)?, data).context("copying a data folder")
}

/// The install's template, which is made now if it does not exist.
fn template(install: &Install) -> anyhow::Result<PathBuf> {
    let template = install.home.join("template");
    let lock = fs::File::create(install.home.join("template.lock"))?;
    lock.lock()?;
    if !template.exists() {
        let work = tempfile::Builder::new().prefix("template-").tempdir_in(&install.home)?;
        let new = work.path().join("data");
        match install.kind {
            Kind::MariaDb => initialise_mariadb(install, &new)?,
            Kind::MySql => initialise_mysql(install, &new, work.path())?,
        }
        fs::rename(new, &template)?;
    }
    Ok(template)
}

fn initialise_mysql(install: &Install, data: &Path, work: &Path) -> anyhow::Result<()> {
    let accounts = work.join("accounts.sql");
    fs::write(&accounts, "CREATE USER root@'%';\nGRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\n")?;
    let mut command = install.command();
    command
        .args(["--initialize-insecure", "--innodb-redo-log-capacity=8M", "--skip-log-bin"])
        .arg(format!("--init-file={}", accounts.display()));
    finish(command, install, data, "")?;
    // Without this file each copy generates its own server id.
    let identity = data.join("auto.cnf");
    if identity.exists() {
        fs::remove_file(identity)?;
    }
    Ok(())
}

fn initialise_mariadb(install: &Install, data: &Path) -> anyhow::Result<()> {
    fs::create_dir(data)?;
    // A bootstrapping server reads one statement per line.
    let mut sql = String::from("create database mysql;\nuse mysql;\n");
    sql.push_str("set @auth_root_socket=NULL;\nset @skip_auth_anonymous=1;\n");
    for part in ["system_tables", "performance_tables", "system_tables_data"] {
        let names = ["mariadb", "mysql"].map(|family| install.share.join(format!("{family}_{part}.sql")));
        let file = names
            .iter()
            .find(|file| file.exists())
            .with_context(|| format!("{} has no {part}.sql", install.share.display()))?;
        sql.push_str(&fs::read_to_string(file)?);
        sql.push('\n');
    }
    let every_right = u64::MAX;
    sql.push_str(&format!(
        "REPLACE INTO global_priv VALUES ('%', 'root', '{{\"access\":{every_right}}}');\n"
    ));
    let mut command = install.command();
    command.args([
        "--bootstrap",
        "--enforce-storage-engine=",
        "--innodb-log-file-size=16M",
        "--skip-log-bin",
        "--max-allowed-packet=8M",
        "--net-buffer-length=16K",
    ]);
    finish(command, install, data, &sql)
}

/// Runs an initialising server to its end.
fn finish(mut command: Command, install: &Install, data: &Path, input: &str) -> anyhow::Result<()> {
    command
        .args(as_root())
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--lc-messages-dir={}", install.share.display()))
        .arg(format!("--character-sets-dir={}", install.share.join("charsets").display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // In its own thread: a server that prints much while it reads would otherwise block against us. If
        // the server stops reading, its output below says why.
        std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    }
    let output = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "initialising {}: {}\n{errors}", install.kind, output.status);
    Ok(())
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
