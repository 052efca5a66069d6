//! Where messages are translated. A small one takes microseconds. A large one takes many milliseconds, and
//! many times its size in memory: it is translated apart from the threads that serve everybody, and only as
//! many at a time as there are processors. Those that wait take turns by who sent them: whoever sends many
//! waits for its own.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    panic,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use forebay_access::{Identity, Kind};
use tokio::{sync::oneshot, task::spawn_blocking};

use super::failure::Failure;

/// A message of at most so many bytes is small.
const SMALL_BYTES: usize = 32 << 10;

/// Whose message it is: the root of its caller's rights, and where nobody is known the address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Turn(Arc<str>);

impl Turn {
    /// Of a caller at an address.
    pub fn of(caller: &Identity, client: &SocketAddr) -> Self {
        Self(match caller.kind {
            Kind::Anyone => client.ip().to_string().into(),
            Kind::Token | Kind::Certificate => caller.root().into(),
        })
    }
}

/// Bounds the large translations of a node.
#[derive(Clone)]
pub(crate) struct Heavy(Arc<Mutex<Queue>>);

/// Translations that wait, and the free places.
struct Queue {
    /// Places that nobody has.
    free: usize,
    /// Turns with translations that wait, in the order in which they get places, each once.
    turns: VecDeque<Turn>,
    /// Translations that wait, by turn. Bounded by the calls of all connections.
    waiting: HashMap<Turn, VecDeque<oneshot::Sender<Place>>>,
}

/// A place among the translations. The next one has it when it is dropped.
struct Place(Option<Heavy>);

impl Heavy {
    /// As many as there are processors.
    pub fn new() -> Self {
        Self::with_places(thread::available_parallelism().map_or(1, usize::from))
    }

    fn with_places(free: usize) -> Self {
        let (turns, waiting) = Default::default();
        Self(Arc::new(Mutex::new(Queue { free, turns, waiting })))
    }

    /// Translates a message of so many bytes, in its turn.
    pub async fn run<T: Send + 'static>(
        &self,
        turn: &Turn,
        bytes: usize,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        if bytes <= SMALL_BYTES {
            return work();
        }
        let stopping = || Failure::internal("the node is stopping");
        let place = self.place(turn).await.ok_or_else(stopping)?;
        let done = spawn_blocking(move || {
            let done = work();
            // Kept until here also if the caller is gone.
            drop(place);
            done
        });
        match done.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            Err(_) => Err(stopping()),
        }
    }

    /// Waits for a place. `None`: there is nobody left to give one.
    async fn place(&self, turn: &Turn) -> Option<Place> {
        let waits = {
            let mut queue = self.lock();
            // While a place is free nobody waits.
            if queue.free > 0 {
                queue.free -= 1;
                return Some(Place(Some(self.clone())));
            }
            queue.add(turn)
        };
        waits.await.ok()
    }

    /// Gives a place to whoever is next.
    fn pass_on(self) {
        let mut place = Place(Some(self.clone()));
        loop {
            let Some(next) = self.lock().next() else { break };
            match next.send(place) {
                Ok(()) => return,
                // It has gone away.
                Err(back) => place = back,
            }
        }
        // It must not come back here.
        place.0 = None;
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic while the lock is held leaves valid values.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn add(&mut self, turn: &Turn) -> oneshot::Receiver<Place> {
        let (sender, waits) = oneshot::channel();
        if !self.waiting.contains_key(turn) {
            self.turns.push_back(turn.clone());
        }
        self.waiting.entry(turn.clone()).or_default().push_back(sender);
        waits
    }

    /// Whoever is next. `None`: nobody waits, and the place is free from now on.
    fn next(&mut self) -> Option<oneshot::Sender<Place>> {
        while let Some(turn) = self.turns.pop_front() {
            let Some(own) = self.waiting.get_mut(&turn) else { continue };
            let next = own.pop_front();
            match own.is_empty() {
                true => drop(self.waiting.remove(&turn)),
                false => self.turns.push_back(turn),
            }
            if next.is_some() {
                return next;
            }
        }
        self.free += 1;
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(heavy) = self.0.take() {
            heavy.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn turn(name: &str) -> Turn {
        Turn(name.into())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn only_so_many_large_ones_run_at_once() {
        let heavy = Heavy::with_places(2);
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let one = |number: usize| {
            let (heavy, running, most) = (heavy.clone(), running.clone(), most.clone());
            tokio::spawn(async move {
                heavy
                    .run(&turn(["a", "b", "c"][number % 3]), SMALL_BYTES + 1, move || {
                        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                        Ok(())
                    })
                    .await
            })
        };
        let all: Vec<_> = (0..200).map(one).collect();
        for done in all {
            done.await.unwrap().unwrap();
        }
        assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
        let queue = heavy.lock();
        assert_eq!((queue.free, queue.turns.len(), queue.waiting.len()), (2, 0, 0));
    }

    #[tokio::test]
    async fn whoever_sends_many_waits_for_its_own() {
        let heavy = Heavy::with_places(1);
        let first = heavy.place(&turn("a")).await;
        let mut many: Vec<_> = (0..12).map(|_| heavy.lock().add(&turn("a"))).collect();
        let mut other = heavy.lock().add(&turn("b"));
        drop(first);
        let one = many[0].try_recv().expect("it came first");
        assert!(other.try_recv().is_err());
        drop(one);
        let place = other.try_recv().expect("its turn is the next, though eleven came before");
        assert!(many[1].try_recv().is_err());
        drop(place);
        assert!(many[1].try_recv().is_ok());
    }

    #[tokio::test]
    async fn who_goes_away_keeps_no_place() {
        let heavy = Heavy::with_places(1);
        let first = heavy.place(&turn("a")).await;
        let (gone, given, mut last) = {
            let mut queue = heavy.lock();
            (queue.add(&turn("a")), queue.add(&turn("b")), queue.add(&turn("c")))
        };
        drop(gone);
        drop(first);
        // It was given the place, and goes away before it sees that.
        drop(given);
        assert!(last.try_recv().is_ok());
        assert_eq!(heavy.lock().free, 1);
    }

    #[tokio::test]
    async fn a_small_one_runs_at_once_and_on_the_spot() {
        let heavy = Heavy::with_places(0);
        let here = thread::current().id();
        let there = heavy.run(&turn("a"), SMALL_BYTES, || Ok(thread::current().id())).await.unwrap();
        assert_eq!(there, here);
    }
}
