//! Prints the results of `ack`, `nack` and `extend`, one line a receipt.

use forebay_client::Error;
use serde_json::{Value, json};

use crate::{
    failure::{Failure, Status},
    output::{self, Output},
};

/// Prints the result of each receipt. Fails if one of them failed.
pub fn print(output: Output, receipts: &[String], results: Vec<Result<(), Error>>) -> Result<(), Failure> {
    print_with(output, receipts, results, |()| json!({}), |()| "done".to_owned())
}

/// The same with what is said of a receipt that succeeded: fields of JSON, and a cell.
pub fn print_with<T>(
    output: Output,
    receipts: &[String],
    results: Vec<Result<T, Error>>,
    to_json: impl Fn(&T) -> Value,
    to_cell: impl Fn(&T) -> String,
) -> Result<(), Failure> {
    let each = receipts.iter().zip(&results);
    match output {
        Output::Json => {
            let results = each.map(|(receipt, result)| {
                let mut value = match result {
                    Ok(done) => to_json(done),
                    Err(error) => json!({ "error": output::refusal(error) }),
                };
                value["receipt"] = receipt.as_str().into();
                value
            });
            output::json(&json!({ "results": results.collect::<Vec<_>>() }))?;
        }
        Output::Table => {
            let rows = each.map(|(receipt, result)| {
                let outcome = match result {
                    Ok(done) => to_cell(done),
                    Err(error) => output::cell(error.to_string().as_bytes()),
                };
                [output::cell(receipt.as_bytes()), outcome]
            });
            output::table(["RECEIPT", "OUTCOME"], &rows.collect::<Vec<_>>())?;
        }
    }
    first_failure(results)
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
