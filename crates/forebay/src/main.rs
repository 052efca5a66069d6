//! The one program of Forebay: a node, what looks after its shards, and a client for the command line.

mod failure;
mod log;
mod output;
mod verbs;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;
use verbs::{ack, check_config, dequeue, dev, enqueue, migrate, nack, serve, topics};

/// The system's allocator took a fifth of a busy node's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A persistent priority queue on sharded MySQL.
#[derive(Parser)]
#[command(version, about, propagate_version = true, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a whole queue in one process on embedded SQLite shards: no set-up at all
    Dev(dev::Dev),
    /// Run a node on the shards that a configuration names
    Serve(serve::Serve),
    /// Create or upgrade the schemas of the shards
    Migrate(migrate::Migrate),
    /// Say what is wrong with a configuration
    CheckConfig(check_config::CheckConfig),
    /// Store items
    Enqueue(enqueue::Enqueue),
    /// Take items, and show them
    Dequeue(dequeue::Dequeue),
    /// End deliveries: the items are done
    Ack(ack::Ack),
    /// Give items back
    Nack(nack::Nack),
    /// List the active topics, most urgent first
    Topics(topics::Topics),
}

fn main() -> ExitCode {
    // Wrong usage ends here, with status 2.
    let verb = Arguments::parse().verb;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(anyhow::Error::from(error)).tell(),
    };
    let outcome = runtime.block_on(async {
        match verb {
            Verb::Dev(verb) => verb.run().await,
            Verb::Serve(verb) => verb.run().await,
            Verb::Migrate(verb) => verb.run().await,
            Verb::CheckConfig(verb) => verb.run(),
            Verb::Enqueue(verb) => verb.run().await,
            Verb::Dequeue(verb) => verb.run().await,
            Verb::Ack(verb) => verb.run().await,
            Verb::Nack(verb) => verb.run().await,
            Verb::Topics(verb) => verb.run().await,
        }
    });
    // Not waited for: what still runs belongs to connections that nobody reads any more.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}
