//! Fetches the distribution's server packages with every library that they need, and unpacks them into a
//! folder. Nothing is installed. The server then runs with the folder's own loader and libraries, so that a
//! package of Debian unstable also runs on an older system. Debian has MySQL in unstable only.

use std::{
    env::consts::ARCH,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail, ensure};

use crate::kind::Kind;

/// A server that was unpacked.
pub(crate) struct UnpackedServer {
    /// The loader, its arguments, and the server.
    pub(crate) program: Vec<OsString>,
    /// The server's messages, character sets and SQL.
    pub(crate) share: PathBuf,
}

/// The server in `folder`, which is unpacked now unless that was done before.
pub(crate) fn unpack(kind: Kind, folder: &Path) -> anyhow::Result<UnpackedServer> {
    let root = once(folder, "root", kind == Kind::MySql, |packages, root| {
        packages.fetch(kind)?;
        packages.extract(root)
    })?;
    find_in(kind, &root)
}

/// Returns the path of `name` in `folder`. Unless it is there, it is made now: `fetch` leaves it at the path
/// that it is given. `unstable`: of packages that Debian has in unstable only.
pub(crate) fn once(
    folder: &Path,
    name: &str,
    unstable: bool,
    fetch: impl FnOnce(&Apt<'_>, &Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let folder = folder.canonicalize()?;
    let made = folder.join(name);
    // The lock is released with its file handle, so a killed process blocks nobody.
    let lock = fs::File::create(folder.join("lock"))?;
    lock.lock()?;
    if !made.exists() {
        let work = tempfile::Builder::new().prefix("apt-").tempdir_in(&folder)?;
        let new = work.path().join(name);
        fetch(&Apt::new(unstable, work.path())?, &new)?;
        // Renamed when complete: what exists is complete.
        fs::rename(new, &made)?;
    }
    Ok(made)
}

fn find_in(kind: Kind, root: &Path) -> anyhow::Result<UnpackedServer> {
    let triplet = format!("{ARCH}-linux-gnu");
    let loader = match ARCH {
        "x86_64" => "ld-linux-x86-64.so.2",
        "aarch64" => "ld-linux-aarch64.so.1",
        other => bail!("cannot unpack servers on {other}: the name of its loader is unknown"),
    };
    let loader =
        ["usr/lib64", "lib64", &format!("usr/lib/{triplet}"), &format!("lib/{triplet}"), "usr/lib", "lib"]
            .into_iter()
            .map(|folder| root.join(folder).join(loader))
            .find(|path| path.exists())
            .context("the packages contain no loader")?;
    let name = match kind {
        Kind::MariaDb => "mariadbd",
        Kind::MySql => "mysqld",
    };
    let server = root.join("usr/sbin").join(name);
    ensure!(server.exists(), "the packages contain no {name}");
    let mut libraries = OsString::new();
    for folder in ["usr/lib", "lib"] {
        libraries.push(root.join(folder).join(&triplet));
        libraries.push(":");
    }
    libraries.push(root.join("usr/lib/mysql/private"));
    let program = vec![
        loader.into(),
        "--library-path".into(),
        libraries,
        "--argv0".into(),
        server.clone().into(),
        server.into(),
    ];
    let share = ["usr/share/mysql", "usr/share/mariadb"]
        .into_iter()
        .map(|folder| root.join(folder))
        .find(|folder| folder.join("english/errmsg.sys").exists())
        .context("the packages contain no english/errmsg.sys")?;
    Ok(UnpackedServer { program, share })
}

/// An apt with its own lists, cache and status: it does not touch those of the machine.
pub(crate) struct Apt<'a> {
    /// Its folder, which is empty at first.
    work: &'a Path,
    /// Arguments of every call.
    options: Vec<String>,
}

impl<'a> Apt<'a> {
    fn new(unstable: bool, work: &'a Path) -> anyhow::Result<Self> {
        let source = Source::of_this_machine(unstable)?;
        for folder in ["lists/partial", "cache", "debs/partial"] {
            fs::create_dir_all(work.join(folder))?;
        }
        // With an empty status file even the C library counts as missing and is fetched.
        fs::write(work.join("status"), "")?;
        fs::write(work.join("sources.list"), source.line())?;
        let at = |name: &str| work.join(name).display().to_string();
        let options = [
            format!("Dir::Etc::sourcelist={}", at("sources.list")),
            "Dir::Etc::sourceparts=/dev/null".into(),
            "Dir::Etc::preferencesparts=/dev/null".into(),
            format!("Dir::State::Lists={}", at("lists")),
            format!("Dir::State::status={}", at("status")),
            format!("Dir::Cache={}", at("cache")),
            format!("Dir::Cache::archives={}", at("debs")),
            "APT::Sandbox::User=root".into(),
            "APT::Install-Recommends=0".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
            "Acquire::Languages=none".into(),
            "Acquire::Retries=3".into(),
        ];
        let apt =
            Self { work, options: options.into_iter().flat_map(|option| ["-o".into(), option]).collect() };
        apt.run("apt-get", &["-qq", "update"])?;
        Ok(apt)
    }

    /// Downloads the newest server of `kind` and what it needs to run.
    fn fetch(&self, kind: Kind) -> anyhow::Result<()> {
        let stem = format!("{kind}-server-core");
        let names = self.run("apt-cache", &["pkgnames", &stem])?;
        // `mysql-server-core`, or with a version as in `mysql-server-core-8.0`.
        let package = names
            .lines()
            .filter(|name| {
                let version = name.strip_prefix(&stem).unwrap_or("x");
                version.chars().all(|c| c == '-' || c == '.' || c.is_ascii_digit())
            })
            .min_by_key(|name| name.len())
            .with_context(|| format!("the distribution has no package {stem}"))?;
        let plan = self.run("apt-get", &["install", "--print-uris", "-y", package])?;
        let needed: Vec<&str> = plan
            .lines()
            .filter(|line| line.starts_with('\''))
            .filter_map(|line| line.split_whitespace().nth(1)?.split('_').next())
            .filter(|name| is_needed(name, package))
            .collect();
        self.download(&needed)
    }

    /// Downloads packages, without what they need.
    pub(crate) fn download(&self, packages: &[&str]) -> anyhow::Result<()> {
        let mut arguments = vec!["-qq", "download"];
        arguments.extend(packages);
        self.run("apt-get", &arguments)?;
        Ok(())
    }

    /// Unpacks all that was downloaded.
    pub(crate) fn extract(&self, root: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(root)?;
        for entry in fs::read_dir(self.work.join("debs"))? {
            let package = entry?.path();
            if package.extension().is_some_and(|extension| extension == "deb") {
                let status = Command::new("dpkg").arg("-x").arg(&package).arg(root).status()?;
                ensure!(status.success(), "dpkg -x {}: {status}", package.display());
            }
        }
        for folder in ["doc", "man", "locale", "lintian"] {
            let folder = root.join("usr/share").join(folder);
            if folder.exists() {
                fs::remove_dir_all(folder)?;
            }
        }
        Ok(())
    }

    fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(program)
            .args(&self.options)
            .args(arguments)
            .current_dir(self.work.join("debs"))
            .env("DEBIAN_FRONTEND", "noninteractive")
            .output()
            .with_context(|| {
                format!("cannot run {program}: packages are unpacked on Debian and Ubuntu only")
            })?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program} {}: {}\n{errors}", arguments.join(" "), output.status);
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// The server itself and shared libraries, without perl, debconf and their tools.
fn is_needed(name: &str, server: &str) -> bool {
    name == server
        || (name.starts_with("lib") && !name.starts_with("libperl") && !name.ends_with("-perl"))
        || name == "zlib1g"
}

/// Where packages of this machine's distribution are.
struct Source {
    mirror: String,
    keyring: &'static str,
    suite: String,
    components: &'static str,
}

impl Source {
    /// The mirror that this machine's own apt uses.
    fn of_this_machine(unstable: bool) -> anyhow::Result<Self> {
        let release = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
        let field = |name: &str| {
            let value = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
            Some(value.trim_matches('"').to_owned())
        };
        let distribution = field("ID").unwrap_or_default();
        let codename = field("VERSION_CODENAME").unwrap_or_else(|| "sid".into());
        let (keyring, components, suite) = match (distribution.as_str(), unstable) {
            ("debian", true) => ("debian-archive-keyring.gpg", "main", "sid".into()),
            ("debian", false) => ("debian-archive-keyring.gpg", "main", codename),
            ("ubuntu", _) => ("ubuntu-archive-keyring.gpg", "main universe", codename),
            (other, _) => bail!("packages are unpacked on Debian and Ubuntu only, not on {other:?}"),
        };
        let mirror = mirror(&apt_sources()?, &distribution)
            .with_context(|| format!("the apt sources of this machine name no {distribution} mirror"))?;
        Ok(Self { mirror, keyring, suite, components })
    }

    fn line(&self) -> String {
        let Self { mirror, keyring, suite, components } = self;
        format!("deb [signed-by=/usr/share/keyrings/{keyring}] {mirror} {suite} {components}\n")
    }
}

/// All source files of the machine's apt, one after the other.
fn apt_sources() -> anyhow::Result<String> {
    let mut text = fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
    if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
        for entry in entries {
            text.push('\n');
            text.push_str(&fs::read_to_string(entry?.path())?);
        }
    }
    Ok(text)
}

/// The first address whose path is the distribution's name, in either form of source file.
fn mirror(sources: &str, distribution: &str) -> Option<String> {
    let addresses = sources.lines().filter_map(|line| {
        if let Some(addresses) = line.strip_prefix("URIs:") {
            return addresses.split_whitespace().next();
        }
        let mut words = line.strip_prefix("deb ")?.trim_start();
        if let Some(options) = words.strip_prefix('[') {
            words = options.split_once(']')?.1;
        }
        words.split_whitespace().next()
    });
    addresses
        .map(str::to_owned)
        .find(|address| address.trim_end_matches('/').ends_with(&format!("/{distribution}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_read_from_both_forms() {
        let old = "# deb http://no/debian x main\ndeb [arch=amd64] http://b/debian/ bookworm main\n";
        assert_eq!(mirror(old, "debian").as_deref(), Some("http://b/debian/"));
        let new =
            "Types: deb\nURIs: http://c/other\n\nURIs: http://c/debian-security\nURIs: http://c/debian\n";
        assert_eq!(mirror(new, "debian").as_deref(), Some("http://c/debian"));
        assert_eq!(mirror(new, "ubuntu"), None);
    }

    #[test]
    fn only_the_server_and_libraries_are_fetched() {
        let server = "mysql-server-core";
        for name in ["mysql-server-core", "libc6", "zlib1g", "libicu76"] {
            assert!(is_needed(name, server), "{name}");
        }
        for name in ["perl-base", "libperl5.40", "libdbd-mysql-perl", "debconf", "mysql-common"] {
            assert!(!is_needed(name, server), "{name}");
        }
    }
}
