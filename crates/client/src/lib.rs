//! The Rust client of Forebay.
#![doc = include_str!("../README.md")]

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
mod next_shards;
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
mod traces;

pub use address::is_loopback;
pub use calls::{
    active_topics::{ActiveTopic, TopicPage, TopicQuery},
    dequeue::{Demand, DequeueCall},
    enqueue::EnqueuedItem,
    nack::{Nack, NackAction, NackOutcome},
};
pub use client::Client;
pub use config::{ClientConfig, RetryPolicy};
pub use consumer::{Consumer, ConsumerConfig, ConsumerReport, Delivery, Handler, Outcome};
pub use dequeued::ReceivedItem;
pub use error::Error;
pub use forebay_proto::{AdminCall, v1};
pub use forebay_types::{DeliveryPolicy, Fate, Reason, Side, Timestamp};
pub use item::{NewItem, Schedule};
pub use producer::{EnqueueFuture, Producer, ProducerConfig};
pub use tls::{Tls, TlsConfig, explain as explain_tls};
pub use token::Token;
pub use tonic::Code;
pub use trace_config::TraceConfig;
