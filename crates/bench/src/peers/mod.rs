//! Other queues, measured by the same scenarios. Each is started as a private server of its own.

mod beanstalkd;
mod broker;
mod foqs;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "postgres")]
mod postgres;
mod program;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use crate::{
    database::Database,
    system::{Item, Setup, System},
};

/// Their names, as written on the command line.
pub const NAMES: [&str; 7] = {
    let mut names = [""; 7];
    let mut at = 0;
    while at < names.len() {
        names[at] = Peer::ALL[at].name();
        at += 1;
    }
    names
};

/// Whether it can be measured here; the error says why not: it is not compiled in, its server is not on this
/// machine, or it can't work on the database of the run.
pub fn available(name: &str, database: Database) -> anyhow::Result<()> {
    let peer = Peer::find(name)?;
    ensure!(
        peer != Peer::Foqs || database != Database::Sqlite,
        "not found: {name} (it runs on a database server: --database mariadb or mysql)"
    );
    peer.program().map(drop)
}

/// Starts it, empty.
pub async fn start(name: &str, setup: &Setup) -> anyhow::Result<Box<dyn System>> {
    let peer = Peer::find(name)?;
    let program = peer.program()?;
    match peer {
        #[cfg(feature = "rabbitmq")]
        Peer::RabbitmqPriority => rabbitmq::start(program, rabbitmq::Type::Priority, setup).await,
        #[cfg(feature = "rabbitmq")]
        Peer::RabbitmqQuorum => rabbitmq::start(program, rabbitmq::Type::Quorum, setup).await,
        Peer::BeanstalkdF0 => beanstalkd::start(program, beanstalkd::Sync::EachWrite, setup).await,
        Peer::BeanstalkdF50 => beanstalkd::start(program, beanstalkd::Sync::Every50Ms, setup).await,
        #[cfg(feature = "nats")]
        Peer::Nats => nats::start(program).await,
        #[cfg(feature = "postgres")]
        Peer::Postgres => postgres::start(program).await,
        Peer::Foqs => foqs::start(setup).await,
        #[cfg(not(all(feature = "rabbitmq", feature = "nats", feature = "postgres")))]
        _ => bail!("not found: {name}"),
    }
}

/// A queue to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// RabbitMQ, a durable classic queue with priorities a topic.
    RabbitmqPriority,
    /// RabbitMQ, a quorum queue a topic; no priorities.
    RabbitmqQuorum,
    /// beanstalkd that syncs each write.
    BeanstalkdF0,
    /// beanstalkd that syncs every 50 ms, as it does unless told otherwise.
    BeanstalkdF50,
    /// NATS JetStream; no priorities.
    Nats,
    /// A queue table in PostgreSQL.
    Postgres,
    /// What Facebook has published of FOQS, on the database of the run.
    Foqs,
}

impl Peer {
    const ALL: [Self; 7] = [
        Self::RabbitmqPriority,
        Self::RabbitmqQuorum,
        Self::BeanstalkdF0,
        Self::BeanstalkdF50,
        Self::Nats,
        Self::Postgres,
        Self::Foqs,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::RabbitmqPriority => "rabbitmq-priority",
            Self::RabbitmqQuorum => "rabbitmq-quorum",
            Self::BeanstalkdF0 => "beanstalkd-f0",
            Self::BeanstalkdF50 => "beanstalkd-f50",
            Self::Nats => "nats",
            Self::Postgres => "postgres",
            Self::Foqs => "foqs",
        }
    }

    fn find(name: &str) -> anyhow::Result<Self> {
        let peer = Self::ALL.into_iter().find(|peer| peer.name() == name);
        peer.with_context(|| format!("no such peer: {name:?} ({})", NAMES.join(", ")))
    }

    /// The feature without which it is not compiled in, if that is off.
    const fn missing_feature(self) -> Option<&'static str> {
        match self {
            Self::RabbitmqPriority | Self::RabbitmqQuorum if !cfg!(feature = "rabbitmq") => Some("rabbitmq"),
            Self::Nats if !cfg!(feature = "nats") => Some("nats"),
            Self::Postgres if !cfg!(feature = "postgres") => Some("postgres"),
            _ => None,
        }
    }

    /// Its server program. FOQS has none of its own: it runs on the database of the run, which is found, or
    /// unpacked, when it starts.
    fn program(self) -> anyhow::Result<PathBuf> {
        let name = self.name();
        if let Some(feature) = self.missing_feature() {
            bail!("not found: {name} (build with --features {feature})");
        }
        let (program, found) = match self {
            Self::RabbitmqPriority | Self::RabbitmqQuorum => {
                // On Debian the PATH leads to a wrapper that changes the account and the folder; the server's
                // own script has its settings beside it.
                let real = |file: &Path| file.with_file_name("rabbitmq-env").is_file();
                let found = program::program("rabbitmq-server", real);
                let package = PathBuf::from("/usr/lib/rabbitmq/bin/rabbitmq-server");
                ("rabbitmq-server", found.or_else(|| Some(package).filter(|file| real(file))))
            }
            Self::BeanstalkdF0 | Self::BeanstalkdF50 => {
                ("beanstalkd", program::program("beanstalkd", |_| true))
            }
            Self::Nats => ("nats-server", program::program("nats-server", |_| true)),
            Self::Postgres => {
                // Packages keep it off the PATH, a folder a version.
                let found = program::program("postgres", |file| file.with_file_name("initdb").is_file());
                ("postgres", found.or_else(|| program::versioned("/usr/lib/postgresql", "bin", "postgres")))
            }
            Self::Foqs => return Ok(PathBuf::new()),
        };
        found.with_context(|| format!("not found: {name} (no {program} on the PATH or in the usual folders)"))
    }
}

/// Most peers can't hold an item back until its time, and none is asked to.
fn no_delays(items: &[Item]) -> anyhow::Result<()> {
    ensure!(items.iter().all(|item| item.due.is_none()), "this peer is measured without delays");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_found_by_name() {
        for (peer, name) in Peer::ALL.into_iter().zip(NAMES) {
            assert_eq!(Peer::find(name).unwrap(), peer);
        }
        let error = available("kafka", Database::Sqlite).unwrap_err().to_string();
        assert!(error.contains("beanstalkd-f50"), "{error}");
    }

    #[test]
    fn a_peer_that_is_not_there_is_named() {
        assert!(available("foqs", Database::Sqlite).is_err(), "it has no server");
        for name in NAMES {
            if let Err(error) = available(name, Database::Sqlite) {
                let told = format!("{error:#}");
                assert!(told.starts_with(&format!("not found: {name} (")), "{told}");
            }
        }
    }
}
