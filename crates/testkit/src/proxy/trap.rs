//! Waits for certain bytes from the client.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use tokio::sync::watch;

/// What happens to a connection whose client sends the bytes of a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spring {
    /// The target gets what is before these bytes, and the connection is reset.
    ResetBefore,
    /// The target gets them. Once it begins to answer the connection is reset, and the client gets no answer.
    ResetAfter,
    /// The target gets what is before these bytes. From then on nothing passes, in either direction, and the
    /// connection stays open.
    SilentBefore,
    /// The target gets them. From then on nothing passes, in either direction, and the connection stays open.
    SilentAfter,
    /// The target gets them so much later. Other connections are not held up.
    Hold(Duration),
}

/// A trap.
pub(super) struct Trap {
    /// The bytes that it waits for.
    pub marker: Vec<u8>,
    /// What it does.
    pub spring: Spring,
    /// How many more times it goes off.
    left: AtomicU32,
    /// How many traps of the proxy have gone off, and how many connections were cut.
    sprung: watch::Sender<u32>,
}

impl Trap {
    /// A trap that goes off so many times, and adds each to `sprung`.
    pub fn new(marker: &[u8], spring: Spring, times: u32, sprung: watch::Sender<u32>) -> Self {
        assert!(!marker.is_empty(), "a trap needs bytes to wait for");
        Self { marker: marker.to_owned(), spring, left: AtomicU32::new(times), sprung }
    }

    /// Says whether it goes off once more.
    pub fn go_off(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        let some_left = self.left.try_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if some_left {
            self.sprung.send_modify(|sprung| *sprung += 1);
        }
        some_left
    }
}

/// What a direction has passed on last, to find bytes that come in two pieces.
#[derive(Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    /// Where the marker begins in `piece`: 0 if it began before that. Absent if it does not end in it.
    pub fn find(&self, marker: &[u8], piece: &[u8]) -> Option<usize> {
        let joined = [&self.0, piece].concat();
        let at = joined.windows(marker.len()).position(|found| found == marker)?;
        Some(at.saturating_sub(self.0.len()))
    }

    /// Takes note of what was passed on. `marker` is the longest that will be asked for.
    pub fn passed(&mut self, marker: &[u8], piece: &[u8]) {
        self.0.extend_from_slice(piece);
        let kept = self.0.len().min(marker.len() - 1);
        self.0.drain(..self.0.len() - kept);
    }

    /// The marker was found: it is not found again.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}
