//! A server that restarts and forgets what it had committed but not yet written to disk.
//!
//! A server releases row locks before its log is on disk. So a read-back may see a commit that a crash
//! undoes. The next commit that returns has written the log, with everything before it.

use super::{
    db::{OnDisk, State},
    journal::Journal,
};

impl State {
    /// The next commit takes effect before it is on disk.
    pub(super) fn begin_unflushed(&mut self) {
        if self.on_disk.is_none() {
            self.on_disk = Some(OnDisk { tables: self.tables.clone(), batches: self.log.len() });
        }
    }

    /// A commit has returned: all that is committed is on disk.
    pub(super) fn flush(&mut self) {
        self.on_disk = None;
    }

    /// The server restarts. What was not on disk is gone.
    pub(super) fn restart(&mut self, journal: &Journal) {
        let Some(OnDisk { tables, batches }) = self.on_disk.take() else { return };
        let lost = self.log.len() - batches;
        journal.note(format_args!("a server restarts and has lost {lost} batches"));
        self.tables = tables;
        self.log.truncate(batches);
        self.coverage.forgotten += lost as u64;
        self.disconnect_all();
    }
}
