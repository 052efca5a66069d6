//! Where messages are translated. A small one takes microseconds. A large one takes many milliseconds, and
//! many times its size in memory: it is translated apart from the threads that serve everybody, and only as
//! many at a time as there are processors.

use std::{panic, sync::Arc, thread};

use tokio::{sync::Semaphore, task::spawn_blocking};

use super::failure::Failure;

/// A message of at most so many bytes is small.
const SMALL_BYTES: usize = 32 << 10;

/// Bounds the large translations of a node.
#[derive(Clone)]
pub struct Heavy(Arc<Semaphore>);

impl Heavy {
    /// As many as there are processors.
    pub fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Semaphore::new(processors)))
    }

    /// Translates a message of so many bytes.
    pub async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        if bytes <= SMALL_BYTES {
            return work();
        }
        // The semaphore is never closed.
        let permit = self.0.clone().acquire_owned().await;
        let done = spawn_blocking(move || {
            let done = work();
            // Kept until here also if the caller is gone.
            drop(permit);
            done
        });
        match done.await {
            Ok(done) => done,
            Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
            Err(_) => Err(Failure::internal("the node is stopping")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn only_so_many_large_ones_run_at_once() {
        let heavy = Heavy(Arc::new(Semaphore::new(2)));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let one = || {
            let (heavy, running, most) = (heavy.clone(), running.clone(), most.clone());
            tokio::spawn(async move {
                heavy
                    .run(SMALL_BYTES + 1, move || {
                        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                        Ok(())
                    })
                    .await
            })
        };
        let all: Vec<_> = (0..200).map(|_| one()).collect();
        for done in all {
            done.await.unwrap().unwrap();
        }
        assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
    }

    #[tokio::test]
    async fn a_small_one_runs_at_once_and_on_the_spot() {
        let heavy = Heavy(Arc::new(Semaphore::new(0)));
        let here = thread::current().id();
        let there = heavy.run(SMALL_BYTES, || Ok(thread::current().id())).await.unwrap();
        assert_eq!(there, here);
    }
}
