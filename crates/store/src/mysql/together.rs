//! Asks a server about many shards with one statement.
//!
//! Whoever asks about a shard waits in a queue. A task takes all who wait, and asks for them together, on a
//! connection of its own; those who come meanwhile are the next. A shard that can't be asked together with
//! others (its schema is missing, its row is locked) is asked alone, on another connection, until that
//! succeeds. So it delays nobody.
//!
//! A caller that gives up leaves the queue. It never leaves a connection in the midst of a statement.

use std::{
    collections::{BTreeMap, BTreeSet},
    marker::PhantomData,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, error::SendError, unbounded_channel},
        oneshot,
    },
    time::{sleep, timeout},
};

use super::links::{Link, Links, Visit};
use crate::error::{ErrorClass, StoreError};

/// Questions that come within this time are asked together. The tasks of a node's shards wake up at the same
/// time, but not in the same millisecond.
const GATHER: Duration = Duration::from_millis(5);
/// So long a connection is kept that nobody uses. The server would close it after 15 s.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// A question about one shard. A visit asks this one alone.
#[async_trait]
pub(super) trait Question: Visit + Clone + 'static {
    /// A connection that is older is replaced.
    const AGE_MAX: Duration;

    /// The shard's schema.
    fn schema(&self) -> &Arc<str>;

    /// Whether the question is for the server at the other end of a connection.
    fn is_for(&self, link: &Link) -> bool;

    /// Asks many. No two of them are about the same schema. `None`: this one must be asked alone.
    async fn ask_together(link: &mut Link, questions: &[Self]) -> Result<Answers<Self>, StoreError>;
}

/// One who waits for an answer.
struct Waiter<Q: Question> {
    /// The question.
    question: Q,
    /// Receives the answer.
    reply: oneshot::Sender<Result<Q::Answer, StoreError>>,
}

/// The queue of one kind of question to one server.
pub(super) struct Together<Q: Question> {
    /// How to connect, and the connections of those who ask alone.
    links: Arc<Links>,
    /// The way to the task. Absent before the first question.
    queue: Mutex<Option<UnboundedSender<Waiter<Q>>>>,
    /// The connection may lead to a server that was switched off.
    stale: Arc<AtomicBool>,
}

impl<Q: Question> Together<Q> {
    /// Connects when first used.
    pub(super) fn new(links: Arc<Links>) -> Self {
        Self { links, queue: Mutex::default(), stale: Arc::default() }
    }

    /// Asks, perhaps together with others.
    pub(super) async fn ask(&self, question: Q) -> Result<Q::Answer, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Waiter { question, reply });
        let ended = || StoreError::new(ErrorClass::Disconnected, "the task that asks the server has ended");
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// The connection is replaced before its next use.
    pub(super) fn forget(&self) {
        self.stale.store(true, Ordering::Relaxed);
        self.links.forget();
    }

    fn send(&self, waiting: Waiter<Q>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = match &*queue {
            // The task ends with its runtime.
            Some(sender) => match sender.send(waiting) {
                Ok(()) => return,
                Err(SendError(waiting)) => waiting,
            },
            None => waiting,
        };
        let (sender, receiver) = unbounded_channel();
        let _ = sender.send(waiting);
        *queue = Some(sender);
        let (links, stale) = (self.links.clone(), self.stale.clone());
        tokio::spawn(
            Asker { links, stale, apart: Arc::default(), link: None, kind: PhantomData::<Q> }.run(receiver),
        );
    }
}

/// Takes those who wait, and asks for them.
struct Asker<Q: Question> {
    /// How to connect, and the connections of those who ask alone.
    links: Arc<Links>,
    /// The connection may lead to a server that was switched off.
    stale: Arc<AtomicBool>,
    /// The schemas that are asked about alone.
    apart: Apart,
    /// The connection for those who ask together.
    link: Option<Link>,
    /// Kind of the questions.
    kind: PhantomData<Q>,
}

/// Schemas whose last question was asked alone, and has no answer yet or failed.
type Apart = Arc<Mutex<BTreeSet<Arc<str>>>>;

impl<Q: Question> Asker<Q> {
    /// Asks until nobody can come any more.
    async fn run(mut self, mut queue: UnboundedReceiver<Waiter<Q>>) {
        loop {
            let next = match timeout(IDLE_MAX, queue.recv()).await {
                Ok(next) => next,
                Err(_) => {
                    self.hang_up().await;
                    queue.recv().await
                }
            };
            let Some(first) = next else { return self.hang_up().await };
            sleep(GATHER).await;
            let mut waiting = vec![first];
            while let Ok(next) = queue.try_recv() {
                waiting.push(next);
            }
            waiting.retain(|waiting| !waiting.reply.is_closed());
            self.answer(waiting).await;
        }
    }

    async fn hang_up(&mut self) {
        if let Some(link) = self.link.take() {
            link.session.close().await;
        }
    }

    async fn answer(&mut self, waiting: Vec<Waiter<Q>>) {
        let waiting = self.send_away_apart(waiting);
        if waiting.is_empty() {
            return;
        }
        let questions: Vec<Q> = waiting.iter().map(|waiting| waiting.question.clone()).collect();
        match self.ask_together(&questions).await {
            Ok(answers) => {
                for (waiting, answer) in waiting.into_iter().zip(answers) {
                    match answer {
                        Some(answer) => drop(waiting.reply.send(answer)),
                        None => self.ask_alone(waiting),
                    }
                }
            }
            Err(error) if may_be_of_one_shard(error.class) => {
                tracing::debug!(%error, "asking about {} shards at once failed", questions.len());
                waiting.into_iter().for_each(|waiting| self.ask_alone(waiting));
            }
            Err(error) => {
                for waiting in waiting {
                    let _ = waiting.reply.send(Err(error.clone()));
                }
            }
        }
    }

    /// Asks alone for those who must not be asked for together. Returns the others, in the order of their
    /// schemas: all processes lock rows in one order.
    fn send_away_apart(&self, waiting: Vec<Waiter<Q>>) -> Vec<Waiter<Q>> {
        let apart = self.apart.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut together = BTreeMap::new();
        for waiting in waiting {
            let schema = waiting.question.schema().clone();
            if apart.contains(&schema) || together.contains_key(&schema) {
                self.ask_alone(waiting);
            } else {
                together.insert(schema, waiting);
            }
        }
        together.into_values().collect()
    }

    async fn ask_together(&mut self, questions: &[Q]) -> Result<Answers<Q>, StoreError> {
        let stale = self.stale.swap(false, Ordering::Relaxed);
        let kept = self.link.take().filter(|link| {
            let fits = questions.iter().all(|question| question.is_for(link));
            !stale && fits && link.opened.elapsed() < Q::AGE_MAX
        });
        if let Some(mut link) = kept {
            match Q::ask_together(&mut link, questions).await {
                // The server closed it, or it was killed. To ask again is harmless.
                Err(error) if error.class == ErrorClass::Disconnected => {}
                done => {
                    self.keep(link);
                    return done;
                }
            }
        }
        let mut link = self.links.open().await?;
        let done = Q::ask_together(&mut link, questions).await;
        self.keep(link);
        done
    }

    fn keep(&mut self, link: Link) {
        self.link = Some(link).filter(|link| link.session.is_usable());
    }

    fn ask_alone(&self, waiting: Waiter<Q>) {
        let Waiter { question, mut reply } = waiting;
        let (links, apart, schema) = (self.links.clone(), self.apart.clone(), question.schema().clone());
        apart.lock().unwrap_or_else(PoisonError::into_inner).insert(schema.clone());
        tokio::spawn(async move {
            let answer = tokio::select! {
                biased;
                () = reply.closed() => return,
                answer = links.lend(&question) => answer,
            };
            if answer.is_ok() {
                apart.lock().unwrap_or_else(PoisonError::into_inner).remove(&schema);
            }
            let _ = reply.send(answer);
        });
    }
}

/// One answer for each question. `None`: this one must be asked alone.
pub(super) type Answers<Q> = Vec<Option<Result<<Q as Visit>::Answer, StoreError>>>;

/// Whether a failure may be that of one shard among many.
fn may_be_of_one_shard(class: ErrorClass) -> bool {
    match class {
        ErrorClass::Replay
        | ErrorClass::Poison
        | ErrorClass::Duplicate
        | ErrorClass::DiskFull
        | ErrorClass::Schema
        | ErrorClass::Unrecognized => true,
        ErrorClass::Unavailable
        | ErrorClass::NotPrimary
        | ErrorClass::Disconnected
        | ErrorClass::NoConnection => false,
    }
}
