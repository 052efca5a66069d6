//! Prints what became of each item, as the answers come: there may be more than memory holds.

use std::io::{self, Write as _};

use forebay_client::{EnqueuedItem, Error};
use serde_json::Value;

use crate::{
    failure::{Failure, Status},
    output::{self, Json, Output, Style},
};

/// The answer to one item.
type Answer = Result<EnqueuedItem, Error>;

/// Prints answers and keeps what the exit status depends on.
pub struct Report {
    /// The format.
    output: Output,
    /// Whether items are lines, which have numbers.
    lines: bool,
    /// Items that were answered.
    answered: u64,
    /// Items that were refused.
    refused: u64,
    /// The failure to report at the end: the first refusal, or why there were no more answers.
    failure: Option<Failure>,
}

impl Report {
    /// Of no item yet.
    pub fn new(output: Output, lines: bool) -> Self {
        Self { output, lines, answered: 0, refused: 0, failure: None }
    }

    /// Prints the answers to the next items.
    pub fn add(&mut self, answers: &[Answer]) -> Result<(), Failure> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        for answer in answers {
            match self.output {
                Output::Json => {
                    let start = if self.answered == 0 { "{\n  \"results\": [\n    " } else { ",\n    " };
                    write!(out, "{start}{}", Json(&self.to_json(answer)?))?;
                }
                Output::Jsonl => writeln!(out, "{}", Json(&self.to_json(answer)?))?,
                Output::Name => {
                    if let Ok(stored) = answer {
                        writeln!(out, "{}", stored.item_id)?;
                    }
                }
                Output::Table | Output::Wide => {
                    if self.answered == 0 {
                        writeln!(out, "{}", self.row(["LINE", "ITEM", "OUTCOME"]))?;
                    }
                    let line = (self.answered + 1).to_string();
                    let (item, outcome) = cells(answer);
                    writeln!(out, "{}", self.row([&line, &item, &outcome]))?;
                }
            }
            self.answered += 1;
            if let Err(error) = answer {
                self.refused += 1;
                self.failure.get_or_insert_with(|| {
                    let line = format!("line {}: ", self.answered);
                    Failure::from(error.clone()).begin(if self.lines { &line } else { "" })
                });
            }
        }
        Ok(out.flush()?)
    }

    /// A call of so many items failed as a whole, so it was the last one.
    pub fn fail_call(&mut self, items: usize, error: &Error) {
        let (first, last) = (self.answered + 1, self.answered + items as u64);
        let mut failure = Failure::from(error.clone());
        if self.lines {
            failure = failure.begin(&match items {
                1 => format!("line {first}: "),
                _ => format!("lines {first} to {last}: "),
            });
        }
        self.stop(failure.hint(if error.maybe_done() { "; they may have been stored" } else { "" }));
    }

    /// There is nothing more to enqueue because of this.
    pub fn stop(&mut self, failure: Failure) {
        // The first failure is told first.
        self.failure = Some(match self.failure.take() {
            Some(first) => first.and(failure),
            None => failure,
        });
    }

    /// Ends the printing. Fails if an item was not stored.
    pub fn finish(self) -> Result<(), Failure> {
        if self.output == Output::Json {
            let mut out = io::stdout().lock();
            writeln!(out, "{}", if self.answered == 0 { "{\n  \"results\": []\n}" } else { "\n  ]\n}" })?;
        }
        let Some(failure) = self.failure else { return Ok(()) };
        let others = self.refused.saturating_sub(1);
        let failure = match others {
            0 => failure,
            _ => failure.and(Failure::new(format!("{} items in all were refused", self.refused))),
        };
        Err(if self.answered > self.refused { failure.with(Status::Partly) } else { failure })
    }

    /// Columns in a row. The widths are fixed, because later rows are not known yet.
    fn row(&self, [line, item, outcome]: [&str; 3]) -> String {
        if self.lines {
            format!("{line:<8}  {item:<14}  {outcome}")
        } else {
            format!("{item:<14}  {outcome}")
        }
    }

    fn to_json(&self, answer: &Answer) -> anyhow::Result<Value> {
        let mut value = output::to_json("EnqueueResult", &output::enqueued(answer))?;
        if self.lines {
            value["line"] = (self.answered + 1).into();
        }
        Ok(value)
    }
}

fn cells(answer: &Answer) -> (String, String) {
    match answer {
        Ok(stored) => {
            let first = stored.first_enqueued_at.map(|at| Style::relative_to(None).time(at));
            let outcome = match (stored.duplicate, first) {
                (false, _) => "stored".to_owned(),
                (true, None) => "duplicate".to_owned(),
                (true, Some(first)) => format!("duplicate, first stored {first}"),
            };
            (stored.item_id.clone(), outcome)
        }
        Err(error) => ("-".to_owned(), output::visible(&error.to_string()).into_owned()),
    }
}
