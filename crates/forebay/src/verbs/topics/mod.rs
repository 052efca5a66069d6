//! `forebay topics`

mod active;
mod all;
mod flags;

use crate::failure::Failure;
pub use flags::Topics;

impl Topics {
    /// Lists topics.
    pub async fn run(self) -> Result<(), Failure> {
        if self.all { all::list(&self).await } else { active::list(&self).await }
    }
}
