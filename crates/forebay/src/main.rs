//! The `forebay` program: a node, the maintenance of its shards, and a command-line client.

mod failure;
mod log;
mod output;
mod verbs;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;
use verbs::{ack, check_config, dequeue, dev, enqueue, migrate, nack, serve, topics};

/// The system's allocator took a fifth of a busy node's CPU time.
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
    /// Run a whole queue in one process on embedded SQLite shards, without any setup
    Dev(dev::Dev),
    /// Run a node on the shards of a configuration
    Serve(serve::Serve),
    /// Create or upgrade the schemas of the shards
    Migrate(migrate::Migrate),
    /// Check a configuration and print every error in it
    CheckConfig(check_config::CheckConfig),
    /// Enqueue items
    Enqueue(enqueue::Enqueue),
    /// Dequeue items and print them
    Dequeue(dequeue::Dequeue),
    /// Acknowledge deliveries: their items are done
    Ack(ack::Ack),
    /// Return items to their topics, or send them to the dead letters
    Nack(nack::Nack),
    /// List the active topics, most urgent first
    Topics(topics::Topics),
}

fn main() -> ExitCode {
    // Wrong usage exits here, with status 2.
    let verb = Arguments::parse().verb;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(anyhow::Error::from(error)).print(),
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
    // Tasks that still run serve connections that nobody reads any more, so they are not waited for.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.print(),
    }
}
