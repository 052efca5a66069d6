//! Damage to rows.

use std::{future::Future, pin::Pin};

use forebay_types::Seq;

/// Overwrites the packed columns of an item, or of its dead letter.
pub type Damage = Box<dyn Fn(Seq) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;
