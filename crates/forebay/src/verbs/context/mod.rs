//! `forebay context`

mod add;
mod list;
mod show;

use clap::{Args, Subcommand};

use crate::{contexts::Contexts, failure::Failure};

/// The flags.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  forebay context add prod --addr queue1:7420,queue2:7420 --namespace mail
  forebay context use prod
  forebay context list
  forebay context show prod"
)]
pub struct Context {
    /// The verb.
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Keep the address and the credentials of servers under a name
    Add(add::Add),
    /// List the contexts
    List(list::ListContexts),
    /// Make a context the current one, which holds where no other is named
    #[command(after_help = "Examples:\n  forebay context use prod")]
    Use(NameFlags),
    /// Show a context
    Show(show::Show),
    /// Forget a context
    #[command(after_help = "Examples:\n  forebay context remove prod")]
    Remove(NameFlags),
}

/// The flags of verbs with nothing but a name.
#[derive(Args)]
struct NameFlags {
    /// The context's name
    name: String,
}

impl Context {
    /// Does what is asked for.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            Verb::Add(verb) => verb.run().await,
            Verb::List(verb) => verb.run(),
            Verb::Show(verb) => verb.run(),
            Verb::Use(NameFlags { name }) => {
                let mut contexts = Contexts::load()?;
                contexts.get(&name)?;
                contexts.current = Some(name);
                contexts.save()
            }
            Verb::Remove(NameFlags { name }) => {
                let mut contexts = Contexts::load()?;
                contexts.get(&name)?;
                contexts.context.remove(&name);
                contexts.current.take_if(|current| *current == name);
                contexts.save()
            }
        }
    }
}
