//! Something that is read at most so often, however many readers there are.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Mutex, task::JoinHandle, time::Instant};
use tonic::Status;

/// It is read again after this time.
const EVERY: Duration = Duration::from_secs(2);
/// If to read it took longer than this, it is read again after so many times that.
const SLOW: Duration = Duration::from_millis(100);
/// It takes at most this share of the time, unless what is shown would be older than [`OLD_MAX`].
const PAUSE_RATIO: u32 = 40;
/// Where it can't be read, what was read before is shown for so long. A node walks through all topics for
/// one reader at a time, and refuses the others.
const OLD_MAX: Duration = Duration::from_secs(30);

/// A value that was read within this time is shown while it is read again.
const LATELY: Duration = Duration::from_secs(10);

/// Something that is read at most so often, however many readers there are.
pub(crate) struct ReadCache<T>(Mutex<State<T>>);

/// How it stands.
struct State<T> {
    /// The last answer.
    last: Option<Last<T>>,
    /// It is being read. A reader that goes away leaves that to the next.
    reading: Option<JoinHandle<(Duration, Result<T, Status>)>>,
}

/// The last answer.
struct Last<T> {
    /// When it was tried last.
    tried: Instant,
    /// How long that took.
    took: Duration,
    /// When it was read that is there.
    read: Instant,
    /// The value, or why there is none.
    what: Result<Arc<T>, Status>,
}

impl<T> Default for ReadCache<T> {
    fn default() -> Self {
        Self(Mutex::new(State { last: None, reading: None }))
    }
}

impl<T> Last<T> {
    fn is_young(&self) -> bool {
        let slow = if self.took > SLOW { self.took * PAUSE_RATIO } else { Duration::ZERO };
        self.tried.elapsed() < EVERY.max(slow.min(OLD_MAX))
    }
}

impl<T: Send + Sync + 'static> ReadCache<T> {
    /// Returns the value that is kept, or reads it now.
    pub async fn get<F>(&self, read: impl FnOnce() -> F) -> Result<Arc<T>, Status>
    where
        F: Future<Output = Result<T, Status>> + Send + 'static,
    {
        // Readers that come while one reads wait here, and find what it has read.
        let mut state = self.0.lock().await;
        if let Some(last) = state.last.as_ref().filter(|last| last.is_young()) {
            return last.what.clone();
        }
        let State { last, reading } = &mut *state;
        let reading = reading.get_or_insert_with(|| {
            let read = read();
            tokio::spawn(async move {
                let began = Instant::now();
                let what = read.await;
                (began.elapsed(), what)
            })
        });
        // A value that was read lately is shown while it is read again, which may take long.
        let lately = last.as_ref().filter(|last| last.what.is_ok() && last.read.elapsed() < LATELY);
        if let (Some(last), false) = (lately, reading.is_finished()) {
            return last.what.clone();
        }
        let read = reading.await;
        state.reading = None;
        let (took, what) = read.map_err(|_| Status::unavailable("the node is stopping"))?;
        let now = Instant::now();
        let before = state.last.take().filter(|last| last.what.is_ok() && last.read.elapsed() < OLD_MAX);
        let last = match (what, before) {
            (Err(_), Some(before)) => Last { tried: now, took, ..before },
            (what, _) => Last { tried: now, took, read: now, what: what.map(Arc::new) },
        };
        let what = last.what.clone();
        state.last = Some(last);
        what
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::future::join_all;
    use tokio::time::{advance, sleep, timeout};

    use super::*;

    /// Counts how often it is read, which takes this time.
    async fn get(kept: &ReadCache<u32>, count: &Arc<AtomicU32>, takes: u64) -> Result<u32, Status> {
        let count = count.clone();
        let read = || async move {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            sleep(Duration::from_millis(takes)).await;
            if number == 2 { Err(Status::resource_exhausted("full")) } else { Ok(number) }
        };
        kept.get(read).await.map(|number| *number)
    }

    #[tokio::test(start_paused = true)]
    async fn many_readers_read_once_and_seldom_if_it_is_slow() {
        let (kept, count) = (ReadCache::default(), Arc::new(AtomicU32::new(2)));
        let all = join_all((0..10).map(|_| get(&kept, &count, 200))).await;
        assert!(all.into_iter().all(|number| number.unwrap() == 3));
        advance(Duration::from_millis(7_900)).await;
        assert_eq!(get(&kept, &count, 0).await.unwrap(), 3, "40 times 200 ms");
        advance(Duration::from_millis(200)).await;
        assert_eq!(get(&kept, &count, 50).await.unwrap(), 3, "what was read lately, while it is read again");
        sleep(Duration::from_millis(60)).await;
        assert_eq!(get(&kept, &count, 0).await.unwrap(), 4);
        advance(Duration::from_millis(1_900)).await;
        assert_eq!(get(&kept, &count, 0).await.unwrap(), 4);
        advance(LATELY).await;
        assert_eq!(get(&kept, &count, 50).await.unwrap(), 5, "what was read long ago is not shown");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_goes_away_leaves_it_to_the_next() {
        let (kept, count) = (ReadCache::default(), Arc::new(AtomicU32::new(0)));
        for _ in 0..3 {
            assert!(timeout(Duration::from_millis(10), get(&kept, &count, 250)).await.is_err());
        }
        assert_eq!(get(&kept, &count, 250).await.unwrap(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_is_shown_for_a_while_where_nothing_can_be_read() {
        let (kept, count) = (ReadCache::default(), Arc::new(AtomicU32::new(0)));
        assert_eq!(get(&kept, &count, 0).await.unwrap(), 1);
        advance(EVERY).await;
        assert_eq!(get(&kept, &count, 0).await.unwrap(), 1, "the second one fails");
        let (kept, count) = (ReadCache::default(), Arc::new(AtomicU32::new(1)));
        assert!(get(&kept, &count, 0).await.is_err(), "and nothing was read before");
        let (kept, count) = (ReadCache::default(), Arc::new(AtomicU32::new(0)));
        assert_eq!(get(&kept, &count, 0).await.unwrap(), 1);
        advance(OLD_MAX).await;
        assert!(get(&kept, &count, 0).await.is_err(), "what is too old is not shown as if it were new");
    }
}
