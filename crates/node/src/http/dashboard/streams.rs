//! How many open pages follow what happens, in all and of one session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Streams of a node.
const STREAMS_MAX: usize = 100;
/// Those of one session, or of one caller without a session.
const OF_ONE_MAX: usize = 6;

/// Whose streams they are. `None`: where there is no access control it is not known.
type Whose = Option<[u8; 32]>;

/// The streams of a node.
#[derive(Debug, Clone, Default)]
pub struct Streams(Arc<Mutex<HashMap<Whose, usize>>>);

/// One of them. It ends when it is dropped.
#[derive(Debug)]
pub struct OpenStream {
    /// Where it is counted.
    all: Streams,
    /// Whose it is.
    whose: Whose,
}

impl Streams {
    /// Streams that are open.
    pub fn open(&self) -> usize {
        self.counts(|counts| counts.values().sum())
    }

    /// Begins one. If there are too many: what is said.
    pub fn begin(&self, whose: Whose) -> Result<OpenStream, &'static str> {
        self.counts(|counts| {
            if counts.values().sum::<usize>() >= STREAMS_MAX {
                return Err("too many pages are open on this node");
            }
            let own = counts.entry(whose).or_default();
            if whose.is_some() && *own >= OF_ONE_MAX {
                return Err("too many pages of this session are open on this node");
            }
            *own += 1;
            Ok(OpenStream { all: self.clone(), whose })
        })
    }

    fn counts<T>(&self, with: impl FnOnce(&mut HashMap<Whose, usize>) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.all.counts(|counts| {
            let left = counts.get(&self.whose).map_or(0, |count| count.saturating_sub(1));
            match left {
                0 => counts.remove(&self.whose),
                left => counts.insert(self.whose, left),
            };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_leaves_room_for_others() {
        let streams = Streams::default();
        let of = |id: u8| Some([id; 32]);
        let mut own: Vec<_> = (0..6).map(|_| streams.begin(of(1)).unwrap()).collect();
        assert!(streams.begin(of(1)).unwrap_err().contains("of this session"));
        own.push(streams.begin(of(2)).unwrap());
        assert_eq!(streams.open(), 7);
        own.remove(0);
        own.push(streams.begin(of(1)).unwrap());
        // Where nobody is known, all are alike.
        own.extend((0..93).map(|_| streams.begin(None).unwrap()));
        assert!(streams.begin(of(3)).unwrap_err().contains("on this node"));
        drop(own);
        assert_eq!((streams.open(), streams.counts(|counts| counts.len())), (0, 0));
    }
}
