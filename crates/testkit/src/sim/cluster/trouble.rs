//! Disturbances of a cluster, and when it was last undisturbed.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::fake::{Journal, Moment};

/// One disturbance.
#[derive(Debug, Clone, Copy)]
pub struct Trouble {
    /// When it began.
    pub begin: Moment,
    /// When it ended. `None`: not yet.
    pub end: Option<Moment>,
    /// It is of the catalog alone.
    pub of_catalog: bool,
}

impl Trouble {
    /// Whether it lasted, or was over for less than `for_long`, at a moment.
    pub fn is_felt(&self, at: Moment, for_long: Duration) -> bool {
        let begun = self.begin.event <= at.event;
        begun && self.end.is_none_or(|end| end.at.plus(for_long) > at.at)
    }
}

/// All disturbances of a run.
#[derive(Debug, Default)]
pub struct Troubles(Mutex<Vec<Trouble>>);

impl Troubles {
    /// One begins. Returns its number.
    pub fn begin(&self, journal: &Journal, of_catalog: bool, what: &str) -> usize {
        let begin = journal.note(format_args!("trouble: {what}"));
        let all = &mut *self.lock();
        all.push(Trouble { begin, end: None, of_catalog });
        all.len() - 1
    }

    /// One ends.
    pub fn end(&self, journal: &Journal, number: usize) {
        let end = journal.note(format_args!("the trouble is over"));
        if let Some(trouble) = self.lock().get_mut(number) {
            trouble.end = Some(end);
        }
    }

    /// All that last end.
    pub fn end_all(&self, journal: &Journal) {
        let end = journal.last();
        self.lock().iter_mut().filter(|trouble| trouble.end.is_none()).for_each(|it| it.end = Some(end));
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Whether there has been none for so long.
    pub fn is_calm(&self, journal: &Journal, for_long: Duration) -> bool {
        let now = journal.last();
        !self.lock().iter().any(|trouble| trouble.is_felt(now, for_long))
    }

    /// All of them.
    pub fn all(&self) -> Vec<Trouble> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Trouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
