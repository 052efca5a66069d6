//! The `forebay` program: a node, the maintenance of its shards, and a command-line client.
#![doc = include_str!("../README.md")]

mod contexts;
mod failure;
mod http_get;
mod log;
mod output;
mod parse;
mod reasons;
mod token_flags;
mod verbs;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use failure::Failure;
use verbs::severity::Severity;
use verbs::{
    ack, audit, bench, check, check_config, complete, completions, config, consumer, context, dead_letter,
    dequeue, dev, enqueue, error, extend, health, history, item, man, migrate, nack, namespace, node,
    operation, serve, settings_document, shard, status, token, top, topic, topics, whoami, worker,
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

Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 not there, or no item came in time,
4 not signed in or not allowed, 5 partly done, 6 out of reach or refused for now, worth repeating,
130 interrupted, 141 nobody reads the output any more.";

/// A persistent priority queue on sharded MySQL.
#[derive(Parser)]
#[command(
    version = env!("VERSION_AND_COMMIT"),
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
    /// Print the keys of the configuration
    Config(config::ConfigCommand),
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
    /// Run a command on each item of topics
    Worker(worker::Worker),
    /// List the active topics, most urgent first
    Topics(topics::Topics),
    /// List topics in any state, or show one
    Topic(topic::TopicCommand),
    /// List namespaces, show one, set what counts for it, or pause it
    Namespace(namespace::NamespaceCommand),
    /// Write down what is set of namespaces and topics as one document, and apply one
    Settings(settings_document::SettingsCommand),
    /// List items of a topic, or show one, without leasing them
    Item(item::ItemCommand),
    /// List dead letters, group them by why they died, return them to their topic, or delete them
    DeadLetter(dead_letter::DeadLetterCommand),
    /// List operations over many items, follow one, or end it
    Operation(operation::OperationCommand),
    /// List who asks for items and who has leases, or release a consumer's leases
    Consumer(consumer::Consumer),
    /// Show how figures were in the last minutes, up to a day
    History(history::GetHistory),
    /// List the nodes of the cluster, or drain one
    Node(node::Node),
    /// List the shards and who owns them, or change them
    Shard(shard::Shard),
    /// Make, list and revoke the tokens by which nodes know callers
    Token(token::TokenCommand),
    /// List who has changed what, and who has looked at payloads
    Audit(audit::AuditCommand),
    /// Tell as whom a node knows the caller, and what the caller may do
    Whoami(whoami::WhoAmI),
    /// Say what is wrong, most severe first, and what to look at
    Status(status::Status),
    /// Show the topics on one screen, again and again
    Top(top::Top),
    /// Put a short load on a queue that runs, and check that it loses nothing
    Bench(bench::Bench),
    /// Compare a topic, the cluster or a certificate with thresholds, for monitoring
    Check(check::Check),
    /// Ask a node whether it is ready, for probes
    Health(health::Health),
    /// Keep the addresses and the credentials of servers under names
    Context(context::Context),
    /// Say what the reason of an error means, and what to do
    Error(error::ExplainError),
    /// Print a script that completes this command line in a shell
    Completions(completions::Completions),
    /// Print the names that begin as a word does, for the scripts of completions
    #[command(name = "__complete", hide = true)]
    Complete(complete::Complete),
    /// Write the manual pages
    Man(man::Man),
}

fn main() -> ExitCode {
    let verb = match Arguments::try_parse() {
        Ok(arguments) => arguments.verb,
        // To monitoring 2 is critical. Wrong usage is unknown.
        Err(error) if error.use_stderr() && std::env::args_os().nth(1).is_some_and(|it| it == "check") => {
            // Nobody reads it if this fails.
            let _ = error.print();
            return ExitCode::from(Severity::Unknown.code());
        }
        // Wrong usage exits here, with status 2.
        Err(error) => error.exit(),
    };
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
            Verb::Config(verb) => verb.run(),
            Verb::Enqueue(verb) => verb.run().await,
            Verb::Dequeue(verb) => verb.run().await,
            Verb::Ack(verb) => verb.run().await,
            Verb::Nack(verb) => verb.run().await,
            Verb::Extend(verb) => verb.run().await,
            Verb::Worker(verb) => verb.run().await,
            Verb::Topics(verb) => verb.run().await,
            Verb::Topic(verb) => verb.run().await,
            Verb::Namespace(verb) => verb.run().await,
            Verb::Settings(verb) => verb.run().await,
            Verb::Item(verb) => verb.run().await,
            Verb::DeadLetter(verb) => verb.run().await,
            Verb::Operation(verb) => verb.run().await,
            Verb::Consumer(verb) => verb.run().await,
            Verb::History(verb) => verb.run().await,
            Verb::Node(verb) => verb.run().await,
            Verb::Shard(verb) => verb.run().await,
            Verb::Token(verb) => verb.run().await,
            Verb::Audit(verb) => verb.run().await,
            Verb::Whoami(verb) => verb.run().await,
            Verb::Status(verb) => verb.run().await,
            Verb::Top(verb) => verb.run().await,
            Verb::Bench(verb) => verb.run().await,
            Verb::Check(verb) => verb.run().await,
            Verb::Health(verb) => verb.run().await,
            Verb::Context(verb) => verb.run().await,
            Verb::Error(verb) => verb.run(),
            Verb::Completions(verb) => verb.run(Arguments::command()),
            Verb::Complete(verb) => verb.run(&Arguments::command()).await,
            Verb::Man(verb) => verb.run(Arguments::command()),
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

    /// Checks the examples of a command and of those below it. `path`: the words before its own name.
    fn check_examples(command: &clap::Command, path: &[&str]) {
        let path = [path, &[command.get_name()]].concat();
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines: Vec<_> = help.lines().filter(|line| line.starts_with("  ")).collect();
        assert!(help.starts_with("Examples:\n") && !lines.is_empty(), "{path:?} has no examples");
        for line in lines {
            let piped = line.rsplit_once(" | ").map(|(_, line)| line);
            let line = piped.filter(|line| line.starts_with("forebay")).unwrap_or(line);
            let words = words(line);
            assert!(words.iter().map(String::as_str).take(path.len()).eq(path.iter().copied()), "{line}");
            if let Err(error) = Arguments::try_parse_from(&words) {
                panic!("{line}: {error}");
            }
        }
        command.get_subcommands().for_each(|verb| check_examples(verb, &path));
    }

    #[test]
    fn every_help_has_examples_that_are_right() {
        let program = Arguments::command();
        program.clone().debug_assert();
        check_examples(&program, &[]);
    }
}
