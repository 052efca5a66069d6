//! Settlements whose deliveries are over: their callers are told where the items are now. One read asks for
//! many items, in turn by tenant, and one such read is under way at a time. So they never take the
//! connections that other reads need.

use forebay_store::ItemLocation;
use forebay_types::{Reason, Refusal, Seq, ShardId};

use crate::{
    api::RETRY_AFTER,
    shard::work::{FairQueue, SettleKind, SettleRequest},
};

/// Items of one read.
const KEYS_MAX: usize = 480;
/// Settlements of one tenant that wait for a read.
const WAITING_TENANT_MAX: usize = 10_000;
/// The same of all tenants.
const WAITING_MAX: usize = 4 * WAITING_TENANT_MAX;

/// Settlements whose items are to be located.
#[derive(Debug, Default)]
pub(in crate::shard) struct Locates {
    /// They wait for a read.
    waiting: FairQueue<SettleRequest>,
    /// The read under way, and what it asks for.
    under_way: Option<(u64, Vec<SettleRequest>)>,
    /// The result of a read that may have seen the batch in flight, which is not on disk before it is
    /// resolved.
    held: Option<(Vec<SettleRequest>, Vec<ItemLocation>)>,
}

impl Locates {
    /// A settlement waits. Beyond what may wait it is returned, with why.
    pub fn wait(
        &mut self,
        id: ShardId,
        mut request: SettleRequest,
    ) -> Result<(), Box<(SettleRequest, Refusal)>> {
        let (mine, all) = (self.waiting.len_of(&request.namespace), self.waiting.sum().rows);
        let (whose, most) = match () {
            () if mine >= WAITING_TENANT_MAX => (" of this namespace", WAITING_TENANT_MAX),
            () if all >= WAITING_MAX => ("", WAITING_MAX),
            () => {
                // The text and metadata of a nack whose delivery is over are not needed any more.
                if let SettleKind::Nack { metadata, reason, .. } = &mut request.kind {
                    (*metadata, *reason) = (None, String::new());
                }
                self.waiting.push(request);
                return Ok(());
            }
        };
        metrics::counter!("forebay_lookups_refused_total").increment(1);
        let message = format!(
            "{most} settlements{whose} of deliveries that are over wait for a look-up in shard {id}, \
             which is the limit"
        );
        Err(Box::new((request, Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER))))
    }

    /// The items that the next read, named `read`, asks for. `None`: one is under way, or nobody waits.
    pub fn begin(&mut self, read: u64) -> Option<Vec<Seq>> {
        let Self { waiting, under_way, held } = self;
        if under_way.is_some() || held.is_some() || waiting.is_empty() {
            return None;
        }
        waiting.begin(KEYS_MAX);
        let next = std::iter::from_fn(|| waiting.pop(|_| true).map(|turn| turn.work));
        let requests: Vec<SettleRequest> = next.take(KEYS_MAX).collect();
        let seqs = requests.iter().map(|request| request.receipt.item.seq).collect();
        *under_way = Some((read, requests));
        Some(seqs)
    }

    /// A read ended. Returns those that it was for, in the order of its items.
    pub fn end(&mut self, read: u64) -> Vec<SettleRequest> {
        let ended = self.under_way.take_if(|(id, _)| *id == read);
        ended.map(|(_, requests)| requests).unwrap_or_default()
    }

    /// Holds the result of the read, which is not told before the batch in flight is resolved.
    pub fn hold(&mut self, requests: Vec<SettleRequest>, locations: Vec<ItemLocation>) {
        self.held = Some((requests, locations));
    }

    /// The batch in flight is resolved. Returns what can be told now: if it did not happen, the items are
    /// located anew.
    pub fn resolved(&mut self, committed: bool) -> Option<(Vec<SettleRequest>, Vec<ItemLocation>)> {
        let held = self.held.take()?;
        if committed {
            return Some(held);
        }
        held.0.into_iter().for_each(|request| self.waiting.push(request));
        None
    }

    /// Nobody waits for an item's location.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_none() && self.held.is_none()
    }

    /// Takes everybody who waits.
    pub fn take(&mut self) -> Vec<SettleRequest> {
        let asked = self.under_way.take().map(|(_, requests)| requests).unwrap_or_default();
        let held = self.held.take().map(|(requests, _)| requests).unwrap_or_default();
        asked.into_iter().chain(held).chain(self.waiting.drain()).collect()
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::Receipt;

    use super::*;
    use crate::shard::tests::{item_id, shard};

    fn stale(namespace: &str, seq: u64) -> SettleRequest {
        let receipt = Receipt { item: item_id(Seq(seq)), delivery: 1, nonce: 0 };
        SettleRequest { namespace: namespace.into(), receipt, kind: SettleKind::Ack, slot: None }
    }

    #[test]
    fn one_read_asks_for_many_items_in_turn_by_tenant() {
        let mut shard = shard();
        (0..2_000).for_each(|seq| shard.wait_for_location(stale("a", seq)).unwrap());
        shard.wait_for_location(stale("b", 5_000)).unwrap();
        let seqs = shard.begin_locate(1).unwrap();
        assert_eq!(seqs.len(), KEYS_MAX);
        assert!(seqs.contains(&Seq(5_000)), "nobody waits behind all of another's");
        assert!(shard.begin_locate(2).is_none(), "one read at a time");
        assert!(shard.end_locate(2).is_empty() && !shard.is_idle());
        let asked: Vec<Seq> = shard.end_locate(1).iter().map(|request| request.receipt.item.seq).collect();
        assert_eq!(asked, seqs, "in the order of the read");
        assert_eq!(shard.begin_locate(3).unwrap().len(), KEYS_MAX);
        assert_eq!(shard.abandon().0.work.count(), 2_001 - KEYS_MAX, "those that wait or are asked for");
    }

    #[test]
    fn what_may_show_a_batch_that_is_not_on_disk_waits_for_its_outcome() {
        let mut shard = shard();
        shard.wait_for_location(stale("a", 7)).unwrap();
        for (read, committed) in [(1, false), (2, true)] {
            assert_eq!(shard.begin_locate(read).unwrap(), [Seq(7)]);
            let asked = shard.end_locate(read);
            shard.hold_located(asked, vec![ItemLocation::Gone]);
            assert!(!shard.is_idle() && shard.begin_locate(9).is_none(), "one at a time");
            assert_eq!(shard.take_located(committed).is_some(), committed);
        }
        assert!(shard.is_idle() && shard.take_located(true).is_none());
    }

    #[test]
    fn so_many_of_a_tenant_and_of_all_wait() {
        let mut shard = shard();
        let most = WAITING_TENANT_MAX as u64;
        (0..most).for_each(|seq| shard.wait_for_location(stale("a", seq)).unwrap());
        let (_, refusal) = *shard.wait_for_location(stale("a", 1)).unwrap_err();
        assert_eq!((refusal.reason, refusal.retry_after), (Reason::Overloaded, Some(RETRY_AFTER)));
        assert!(refusal.message.starts_with("10000 settlements of this namespace"), "{}", refusal.message);
        for tenant in ["b", "c", "d"] {
            (0..most).for_each(|seq| shard.wait_for_location(stale(tenant, seq)).unwrap());
        }
        let (_, refusal) = *shard.wait_for_location(stale("e", 1)).unwrap_err();
        assert!(refusal.message.starts_with("40000 settlements of deliveries"), "{}", refusal.message);
    }
}
