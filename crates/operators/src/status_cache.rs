//! One status for all who read it. The engine is asked at most once at a time, and not again while the last
//! answer is young, however many readers there are.

use std::{pin::Pin, sync::Arc, time::Duration};

use forebay_engine::Status;
use tokio::{sync::Mutex, task::JoinHandle, time::Instant};

/// Asks for a status.
type Ask = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Option<Status>> + Send>> + Send + Sync>;

/// The last status.
pub struct StatusCache {
    /// Asks the engine.
    ask: Ask,
    /// How old a status may be.
    age_max: Duration,
    /// The last answer, and the open question.
    last: Mutex<Last>,
}

/// The last answer, and the open question.
#[derive(Default)]
struct Last {
    /// The last answer, and when it was asked for. `None` in it: the engine has stopped.
    answer: Option<(Instant, Option<Arc<Status>>)>,
    /// A question without an answer, and when it was asked. A reader that goes away leaves it to the next.
    asked: Option<(Instant, JoinHandle<Option<Status>>)>,
}

impl StatusCache {
    /// Nothing is known yet. `ask` asks the engine.
    pub fn new<F>(age_max: Duration, ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<Status>> + Send + 'static,
    {
        Self { ask: Box::new(move || Box::pin(ask())), age_max, last: Mutex::default() }
    }

    /// A status that is not older than it may be. `None` once the engine has stopped.
    pub async fn get(&self) -> Option<Arc<Status>> {
        let called = Instant::now();
        // Readers that come while one asks wait here, and find its answer.
        let mut last = self.last.lock().await;
        if let Some((asked, status)) = &last.answer
            && (*asked >= called || asked.elapsed() < self.age_max)
        {
            return status.clone();
        }
        let (asked, question) =
            last.asked.get_or_insert_with(|| (Instant::now(), tokio::spawn((self.ask)())));
        let asked = *asked;
        // A question that was cut short by the end of the runtime has no answer.
        let status = question.await.ok().flatten().map(Arc::new);
        last.asked = None;
        last.answer = Some((asked, status.clone()));
        status
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    /// A cache, and how often the engine was asked.
    fn cache(age_max: Duration) -> (StatusCache, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let ask = move || {
            let number = count.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Some(Status { polls: number, ..Default::default() })
            }
        };
        (StatusCache::new(age_max, ask), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn many_readers_ask_once() {
        let (cache, asked) = cache(Duration::from_secs(1));
        for _ in 0..3 {
            let read = join_all((0..18).map(async |_| cache.get().await.unwrap().polls)).await;
            assert_eq!(read, [0; 18]);
            tokio::time::advance(Duration::from_millis(200)).await;
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(cache.get().await.unwrap().polls, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn readers_that_go_away_do_not_ask_again() {
        let (cache, asked) = cache(Duration::from_secs(1));
        for _ in 0..18 {
            assert!(tokio::time::timeout(Duration::from_millis(1), cache.get()).await.is_err());
        }
        assert_eq!(cache.get().await.unwrap().polls, 0);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_wants_no_old_status_gets_none() {
        let (cache, _) = cache(Duration::ZERO);
        assert_eq!(cache.get().await.unwrap().polls, 0);
        assert_eq!(cache.get().await.unwrap().polls, 1);
    }
}
