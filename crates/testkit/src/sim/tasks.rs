//! The tasks of a simulated process. They end with it, at whatever they await, and may stand still for a
//! while, as under SIGSTOP.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use forebay_engine::{Task, TaskName, Tasks};
use tokio::{task::AbortHandle, time::Instant};

/// Where a task is kept, until it has ended.
type Place = Mutex<Option<Task>>;

/// So often the tasks of a process may run while no time passes.
const RUNS_AT_ONCE_MAX: u32 = 200_000;

/// Part of a process that stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Still {
    /// The whole process, with the calls in progress.
    Process,
    /// One task.
    Task(TaskName),
}

/// The tasks of one process. Clones are the same.
#[derive(Clone, Default)]
pub struct ProcessTasks(Arc<Mutex<RunnableTasks>>);

/// Tasks that may run.
#[derive(Default)]
struct RunnableTasks {
    /// In the order in which they began. A task that ends drops its place.
    places: Vec<(Weak<Place>, AbortHandle)>,
    /// How many places are kept before those that are gone are looked for.
    looked_for_at: usize,
    /// Parts that stand still.
    still: Vec<Still>,
    /// Tasks that run again once nothing stands still.
    held: Vec<Waker>,
    /// How often tasks ran at one time, and at which.
    runs: Option<(Instant, u32)>,
}

impl ProcessTasks {
    /// Ends all of them at once.
    pub fn end(&self) {
        let places = std::mem::take(&mut self.lock().places);
        for (place, handle) in places {
            let task =
                place.upgrade().and_then(|place| place.lock().unwrap_or_else(PoisonError::into_inner).take());
            // Without the lock: what a task drops may start, end or wake others.
            drop(task);
            handle.abort();
        }
    }

    /// Lets something stand still.
    pub fn stand_still(&self, what: Still) {
        self.lock().still.push(what);
    }

    /// Lets everything go on.
    pub fn go_on(&self) {
        let held = {
            let running = &mut *self.lock();
            running.still.clear();
            std::mem::take(&mut running.held)
        };
        held.into_iter().for_each(Waker::wake);
    }

    /// Whether the whole process stands still.
    pub fn is_still(&self) -> bool {
        self.lock().still.contains(&Still::Process)
    }

    /// Does a part of a call that belongs to the process.
    pub async fn serve<T>(&self, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        poll_fn(|context| match self.holds(None, context) {
            true => Poll::Pending,
            false => call.as_mut().poll(context),
        })
        .await
    }

    /// Whether it must not run now. Then it is woken later.
    fn holds(&self, task: Option<TaskName>, context: &Context<'_>) -> bool {
        let running = &mut *self.lock();
        let stands = |still: &Still| match still {
            Still::Process => true,
            Still::Task(name) => task == Some(*name),
        };
        let holds = running.still.iter().any(stands);
        if task.is_some() {
            let now = Instant::now();
            let runs = running.runs.filter(|(at, _)| *at == now).map_or(1, |(_, runs)| runs + 1);
            running.runs = Some((now, runs));
            // Otherwise the run would never end.
            assert!(runs < RUNS_AT_ONCE_MAX, "the tasks of a process run without end, and no time passes");
        }
        if holds {
            running.held.push(context.waker().clone());
        }
        holds
    }

    fn lock(&self) -> MutexGuard<'_, RunnableTasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tasks for ProcessTasks {
    fn start(&self, name: TaskName, task: Task) -> AbortHandle {
        let place = Arc::new(Mutex::new(Some(task)));
        let placed = PlacedTask { tasks: self.clone(), name, place: place.clone() };
        let handle = tokio::spawn(placed).abort_handle();
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
struct PlacedTask {
    /// All tasks of its process.
    tasks: ProcessTasks,
    /// Which one it is.
    name: TaskName,
    /// Where it is kept.
    place: Arc<Place>,
}

impl Future for PlacedTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.tasks.holds(Some(self.name), context) {
            return Poll::Pending;
        }
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_mut().map_or(Poll::Ready(()), |task| task.as_mut().poll(context))
    }
}
