//! The shard's parts of operations: which of them run, what is to be read next, and what waits for a batch.
//! `batch/operation.rs` says what is done with what was read, `batch/order.rs` how a part begins.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    time::Duration,
};

use forebay_store::{
    OperationCursor, OperationFailure, OperationId, OperationKind, OperationProgress, OperationRow,
};
use forebay_types::{Key, Monotonic, Namespace, Seq, Timestamp, TopicId, TopicName, filter::Filter};
use rustc_hash::FxHashSet;

use super::{
    part::Part,
    walk::{behind, leased},
};
use crate::{
    api::filter_fields,
    clock::Moment,
    shard::{
        contents::leases::log::Leases,
        work::{OperationItem, OperationPage, OperationRead, OrderRequest, Walk},
    },
};

/// Operations of one namespace that run at one time. Of one topic one runs.
const RUNNING_MAX: usize = 4;
/// Parts of one namespace that have not ended.
pub(in crate::shard) const OPEN_TENANT_MAX: usize = RUNNING_MAX + 100;
/// Parts of one namespace that have ended and are remembered.
const ENDED_TENANT_MAX: usize = 20;
/// The same of all namespaces.
const ENDED_MAX: usize = 128;
/// How long they are remembered.
const ENDED_KEPT: Duration = Duration::from_hours(30 * 24);
/// Orders that wait for a batch.
const ORDERS_MAX: usize = 64;
/// How long after its beginning a part waits for an owner that understands its filter: nodes are replaced in
/// this time.
const NOT_UNDERSTOOD_MAX: Duration = Duration::from_hours(1);
/// The pause after a read that failed.
const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// A read for a page, or the page on its way to a batch.
#[derive(Debug)]
struct Scan {
    /// Names the read.
    read: u64,
    /// The operation.
    id: OperationId,
    /// Where it continues when nothing of this kind is left. `None`: nowhere.
    behind: Option<OperationCursor>,
    /// Items that a commit changed since it began: the page may show their past.
    invalidated: FxHashSet<Seq>,
}

/// The shard's parts of operations.
#[derive(Debug, Default)]
pub(in crate::shard) struct Operations {
    /// The parts that are stored.
    parts: BTreeMap<OperationId, Part>,
    /// Parts that this program can't read. They are left alone.
    unreadable: Vec<OperationId>,
    /// How many of the parts have not ended.
    open: usize,
    /// Parts that have not ended, and whose filter this program does not understand: when each began.
    not_understood: BTreeSet<(Timestamp, OperationId)>,
    /// Orders that wait for a batch.
    orders: VecDeque<OrderRequest>,
    /// The page on its way. One at a time.
    scan: Option<Scan>,
    /// It waits for a batch.
    page: Option<OperationPage>,
    /// How many pages there were.
    turns: u64,
    /// The shard has calls alone until then.
    rest_until: Monotonic,
}

impl Operations {
    /// The parts that a take-over found.
    pub fn load(rows: Vec<OperationRow>, unreadable: Vec<OperationId>) -> Self {
        for id in &unreadable {
            tracing::warn!("operation {id} waits for a program that can read it");
        }
        let mut operations = Self { unreadable, ..Self::default() };
        rows.into_iter().for_each(|row| operations.put(row));
        operations
    }

    pub fn get(&self, id: OperationId) -> Option<&Part> {
        self.parts.get(&id)
    }

    /// It is stored, and this program can't read it.
    pub fn is_unreadable(&self, id: OperationId) -> bool {
        self.unreadable.contains(&id)
    }

    /// All of them.
    pub fn rows(&self) -> impl Iterator<Item = &OperationRow> {
        self.parts.values().map(|part| &part.row)
    }

    /// A part was stored.
    pub fn put(&mut self, mut row: OperationRow) {
        let OperationRow { spec, progress } = &mut row;
        let id = spec.id;
        // It was understood before it was stored, perhaps by a later program.
        let filter = Filter::parse(&spec.filter, filter_fields(spec.kind));
        if let Err(refusal) = &filter {
            tracing::warn!("operation {id} waits for a program that understands its filter: {refusal}");
        }
        if progress.ended_at.is_none() {
            progress.failure = filter.is_err().then_some(OperationFailure::Filter);
        }
        let (parked, not_before, turn) = match self.take(id) {
            Some(part) => (part.parked, part.not_before, part.turn),
            None => (FxHashSet::default(), Monotonic::default(), 0),
        };
        self.insert(Part { row, filter: filter.ok(), parked, not_before, turn });
    }

    /// A part was forgotten.
    pub fn forget(&mut self, id: OperationId) {
        self.take(id);
    }

    /// A part is among the others, and counted.
    fn insert(&mut self, part: Part) {
        self.open += usize::from(part.is_open());
        self.not_understood.extend(part.not_understood());
        self.parts.insert(part.row.spec.id, part);
    }

    /// A part is out of the others, and no longer counted.
    fn take(&mut self, id: OperationId) -> Option<Part> {
        let part = self.parts.remove(&id)?;
        self.open -= usize::from(part.is_open());
        if let Some(waits) = part.not_understood() {
            self.not_understood.remove(&waits);
        }
        Some(part)
    }

    /// Parts that ended long ago, or are too many once one more of a tenant is there.
    pub fn outdated(&self, namespace: &str, now: Timestamp) -> Vec<OperationId> {
        let mut ended: Vec<(Timestamp, &Part)> =
            self.parts.values().filter_map(|part| Some((part.row.progress.ended_at?, part))).collect();
        ended.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let (mut of_tenant, mut all) = (0, 0);
        let mut outdated = Vec::new();
        for (at, part) in ended {
            let spec = &part.row.spec;
            of_tenant += usize::from(spec.namespace == namespace);
            all += 1;
            let too_many = spec.namespace == namespace && of_tenant > ENDED_TENANT_MAX || all > ENDED_MAX;
            if too_many || now.since(at) >= ENDED_KEPT {
                outdated.push(spec.id);
            }
        }
        outdated
    }

    /// Parts that have not ended.
    pub fn open(&self) -> impl Iterator<Item = &OperationRow> {
        self.parts.values().filter(|part| part.is_open()).map(|part| &part.row)
    }

    /// An order waits. Returned, if too many do.
    pub fn order(&mut self, request: OrderRequest) -> Result<(), OrderRequest> {
        if self.orders.len() >= ORDERS_MAX {
            return Err(request);
        }
        self.orders.push_back(request);
        Ok(())
    }

    /// Takes the next order.
    pub fn next_order(&mut self) -> Option<OrderRequest> {
        self.orders.pop_front()
    }

    /// The batch did not happen: an order waits for the next one.
    pub fn put_order_back(&mut self, request: OrderRequest) {
        self.orders.push_front(request);
    }

    /// Orders that wait.
    pub fn orders(&self) -> usize {
        self.orders.len()
    }

    /// Takes all orders that wait.
    pub fn take_orders(&mut self) -> VecDeque<OrderRequest> {
        std::mem::take(&mut self.orders)
    }

    /// The parts that run: the first of each topic, and the first ones of each namespace.
    fn running(&self) -> impl Iterator<Item = &Part> {
        let can_run = |part: &&Part| part.is_open() && part.filter.is_some();
        let mut open: Vec<&Part> = self.parts.values().filter(can_run).collect();
        open.sort_by_key(|part| (part.row.spec.started_at, part.row.spec.id));
        let mut topics: HashSet<(&str, &str)> = HashSet::new();
        let mut of_namespace: HashMap<&str, usize> = HashMap::new();
        open.retain(|part| {
            let spec = &part.row.spec;
            let count = of_namespace.entry(&spec.namespace).or_default();
            let runs = *count < RUNNING_MAX && topics.insert((&spec.namespace, &spec.topic));
            *count += usize::from(runs);
            runs
        });
        open.into_iter()
    }

    /// Begins the next page, if it is time for one. Those that run take turns. `None` also where the page
    /// needs no read: it waits for a batch then.
    pub fn begin(
        &mut self,
        read: u64,
        node: Moment,
        limit: usize,
        leases: &Leases,
        topic_of: impl Fn(&TopicName) -> Option<TopicId>,
    ) -> Option<OperationRead> {
        if self.open == 0 || self.scan.is_some() {
            return None;
        }
        let Moment { at, now } = node;
        if let Some(id) = self.not_understood(now) {
            // The page without items is the end of it.
            self.scan = Some(Scan { read, id, behind: None, invalidated: FxHashSet::default() });
            self.page = Some(OperationPage { id, items: Vec::new(), next: None });
            return None;
        }
        if at < self.rest_until {
            return None;
        }
        let next = self.running().filter(|part| part.not_before <= at).min_by_key(|part| part.turn)?;
        let (progress, spec) = (next.row.progress, &next.row.spec);
        let (id, cursor, name, kind) = (spec.id, progress.cursor, spec.name(), spec.kind);
        let walk = match cursor {
            OperationCursor::Scheduled(after) | OperationCursor::Ready(after) => {
                topic_of(&name).map(|topic| Walk::Items {
                    topic,
                    is_scheduled: matches!(cursor, OperationCursor::Scheduled(_)),
                    after,
                    as_of: progress.as_of,
                    keeps_headers: kind == OperationKind::Update,
                })
            }
            OperationCursor::Dead(topic, died_at, seq) => {
                // One that removes items wherever they are finds those that have died since it began.
                let until = if kind == OperationKind::Cancel { Timestamp::MAX } else { progress.as_of_time };
                Some(Walk::Dead { name, after: (topic, died_at, seq), until })
            }
            OperationCursor::Leases(deadline, seq) => {
                let topic = topic_of(&name);
                let page = leased(leases, topic, (deadline, seq), progress.as_of_batch, limit);
                self.page = Some(OperationPage { id, ..page });
                None
            }
        };
        self.scan = Some(Scan { read, id, behind: behind(cursor, kind), invalidated: FxHashSet::default() });
        if walk.is_none() && self.page.is_none() {
            // The topic has no items here. It may have dead letters.
            let next = behind(OperationCursor::Ready(Key::MIN), kind);
            self.page = Some(OperationPage { id, items: Vec::new(), next });
        }
        walk.map(|walk| OperationRead { walk, limit })
    }

    /// A part that has waited for long enough for a program that understands its filter.
    fn not_understood(&self, now: Timestamp) -> Option<OperationId> {
        let (began, id) = self.not_understood.first()?;
        (began.plus(NOT_UNDERSTOOD_MAX) <= now).then_some(*id)
    }

    /// A read ended; `None` if it failed.
    pub fn found(&mut self, read: u64, limit: usize, items: Option<Vec<OperationItem>>, at: Monotonic) {
        let Some(scan) = self.scan.take_if(|scan| scan.read == read && self.page.is_none()) else { return };
        let id = scan.id;
        let Some(items) = items else {
            if let Some(part) = self.parts.get_mut(&id) {
                part.not_before = at.plus(FAILED_PAUSE);
            }
            return;
        };
        let next = match items.len() >= limit {
            true => items.last().map(OperationItem::cursor),
            false => scan.behind,
        };
        self.page = Some(OperationPage { id, items, next });
        self.scan = Some(scan);
    }

    /// An item's row was removed or changed by a commit.
    pub fn invalidate(&mut self, seq: Seq) {
        if let Some(scan) = &mut self.scan {
            scan.invalidated.insert(seq);
        }
    }

    /// The page may show the past of this item.
    pub fn is_invalidated(&self, seq: Seq) -> bool {
        self.scan.as_ref().is_some_and(|scan| scan.invalidated.contains(&seq))
    }

    /// Whether a page waits for a batch.
    pub fn has_page(&self) -> bool {
        self.page.is_some()
    }

    /// The operation whose page waits.
    pub fn page_of(&self) -> Option<OperationId> {
        self.page.as_ref().map(|page| page.id)
    }

    /// The tenant of the page that waits.
    pub fn page_tenant(&self) -> Option<Namespace> {
        Some(self.get(self.page_of()?)?.row.spec.namespace.as_str().into())
    }

    /// Rows of the page that waits, at least one for the row of the operation.
    pub fn page_rows(&self) -> usize {
        self.page.as_ref().map_or(0, |page| page.items.len().max(1))
    }

    /// Takes the page that waits for a batch.
    pub fn take_page(&mut self) -> Option<OperationPage> {
        self.page.take()
    }

    /// The page waits for the next batch.
    pub fn put_back(&mut self, page: OperationPage) {
        self.page = Some(page);
    }

    /// Nothing comes of the page: the operation has ended meanwhile, or a row of it can't be stored.
    pub fn drop_page(&mut self) {
        self.page = None;
        self.scan = None;
    }

    /// An item can't be changed. Its page is read again without it.
    pub fn park(&mut self, id: OperationId, seq: Option<Seq>) {
        self.drop_page();
        if let Some(part) = self.parts.get_mut(&id) {
            part.parked.extend(seq);
        }
    }

    /// A page was committed, with so many changes. The next one, of any part, comes no sooner than after
    /// `rest`.
    pub fn advance(
        &mut self,
        id: OperationId,
        progress: OperationProgress,
        changed: u64,
        at: Monotonic,
        rest: Duration,
    ) {
        self.drop_page();
        self.turns += 1;
        let Some(mut part) = self.take(id) else { return };
        part.row.progress = progress;
        part.turn = self.turns;
        let wish = part.row.spec.wish;
        // One shard has its part of the rate, so the changes take up this much time.
        let micros = changed.saturating_mul(1_000_000 * u64::from(wish.active.max(1)));
        part.not_before = at.plus(Duration::from_micros(micros / u64::from(wish.rate.max(1))));
        self.rest_until = at.plus(rest);
        self.insert(part);
    }

    /// When [`Operations::begin`] has something to do.
    pub fn next_wake(&self, node: Moment) -> Option<Monotonic> {
        if self.open == 0 || self.scan.is_some() {
            return None;
        }
        let given_up =
            self.not_understood.first().map(|(began, _)| node.when(began.plus(NOT_UNDERSTOOD_MAX)));
        self.running().map(|part| part.not_before.max(self.rest_until)).chain(given_up).min()
    }

    /// Whether a page has its scan, and what is noted of the parts is true. Checked in tests.
    pub fn check(&self) -> Result<(), String> {
        let open = self.parts.values().filter(|part| part.is_open()).count();
        let not_understood: BTreeSet<_> = self.parts.values().filter_map(Part::not_understood).collect();
        match () {
            () if self.page.is_some() && self.scan.is_none() => {
                Err("an operation's page waits without its scan".to_owned())
            }
            () if not_understood != self.not_understood => {
                Err(format!("{not_understood:?} are not understood, {:?} are noted", self.not_understood))
            }
            () if open != self.open => Err(format!("{open} operations are open, {} are counted", self.open)),
            () => Ok(()),
        }
    }
}
