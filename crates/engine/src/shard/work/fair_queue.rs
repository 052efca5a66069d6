//! Work of one class that waits for a batch, in turn by tenant: nobody waits behind all of another's work.
//! Inside a tenant, first come is first served.
//!
//! Deficit round robin: each turn of a tenant brings it credit. It is served while it has some, and pays by
//! rows and bytes. What must not be cut may cost more than the credit; the tenant then waits until that is
//! paid. A tenant that is alone pays nothing.

use std::collections::VecDeque;

use forebay_types::Namespace;
use rustc_hash::FxHashMap;

use super::{Cost, Full, Work};
use crate::api::SettingsTable;

/// Rows that the credit of one turn pays, at most: what is cut at the end of a turn should not be in crumbs.
const TURN_ROWS_MAX: usize = 32;
/// The cost of a row beside its bytes.
const ROW_WEIGHT: i64 = 1_024;

/// The cost of work, in credit.
pub(crate) fn weight(cost: Cost) -> i64 {
    let bytes = i64::try_from(cost.bytes).unwrap_or(i64::MAX / 2);
    bytes + ROW_WEIGHT * i64::try_from(cost.rows).unwrap_or(i64::MAX / (2 * ROW_WEIGHT))
}

/// A tenant that has something waiting.
#[derive(Debug)]
struct Tenant<T> {
    namespace: Namespace,
    work: VecDeque<T>,
    bytes: usize,
    credit: i64,
    /// It gets the credit of a turn so many times.
    weight: i64,
}

/// Work of one class that waits.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    /// Tenants. Those that are in no turn are free to be used for others.
    tenants: Vec<Tenant<T>>,
    /// Places in `tenants` that are free.
    free: Vec<usize>,
    /// Where each tenant is.
    by_name: FxHashMap<Namespace, usize>,
    /// Tenants in turn: the present one first. One that has nothing more leaves when its turn comes.
    turns: VecDeque<usize>,
    /// Tenants that have something waiting.
    active: usize,
    /// The sum of all work that waits.
    sum: Cost,
    /// The credit of a turn.
    quantum: i64,
    /// Some tenants have a weight.
    is_weighted: bool,
}

/// Work that was taken out.
pub(crate) struct Turn<T> {
    /// The work.
    pub work: T,
    /// Others wait too: what can be cut should end where its [`weight`] reaches this.
    pub credit: Option<i64>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            tenants: Vec::new(),
            free: Vec::new(),
            by_name: FxHashMap::default(),
            turns: VecDeque::new(),
            active: 0,
            sum: Cost::default(),
            quantum: TURN_ROWS_MAX as i64 * ROW_WEIGHT,
            is_weighted: false,
        }
    }
}

impl<T: Work> FairQueue<T> {
    /// The sum of all work that waits.
    pub fn sum(&self) -> Cost {
        self.sum
    }

    pub fn is_empty(&self) -> bool {
        self.active == 0
    }

    /// How many tenants have something waiting.
    pub fn tenants(&self) -> usize {
        self.active
    }

    /// The tenant whose turn it is.
    pub fn first_tenant(&self) -> Option<&Namespace> {
        self.iter().next().map(Work::namespace)
    }

    /// How much work of a tenant waits.
    pub fn len_of(&self, namespace: &Namespace) -> usize {
        self.by_name.get(namespace).map_or(0, |at| self.tenants[*at].work.len())
    }

    /// How many bytes of a tenant wait.
    pub fn bytes_of(&self, namespace: &str) -> usize {
        self.by_name.get(namespace).map_or(0, |at| self.tenants[*at].bytes)
    }

    /// A batch has room for so many rows. The turns are so short that each tenant has one in it, if there are
    /// enough rows.
    pub fn begin(&mut self, rows: usize) {
        let rows = (rows / self.active.max(1)).clamp(1, TURN_ROWS_MAX);
        self.quantum = rows as i64 * ROW_WEIGHT;
    }

    /// The same, where tenants have weights: each has so many times the credit of one without.
    pub fn begin_by_weight(&mut self, rows: usize, set: &SettingsTable) {
        if !set.has_weights() && !self.is_weighted {
            return self.begin(rows);
        }
        self.is_weighted = set.has_weights();
        let mut sum = 0;
        for at in &self.turns {
            let tenant = &mut self.tenants[*at];
            let weight = set.weight_of_namespace(&tenant.namespace);
            tenant.weight = i64::from(weight);
            sum += if tenant.work.is_empty() { 0 } else { weight as usize };
        }
        let rows = (rows / sum.max(1)).clamp(1, TURN_ROWS_MAX);
        self.quantum = rows as i64 * ROW_WEIGHT;
    }

    /// Work waits, behind all other of its tenant.
    pub fn push(&mut self, work: T) {
        let at = self.enter(work.namespace(), VecDeque::push_back);
        self.add(at, work.cost());
        self.tenants[at].work.push_back(work);
    }

    /// Why no more work may wait: its tenant has something, and would have more than `tenant_max` bytes, or
    /// all would have more than `all_max`.
    pub fn full(&self, work: &T, tenant_max: usize, all_max: usize) -> Option<Full> {
        let more = work.cost().bytes;
        let mine = self.bytes_of(work.namespace());
        if mine > 0 && mine + more > tenant_max {
            Some(Full::Tenant)
        } else if self.sum.bytes > 0 && self.sum.bytes + more > all_max {
            Some(Full::All)
        } else {
            None
        }
    }

    /// Puts back what was taken last, or the rest of it: it is the first of its tenant again, and is not paid
    /// for.
    pub fn unpop(&mut self, work: T) {
        let at = self.enter(work.namespace(), VecDeque::push_front);
        self.add(at, work.cost());
        let tenant = &mut self.tenants[at];
        tenant.credit = (tenant.credit + weight(work.cost())).min(self.quantum * tenant.weight);
        tenant.work.push_front(work);
    }

    /// Puts back what was in a batch that did not happen, the last of it first: everything has its place, and
    /// its tenant the turn.
    pub fn put_back(&mut self, work: T) {
        let namespace = work.namespace().clone();
        self.unpop(work);
        let at = self.by_name[&namespace];
        if self.turns.front() != Some(&at) {
            self.turns.retain(|other| *other != at);
            self.turns.push_front(at);
        }
    }

    /// Takes the first work in turn that `fits`. A tenant whose work does not fit keeps its turn.
    pub fn pop(&mut self, fits: impl Fn(&T) -> bool) -> Option<Turn<T>> {
        let mut passed = 0;
        while let Some(at) = self.turn(passed) {
            let alone = self.active <= 1;
            let tenant = &mut self.tenants[at];
            if !fits(tenant.work.front()?) {
                passed += 1;
                continue;
            }
            let work = tenant.work.pop_front()?;
            let (cost, credit) = (work.cost(), tenant.credit);
            tenant.bytes -= cost.bytes;
            tenant.credit = if alone { 0 } else { credit - weight(cost) };
            self.active -= usize::from(tenant.work.is_empty());
            self.sum.rows -= cost.rows;
            self.sum.bytes -= cost.bytes;
            return Some(Turn { work, credit: (!alone).then_some(credit) });
        }
        None
    }

    /// The work whose turn it is.
    pub fn first(&mut self) -> Option<&T> {
        let at = self.turn(0)?;
        self.tenants[at].work.front()
    }

    /// The tenant in turn, if so many are passed over. A tenant without credit gets new for its next turn,
    /// one without work leaves.
    fn turn(&mut self, passed: usize) -> Option<usize> {
        while let Some(at) = self.turns.get(passed).copied() {
            let tenant = &mut self.tenants[at];
            if tenant.work.is_empty() {
                self.leave(passed);
            } else if tenant.credit <= 0 && self.active > 1 {
                tenant.credit += self.quantum * tenant.weight;
                self.turns.remove(passed);
                self.turns.push_back(at);
            } else {
                return Some(at);
            }
        }
        None
    }

    /// The work that waits: by turn of its tenants, in the order of each.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.turns.iter().flat_map(|at| &self.tenants[*at].work)
    }

    /// About what a batch of so many rows takes: as much of each tenant as it would have of the rows.
    pub fn next(&self, rows: usize) -> impl Iterator<Item = &T> {
        let share = (rows / self.active.max(1)).max(1);
        self.turns.iter().take(rows).flat_map(move |at| {
            let mut taken = 0;
            self.tenants[*at].work.iter().take_while(move |work| {
                let fits = taken < share;
                taken += work.cost().rows;
                fits
            })
        })
    }

    /// Takes everything that waits.
    pub fn drain(&mut self) -> Vec<T> {
        std::iter::from_fn(|| self.pop(|_| true)).map(|turn| turn.work).collect()
    }

    /// Where a tenant is. If it is in no turn, it gets one.
    fn enter(&mut self, namespace: &Namespace, line_up: fn(&mut VecDeque<usize>, usize)) -> usize {
        if let Some(at) = self.by_name.get(namespace) {
            return *at;
        }
        let (work, namespace) = (VecDeque::new(), namespace.clone());
        let tenant = Tenant { namespace: namespace.clone(), work, bytes: 0, credit: 0, weight: 1 };
        let at = match self.free.pop() {
            Some(at) => {
                self.tenants[at] = tenant;
                at
            }
            None => {
                self.tenants.push(tenant);
                self.tenants.len() - 1
            }
        };
        self.by_name.insert(namespace, at);
        line_up(&mut self.turns, at);
        at
    }

    /// The tenant of a turn has nothing more.
    fn leave(&mut self, turn: usize) {
        if let Some(at) = self.turns.remove(turn) {
            self.by_name.remove(&self.tenants[at].namespace);
            self.tenants[at].work = VecDeque::new();
            self.free.push(at);
        }
    }

    /// A tenant has this much more.
    fn add(&mut self, at: usize, cost: Cost) {
        let tenant = &mut self.tenants[at];
        self.active += usize::from(tenant.work.is_empty());
        tenant.bytes += cost.bytes;
        self.sum.rows += cost.rows;
        self.sum.bytes += cost.bytes;
    }

    /// Whether the sums are those of what waits. Checked in tests.
    pub fn check(&self) -> Result<(), String> {
        let costs = self.iter().map(Work::cost);
        let sum = costs.fold(Cost::default(), |sum, cost| Cost {
            rows: sum.rows + cost.rows,
            bytes: sum.bytes + cost.bytes,
        });
        let tenants: usize = self.by_name.values().map(|at| self.tenants[*at].bytes).sum();
        match sum == self.sum && tenants == sum.bytes {
            true => Ok(()),
            false => Err(format!("{sum:?} waits, the queue counts {:?}, its tenants {tenants}", self.sum)),
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::{TopicName, TopicSettings};

    use super::*;
    use crate::api::VersionedSettings;
    use crate::shard::{
        tests::{check::wrong, items, part},
        work::ShardEnqueue,
    };

    fn call(namespace: &str, call: u64, rows: usize) -> ShardEnqueue {
        ShardEnqueue { namespace: namespace.into(), ..part(call, items(rows)) }
    }

    fn queue(calls: &[(&str, u64, usize)]) -> FairQueue<ShardEnqueue> {
        let mut queue = FairQueue::default();
        calls.iter().for_each(|(namespace, id, rows)| queue.push(call(namespace, *id, *rows)));
        queue
    }

    /// The numbers of the next calls.
    fn next(queue: &mut FairQueue<ShardEnqueue>, count: usize) -> Vec<u64> {
        let taken = std::iter::from_fn(|| queue.pop(|_| true)).take(count);
        taken.map(|turn| turn.work.call).collect()
    }

    #[test]
    fn a_tenant_is_first_come_first_served() {
        let mut queue = queue(&[("a", 1, 1), ("a", 2, 90), ("a", 3, 1)]);
        assert_eq!((queue.sum().rows, queue.sum().bytes), (92, 92 * 129));
        assert_eq!(
            (next(&mut queue, 9), queue.sum(), queue.is_empty()),
            (vec![1, 2, 3], Cost::default(), true)
        );
    }

    #[test]
    fn tenants_are_served_in_turn_by_what_their_work_costs() {
        let small: Vec<_> = (10..90).map(|id| ("b", id, 1)).collect();
        let mut queue = queue(&[&[("a", 1, 60), ("a", 2, 60), ("a", 3, 1)], &small[..]].concat());
        let order = next(&mut queue, 99);
        let place = |id| order.iter().position(|other| *other == id).unwrap();
        // A call of 60 rows is two turns' worth of single ones.
        assert_eq!(place(1), 0);
        assert!((50..70).contains(&place(2)), "{order:?}");
        assert!(place(3) > place(2) && order.len() == 83);
    }

    #[test]
    fn a_tenant_is_served_by_its_weight() {
        let calls: Vec<_> = (0..400).flat_map(|id| [("a", id, 1), ("b", 1_000 + id, 1)]).collect();
        let mut queue = queue(&calls);
        let mut set = SettingsTable::default();
        let weight = |weight| VersionedSettings {
            settings: TopicSettings { weight, ..TopicSettings::default() },
            version: 1,
        };
        set.replace(&TopicName::new("b", ""), weight(Some(3)));
        let of_b = |queue: &mut FairQueue<ShardEnqueue>, set: &SettingsTable| {
            queue.begin_by_weight(10, set);
            next(queue, 100).into_iter().filter(|id| *id >= 1_000).count()
        };
        let (first, second) = (of_b(&mut queue, &set), of_b(&mut queue, &set));
        assert!((70..=80).contains(&first) && (70..=80).contains(&second), "{first}, {second}");
        set.replace(&TopicName::new("b", ""), weight(None));
        let even = of_b(&mut queue, &set);
        assert!((45..=55).contains(&even), "{even}: it has none any more");
    }

    #[test]
    fn bytes_cost_as_rows_do() {
        let mut queue = FairQueue::default();
        for id in 1..=9 {
            let mut part = call("a", id, 1);
            part.items[0].body.payload = vec![0; 64 << 10].into();
            queue.push(part);
        }
        (10..70).for_each(|id| queue.push(call("b", id, 1)));
        let order = next(&mut queue, 40);
        assert_eq!(order.iter().filter(|id| **id < 10).count(), 1, "{order:?}");
    }

    #[test]
    fn a_tenant_that_was_alone_owes_nothing_to_one_that_comes() {
        let mut queue = queue(&[("a", 1, 1_000), ("a", 2, 1_000), ("a", 3, 1)]);
        assert_eq!(next(&mut queue, 2), [1, 2]);
        queue.push(call("b", 4, 1));
        assert_eq!(next(&mut queue, 2), [3, 4]);
    }

    #[test]
    fn work_that_does_not_fit_keeps_its_turn_and_stops_nobody() {
        let mut queue = queue(&[("a", 1, 50), ("b", 2, 1), ("c", 3, 2)]);
        let fits = |part: &ShardEnqueue| part.items.len() < 10;
        let taken: Vec<u64> = std::iter::from_fn(|| queue.pop(fits)).map(|turn| turn.work.call).collect();
        assert_eq!(taken, [2, 3]);
        queue.push(call("b", 4, 1));
        assert_eq!(next(&mut queue, 2), [1, 4]);
    }

    #[test]
    fn the_rest_of_what_was_cut_is_first_and_only_what_was_taken_is_paid() {
        let mut queue = queue(&[("a", 1, 100), ("b", 2, 1), ("a", 3, 1)]);
        let Turn { mut work, credit } = queue.pop(|_| true).unwrap();
        assert_eq!(credit, Some(queue.quantum), "others wait");
        work.items.truncate(70);
        queue.unpop(work);
        assert_eq!((next(&mut queue, 9), queue.check()), (vec![2, 1, 3], Ok(())));
    }

    #[test]
    fn what_is_put_back_has_its_place_and_its_tenant_the_turn() {
        let mut queue = queue(&[("a", 1, 1), ("b", 2, 1), ("a", 3, 90), ("c", 4, 1)]);
        let taken: Vec<_> = (0..3).map(|_| queue.pop(|_| true).unwrap().work).collect();
        let order: Vec<u64> = taken.iter().map(|part| part.call).collect();
        taken.into_iter().rev().for_each(|part| queue.put_back(part));
        assert_eq!((next(&mut queue, 3), queue.check()), (order, Ok(())));
    }

    #[test]
    fn a_look_at_what_is_next_costs_as_much_as_a_batch_and_leaves_no_tenant_out() {
        let calls: Vec<_> = (0..500).map(|id| ("a", id, 1)).collect();
        let queue = queue(&[&calls[..], &[("b", 900, 1_000), ("b", 901, 1), ("c", 902, 1)]].concat());
        let seen: Vec<u64> = queue.next(9).map(|part| part.call).collect();
        assert_eq!(seen, [0, 1, 2, 900, 902]);
    }

    #[test]
    fn tenants_that_come_and_go_leave_nothing_behind() {
        let mut queue = FairQueue::default();
        for id in 0..1_000 {
            queue.push(call(&format!("tenant {id}"), id, 1));
            assert_eq!(next(&mut queue, 1), [id]);
        }
        assert!(queue.pop(|_| true).is_none());
        assert!(queue.tenants.len() < 3 && queue.by_name.is_empty() && queue.turns.is_empty());
    }

    #[test]
    fn sums_that_are_wrong_are_found() {
        let what = wrong(|shard| shard.intake.enqueues.sum.rows += 1);
        assert!(what.contains("waits, the queue counts"), "{what}");
    }
}
