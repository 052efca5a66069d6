//! How many open pages follow what happens: in all, of one token, and of all tokens below one root.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use forebay_access::{Identity, Kind};

/// Streams of a node.
const STREAMS_MAX: usize = 100;
/// Of them, those that operators alone may open.
const FOR_OPERATORS: usize = 10;
/// Of them, those that are left to roots with few.
const FOR_FEW: usize = 10;
/// Streams of one token, or of one name in certificates.
const OF_TOKEN_MAX: usize = 6;
/// Streams of all tokens below one root.
const OF_ROOT_MAX: usize = 20;

/// Whose streams are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Whose {
    /// Of a token, or of a name in certificates.
    Token(String),
    /// Of those below this root.
    Root(String),
}

/// The streams that are open.
#[derive(Debug, Default)]
struct Open {
    /// All of them.
    all: usize,
    /// By whose they are, where that is known.
    by: HashMap<Whose, usize>,
}

/// The streams of a node.
#[derive(Debug, Clone, Default)]
pub struct Streams(Arc<Mutex<Open>>);

/// One of them. It ends when it is dropped.
#[derive(Debug)]
pub struct OpenStream {
    /// Where it is counted.
    all: Streams,
    /// Whose it is.
    whose: Vec<Whose>,
}

impl Streams {
    /// Streams that are open.
    pub fn open(&self) -> usize {
        self.with(|open| open.all)
    }

    /// Begins one. `None`: where there is no access control it is not known whose it is. If there are too
    /// many: what is said.
    pub fn begin(&self, holder: Option<&Identity>) -> Result<OpenStream, &'static str> {
        let whose = holder.map(whose).unwrap_or_default();
        let operates = holder.is_none_or(Identity::is_operator);
        self.with(|open| {
            let of = |index: usize| whose.get(index).and_then(|it| open.by.get(it)).copied().unwrap_or(0);
            let (of_token, of_root) = (of(0), of(1));
            if of_token >= OF_TOKEN_MAX {
                return Err("too many pages of this token are open on this node");
            }
            if of_root >= OF_ROOT_MAX {
                return Err("too many pages of tokens that were made by one another are open on this node");
            }
            let most = if operates { STREAMS_MAX } else { STREAMS_MAX - FOR_OPERATORS };
            let free = most.saturating_sub(open.all);
            // Of the last ones each root has no more than it leaves to others.
            if free == 0 || (!operates && free <= FOR_FEW && of_root >= free) {
                return Err("too many pages are open on this node");
            }
            open.all += 1;
            whose.iter().for_each(|it| *open.by.entry(it.clone()).or_default() += 1);
            Ok(OpenStream { all: self.clone(), whose: whose.clone() })
        })
    }

    fn with<T>(&self, with: impl FnOnce(&mut Open) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn whose(holder: &Identity) -> Vec<Whose> {
    match holder.kind {
        Kind::Anyone => Vec::new(),
        Kind::Token | Kind::Certificate => {
            vec![Whose::Token(holder.id.clone()), Whose::Root(holder.root().to_owned())]
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.all.with(|open| {
            open.all = open.all.saturating_sub(1);
            for whose in &self.whose {
                let left = open.by.get(whose).map_or(0, |count| count.saturating_sub(1));
                match left {
                    0 => open.by.remove(whose),
                    left => open.by.insert(whose.clone(), left),
                };
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(id: &str, root: &str, grant: &str) -> Identity {
        let (grants, id, root) = (vec![grant.parse().unwrap()], id.to_owned(), root.to_owned());
        Identity { kind: Kind::Token, id, root, grants, ..Identity::anyone() }
    }

    fn open(streams: &Streams, holder: &Identity, count: usize) -> Vec<OpenStream> {
        (0..count).map(|_| streams.begin(Some(holder)).unwrap()).collect()
    }

    #[test]
    fn one_token_leaves_room_for_others() {
        let streams = Streams::default();
        let (one, other) = (holder("1", "", "a:observe"), holder("2", "", "a:observe"));
        let mut own = open(&streams, &one, 6);
        assert!(streams.begin(Some(&one)).unwrap_err().contains("of this token"));
        own.extend(open(&streams, &other, 1));
        assert_eq!(streams.open(), 7);
        own.remove(0);
        own.extend(open(&streams, &one, 1));
        drop(own);
        assert_eq!((streams.open(), streams.with(|open| open.by.len())), (0, 0));
    }

    #[test]
    fn tokens_that_a_tenant_makes_have_room_together() {
        let streams = Streams::default();
        let mut all = Vec::new();
        for child in ["1", "2", "3"] {
            all.extend(open(&streams, &holder(child, "root", "a:observe"), 6));
        }
        all.extend(open(&streams, &holder("root", "", "a:observe"), 2));
        let child = holder("4", "root", "a:observe");
        assert!(streams.begin(Some(&child)).unwrap_err().contains("made by one another"));
        all.extend(open(&streams, &holder("5", "another", "b:observe"), 6));
    }

    #[test]
    fn roots_keep_a_few_and_operators_too() {
        let streams = Streams::default();
        let mut all = Vec::new();
        let mut fill = |root: &str| {
            for child in 0..4 {
                let child = holder(&format!("{root}{child}"), root, "a:observe");
                while let Ok(stream) = streams.begin(Some(&child)) {
                    all.push(stream);
                }
            }
        };
        ["a", "b", "c", "d", "e"].into_iter().for_each(&mut fill);
        let late = holder("late", "", "b:observe");
        let first = streams.begin(Some(&late)).expect("each root keeps some");
        let operator = holder("operator", "", "*:observe");
        let own = open(&streams, &operator, 6);
        drop((first, own));
        // Where nobody is known, all are alike.
        let free = STREAMS_MAX - streams.open();
        let anyone: Vec<_> = (0..free).map(|_| streams.begin(None).unwrap()).collect();
        assert!(streams.begin(None).unwrap_err().contains("on this node"));
        drop(anyone);
    }
}
