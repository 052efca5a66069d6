//! Parts that all verbs share that change many items: the flags, the question before it, and the progress
//! that is shown while the operation runs.

use std::{
    collections::BTreeSet,
    fmt,
    io::{self, BufRead as _, IsTerminal as _, Write as _},
};

use clap::Args;
use forebay_client::{
    Client,
    v1::{OperationFigures, StartOperationRequest, StartOperationResponse},
};

use super::{
    connection::Connection,
    follow::{self, Interrupts},
};
use crate::{
    failure::{Failure, Status},
    output::{self, Format, Json, Output},
    parse,
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
    /// Which items: terms joined by AND, of age, priority and attempt; of items but leases redrives, of dead
    /// letters reason, of leases consumer
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
    #[arg(long, value_name = "TEXT", value_parser = parse::free_text(), default_value = "")]
    #[arg(hide_default_value = true)]
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
    pub async fn run(&self, query: StartOperationRequest, done: &str) -> Result<(), Failure> {
        self.run_all(vec![query], done).await
    }

    /// The same with an operation for each of several topics, one after the other. There is one question.
    pub async fn run_all(&self, queries: Vec<StartOperationRequest>, done: &str) -> Result<(), Failure> {
        if !self.dry_run && !self.yes && !io::stdin().is_terminal() {
            let message = "this changes many items, and there is no terminal to ask: add --yes, or --dry-run";
            return Err(Failure::usage(message));
        }
        let queries: Vec<_> = queries.into_iter().map(|query| self.with_flags(query)).collect();
        let client = self.connection.client().await?;
        if self.dry_run || !self.yes {
            let mut counted = Vec::new();
            for query in &queries {
                let count = StartOperationRequest { dry_run: true, ..query.clone() };
                counted.push(follow::start(&client, count).await?);
            }
            self.note_incomplete(&counted);
            if self.dry_run {
                return counted.iter().try_for_each(|one| self.print_count(one, counted.len() > 1, done));
            }
            let topics: Vec<_> = queries.iter().map(|query| output::visible(&query.topic)).collect();
            let sum = Sum::of(&counted);
            let all = if sum.is_all() { " The filter passes all that there are." } else { "" };
            confirm(&format!("{sum} of {} will be {done}.{all}", topics.join(", ")))?;
        }
        let mut interrupts = Interrupts::new()?;
        for query in queries {
            self.run_one(&client, query, done, &mut interrupts).await?;
        }
        Ok(())
    }

    fn with_flags(&self, query: StartOperationRequest) -> StartOperationRequest {
        let terms = [query.filter.as_str(), self.filter.as_str()];
        let filter = terms.into_iter().filter(|term| !term.is_empty()).collect::<Vec<_>>().join(" AND ");
        StartOperationRequest {
            filter,
            limit: self.limit,
            expect_at_most: self.expect_at_most,
            rate_per_second: self.rate,
            reason: self.reason.clone(),
            ..query
        }
    }

    /// Begins an operation, and waits for its end. Its id is said before anything can fail.
    async fn run_one(
        &self,
        client: &Client,
        query: StartOperationRequest,
        done: &str,
        interrupts: &mut Interrupts,
    ) -> Result<(), Failure> {
        let started = follow::begin(client, query, interrupts).await?;
        let operation = started.operation.clone().unwrap_or_default();
        if self.detach {
            output::print_one(&operation, &self.format)?;
            self.note_incomplete(std::slice::from_ref(&started));
            if interrupts.has_come().await {
                let id = operation.id;
                let line = format!("interrupted: operation {id} goes on, and none is begun after it");
                return Err(Failure::new(line).with(Status::Interrupted));
            }
            return Ok(());
        }
        self.format.look.note(&format!("operation {} has begun", operation.id));
        self.note_incomplete(std::slice::from_ref(&started));
        let ended = follow::to_the_end(client, operation, &self.format, interrupts).await?;
        let changed = ended.figures.unwrap_or_default().changed;
        self.format.look.note(&format!("{changed} items {done}"));
        output::print_one(&ended, &self.format)?;
        follow::judge(&ended)
    }

    fn note_incomplete(&self, started: &[StartOperationResponse]) {
        let shards: BTreeSet<u32> = started.iter().flat_map(|it| it.incomplete_shards.clone()).collect();
        output::note_incomplete(&self.format.look, &shards.into_iter().collect::<Vec<_>>());
    }

    /// Prints what a dry run has counted.
    fn print_count(
        &self,
        counted: &StartOperationResponse,
        is_one_of: bool,
        done: &str,
    ) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        match self.format.output {
            Output::Json => {
                let document = output::to_json("StartOperationResponse", counted)?;
                writeln!(out, "{:#}", Json(&document))?;
            }
            Output::Jsonl => {
                let document = output::to_json("StartOperationResponse", counted)?;
                writeln!(out, "{}", Json(&document))?;
            }
            Output::Name => {
                counted.sample_item_ids.iter().try_for_each(|id| writeln!(out, "{}", output::visible(id)))?
            }
            Output::Table | Output::Wide => {
                let items = Sum::of(std::slice::from_ref(counted));
                let topic = output::visible(counted.operation.as_ref().map_or("", |it| &it.topic));
                let of = if is_one_of { format!(" of {topic}") } else { String::new() };
                writeln!(out, "{items}{of} would be {done}")?;
                if !counted.sample_item_ids.is_empty() {
                    writeln!(out, "some of them: {}", output::visible(&counted.sample_item_ids.join(" ")))?;
                }
            }
        }
        Ok(())
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

/// How many items were counted, and with a filter of how many.
#[derive(Debug, Default)]
struct Sum {
    /// How many.
    matched: u64,
    /// Of how many a filter has chosen them. `None`: there is none, or that is not known.
    scanned: Option<u64>,
    /// All were counted.
    exact: bool,
}

impl Sum {
    fn of(counted: &[StartOperationResponse]) -> Self {
        Self::add(counted.iter().filter_map(|it| {
            let operation = it.operation.as_ref()?;
            Some((operation.filter.as_str(), operation.figures.unwrap_or_default(), it.exact))
        }))
    }

    fn add<'a>(counted: impl Iterator<Item = (&'a str, OperationFigures, bool)>) -> Self {
        let nothing = Self { matched: 0, scanned: Some(0), exact: true };
        let sum = counted.fold(nothing, |sum, (filter, counts, exact)| {
            let scanned = (!filter.is_empty() && counts.scanned >= counts.matched).then_some(counts.scanned);
            Self {
                matched: sum.matched + counts.matched,
                scanned: sum.scanned.zip(scanned).map(|(sum, scanned)| sum + scanned),
                exact: sum.exact && exact,
            }
        });
        // An older server does not tell.
        Self { scanned: sum.scanned.filter(|scanned| *scanned > 0), ..sum }
    }

    /// Whether a filter chooses all that there is, as one does that only leaves out what is not there.
    fn is_all(&self) -> bool {
        self.scanned == Some(self.matched)
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.exact { "" } else { " or more" };
        match self.scanned {
            Some(all) => write!(f, "{} of {all}{more} items", self.matched),
            None => write!(f, "{}{more} items", self.matched),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_told_with_of_how_many_and_whether_it_passes_all() {
        let counted = |filter, scanned, matched, exact| {
            (filter, OperationFigures { scanned, matched, ..OperationFigures::default() }, exact)
        };
        for (all, said, is_all) in [
            (vec![counted("a", 9, 2, true)], "2 of 9 items", false),
            (vec![counted("NOT a", 2, 2, true)], "2 of 2 items", true),
            (vec![counted("a", 3, 2, true), counted("a", 4, 4, true)], "6 of 7 items", false),
            (vec![counted("", 2, 2, true)], "2 items", false),
            (vec![counted("a", 0, 2, true)], "2 items", false),
            (vec![counted("a", 9, 2, false)], "2 of 9 or more items", false),
        ] {
            let sum = Sum::add(all.into_iter());
            assert_eq!((sum.to_string().as_str(), sum.is_all()), (said, is_all));
        }
    }
}
