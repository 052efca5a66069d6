//! The walk of an operation: its order, and the pages that need no read.

use forebay_store::{OperationCursor, OperationId, OperationKind};
use forebay_types::{Headers, Key, Seq, Timestamp, TopicId};

use crate::shard::{
    contents::leases::log::Leases,
    work::{OperationItem, OperationPage, Place},
};

/// Leases that one page looks at.
const LEASES_MAX: usize = 2_000;

/// Where an operation goes on, once it is through with what it walks over at a cursor.
pub(super) fn behind(cursor: OperationCursor, kind: OperationKind) -> Option<OperationCursor> {
    match cursor {
        // So none is missed that becomes due meanwhile.
        OperationCursor::Scheduled(_) => Some(OperationCursor::Ready(Key::MIN)),
        OperationCursor::Ready(_) if kind == OperationKind::Cancel => {
            Some(OperationCursor::Dead(TopicId(0), Timestamp::MIN, Seq(0)))
        }
        _ => None,
    }
}

/// A page of the leases of a topic that had begun by a batch.
pub(super) fn leased(
    leases: &Leases,
    topic: Option<TopicId>,
    after: (Timestamp, Seq),
    as_of_batch: u64,
    limit: usize,
) -> OperationPage {
    let mut items = Vec::new();
    let (mut looked_at, mut last) = (0, None);
    for (deadline, lease) in leases.behind(after) {
        if looked_at == LEASES_MAX || items.len() == limit {
            let next = last.map(|(deadline, seq)| OperationCursor::Leases(deadline, seq));
            return OperationPage { id: OperationId::default(), items, next };
        }
        looked_at += 1;
        last = Some((deadline, lease.seq));
        if Some(lease.topic) == topic && lease.began <= as_of_batch {
            items.push(OperationItem {
                topic: lease.topic,
                key: Key { priority: lease.priority, rank: lease.rank, seq: lease.seq },
                attributes: lease.attributes,
                bytes: lease.bytes,
                metadata_bytes: 0,
                headers: Headers::new(),
                place: Place::Leased {
                    delivery: lease.delivery(),
                    deadline,
                    consumer: lease.consumer.clone(),
                },
                unreadable: false,
            });
        }
    }
    OperationPage { id: OperationId::default(), items, next: None }
}
