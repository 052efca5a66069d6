//! `forebay topic pause` and `forebay topic resume`

use clap::Args;

use crate::{
    failure::Failure,
    verbs::pauses::{PauseFlags, ResumeFlags},
};

/// The flags of `forebay topic pause`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic pause mail
  forebay topic pause mail --side dequeue --for 2h --note 'the mail server is down'
  forebay topic pause mail --side enqueue --until 2026-12-24T18:00:00Z")]
pub struct Pause {
    /// The topic; it need not have items
    topic: String,
    /// Flags that all such verbs share.
    #[command(flatten)]
    pausing: PauseFlags,
}

impl Pause {
    /// Pauses the topic.
    pub async fn run(self) -> Result<(), Failure> {
        self.pausing.run(named(&self.topic)?).await
    }
}

/// The flags of `forebay topic resume`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic resume mail
  forebay topic resume mail --side enqueue")]
pub struct Resume {
    /// The topic
    topic: String,
    /// Flags that all such verbs share.
    #[command(flatten)]
    resuming: ResumeFlags,
}

impl Resume {
    /// Ends pauses of the topic.
    pub async fn run(self) -> Result<(), Failure> {
        self.resuming.run(named(&self.topic)?).await
    }
}

/// An empty name would be the whole namespace: that is not what an unset variable of a script should mean.
pub(super) fn named(topic: &str) -> Result<&str, Failure> {
    match topic {
        "" => Err(Failure::usage("the topic is empty; for a whole namespace use `forebay namespace`")),
        topic => Ok(topic),
    }
}
