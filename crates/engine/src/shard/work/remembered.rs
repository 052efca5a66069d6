//! The stored value of a dedupe key or a request id: the answer to repeat, and of which call or item.

use forebay_types::{Reason, Refusal, Seq};
use serde::{Deserialize, Serialize};

/// One member's remembered answer. Postcard writes it; variants and fields only grow.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Stored(u64),
    TooManyTopics(String),
    Invalid(String),
}

/// The answers that are remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RememberedAnswers {
    /// The answer of each member.
    pub answers: Vec<Result<Seq, Refusal>>,
    /// Under a request id, what the call stored, in short. Under a dedupe key, the hash over topic and key.
    /// `None`: the release before wrote it.
    pub of: Option<[u8; 16]>,
}

/// Behind the answers is what they are of. The release before reads no further than the answers.
pub(crate) fn encode<'a>(
    answers: impl Iterator<Item = Result<Seq, &'a Refusal>>,
    of: Option<[u8; 16]>,
) -> Vec<u8> {
    let answers: Vec<Answer> = answers
        .map(|answer| match answer {
            Ok(seq) => Answer::Stored(seq.0),
            Err(refusal) if refusal.reason == Reason::TooManyTopics => {
                Answer::TooManyTopics(refusal.message.clone())
            }
            Err(refusal) => Answer::Invalid(refusal.message.clone()),
        })
        .collect();
    // Writing plain values into a vector can't fail.
    let mut bytes = postcard::to_stdvec(&answers).unwrap_or_default();
    bytes.extend(of.into_iter().flatten());
    bytes
}

/// Reads the bytes that [`encode`] wrote. `None`: they were not written by this program.
pub(crate) fn decode(bytes: &[u8]) -> Option<RememberedAnswers> {
    let (answers, behind): (Vec<Answer>, _) = postcard::take_from_bytes(bytes).ok()?;
    let answers = answers.into_iter().map(|answer| match answer {
        Answer::Stored(seq) => Ok(Seq(seq)),
        Answer::TooManyTopics(message) => Err(Refusal::new(Reason::TooManyTopics, message)),
        Answer::Invalid(message) => Err(Refusal::new(Reason::InvalidField, message)),
    });
    Some(RememberedAnswers { answers: answers.collect(), of: behind.first_chunk().copied() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_found_again() {
        let full = Refusal::new(Reason::TooManyTopics, "full");
        let bytes = encode([Ok(Seq(700)), Err(&full)].into_iter(), Some([9; 16]));
        let answers = vec![Ok(Seq(700)), Err(full.clone())];
        assert_eq!(decode(&bytes), Some(RememberedAnswers { answers, of: Some([9; 16]) }));
    }

    /// As the release before wrote it, and as it reads what this one writes.
    #[test]
    fn the_release_before_reads_the_answers_alone() {
        let bare = postcard::to_stdvec(&vec![Answer::Stored(7)]).unwrap();
        assert_eq!(decode(&bare), Some(RememberedAnswers { answers: vec![Ok(Seq(7))], of: None }));
        let marked = encode([Ok(Seq(7))].into_iter(), Some([1; 16]));
        let answers: Vec<Answer> = postcard::from_bytes(&marked).unwrap();
        assert!(matches!(answers[..], [Answer::Stored(7)]));
        assert_eq!(decode(b"\xff"), None);
    }
}
