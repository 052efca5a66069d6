//! Finds the rows of a batch that can't be stored, where the batch must not be cut: parts of it are tried under
//! a batch number that can't pass the fence. What gets as far as the fence can be stored; nothing is committed.

use forebay_store::{Batch, CommitError, ErrorClass, Writer};
use forebay_types::Seq;

/// Far beyond every batch that will ever come next.
const NEVER: u64 = 1 << 48;

/// The items that can't be stored. `None`: something else went wrong, so that it is not known.
pub(crate) async fn sift(writer: &mut dyn Writer, batch: &Batch) -> Option<Vec<Seq>> {
    let mut bad = Vec::new();
    let mut suspects = vec![batch.inserts.as_slice()];
    while let Some(rows) = suspects.pop() {
        let trial = Batch {
            number: batch.number + NEVER,
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
