//! The tasks of a simulated process. They end with it, at whatever they await.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Context, Poll},
};

use forebay_engine::{Task, TaskName, Tasks};
use tokio::task::AbortHandle;

/// Where a task is kept, until it has ended.
type Place = Mutex<Option<Task>>;

/// The tasks of one process. Clones are the same.
#[derive(Clone, Default)]
pub struct ProcessTasks(Arc<Mutex<Running>>);

/// Tasks that may run.
#[derive(Default)]
struct Running {
    /// In the order in which they began. A task that ends drops its place.
    places: Vec<(Weak<Place>, AbortHandle)>,
    /// How many places are kept before those that are gone are looked for.
    looked_for_at: usize,
}

impl ProcessTasks {
    /// Ends all of them at once.
    pub fn end(&self) {
        let places = std::mem::take(&mut self.lock().places);
        for (place, handle) in places {
            let task = place.upgrade().and_then(|place| take(&place));
            // Without the lock: what a task drops may start, end or wake others.
            drop(task);
            handle.abort();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tasks for ProcessTasks {
    fn start(&self, _name: TaskName, task: Task) -> AbortHandle {
        let place = Arc::new(Mutex::new(Some(task)));
        let handle = tokio::spawn(Placed(place.clone())).abort_handle();
        let running = &mut *self.lock();
        if running.places.len() >= running.looked_for_at {
            running.places.retain(|(place, _)| place.strong_count() > 0);
            running.looked_for_at = 2 * running.places.len() + 16;
        }
        running.places.push((Arc::downgrade(&place), handle.clone()));
        handle
    }
}

/// A task in its place.
struct Placed(Arc<Place>);

impl Future for Placed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_mut().map_or(Poll::Ready(()), |task| task.as_mut().poll(context))
    }
}

fn take(place: &Place) -> Option<Task> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn all_tasks_end_at_once_wherever_they_wait() {
        let tasks = ProcessTasks::default();
        let ends: Vec<_> = (0..100)
            .map(|_| {
                let (sender, end) = oneshot::channel::<()>();
                let waits = async move {
                    std::future::pending::<()>().await;
                    drop(sender);
                };
                tasks.start(TaskName::Read, Box::pin(waits));
                end
            })
            .collect();
        tokio::task::yield_now().await;
        tasks.end();
        for mut end in ends {
            assert_eq!(end.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        }
    }
}
