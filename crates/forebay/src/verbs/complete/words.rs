//! Kind of the word at the cursor, by the words before it.

use clap::{Arg, Command, Parser};

use crate::verbs::servers::Servers;

/// Flags that say whom to ask.
const SERVERS: [&str; 8] =
    ["--context", "--addr", "--namespace", "--ca", "--cert", "--key", "--server-name", "--token-file"];

/// Kinds of things that have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Topics of the namespace.
    Topic,
    /// Namespaces.
    Namespace,
    /// Nodes.
    Node,
    /// Numbers of shards.
    Shard,
    /// Contexts.
    Context,
}

/// The flags that say whom to ask, alone.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Partial {
    #[command(flatten)]
    servers: Servers,
}

/// Tells what kind of name `last` is to be. `None`: none that a server knows.
pub fn kind(program: &Command, before: &[String], last: &str) -> Option<Kind> {
    let (mut command, mut places, mut option) = (program, 0, None);
    for word in before {
        if option.take().is_some() {
            continue;
        }
        match command.find_subcommand(word) {
            // Words behind it are for another program.
            _ if word == "--" => return None,
            _ if word.starts_with('-') => option = option_of(command, word),
            Some(verb) => (command, places) = (verb, 0),
            None => places += 1,
        }
    }
    let argument = match option {
        Some(argument) => argument,
        None if last.starts_with('-') => return None,
        None => command.get_positionals().nth(places)?,
    };
    match argument.get_id().as_str() {
        "topic" | "topics" | "to_topic" => Some(Kind::Topic),
        "namespace" => Some(Kind::Namespace),
        "node" => Some(Kind::Node),
        "shard" => Some(Kind::Shard),
        "context" => Some(Kind::Context),
        _ => None,
    }
}

/// The option that a word is, if its value is the next word.
fn option_of<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let is = |argument: &&Arg| match word.strip_prefix("--") {
        Some(name) => argument.get_long() == Some(name),
        None => word.len() == 2 && argument.get_short() == word.chars().nth(1),
    };
    command.get_arguments().find(is).filter(|argument| argument.get_action().takes_values())
}

/// Returns the servers to ask.
pub fn servers(before: &[String]) -> Option<Servers> {
    let (mut kept, mut words) = (Vec::new(), before.iter());
    while let Some(word) = words.next() {
        if SERVERS.contains(&word.as_str()) {
            // The last one may have no value yet.
            kept.extend(words.next().map(|value| format!("{word}={value}")));
        } else if word.split_once('=').is_some_and(|(flag, _)| SERVERS.contains(&flag)) {
            kept.push(word.clone());
        }
    }
    Partial::try_parse_from(kept).ok().map(|partial| partial.servers)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Arguments;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_words_before_say_what_comes() {
        let program = Arguments::command();
        for (line, expected) in [
            ("topic get ma", Some(Kind::Topic)),
            ("topic get --addr queue1:7420 ", Some(Kind::Topic)),
            ("topic get mail ", None),
            ("topic ge", None),
            ("enqueue --topic ", Some(Kind::Topic)),
            ("enqueue --topic mail --namespace ", Some(Kind::Namespace)),
            ("enqueue --topic mail ", None),
            ("worker --topic a --topic ", Some(Kind::Topic)),
            ("worker --topic a -- cat ", None),
            ("dead-letter redrive mail --to-topic ", Some(Kind::Topic)),
            ("dead-letter groups ", Some(Kind::Topic)),
            ("check topic ", Some(Kind::Topic)),
            ("node drain ", Some(Kind::Node)),
            ("shard move 1", Some(Kind::Shard)),
            ("shard drain ", Some(Kind::Shard)),
            ("topics --context ", Some(Kind::Context)),
            ("topics --con", None),
            ("topics -o ", None),
            ("nothing ", None),
            ("", None),
        ] {
            let words = words(line);
            let (last, before) = words.split_last().unwrap();
            assert_eq!(kind(&program, before, last), expected, "{line}");
        }
    }

    #[test]
    fn the_flags_of_the_line_say_whom_to_ask() {
        let servers = |line| servers(&words(line)).unwrap();
        let given = servers("topic get --addr a:1,b:2 -o json --namespace=n --topic x --context");
        assert_eq!((given.addrs().unwrap(), given.namespace().unwrap()), (words("a:1 b:2"), "n".to_owned()));
    }
}
