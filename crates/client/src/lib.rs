//! The Rust client of Forebay.
//!
//! [`Client`] makes the six calls, one answer per member, to one node or several. [`Producer`] sends items in
//! batches. [`Consumer`] runs a handler on the items of its topics and extends their leases while it runs.
//! [`Client::ask`] makes operators' calls: it sends messages of [`v1`] and returns such.
//!
//! ```no_run
//! use forebay_client::{Client, ClientConfig, Consumer, ConsumerConfig, Delivery, NewItem, Outcome};
//!
//! # async fn example() -> Result<(), forebay_client::Error> {
//! // One node of a cluster is enough: the client learns the others. A second one helps if that one is down.
//! let config = ClientConfig::new("node1:7420").endpoint("node2:7420");
//! let client = Client::connect(config)?;
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
//! # What is retried, and why that is safe
//!
//! A call with a transient error (`UNAVAILABLE`, `RESOURCE_EXHAUSTED` with a `RetryInfo`, a timeout, a broken
//! connection) is retried until [`ClientConfig::call_timeout`]. The pauses are random and grow
//! ([`RetryPolicy`]). They are never shorter than the server's retry delay. There is no pause before a node
//! that was not asked yet, if the one before cannot be reached, is silent, stops, or cannot serve the shard.
//!
//! * An enqueue has a random `request_id`, so that a retry stores nothing twice. An item's `dedupe_key` does
//!   the same. Items with a `shard` and no key have neither: their enqueue is retried only if it certainly
//!   had no effect.
//! * An ack is retried. After an attempt of unknown outcome, `LEASE_LOST` with an item that is gone counts as
//!   acked.
//! * A dequeue is retried. Items of a lost answer are delivered again when their leases end.
//!
//! # Several nodes
//!
//! * **Which nodes.** [`ClientConfig`] names one or more. While calls are made or a consumer runs, the client
//!   asks one of them every 10 s which others there are. It calls those that it reaches at the address that
//!   they give. Nodes that drain or are gone leave. If some node cannot be reached, the given addresses stay
//!   in use: they may be those of a proxy.
//! * **Calls** go to all nodes in turn. A node that failed is avoided for a while, 5 s at most.
//! * **Order.** Items that were enqueued at one node come out in the order of the calls. So a [`Producer`]
//!   stays with one node while it works, as does a client from [`Client::in_order`].
//! * **Deliveries** are settled at the node that handed them out, or elsewhere if it is gone.
//! * **A [`Consumer`]** asks every node, since each hands out the items of its own shards, and shares its
//!   free handlers out among them. [`Client::dequeue`] asks one node.
//! * For load balancing or a transport of your own: [`Client::over_channel`].
//!
//! # TLS
//!
//! An address that begins with `https://` is connected to with TLS. The authorities of the system are
//! believed, or those of [`ClientConfig::ca_certificate`] alone. [`ClientConfig::client_certificate`] is what
//! this side shows. If any given address has TLS, learnt nodes are called with TLS too: a certificate must be
//! for the host of the address that its node gives. A node without TLS is not called then.
//!
//! # Access
//!
//! Where servers ask for credentials, [`ClientConfig::token`] or [`ClientConfig::token_file`] is shown with
//! each call. Without TLS who is on the way can read it.
//!
//! # Traces
//!
//! With the feature `traces`, what the client does has spans of OpenTelemetry, by its conventions for
//! messaging. A program that has set a provider (`opentelemetry::global::set_tracer_provider`) needs nothing
//! else. Without one there are no spans.
//!
//! | span | kind | of |
//! | --- | --- | --- |
//! | `enqueue mail` | producer | an enqueue of one item. Its headers have the context |
//! | `enqueue`, `enqueue mail` | client | an enqueue of several. It links to those of its items |
//! | `create mail` | producer | an item of several, or of a [`Producer`]. Its headers have the context |
//! | `dequeue mail` | client | a dequeue that had items or failed. It links to where they were created |
//! | `process mail` | consumer | a handler of a [`Consumer`]. It links to where its item was created |
//! | `ack`, `nack`, `extend` | client | settling deliveries: below a handler, or linked to several |
//!
//! The headers are `traceparent` and `tracestate`. An item that has a `traceparent` keeps it. All calls carry
//! the current span to the server, whose own spans are below it then. A call of several members has failed if
//! one of them has. [`TraceConfig`] says which spans there are.

mod address;
mod ask;
mod calls;
mod check_server;
mod client;
mod config;
mod consumer;
mod dequeued;
mod endpoints;
mod error;
mod item;
mod producer;
mod retry;
mod rng;
mod seen_certificate;
mod slow;
#[cfg(test)]
mod testing;
mod tls;
mod token;
mod trace_config;
#[cfg(feature = "traces")]
mod traces;
#[cfg(not(feature = "traces"))]
#[path = "no_traces.rs"]
mod traces;

pub use address::is_loopback;
pub use calls::{
    active_topics::{ActiveTopic, TopicPage, TopicQuery},
    dequeue::{Demand, DequeueCall},
    enqueue::Enqueued,
    nack::{Nack, NackAction, Nacked},
};
pub use client::Client;
pub use config::{ClientConfig, RetryPolicy};
pub use consumer::{Consumer, ConsumerConfig, ConsumerReport, Delivery, Handler, Outcome};
pub use dequeued::Dequeued;
pub use error::Error;
pub use forebay_proto::{AdminCall, v1};
pub use forebay_types::{DeliveryPolicy, Fate, Reason, Side, Timestamp};
pub use item::{NewItem, Schedule};
pub use producer::{Pending, Producer, ProducerConfig};
pub use tls::{Tls, TlsConfig, explain as explain_tls};
pub use token::Token;
pub use tonic::Code;
pub use trace_config::TraceConfig;
