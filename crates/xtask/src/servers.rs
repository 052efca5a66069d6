//! Gets a database server of each kind for a run of the tests.

use std::{error::Error, fmt, process::Command};

use anyhow::{Context as _, bail};
use forebay_servers::{Install, Kind, Process, locate, named_by_environment, required};

/// Servers that run until this value is dropped, and the variables that name them to tests.
pub struct Servers {
    /// End when they are dropped.
    _processes: Vec<Process>,
    /// So do these.
    #[cfg(feature = "docker")]
    _containers: Vec<forebay_servers::docker::Container>,
    /// Name and value.
    pub environment: Vec<(&'static str, String)>,
}

/// A server is missing that a build of xtask with the feature `docker` could run.
#[derive(Debug)]
pub struct NeedsContainers(String);

impl fmt::Display for NeedsContainers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; containers may be", self.0)
    }
}

impl Error for NeedsContainers {}

/// Takes what the environment names, else what is on the PATH, else unpacks, else (in a build with the
/// feature `docker`) runs a container; says which. A kind that is not to be had is stood in for by the
/// other, unless it is required.
pub fn start() -> anyhow::Result<Servers> {
    let required = required()?;
    let mut servers = Servers {
        _processes: Vec::new(),
        #[cfg(feature = "docker")]
        _containers: Vec::new(),
        environment: Vec::new(),
    };
    let mut missing = Vec::new();
    for kind in Kind::ALL {
        match servers.add(kind) {
            Ok(()) => {}
            Err(error) if !cfg!(feature = "docker") && docker_answers() => {
                return Err(NeedsContainers(format!("{kind}: not at hand ({error:#})")).into());
            }
            Err(error) if required.contains(&kind) => {
                return Err(error).with_context(|| format!("{kind} is required"));
            }
            Err(error) => missing.push((kind, error)),
        }
    }
    let substitute = servers.environment.first().map(|(_, url)| url.clone());
    for (kind, error) in missing {
        println!("{kind}: none ({error:#})");
        let Some(url) = &substitute else { bail!("there is no database server to test against") };
        println!("{kind}: using {} instead", kind.other());
        servers.environment.push((kind.variable(), url.clone()));
    }
    Ok(servers)
}

fn docker_answers() -> bool {
    Command::new("docker").arg("info").output().is_ok_and(|output| output.status.success())
}

impl Servers {
    fn add(&mut self, kind: Kind) -> anyhow::Result<()> {
        if let Some((url, handshake)) = named_by_environment(kind)? {
            println!("{kind}: {}, named by the environment", handshake.version);
            self.environment.push((kind.variable(), url));
            return Ok(());
        }
        match locate(kind) {
            Ok(install) => self.run(install),
            Err(error) => self.contain(kind, error),
        }
    }

    fn run(&mut self, install: Install) -> anyhow::Result<()> {
        let (kind, version, origin) = (install.kind, install.version.clone(), install.origin.clone());
        let process = Process::start(install, &[])?;
        println!("{kind}: {version}, {origin}, port {}", process.port());
        self.environment.push((kind.variable(), process.url()));
        self._processes.push(process);
        Ok(())
    }

    #[cfg(feature = "docker")]
    fn contain(&mut self, kind: Kind, error: anyhow::Error) -> anyhow::Result<()> {
        let container = forebay_servers::docker::start(kind).context(error)?;
        let version = forebay_servers::read_handshake(&container.address())?.version;
        println!("{kind}: {version}, container of {}", container.image());
        self.environment.push((kind.variable(), container.url()));
        self._containers.push(container);
        Ok(())
    }

    /// Without the feature: the reason why there is no other server.
    #[cfg(not(feature = "docker"))]
    fn contain(&mut self, _: Kind, error: anyhow::Error) -> anyhow::Result<()> {
        Err(error)
    }
}
