//! The `forebay` program: a node, the maintenance of its shards, and a command-line client.

mod failure;
mod http_get;
mod log;
mod output;
mod parse;
mod verbs;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;
use verbs::{
    ack, check_config, dequeue, dev, enqueue, extend, health, migrate, nack, node, nodes, serve, shards,
    topics,
};

/// The system's allocator took a fifth of a busy node's CPU time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Shown by `forebay --help`.
const EXAMPLES: &str = "\
Examples:
  forebay dev
  forebay serve --config forebay.toml
  forebay enqueue --topic mail --priority 5 'hello'
  forebay dequeue --topic mail --wait 5s --ack

Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 no item came in time, 5 partly done,
6 the server is out of reach or refuses for now, 130 interrupted.";

/// A persistent priority queue on sharded MySQL.
#[derive(Parser)]
#[command(
    version = env!("FOREBAY_VERSION"),
    about,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = EXAMPLES
)]
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
    /// Extend leases, for work that takes longer
    Extend(extend::Extend),
    /// List the active topics, most urgent first
    Topics(topics::Topics),
    /// List the nodes of the cluster
    Nodes(nodes::Nodes),
    /// List the shards and who owns them, or move one
    Shards(shards::Shards),
    /// Drain a node
    Node(node::NodeCommand),
    /// Ask a node whether it is ready, for probes
    Health(health::Health),
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
            Verb::CheckConfig(verb) => verb.run().await,
            Verb::Enqueue(verb) => verb.run().await,
            Verb::Dequeue(verb) => verb.run().await,
            Verb::Ack(verb) => verb.run().await,
            Verb::Nack(verb) => verb.run().await,
            Verb::Extend(verb) => verb.run().await,
            Verb::Topics(verb) => verb.run().await,
            Verb::Nodes(verb) => verb.run().await,
            Verb::Shards(verb) => verb.run().await,
            Verb::Node(verb) => verb.run().await,
            Verb::Health(verb) => verb.run().await,
        }
    });
    // Tasks that still run serve connections that nobody reads any more, so they are not waited for.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.print(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// The words of a line of a shell, with quotes but without escapes; up to a pipe or a redirection.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (index, part) in line.split('\'').enumerate() {
            match index % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words.into_iter().take_while(|word| word != "|" && word != ">").collect()
    }

    #[test]
    fn every_help_has_examples_that_are_right() {
        let program = Arguments::command();
        program.clone().debug_assert();
        for command in std::iter::once(&program).chain(program.get_subcommands()) {
            let name = command.get_name();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<_> = help.lines().filter(|line| line.starts_with("  ")).collect();
            assert!(help.starts_with("Examples:\n") && !lines.is_empty(), "{name} has no examples");
            for line in lines {
                let line = line.rsplit_once(" | ").map_or(line, |(_, line)| line);
                let words = words(line);
                assert!(words[0] == "forebay" && (name == "forebay" || words[1] == name), "{line}");
                assert!(Arguments::try_parse_from(&words).is_ok(), "{line}");
            }
        }
    }
}
