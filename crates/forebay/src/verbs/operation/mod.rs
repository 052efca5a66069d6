//! `forebay operation`

mod flags;
mod list;
mod show;

use clap::{Args, Subcommand};
use forebay_client::v1::SetOperationRateRequest;

use flags::{Cancel, Get, List, Rate, Watch};

use super::follow::{self, Interrupts};
use crate::{failure::Failure, output::print_one};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay operation list
  forebay operation watch 0b1f6a1e55a14b0c8a52b8a1c2d3e4f5")]
pub struct OperationCommand {
    /// The verb.
    #[command(subcommand)]
    verb: OperationVerb,
}

#[derive(Subcommand)]
enum OperationVerb {
    /// List operations, the latest first
    List(List),
    /// Show one operation, with its shards
    Get(Get),
    /// Follow an operation to its end
    Watch(Watch),
    /// End an operation; what it has done stays done
    Cancel(Cancel),
    /// Change how many items an operation changes in a second
    Rate(Rate),
}

impl OperationCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            OperationVerb::List(flags) => list::run(&flags).await,
            OperationVerb::Get(Get { one: flags }) => {
                let client = flags.connection.client().await?;
                print_one(&follow::look(&client, &flags.operation, None).await?, &flags.format)
            }
            OperationVerb::Watch(Watch { one: flags }) => {
                let client = flags.connection.client().await?;
                let operation = follow::look(&client, &flags.operation, None).await?;
                let mut interrupts = Interrupts::new()?;
                let ended = follow::to_the_end(&client, operation, &flags.format, &mut interrupts).await?;
                print_one(&ended, &flags.format)?;
                follow::judge(&ended)
            }
            OperationVerb::Cancel(Cancel { one: flags }) => {
                let client = flags.connection.client().await?;
                print_one(&follow::cancel(&client, &flags.operation).await?, &flags.format)
            }
            OperationVerb::Rate(flags) => {
                let client = flags.connection.client().await?;
                let request = SetOperationRateRequest {
                    namespace: client.namespace().to_owned(),
                    operation_id: flags.operation,
                    rate_per_second: flags.rate,
                };
                let changed = client.ask(request).await?.operation;
                print_one(&changed.unwrap_or_default(), &flags.format)
            }
        }
    }
}
