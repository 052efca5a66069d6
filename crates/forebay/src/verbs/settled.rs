//! Prints the results of `ack` and `nack`, one line a receipt.

use forebay_client::Error;
use serde_json::{Value, json};

use crate::{
    failure::Failure,
    output::{self, Output},
};

/// Prints the result of each receipt. Fails if one of them failed.
pub fn print(output: Output, receipts: &[String], results: Vec<Result<(), Error>>) -> Result<(), Failure> {
    match output {
        Output::Json => {
            let to_json = |(receipt, result): (&String, &Result<(), Error>)| match result {
                Ok(()) => json!({ "receipt": receipt }),
                Err(error) => json!({ "receipt": receipt, "error": output::refusal(error) }),
            };
            let results: Vec<Value> = receipts.iter().zip(&results).map(to_json).collect();
            output::json(&json!({ "results": results }))?;
        }
        Output::Table => {
            let to_row = |(receipt, result): (&String, &Result<(), Error>)| {
                let outcome = match result {
                    Ok(()) => "done".to_owned(),
                    Err(error) => output::cell(error.to_string().as_bytes()),
                };
                [output::cell(receipt.as_bytes()), outcome]
            };
            let rows: Vec<_> = receipts.iter().zip(&results).map(to_row).collect();
            output::table(["RECEIPT", "OUTCOME"], &rows)?;
        }
    }
    first_failure(results)
}

/// The error of the first member that failed.
pub fn first_failure(results: Vec<Result<(), Error>>) -> Result<(), Failure> {
    match results.into_iter().find_map(Result::err) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
