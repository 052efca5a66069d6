//! What a dedupe key or a request id remembers: the answer to repeat.

use forebay_types::{Reason, Refusal, Seq};
use serde::{Deserialize, Serialize};

use crate::shard::in_flight::StoredItem;

/// One member's remembered answer. Postcard writes it; variants and fields only grow.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Stored(u64),
    TooManyTopics(String),
    Invalid(String),
}

pub(crate) fn encode(results: &[Result<StoredItem, Refusal>]) -> Vec<u8> {
    let answers: Vec<Answer> = results
        .iter()
        .map(|result| match result {
            Ok(stored) => Answer::Stored(stored.key.seq.0),
            Err(refusal) if refusal.reason == Reason::TooManyTopics => {
                Answer::TooManyTopics(refusal.message.clone())
            }
            Err(refusal) => Answer::Invalid(refusal.message.clone()),
        })
        .collect();
    // Writing plain values into a vector can't fail.
    postcard::to_stdvec(&answers).unwrap_or_default()
}

/// What [`encode`] wrote. `None`: it was not written by this program.
pub(crate) fn decode(answer: &[u8]) -> Option<Vec<Result<Seq, Refusal>>> {
    let answers: Vec<Answer> = postcard::from_bytes(answer).ok()?;
    let results = answers.into_iter().map(|answer| match answer {
        Answer::Stored(seq) => Ok(Seq(seq)),
        Answer::TooManyTopics(message) => Err(Refusal::new(Reason::TooManyTopics, message)),
        Answer::Invalid(message) => Err(Refusal::new(Reason::InvalidField, message)),
    });
    Some(results.collect())
}
