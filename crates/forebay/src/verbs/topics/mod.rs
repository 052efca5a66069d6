//! `forebay topics`

mod active;
mod flags;

use crate::failure::Failure;
pub use flags::Topics;

impl Topics {
    /// Lists topics.
    pub async fn run(self) -> Result<(), Failure> {
        active::list(&self).await
    }
}
