//! When an item is due.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// When an item may be delivered first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schedule {
    /// At once.
    Now,
    /// This long after it arrives, or is changed.
    Delay(Duration),
    /// Not before this time.
    After(Timestamp),
}
