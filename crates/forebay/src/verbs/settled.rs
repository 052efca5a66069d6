//! Prints the results of `ack` and `nack`, one line a receipt.

use forebay_client::{Error, NackOutcome};
use serde_json::Value;

use crate::{
    failure::{Failure, Status},
    output::{self, Cell, Column, Format, List, Row, Style, Tone},
};

/// Result of one receipt.
struct SettleOutcome {
    /// The receipt.
    receipt: String,
    /// The result.
    result: Result<NackOutcome, Error>,
}

impl Row for SettleOutcome {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("RECEIPT", |row, _| Cell::from(&row.receipt)),
        Column::new("OUTCOME", |row, style| outcome(&row.result, style, |done, _| said(*done))),
    ];

    fn name(&self) -> String {
        if self.result.is_ok() { self.receipt.clone() } else { String::new() }
    }

    fn json(&self) -> anyhow::Result<Value> {
        with_receipt(&self.receipt, output::to_json("SettleResult", &output::settled(&self.result))?)
    }
}

/// Prints the result of each receipt. Fails if one of them failed.
pub fn print(
    format: &Format,
    receipts: Vec<String>,
    results: Vec<Result<NackOutcome, Error>>,
) -> Result<(), Failure> {
    let each = receipts.into_iter().zip(results.clone());
    let rows: Vec<_> = each.map(|(receipt, result)| SettleOutcome { receipt, result }).collect();
    List { field: "results", rows: &rows, rest: Vec::new() }.print(format.output, &format.look)?;
    first_failure(results)
}

fn said(done: NackOutcome) -> String {
    let text = if done.delay_cut { "done, again earlier: the item expires" } else { "done" };
    text.to_owned()
}

/// A result with the receipt that it is for: the answer has only their order.
pub fn with_receipt(receipt: &str, mut result: Value) -> anyhow::Result<Value> {
    result["receipt"] = receipt.into();
    Ok(result)
}

/// The cell of a result.
pub fn outcome<T>(result: &Result<T, Error>, style: &Style, done: impl FnOnce(&T, &Style) -> String) -> Cell {
    match result {
        Ok(value) => Cell::toned(done(value, style), Tone::Good),
        Err(error) => Cell::toned(error.to_string(), Tone::Bad),
    }
}

/// The error of the first member that failed.
pub fn first_failure<T>(results: Vec<Result<T, Error>>) -> Result<(), Failure> {
    let some_done = results.iter().any(Result::is_ok);
    match results.into_iter().find_map(Result::err) {
        Some(error) if some_done => Err(Failure::from(error).with(Status::Partly)),
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
