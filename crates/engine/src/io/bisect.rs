//! Finds the rows of a batch that can't be stored, where the batch must not be cut. Parts of it are tried
//! under a batch number that can't pass the fence: what gets as far as the fence can be stored, and nothing
//! is committed.

use forebay_store::{Batch, CommitError, ErrorClass, Writer};
use forebay_types::Seq;

/// Added to the batch's number. The fence never gets there.
const BEYOND_FENCE: u64 = 1 << 48;

/// The items that can't be stored. `None`: another error occurred, so it is not known.
pub(super) async fn bisect(writer: &mut dyn Writer, batch: &Batch) -> Option<Vec<Seq>> {
    let mut bad = Vec::new();
    let mut suspects = vec![batch.inserts.as_slice()];
    while let Some(rows) = suspects.pop() {
        let trial = Batch {
            number: batch.number + BEYOND_FENCE,
            marks: batch.marks,
            new_topics: batch.new_topics.clone(),
            inserts: rows.to_vec(),
            ..Batch::default()
        };
        match writer.commit(&trial).await {
            Err(CommitError::FenceMoved) => {}
            Err(CommitError::RolledBack(error)) if error.class == ErrorClass::Poison => match rows {
                [row] => bad.push(row.key.seq),
                _ => {
                    let (first, second) = rows.split_at(rows.len() / 2);
                    suspects.extend([second, first]);
                }
            },
            _ => return None,
        }
    }
    Some(bad)
}
