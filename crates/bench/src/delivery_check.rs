//! Checks of a run: every item is delivered once, with its payload intact and in order.

use std::{
    collections::HashMap,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{bail, ensure};

use crate::{
    payload::{Header, Payloads},
    system::{BenchDelivery, Order},
};

/// Records which items were enqueued and checks those that are delivered.
#[derive(Debug)]
pub struct DeliveryCheck {
    /// Checks the content of payloads.
    payloads: Payloads,
    /// The number of the next new item.
    next: AtomicU64,
    /// Items that the queue has confirmed to a producer.
    confirmed: Bitmap,
    /// Items that a consumer has received.
    delivered: Bitmap,
}

/// One bit per item, in blocks that are allocated on first use.
#[derive(Debug)]
struct Bitmap {
    blocks: Box<[OnceLock<Box<Block>>]>,
    count: AtomicU64,
}

type Block = [AtomicU64; WORDS];
const WORDS: usize = 1 << 14;
const BITS: u64 = (WORDS as u64) << 6;
/// Enough for 4,294,967,296 items.
const BLOCKS: usize = 1 << 12;

impl Bitmap {
    fn new() -> Self {
        Self { blocks: (0..BLOCKS).map(|_| OnceLock::new()).collect(), count: AtomicU64::new(0) }
    }

    /// Marks an item. Returns whether it was unmarked.
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

impl DeliveryCheck {
    /// Nothing enqueued and nothing delivered.
    pub fn new(payloads: Payloads) -> Self {
        Self { payloads, next: AtomicU64::new(0), confirmed: Bitmap::new(), delivered: Bitmap::new() }
    }

    /// Reserves numbers for `count` new items and returns the first.
    pub fn next_numbers(&self, count: usize) -> u64 {
        self.next.fetch_add(count as u64, Ordering::Relaxed)
    }

    /// The payloads of this run.
    pub fn payloads(&self) -> &Payloads {
        &self.payloads
    }

    /// Records that the queue has confirmed `count` items from number `first` on.
    pub fn confirm(&self, first: u64, count: usize) {
        for number in first..first + count as u64 {
            self.confirmed.mark(number);
        }
    }

    /// Number of items that the queue has confirmed.
    pub fn confirmed(&self) -> u64 {
        self.confirmed.count()
    }

    /// Number of items that were delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered.count()
    }

    /// Checks one delivered item.
    pub fn check(&self, item: &BenchDelivery) -> anyhow::Result<Header> {
        let header = self.payloads.check(&item.payload)?;
        let number = header.number;
        ensure!(number < self.next.load(Ordering::Relaxed), "item {number} was delivered but never enqueued");
        ensure!(
            header.topic == item.topic,
            "item {number} of topic {} was delivered from topic {}",
            header.topic,
            item.topic
        );
        ensure!(self.delivered.mark(number), "item {number} was delivered twice");
        Ok(header)
    }

    /// Checks at the end of a run that every confirmed item was delivered.
    pub fn finish(&self) -> anyhow::Result<()> {
        let sent = self.next.load(Ordering::Relaxed);
        let lost: Vec<u64> = (0..sent)
            .filter(|&number| self.confirmed.has(number) && !self.delivered.has(number))
            .take(10)
            .collect();
        if !lost.is_empty() {
            bail!(
                "items were lost: {} were confirmed and {} delivered; missing are {lost:?} …",
                self.confirmed(),
                self.delivered()
            );
        }
        ensure!(self.confirmed() > 0, "no item was enqueued");
        Ok(())
    }
}

/// Checks the order in which one consumer receives the items of each topic.
#[derive(Debug)]
pub struct OrderCheck {
    /// The order that the queue guarantees.
    order: Order,
    /// Whether age is checked as well.
    by_age: bool,
    /// The last item of each topic.
    last: HashMap<u32, Header>,
}

impl OrderCheck {
    /// No item seen yet. With `by_age`, older items must come first among equal priorities. That can be
    /// checked only if each topic has one producer with one call in flight.
    pub fn new(order: Order, by_age: bool) -> Self {
        Self { order, by_age, last: HashMap::new() }
    }

    /// Starts again: the next item need not follow the last one.
    pub fn restart(&mut self) {
        self.last.clear();
    }

    /// Checks that this item may follow the last one of its topic.
    pub fn check(&mut self, header: Header) -> anyhow::Result<()> {
        let rank = |header: &Header| match self.order {
            Order::Priority => (header.priority, if self.by_age { header.number } else { 0 }),
            #[cfg(any(feature = "rabbitmq", feature = "nats", test))]
            Order::Fifo => (0, if self.by_age { header.number } else { 0 }),
        };
        if let Some(last) = self.last.insert(header.topic, header)
            && rank(&last) > rank(&header)
        {
            bail!(
                "topic {}: item {} of priority {} was delivered before item {} of priority {}",
                header.topic,
                last.number,
                last.priority,
                header.number,
                header.priority
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery_check() -> DeliveryCheck {
        DeliveryCheck::new(Payloads::new(1, 64).unwrap())
    }

    fn item(check: &DeliveryCheck, number: u64) -> BenchDelivery {
        let payload = check.payloads().make(Header { number, topic: 3, priority: 1, at_us: 0 });
        BenchDelivery { topic: 3, payload }
    }

    #[test]
    fn duplicate_lost_and_unknown_items_are_detected() {
        let check = delivery_check();
        assert_eq!(check.next_numbers(2), 0);
        check.confirm(0, 2);
        check.check(&item(&check, 0)).unwrap();
        assert!(check.check(&item(&check, 0)).is_err(), "twice");
        assert!(check.check(&item(&check, 2)).is_err(), "never sent");
        assert!(check.finish().is_err(), "one is missing");
        check.check(&item(&check, 1)).unwrap();
        check.finish().unwrap();
    }

    #[test]
    fn an_item_of_another_topic_is_detected() {
        let check = delivery_check();
        check.next_numbers(1);
        let wrong = BenchDelivery { topic: 4, ..item(&check, 0) };
        assert!(check.check(&wrong).is_err());
    }

    #[test]
    fn an_item_out_of_order_is_detected() {
        let header = |number, priority| Header { number, topic: 1, priority, at_us: 0 };
        let mut order = OrderCheck::new(Order::Priority, true);
        order.check(header(5, 0)).unwrap();
        order.check(header(2, 1)).unwrap();
        order.check(header(3, 1)).unwrap();
        assert!(order.check(header(9, 0)).is_err());
        let mut order = OrderCheck::new(Order::Fifo, true);
        order.check(header(2, 1)).unwrap();
        order.check(header(3, 0)).unwrap();
        assert!(order.check(header(1, 0)).is_err());
    }
}
