//! Changes of single items on their way: they wait for a read of their items, in turn by tenant, and then for
//! a batch. One read is under way at a time, and none while what it found waits. `batch/change.rs` says what
//! becomes of each.

use std::collections::VecDeque;

use forebay_types::{Namespace, Reason, Refusal, Seq, ShardId};
use rustc_hash::FxHashSet;

use crate::{
    api::RETRY_AFTER,
    shard::work::{ChangeRequest, FairQueue, FoundItem, Full},
};

/// Items of one read. Their metadata comes along.
const ITEMS_MAX: usize = 200;
/// Changes of one tenant that wait for a read.
const WAITING_TENANT_MAX: usize = 4_000;
/// The same of all tenants.
const WAITING_MAX: usize = 4 * WAITING_TENANT_MAX;
/// Bytes of one tenant's changes that wait for a read: they may bring metadata.
const WAITING_TENANT_BYTES: usize = 4 << 20;
/// The same of all tenants.
const WAITING_BYTES: usize = 4 * WAITING_TENANT_BYTES;

/// A change, and its item as it was read. `None`: it was not there.
pub(in crate::shard) type ChangeWithItem = (ChangeRequest, Option<FoundItem>);

/// Changes that have not happened.
#[derive(Debug, Default)]
pub(in crate::shard) struct Changes {
    /// They wait for a read.
    waiting: FairQueue<ChangeRequest>,
    /// The read under way, and for whom.
    under_way: Option<(u64, Vec<ChangeRequest>)>,
    /// Changes with their items as read, on their way to a batch.
    page: VecDeque<ChangeWithItem>,
    /// Items that a commit changed since the read began: it may show their past.
    invalidated: FxHashSet<Seq>,
    /// A batch failed that the read under way may have seen: what it finds is not used.
    void: bool,
}

impl Changes {
    /// A change waits. Beyond what may wait it is returned, with why.
    pub fn wait(&mut self, id: ShardId, request: ChangeRequest) -> Result<(), Box<(ChangeRequest, Refusal)>> {
        let (mine, all) = (self.waiting.len_of(&request.namespace), self.waiting.sum().rows);
        let full = self.waiting.full(&request, WAITING_TENANT_BYTES, WAITING_BYTES);
        let (whose, most) = match full {
            Some(Full::Tenant) => (" of this namespace", format!("{WAITING_TENANT_BYTES} bytes of")),
            Some(Full::All) => ("", format!("{WAITING_BYTES} bytes of")),
            None if mine >= WAITING_TENANT_MAX => (" of this namespace", WAITING_TENANT_MAX.to_string()),
            None if all >= WAITING_MAX => ("", WAITING_MAX.to_string()),
            None => {
                self.waiting.push(request);
                return Ok(());
            }
        };
        let message = format!("{most} changes of items{whose} wait in shard {id}, which is the limit");
        Err(Box::new((request, Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER))))
    }

    /// The items that the next read, named `read`, asks for. `None`: it is not time for one, or nobody waits.
    pub fn begin(&mut self, read: u64) -> Option<Vec<Seq>> {
        if self.under_way.is_some() || !self.page.is_empty() || self.waiting.is_empty() {
            return None;
        }
        self.waiting.begin(ITEMS_MAX);
        let waiting = &mut self.waiting;
        let next = std::iter::from_fn(|| waiting.pop(|_| true).map(|turn| turn.work));
        let requests: Vec<ChangeRequest> = next.take(ITEMS_MAX).collect();
        let seqs = requests.iter().map(|request| request.seq).collect();
        self.under_way = Some((read, requests));
        self.invalidated.clear();
        self.void = false;
        Some(seqs)
    }

    /// A read ended. Returns those that it was for if it failed.
    pub fn found(&mut self, read: u64, items: Option<Vec<FoundItem>>) -> Vec<ChangeRequest> {
        let ended = self.under_way.take_if(|(id, _)| *id == read);
        let Some((_, requests)) = ended else { return Vec::new() };
        let Some(mut items) = items else { return requests };
        if self.void {
            requests.into_iter().rev().for_each(|request| self.waiting.unpop(request));
            return Vec::new();
        }
        for request in requests {
            // A second change of an item waits for the first.
            if self.page.iter().any(|(other, _)| other.seq == request.seq) {
                self.waiting.push(request);
                continue;
            }
            let found = items.iter().position(|found| found.item.key.seq == request.seq);
            let found = found.map(|at| items.swap_remove(at));
            self.page.push_back((request, found));
        }
        Vec::new()
    }

    /// An item's row was removed or changed by a commit.
    pub fn invalidate(&mut self, seq: Seq) {
        if self.under_way.is_some() || !self.page.is_empty() {
            self.invalidated.insert(seq);
        }
    }

    /// Whether the read of this item may show its past.
    pub fn is_invalidated(&self, seq: Seq) -> bool {
        self.invalidated.contains(&seq)
    }

    /// A batch did not happen: what was read may have seen it, and is read again.
    pub fn void_reads(&mut self) {
        self.void = true;
        let page = std::mem::take(&mut self.page);
        page.into_iter().rev().for_each(|(request, _)| self.waiting.unpop(request));
    }

    /// Takes the next change that waits for a batch.
    pub fn next(&mut self) -> Option<ChangeWithItem> {
        self.page.pop_front()
    }

    /// Its item is read again.
    pub fn again(&mut self, request: ChangeRequest) {
        self.waiting.unpop(request);
    }

    /// How many changes wait for a batch.
    pub fn rows(&self) -> usize {
        self.page.len()
    }

    /// Whether [`Changes::begin`] has something to do.
    pub fn wants_read(&self) -> bool {
        self.under_way.is_none() && self.page.is_empty() && !self.waiting.is_empty()
    }

    /// The tenants whose changes wait for a batch.
    pub fn tenants(&self) -> impl Iterator<Item = &Namespace> {
        self.page.iter().map(|(request, _)| &request.namespace)
    }

    /// Nobody waits.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_none() && self.page.is_empty()
    }

    /// Takes everybody who waits.
    pub fn take(&mut self) -> Vec<ChangeRequest> {
        let page = std::mem::take(&mut self.page).into_iter().map(|(request, _)| request);
        let asked = self.under_way.take().map(|(_, requests)| requests).unwrap_or_default();
        let waiting = std::iter::from_fn(|| self.waiting.pop(|_| true).map(|turn| turn.work));
        page.chain(asked).chain(waiting).collect()
    }
}
