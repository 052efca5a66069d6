//! The checks of a run: every item delivered once, its payload intact, in order.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use anyhow::{bail, ensure};

use crate::{
    payload::{Head, Payloads},
    system::{Delivered, Order},
};

/// Which items went in and which came out.
#[derive(Debug)]
pub struct Ledger {
    payloads: Payloads,
    next: AtomicU64,
    confirmed: Marks,
    delivered: Marks,
}

/// One bit an item, in blocks that are made when they are needed.
#[derive(Debug)]
struct Marks {
    blocks: Box<[OnceLock<Box<Block>>]>,
    count: AtomicU64,
}

type Block = [AtomicU64; WORDS];
const WORDS: usize = 1 << 14;
const BITS: u64 = (WORDS as u64) << 6;
/// Four thousand million items.
const BLOCKS: usize = 1 << 12;

impl Marks {
    fn new() -> Self {
        Self { blocks: (0..BLOCKS).map(|_| OnceLock::new()).collect(), count: AtomicU64::new(0) }
    }

    /// Marks an item; says whether it was not marked before.
    fn mark(&self, number: u64) -> bool {
        let bit = 1 << (number % 64);
        let new = self.word(number).fetch_or(bit, Ordering::Relaxed) & bit == 0;
        self.count.fetch_add(u64::from(new), Ordering::Relaxed);
        new
    }

    fn word(&self, number: u64) -> &AtomicU64 {
        let block = self.blocks[(number / BITS) as usize]
            .get_or_init(|| Box::new([const { AtomicU64::new(0) }; WORDS]));
        &block[(number % BITS / 64) as usize]
    }

    fn has(&self, number: u64) -> bool {
        self.word(number).load(Ordering::Relaxed) >> (number % 64) & 1 == 1
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Ledger {
    /// An empty one.
    pub fn new(payloads: Payloads) -> Self {
        Self { payloads, next: AtomicU64::new(0), confirmed: Marks::new(), delivered: Marks::new() }
    }

    /// Numbers for `count` new items; returns the first.
    pub fn number(&self, count: usize) -> u64 {
        self.next.fetch_add(count as u64, Ordering::Relaxed)
    }

    /// The payloads of this run.
    pub fn payloads(&self) -> &Payloads {
        &self.payloads
    }

    /// Items that the queue has confirmed.
    pub fn confirm(&self, first: u64, count: usize) {
        for number in first..first + count as u64 {
            self.confirmed.mark(number);
        }
    }

    /// How many the queue has confirmed.
    pub fn confirmed(&self) -> u64 {
        self.confirmed.count()
    }

    /// How many have come out.
    pub fn delivered(&self) -> u64 {
        self.delivered.count()
    }

    /// Checks one that came out.
    pub fn deliver(&self, item: &Delivered) -> anyhow::Result<Head> {
        let head = self.payloads.check(&item.payload)?;
        let number = head.number;
        ensure!(number < self.next.load(Ordering::Relaxed), "item {number} was never sent");
        ensure!(
            head.topic == item.topic,
            "item {number} of topic {} came out of topic {}",
            head.topic,
            item.topic
        );
        ensure!(self.delivered.mark(number), "item {number} was delivered twice");
        Ok(head)
    }

    /// At the end, when nothing is left: what was confirmed has come out.
    pub fn close(&self) -> anyhow::Result<()> {
        let sent = self.next.load(Ordering::Relaxed);
        let lost: Vec<u64> = (0..sent)
            .filter(|&number| self.confirmed.has(number) && !self.delivered.has(number))
            .take(10)
            .collect();
        if !lost.is_empty() {
            bail!(
                "{} items were confirmed and {} came out; missing: {lost:?} …",
                self.confirmed(),
                self.delivered()
            );
        }
        ensure!(self.confirmed() > 0, "nothing was sent");
        Ok(())
    }
}

/// Checks the order in which one consumer gets the items of its topics.
#[derive(Debug)]
pub struct InOrder {
    order: Order,
    ages: bool,
    topics: std::collections::HashMap<u32, Head>,
}

impl InOrder {
    /// Nothing seen yet. `ages`: also that what was sent first comes first, which can be said of topics with one
    /// producer that makes one call after the other.
    pub fn new(order: Order, ages: bool) -> Self {
        Self { order, ages, topics: Default::default() }
    }

    /// Begins anew: what comes next need not follow what came before.
    pub fn cut(&mut self) {
        self.topics.clear();
    }

    /// The next one.
    pub fn next(&mut self, head: Head) -> anyhow::Result<()> {
        let rank = |head: &Head| match self.order {
            Order::Priority => (head.priority, if self.ages { head.number } else { 0 }),
            #[cfg(any(feature = "rabbitmq", feature = "nats", test))]
            Order::Age => (0, if self.ages { head.number } else { 0 }),
        };
        if let Some(last) = self.topics.insert(head.topic, head)
            && rank(&last) > rank(&head)
        {
            bail!(
                "topic {}: item {} of priority {} came before item {} of priority {}",
                head.topic,
                last.number,
                last.priority,
                head.number,
                head.priority
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        Ledger::new(Payloads::new(1, 64).unwrap())
    }

    fn item(ledger: &Ledger, number: u64) -> Delivered {
        let payload = ledger.payloads().make(Head { number, topic: 3, priority: 1, at_us: 0 });
        Delivered { topic: 3, payload }
    }

    #[test]
    fn an_item_that_comes_twice_never_or_from_nowhere_is_seen() {
        let ledger = ledger();
        assert_eq!(ledger.number(2), 0);
        ledger.confirm(0, 2);
        ledger.deliver(&item(&ledger, 0)).unwrap();
        assert!(ledger.deliver(&item(&ledger, 0)).is_err(), "twice");
        assert!(ledger.deliver(&item(&ledger, 2)).is_err(), "never sent");
        assert!(ledger.close().is_err(), "one is missing");
        ledger.deliver(&item(&ledger, 1)).unwrap();
        ledger.close().unwrap();
    }

    #[test]
    fn an_item_of_another_topic_is_seen() {
        let ledger = ledger();
        ledger.number(1);
        let wrong = Delivered { topic: 4, ..item(&ledger, 0) };
        assert!(ledger.deliver(&wrong).is_err());
    }

    #[test]
    fn an_item_out_of_turn_is_seen() {
        let head = |number, priority| Head { number, topic: 1, priority, at_us: 0 };
        let mut order = InOrder::new(Order::Priority, true);
        order.next(head(5, 0)).unwrap();
        order.next(head(2, 1)).unwrap();
        order.next(head(3, 1)).unwrap();
        assert!(order.next(head(9, 0)).is_err());
        let mut order = InOrder::new(Order::Age, true);
        order.next(head(2, 1)).unwrap();
        order.next(head(3, 0)).unwrap();
        assert!(order.next(head(1, 0)).is_err());
    }
}
