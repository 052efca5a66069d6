//! Other queues, measured with the same scenarios. Each one runs on its own private server.

mod beanstalkd;
mod delays;
mod find_program;
mod foqs;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
mod server_process;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};

use crate::{
    database::Database,
    system::{System, SystemConfig},
};

/// The names of the other queues on the command line.
pub const NAMES: [&str; 7] = {
    let mut names = [""; 7];
    let mut at = 0;
    while at < names.len() {
        names[at] = OtherQueue::ALL[at].name();
        at += 1;
    }
    names
};

/// Whether the queue can be measured on this machine. The error says why not: it is not compiled in, its
/// server is not installed, or it does not work on the database of the run.
pub fn available(name: &str, database: Database) -> anyhow::Result<()> {
    let queue = OtherQueue::find(name)?;
    ensure!(
        queue != OtherQueue::Foqs || database != Database::Sqlite,
        "{name} runs on a database server: use --database mariadb or mysql"
    );
    queue.program().map(drop)
}

/// Starts the queue, which is empty at first.
pub async fn start(name: &str, config: &SystemConfig) -> anyhow::Result<Box<dyn System>> {
    let queue = OtherQueue::find(name)?;
    let program = queue.program()?;
    match queue {
        #[cfg(feature = "rabbitmq")]
        OtherQueue::RabbitmqPriority => rabbitmq::start(program, rabbitmq::Type::Priority, config).await,
        #[cfg(feature = "rabbitmq")]
        OtherQueue::RabbitmqQuorum => rabbitmq::start(program, rabbitmq::Type::Quorum, config).await,
        OtherQueue::BeanstalkdF0 => beanstalkd::start(program, beanstalkd::Sync::EachWrite, config).await,
        OtherQueue::BeanstalkdF50 => beanstalkd::start(program, beanstalkd::Sync::Every50Ms, config).await,
        #[cfg(feature = "nats")]
        OtherQueue::Nats => nats::start(program).await,
        #[cfg(feature = "postgres")]
        OtherQueue::Postgres => postgres::start(program).await,
        OtherQueue::Foqs => foqs::start(config).await,
        #[cfg(not(all(feature = "rabbitmq", feature = "nats", feature = "postgres")))]
        _ => bail!("{name} is not compiled in"),
    }
}

/// A queue to compare Forebay with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherQueue {
    /// RabbitMQ with a durable classic queue with priorities per topic.
    RabbitmqPriority,
    /// RabbitMQ with a quorum queue per topic; no priorities.
    RabbitmqQuorum,
    /// beanstalkd, which syncs each write.
    BeanstalkdF0,
    /// beanstalkd, which syncs every 50 ms, its default.
    BeanstalkdF50,
    /// NATS JetStream; no priorities.
    Nats,
    /// A queue in a table of PostgreSQL.
    Postgres,
    /// The published design of Facebook's FOQS, on the database of the run.
    Foqs,
}

impl OtherQueue {
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
        let queue = Self::ALL.into_iter().find(|queue| queue.name() == name);
        queue.with_context(|| format!("unknown queue {name:?}: use one of {}", NAMES.join(", ")))
    }

    /// The cargo feature that the queue needs, if that feature is off.
    const fn missing_feature(self) -> Option<&'static str> {
        match self {
            Self::RabbitmqPriority | Self::RabbitmqQuorum if !cfg!(feature = "rabbitmq") => Some("rabbitmq"),
            Self::Nats if !cfg!(feature = "nats") => Some("nats"),
            Self::Postgres if !cfg!(feature = "postgres") => Some("postgres"),
            _ => None,
        }
    }

    /// The server program. FOQS has none: it runs on the database of the run.
    fn program(self) -> anyhow::Result<PathBuf> {
        if let Some(feature) = self.missing_feature() {
            bail!("not compiled in: build with --features {feature}");
        }
        let (program, found) = match self {
            Self::RabbitmqPriority | Self::RabbitmqQuorum => {
                // On Debian the PATH contains a wrapper that changes user and folder. The real script has
                // rabbitmq-env in its folder.
                let real = |file: &Path| file.with_file_name("rabbitmq-env").is_file();
                let found = find_program::on_path("rabbitmq-server", real);
                let package = PathBuf::from("/usr/lib/rabbitmq/bin/rabbitmq-server");
                ("rabbitmq-server", found.or_else(|| Some(package).filter(|file| real(file))))
            }
            Self::BeanstalkdF0 | Self::BeanstalkdF50 => {
                ("beanstalkd", find_program::on_path("beanstalkd", |_| true))
            }
            Self::Nats => ("nats-server", find_program::on_path("nats-server", |_| true)),
            Self::Postgres => {
                // Packages install it outside of the PATH, one folder per version.
                let found = find_program::on_path("postgres", |file| file.with_file_name("initdb").is_file());
                (
                    "postgres",
                    found.or_else(|| find_program::versioned("/usr/lib/postgresql", "bin", "postgres")),
                )
            }
            Self::Foqs => return Ok(PathBuf::new()),
        };
        found
            .with_context(|| format!("{program} is neither on the PATH nor in the usual folders: install it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_found_by_name() {
        for (queue, name) in OtherQueue::ALL.into_iter().zip(NAMES) {
            assert_eq!(OtherQueue::find(name).unwrap(), queue);
        }
        let error = available("kafka", Database::Sqlite).unwrap_err().to_string();
        assert!(error.contains("beanstalkd-f50"), "{error}");
    }

    #[test]
    fn an_unavailable_queue_says_what_to_do() {
        assert!(available("foqs", Database::Sqlite).is_err(), "SQLite has no server");
        for name in NAMES {
            if let Err(error) = available(name, Database::Sqlite) {
                let text = format!("{error:#}");
                let remedies = ["install it", "build with --features", "use --database"];
                assert!(remedies.iter().any(|remedy| text.contains(remedy)), "{name}: {text}");
            }
        }
    }
}
