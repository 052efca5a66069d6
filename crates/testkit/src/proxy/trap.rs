//! Waits for certain bytes from the client.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use tokio::sync::watch;

/// Fate of a connection whose client sends the bytes of a trap.
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
    /// The bytes that it waits for: one of these.
    pub markers: Vec<Vec<u8>>,
    /// The client must have sent these on the same connection before. Empty: nothing.
    pub after: Vec<u8>,
    /// Its effect.
    pub spring: Spring,
    /// How many more times it goes off.
    left: AtomicU32,
    /// How many traps of the proxy have gone off, and how many connections were cut.
    sprung: watch::Sender<u32>,
}

impl Trap {
    /// A trap that goes off so many times, and adds each to `sprung`.
    pub fn new(markers: &[&[u8]], spring: Spring, times: u32, sprung: watch::Sender<u32>) -> Self {
        assert!(markers.iter().all(|marker| !marker.is_empty()), "a trap needs bytes to wait for");
        let markers = markers.iter().map(|marker| marker.to_vec()).collect();
        Self { markers, after: Vec::new(), spring, left: AtomicU32::new(times), sprung }
    }

    /// The same, for connections on which the client has sent these bytes first.
    pub fn after(self, after: &[u8]) -> Self {
        Self { after: after.to_owned(), ..self }
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

/// Last bytes that a direction has passed on, to find bytes that come in two pieces.
#[derive(Default)]
pub(super) struct Tail(Vec<u8>);

impl Tail {
    /// Where the first marker begins in `piece`: 0 if it began before that. Absent if none ends in it.
    pub fn find(&self, markers: &[Vec<u8>], piece: &[u8]) -> Option<usize> {
        let joined = [&self.0, piece].concat();
        let first = |marker: &Vec<u8>| {
            let mut ends_here = joined.windows(marker.len()).enumerate();
            ends_here.position(|(at, found)| found == marker && at + marker.len() > self.0.len())
        };
        let at = markers.iter().filter_map(first).min()?;
        Some(at.saturating_sub(self.0.len()))
    }

    /// Takes note of what was passed on. `markers` are those that will be asked for.
    pub fn passed(&mut self, markers: &[Vec<u8>], piece: &[u8]) {
        let longest = markers.iter().map(Vec::len).max().unwrap_or(1);
        self.0.extend_from_slice(piece);
        let kept = self.0.len().min(longest - 1);
        self.0.drain(..self.0.len() - kept);
    }

    /// The marker was found: it is not found again.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}
