//! The Rust client of Forebay.
//!
//! [`Client`] makes the six calls, one answer per member. [`Producer`] gathers items into batches,
//! [`Consumer`] runs a handler over what a topic holds and keeps the leases alive meanwhile.
//!
//! ```no_run
//! use forebay_client::{Client, ClientConfig, Consumer, ConsumerConfig, Delivery, NewItem, Outcome};
//!
//! # async fn example() -> Result<(), forebay_client::Error> {
//! let client = Client::connect(ClientConfig::new("http://127.0.0.1:7420"))?;
//!
//! let results = client.enqueue(vec![NewItem::new("mail", "hello").priority(5)]).await?;
//! println!("stored as {}", results[0].as_ref().map_err(Clone::clone)?.item_id);
//!
//! let consumer = Consumer::start(client, ConsumerConfig::new(["mail"]), |delivery: Delivery| async move {
//!     println!("{} ({} bytes)", delivery.item.item_id, delivery.item.payload.len());
//!     Outcome::Ack
//! });
//! // … until the process is asked to stop:
//! let report = consumer.stop().await?;
//! println!("{} items done", report.acked);
//! # Ok(())
//! # }
//! ```
//!
//! # What is repeated, and why that is safe
//!
//! A call that failed for a while (`UNAVAILABLE`, `RESOURCE_EXHAUSTED` with a `RetryInfo`, a time-out, a
//! broken connection) is repeated until [`ClientConfig::call_timeout`] is over, after a random pause that
//! grows ([`RetryPolicy`]) and is never shorter than what the server asked for.
//!
//! * An enqueue carries a random `request_id`, so that a repeated one stores nothing twice. Where an item
//!   names a `dedupe_key` the key does that. Items with a `shard` and no key have neither: their
//!   enqueue is repeated only if it certainly did not happen.
//! * An ack is repeated; `LEASE_LOST` with the item gone, after an outcome that was not known, is done.
//! * A dequeue is repeated; what an answer that got lost had leased comes back when its lease ends.

mod calls;
mod client;
mod config;
mod consumer;
mod error;
mod item;
mod producer;
mod retry;
mod spans;
#[cfg(test)]
mod testing;

pub use calls::{
    active_topics::{ActiveTopic, TopicPage, TopicQuery},
    dequeue::{Demand, DequeueCall, Dequeued},
    enqueue::Enqueued,
    nack::{Nack, NackAction},
};
pub use client::Client;
pub use config::{ClientConfig, RetryPolicy};
pub use consumer::{Consumer, ConsumerConfig, ConsumerReport, Delivery, Handler, Outcome};
pub use error::Error;
pub use forebay_types::{DeliveryPolicy, Fate, Reason, Timestamp};
pub use item::{NewItem, Schedule};
pub use producer::{Pending, Producer, ProducerConfig};
pub use tonic::Code;
