//! How often the log has a line about what a caller has no right to.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use forebay_access::Identity;
use forebay_types::Monotonic;

/// The log has one line of a caller in this time.
const LINE_EVERY: Duration = Duration::from_secs(1);
/// Callers whose last lines are remembered. Others wait.
const CALLERS_MAX: usize = 1_024;

/// Lines of the log: when the last one of a caller was, and how many were left out since.
#[derive(Default)]
pub struct Lines(Mutex<HashMap<String, (Monotonic, u64)>>);

impl Lines {
    /// Whether a caller may have a line now, and how many it has not had since the last one.
    pub fn next(&self, caller: &Identity, now: Monotonic) -> Option<u64> {
        // A panic while the lock is held leaves valid values.
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= CALLERS_MAX {
            callers.retain(|_, (last, _)| now.since(*last) < LINE_EVERY);
        }
        let has_room = callers.len() < CALLERS_MAX;
        match callers.get_mut(&caller.id) {
            Some((last, left_out)) if now.since(*last) < LINE_EVERY => {
                *left_out += 1;
                None
            }
            Some(known) => Some(std::mem::replace(known, (now, 0)).1),
            None if has_room => {
                callers.insert(caller.id.clone(), (now, 0));
                Some(0)
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_one_line_a_second() {
        let at = |millis| Monotonic::from_start(Duration::from_millis(millis));
        let who = |id: &str| Identity { id: id.to_owned(), ..Identity::anyone() };
        let (lines, one, other) = (Lines::default(), who("1"), who("2"));
        assert_eq!(lines.next(&one, at(0)), Some(0));
        assert_eq!([lines.next(&one, at(1)), lines.next(&one, at(999))], [None, None]);
        assert_eq!(lines.next(&other, at(999)), Some(0));
        assert_eq!(lines.next(&one, at(1_000)), Some(2));
        for id in 3..2_000 {
            lines.next(&who(&id.to_string()), at(1_500));
        }
        assert!(lines.0.lock().unwrap().len() <= CALLERS_MAX);
        assert_eq!(lines.next(&who("late"), at(3_000)), Some(0), "old ones make room");
    }
}
