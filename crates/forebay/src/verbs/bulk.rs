//! What all verbs share that change many items: the flags, the question before it, and what is shown while
//! the operation runs.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::Args;
use forebay_client::{Client, Operation, OperationQuery, OperationState, StartedOperation};

use super::{connection::Connection, follow};
use crate::{
    failure::{Failure, Status},
    output::{self, Format, Output},
};

/// The flags.
#[derive(Args)]
pub struct Bulk {
    /// Server and namespace.
    #[command(flatten)]
    pub connection: Connection,
    /// Output format.
    #[command(flatten)]
    pub format: Format,
    /// Which items: terms joined by AND, of age, priority, attempt, redrives, and reason of dead letters
    #[arg(long, default_value = "", hide_default_value = true, value_name = "FILTER")]
    filter: String,
    /// Only count what would be changed
    #[arg(long)]
    pub dry_run: bool,
    /// The most items to change [default: all]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "ITEMS")]
    limit: u64,
    /// Do nothing if more items match
    #[arg(long, value_name = "ITEMS")]
    expect_at_most: Option<u64>,
    /// The most items a second, over all shards [default: 5000]
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "ITEMS")]
    rate: u32,
    /// Why, for those who look at the operation later
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    pub reason: String,
    /// Do it without a question
    #[arg(long)]
    pub yes: bool,
    /// Do not wait for the end: print the operation's id
    #[arg(long)]
    detach: bool,
}

impl Bulk {
    /// Does it, once whoever sits at the terminal has said so. `done`: what becomes of the items, in a word.
    pub async fn run(&self, query: OperationQuery, done: &str) -> Result<(), Failure> {
        self.run_also(query, "", done).await
    }

    /// The same with one more term of the filter. It may be empty.
    pub async fn run_also(&self, query: OperationQuery, term: &str, done: &str) -> Result<(), Failure> {
        if !self.dry_run && !self.yes && !io::stdin().is_terminal() {
            let message = "this changes many items, and there is no terminal to ask: add --yes, or --dry-run";
            return Err(Failure::usage(message));
        }
        let query = OperationQuery {
            filter: [term, &self.filter]
                .into_iter()
                .filter(|it| !it.is_empty())
                .collect::<Vec<_>>()
                .join(" AND "),
            limit: self.limit,
            expect_at_most: self.expect_at_most,
            rate: self.rate,
            reason: self.reason.clone(),
            ..query
        };
        let client = self.connection.client().await?;
        if self.dry_run || !self.yes {
            let count = OperationQuery { dry_run: true, ..query.clone() };
            let counted = client.start_operation(count).await?;
            if self.dry_run {
                return self.print_count(&counted, done);
            }
            self.ask(&counted, &query.topic, done)?;
        }
        let started = client.start_operation(query).await?;
        output::note_incomplete(&self.format.look, &started.incomplete_shards);
        match self.detach {
            true => output::print_one(&started.operation, &self.format),
            false => self.follow(&client, started.operation, done).await,
        }
    }

    /// Prints what a dry run has counted.
    fn print_count(&self, counted: &StartedOperation, done: &str) -> Result<(), Failure> {
        output::note_incomplete(&self.format.look, &counted.incomplete_shards);
        let mut out = io::stdout().lock();
        match self.format.output {
            Output::Json => {
                let document = output::to_json("StartOperationResponse", &output::started(counted))?;
                writeln!(out, "{document:#}")?;
            }
            Output::Jsonl => {
                writeln!(out, "{}", output::to_json("StartOperationResponse", &output::started(counted))?)?;
            }
            Output::Name => {
                counted.samples.iter().try_for_each(|id| writeln!(out, "{}", output::visible(id)))?
            }
            Output::Table | Output::Wide => {
                writeln!(out, "{} would be {done}", items(counted))?;
                if !counted.samples.is_empty() {
                    writeln!(out, "some of them: {}", output::visible(&counted.samples.join(" ")))?;
                }
            }
        }
        Ok(())
    }

    fn ask(&self, counted: &StartedOperation, topic: &str, done: &str) -> Result<(), Failure> {
        output::note_incomplete(&self.format.look, &counted.incomplete_shards);
        confirm(&format!("{} of {} will be {done}.", items(counted), output::visible(topic)))
    }

    /// Waits for the end, and shows how far it is.
    async fn follow(&self, client: &Client, operation: Operation, done: &str) -> Result<(), Failure> {
        let ended = follow::to_the_end(client, operation, &self.format).await?;
        self.format.look.note(&format!("{} items {done}", ended.counts.changed));
        output::print_one(&ended, &self.format)?;
        match ended.state {
            OperationState::Cancelled => {
                Err(Failure::new("the operation was cancelled").with(Status::Partly))
            }
            OperationState::Failed => {
                let why = ended.error.map(|error| error.to_string()).unwrap_or_default();
                Err(Failure::new(format!("the operation has failed: {why}")).with(Status::Partly))
            }
            _ if ended.counts.failed > 0 => {
                let failed = ended.counts.failed;
                Err(Failure::new(format!("{failed} items could not be changed")).with(Status::Partly))
            }
            _ => Ok(()),
        }
    }

    /// Refuses flags that are for many items, where items are named.
    pub fn check_named(&self) -> Result<(), Failure> {
        let flag = match () {
            () if !self.filter.is_empty() => "--filter",
            () if self.limit > 0 => "--limit",
            () if self.expect_at_most.is_some() => "--expect-at-most",
            () if self.rate > 0 => "--rate",
            () if self.detach => "--detach",
            () => return Ok(()),
        };
        Err(Failure::usage(format!("{flag} is for many items: it needs --topic in place of an item's id")))
    }
}

/// Asks whoever sits at the terminal whether to go on. Fails unless the answer is yes.
pub fn confirm(what: &str) -> Result<(), Failure> {
    eprint!("{what} Go on? [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::new("nothing was done")),
    }
}

/// How many items were counted, in words.
fn items(counted: &StartedOperation) -> String {
    let count = counted.operation.counts.matched;
    let more = if counted.exact { "" } else { " or more" };
    format!("{count}{more} items")
}
