//! The items of one window, in delivery order.
//!
//! Most topics have one ready item or none, and there may be a million topics. So one item takes no more
//! memory than itself, and none takes nothing.

use std::{
    collections::{BTreeMap, btree_map},
    mem,
};

use forebay_types::Key;

use crate::shard::work::ReadyItem;

/// Items by their place in the delivery order.
#[derive(Debug, Default)]
pub(super) enum Items {
    /// None.
    #[default]
    Empty,
    /// A single one.
    One(Box<(Key, ReadyItem)>),
    /// Two or more.
    Many(BTreeMap<Key, Box<ReadyItem>>),
}

impl Items {
    pub fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Many(items) => items.len(),
        }
    }

    /// The first one.
    pub fn first(&self) -> Option<(Key, &ReadyItem)> {
        match self {
            Self::Empty => None,
            Self::One(only) => Some((only.0, &only.1)),
            Self::Many(items) => items.first_key_value().map(|(key, item)| (*key, &**item)),
        }
    }

    /// Takes the first one out.
    pub fn pop_first(&mut self) -> Option<(Key, ReadyItem)> {
        let Self::Many(items) = self else {
            return match mem::take(self) {
                Self::One(only) => Some(*only),
                _ => None,
            };
        };
        let first = items.pop_first();
        self.shrink();
        first.map(|(key, item)| (key, *item))
    }

    /// Returns the item that had this key.
    pub fn insert(&mut self, key: Key, item: ReadyItem) -> Option<ReadyItem> {
        match self {
            Self::Empty => {
                *self = Self::One(Box::new((key, item)));
                None
            }
            Self::One(only) if only.0 == key => Some(mem::replace(&mut only.1, item)),
            Self::One(_) => {
                let Self::One(only) = mem::take(self) else { return None };
                let two = [(only.0, Box::new(only.1)), (key, Box::new(item))];
                *self = Self::Many(BTreeMap::from(two));
                None
            }
            Self::Many(items) => items.insert(key, Box::new(item)).map(|old| *old),
        }
    }

    /// Takes the item with this key out.
    pub fn remove(&mut self, key: Key) -> Option<ReadyItem> {
        match self {
            Self::One(only) if only.0 == key => self.pop_first().map(|(_, item)| item),
            Self::Empty | Self::One(_) => None,
            Self::Many(items) => {
                let removed = items.remove(&key);
                self.shrink();
                removed.map(|item| *item)
            }
        }
    }

    /// The key of the item at this position.
    pub fn key_at(&self, position: usize) -> Option<Key> {
        self.iter().nth(position).map(|(key, _)| key)
    }

    /// Takes out the items from `key` on.
    pub fn split_off(&mut self, key: Key) -> Self {
        let mut rest = match self {
            Self::One(only) if only.0 >= key => mem::take(self),
            Self::Empty | Self::One(_) => Self::Empty,
            Self::Many(items) => Self::Many(items.split_off(&key)),
        };
        self.shrink();
        rest.shrink();
        rest
    }

    /// All items, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &ReadyItem)> {
        let (one, many) = match self {
            Self::Empty => (None, None),
            Self::One(only) => (Some((only.0, &only.1)), None),
            Self::Many(items) => (None, Some(items.iter().map(|(key, item)| (*key, &**item)))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// All items, in order, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut ReadyItem> {
        let (one, many) = match self {
            Self::Empty => (None, None),
            Self::One(only) => (Some(&mut only.1), None),
            Self::Many(items) => (None, Some(items.values_mut().map(|item| &mut **item))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// Lets go of a tree with fewer than two items.
    fn shrink(&mut self) {
        let Self::Many(items) = self else { return };
        if items.len() < 2 {
            let only = items.first_entry().map(btree_map::OccupiedEntry::remove_entry);
            *self = only.map_or(Self::Empty, |(key, item)| Self::One(Box::new((key, *item))));
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::Seq;

    use super::*;
    use crate::shard::tests::attributes;

    fn key(rank: i64) -> Key {
        Key { priority: 0, rank, seq: Seq(rank as u64) }
    }

    fn of(ranks: impl IntoIterator<Item = i64>) -> Items {
        let mut items = Items::default();
        for rank in ranks {
            let item = ReadyItem { attributes: attributes(), bytes: rank as u32, body: None };
            assert!(items.insert(key(rank), item).is_none());
        }
        items
    }

    fn ranks(items: &Items) -> Vec<i64> {
        assert_eq!(items.len(), items.iter().count());
        assert_eq!(items.len() < 2, !matches!(items, Items::Many(_)), "a tree has two items or more");
        items
            .iter()
            .map(|(key, item)| (key.rank, item.bytes))
            .map(|(rank, bytes)| {
                assert_eq!(rank, i64::from(bytes));
                rank
            })
            .collect()
    }

    #[test]
    fn items_come_out_in_order_however_many_there_are() {
        for count in 0..5 {
            let mut items = of((1..=count).rev());
            assert_eq!(ranks(&items), (1..=count).collect::<Vec<_>>());
            assert_eq!(items.first().map(|(key, _)| key.rank), (count > 0).then_some(1));
            assert_eq!(items.values_mut().count() as i64, count);
            for rank in 1..=count {
                assert_eq!(items.key_at(0), Some(key(rank)));
                assert_eq!(
                    items.pop_first().map(|(key, item)| (key.rank, item.bytes)),
                    Some((rank, rank as u32))
                );
                assert_eq!(ranks(&items), (rank + 1..=count).collect::<Vec<_>>());
            }
            assert!(items.pop_first().is_none() && items.key_at(0).is_none());
        }
    }

    #[test]
    fn an_item_is_replaced_or_removed_by_its_key() {
        for count in 1..4 {
            let mut items = of(1..=count);
            let again = items.pop_first().unwrap().1;
            assert!(items.insert(key(1), again.clone()).is_none());
            assert_eq!(items.insert(key(1), again).map(|old| old.bytes), Some(1));
            assert!(items.remove(key(9)).is_none());
            assert_eq!(items.remove(key(count)).map(|old| old.bytes), Some(count as u32));
            assert_eq!(ranks(&items), (1..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn items_are_cut_anywhere() {
        for count in 0..5 {
            for cut in 1..=count + 1 {
                let mut items = of(1..=count);
                let rest = items.split_off(key(cut));
                assert_eq!(ranks(&items), (1..cut).collect::<Vec<_>>());
                assert_eq!(ranks(&rest), (cut..=count).collect::<Vec<_>>());
            }
        }
    }
}
