//! Looks dedupe keys and request ids up, and what has become of their items.

use std::collections::{HashMap, HashSet};

use forebay_store::{Reader, StoreError};
use forebay_types::{Seq, Topic};

use crate::{
    api::RememberedKey,
    shard::work::{KeyHash, decode_remembered, removal},
};

/// Reads the keys that are stored under these hashes.
pub(super) async fn look_up(
    reader: &dyn Reader,
    generations: &[u64],
    hashes: &[KeyHash],
) -> Result<Vec<RememberedKey>, StoreError> {
    let hits = reader.dedupe(generations, hashes).await?;
    let mut found: Vec<RememberedKey> = hits.into_iter().map(RememberedKey::from).collect();
    let items: Vec<Option<KeyedItem>> = found.iter().map(|key| keyed_item(&key.hit.answer)).collect();
    let removed = removed(reader, generations, &items).await?;
    let topics = topics(reader, &items).await;
    for (key, item) in found.iter_mut().zip(&items) {
        if let Some(item) = item {
            key.is_removed = removed.contains(&removal(item.seq));
            key.topic = topics.get(&item.seq).cloned();
        }
    }
    Ok(found)
}

/// The item that a key names.
struct KeyedItem {
    seq: Seq,
    /// The release before stored the key, so that the item alone tells the topic.
    is_older: bool,
}

/// The item that is remembered. `None`: it was a call of several, or none was stored.
fn keyed_item(answer: &[u8]) -> Option<KeyedItem> {
    let remembered = decode_remembered(answer)?;
    match remembered.answers[..] {
        [Ok(seq)] => Some(KeyedItem { seq, is_older: remembered.of.is_none() }),
        _ => None,
    }
}

/// Which of the items an operator has removed.
async fn removed(
    reader: &dyn Reader,
    generations: &[u64],
    items: &[Option<KeyedItem>],
) -> Result<HashSet<KeyHash>, StoreError> {
    let hashes: Vec<KeyHash> = items.iter().flatten().map(|item| removal(item.seq)).collect();
    if hashes.is_empty() {
        return Ok(HashSet::new());
    }
    Ok(reader.dedupe(generations, &hashes).await?.into_iter().map(|hit| hit.hash).collect())
}

/// The topics of items whose keys the release before stored. One that can't be read is as good as gone.
async fn topics(reader: &dyn Reader, items: &[Option<KeyedItem>]) -> HashMap<Seq, Topic> {
    let older: Vec<Seq> = items.iter().flatten().filter(|item| item.is_older).map(|item| item.seq).collect();
    if older.is_empty() {
        return HashMap::new();
    }
    let items = reader.items(&older, 0).await.unwrap_or_default();
    items.into_iter().map(|item| (item.key.seq, item.topic.topic)).collect()
}
