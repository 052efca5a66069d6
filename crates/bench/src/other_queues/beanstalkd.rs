//! beanstalkd: one tube per topic, with a write-ahead log on disk.

mod wire;

use std::{collections::VecDeque, net::Ipv4Addr, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context as _, bail, ensure};
use async_trait::async_trait;
use bytes::{Buf as _, BufMut as _, BytesMut};
use tokio::time::{Instant, timeout_at};

use self::wire::{Connection, Reply};
use super::{delays::refuse_delays, server_process::ServerProcess};
use crate::system::{
    BenchDelivery, Consumer, Durability, Item, Order, ProcessRole, Producer, System, SystemConfig,
};

/// The default limit of a job.
const MAX_JOB_BYTES: usize = 65_535;
/// Longer than any run, so that no job is delivered twice while its consumer is connected.
const TTR: Duration = Duration::from_secs(3_600);
/// A delivered job does not name its tube, so a body starts with its topic.
const TOPIC_BYTES: usize = 4;

/// When the log is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// `-f 0`: at each write, before the answer.
    EachWrite,
    /// `-f 50`: at most every 50 ms.
    Every50Ms,
}

/// Starts the server.
pub async fn start(program: PathBuf, sync: Sync, config: &SystemConfig) -> anyhow::Result<Box<dyn System>> {
    let max_job_bytes = MAX_JOB_BYTES.max(TOPIC_BYTES + config.item_bytes);
    let broker = ServerProcess::start("beanstalkd", |folder, port| {
        let mut command = Command::new(&program);
        command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-z", &max_job_bytes.to_string()]);
        command.arg("-b").arg(folder).args(["-f", sync.milliseconds()]);
        Ok(command)
    });
    Ok(Box::new(Beanstalkd { broker: broker.await?, sync }))
}

impl Sync {
    const fn milliseconds(self) -> &'static str {
        match self {
            Self::EachWrite => "0",
            Self::Every50Ms => "50",
        }
    }
}

#[derive(Debug)]
struct Beanstalkd {
    broker: ServerProcess,
    sync: Sync,
}

impl Beanstalkd {
    async fn connect(&self) -> anyhow::Result<Connection> {
        Connection::open((Ipv4Addr::LOCALHOST, self.broker.port()).into()).await
    }
}

#[async_trait]
impl System for Beanstalkd {
    fn durability(&self) -> Durability {
        match self.sync {
            Sync::EachWrite => Durability::OnDisk,
            Sync::Every50Ms => Durability::SoonOnDisk,
        }
    }

    fn order(&self) -> Order {
        Order::Priority
    }

    fn batches_are_ordered(&self) -> bool {
        // One take is many reserves and one call is many puts, so more urgent jobs may arrive in between.
        false
    }

    fn processes(&self) -> Vec<ProcessRole> {
        self.broker.processes()
    }

    async fn settings(&self) -> anyhow::Result<Vec<(String, String)>> {
        let mut replies = self.connect().await?.exchange(b"stats\r\n", 1).await?;
        let Some(Reply::Data(stats)) = replies.pop() else { bail!("unexpected reply to stats: {replies:?}") };
        let stats = String::from_utf8_lossy(&stats).into_owned();
        let version = stats
            .lines()
            .find_map(|line| line.strip_prefix("version: "))
            .context("the stats contain no version")?;
        let settings = [
            ("version", version.trim_matches('"')),
            ("-b (log)", "yes"),
            ("-f (sync every ms)", self.sync.milliseconds()),
            ("puts, reserves, deletes", "pipelined"),
        ];
        Ok(settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    async fn producer(&self) -> anyhow::Result<Box<dyn Producer>> {
        Ok(Box::new(BeanstalkdProducer { connection: self.connect().await?, tube: None }))
    }

    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>> {
        let mut connection = self.connect().await?;
        let mut request = BytesMut::new();
        for topic in &topics {
            request.put_slice(format!("watch t{topic}\r\n").as_bytes());
        }
        request.put_slice(b"ignore default\r\n");
        for reply in connection.exchange(&request, topics.len() + 1).await? {
            ensure!(matches!(reply, Reply::Watching), "watch: {reply:?}");
        }
        Ok(Box::new(BeanstalkdConsumer {
            connection,
            outstanding: 0,
            window: 0,
            ahead: VecDeque::new(),
            reserved: Vec::new(),
        }))
    }
}

#[derive(Debug)]
struct BeanstalkdProducer {
    connection: Connection,
    tube: Option<u32>,
}

#[async_trait]
impl Producer for BeanstalkdProducer {
    async fn put(&mut self, topic: u32, items: Vec<Item>) -> anyhow::Result<()> {
        refuse_delays(&items)?;
        let bytes = items.iter().map(|item| item.payload.len() + 64).sum();
        let mut request = BytesMut::with_capacity(bytes);
        let changes = self.tube != Some(topic);
        if changes {
            request.put_slice(format!("use t{topic}\r\n").as_bytes());
        }
        for item in &items {
            let length = TOPIC_BYTES + item.payload.len();
            let head = format!("put {} 0 {} {length}\r\n", item.priority, TTR.as_secs());
            request.put_slice(head.as_bytes());
            request.put_u32_le(topic);
            request.put_slice(&item.payload);
            request.put_slice(b"\r\n");
        }
        let replies = self.connection.exchange(&request, items.len() + usize::from(changes)).await?;
        for reply in replies {
            ensure!(matches!(reply, Reply::Using | Reply::Inserted), "put: {reply:?}");
        }
        self.tube = Some(topic);
        Ok(())
    }
}

#[derive(Debug)]
struct BeanstalkdConsumer {
    connection: Connection,
    /// Replies that a `take` has stopped waiting for.
    outstanding: usize,
    /// How many reserves follow the one that waits. It adapts to how many jobs the last ones found.
    window: usize,
    /// Jobs that a `take` reserved beyond its maximum.
    ahead: VecDeque<(u64, BenchDelivery)>,
    /// Ids that the last `take` returned.
    reserved: Vec<u64>,
}

impl BeanstalkdConsumer {
    /// Sends one reserve that waits and `further` reserves that do not. The server reads them after it has
    /// answered the first.
    async fn ask(&mut self, wait: Duration, further: usize) -> anyhow::Result<()> {
        let mut request = BytesMut::new();
        // The server counts in seconds. We stop waiting earlier and read the reply next time.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        request.put_slice(format!("reserve-with-timeout {seconds}\r\n").as_bytes());
        for _ in 0..further {
            request.put_slice(b"reserve-with-timeout 0\r\n");
        }
        self.outstanding = 1 + further;
        self.connection.send(&request).await
    }

    /// Reads one reply and returns whether it was a job. Cancel safe.
    async fn read(&mut self) -> anyhow::Result<bool> {
        let reply = self.connection.reply().await?;
        self.outstanding -= 1;
        match reply {
            Reply::TimedOut => Ok(false),
            Reply::Reserved(id, mut payload) => {
                ensure!(payload.len() >= TOPIC_BYTES, "a job has no topic");
                let topic = payload.get_u32_le();
                self.ahead.push_back((id, BenchDelivery { topic, payload }));
                Ok(true)
            }
            other => bail!("reserve: {other:?}"),
        }
    }

    /// Reads all outstanding replies, adapts the window, and returns whether each reply was a job.
    async fn read_rest(&mut self) -> anyhow::Result<bool> {
        let asked = self.outstanding;
        let mut found = 0;
        while self.outstanding > 0 {
            found += usize::from(self.read().await?);
        }
        self.window = if found == asked { (found * 2).max(1) } else { found };
        Ok(found == asked)
    }
}

#[async_trait]
impl Consumer for BeanstalkdConsumer {
    async fn take(&mut self, max: usize, wait: Duration) -> anyhow::Result<Vec<BenchDelivery>> {
        let deadline = Instant::now() + wait;
        let mut more = false;
        while self.ahead.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let at_once = self.outstanding == 0 && left.is_zero();
            if self.outstanding == 0 {
                self.ask(left, self.window.min(max.saturating_sub(1))).await?;
            }
            // Without a wait the server answers at once, and only its answer says whether there is a job.
            if at_once {
                self.read().await?;
            } else if let Ok(found) = timeout_at(deadline, self.read()).await {
                found?;
            } else {
                break;
            }
            more = self.read_rest().await?;
            if at_once {
                break;
            }
        }
        // While every reserve finds a job there may be more.
        while more && self.ahead.len() < max {
            let reserves = self.window.min(max - self.ahead.len());
            self.ask(Duration::ZERO, reserves - 1).await?;
            more = self.read_rest().await?;
        }
        let (ids, items) = self.ahead.drain(..max.min(self.ahead.len())).unzip();
        self.reserved = ids;
        Ok(items)
    }

    async fn ack(&mut self) -> anyhow::Result<()> {
        let mut request = BytesMut::new();
        for id in &self.reserved {
            request.put_slice(format!("delete {id}\r\n").as_bytes());
        }
        // The server does not read deletes while a reserve waits.
        ensure!(self.reserved.is_empty() || self.outstanding == 0, "a reserve is still waiting");
        for reply in self.connection.exchange(&request, self.reserved.len()).await? {
            ensure!(matches!(reply, Reply::Deleted), "delete: {reply:?}");
        }
        self.reserved.clear();
        Ok(())
    }
}
