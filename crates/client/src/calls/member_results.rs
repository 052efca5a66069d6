//! One answer per member, collected over the attempts of a call.

use crate::{
    client::miscounted,
    error::Error,
    retry::{Attempts, Target},
};

/// The answer to one member.
pub(crate) type Member<R> = Result<R, Error>;

/// Results of each member, as far as they are known. `at` is a member's index in the call.
#[derive(Debug)]
pub(crate) struct MemberResults<R> {
    /// The final answers; `None` while a member is retried.
    answers: Vec<Option<Member<R>>>,
    /// An earlier attempt may have taken effect.
    unknown: Vec<bool>,
}

impl<R> MemberResults<R> {
    /// No member has an answer yet.
    pub(crate) fn new(members: usize) -> Self {
        Self { answers: (0..members).map(|_| None).collect(), unknown: vec![false; members] }
    }

    /// An attempt failed. It may have left the member's outcome unknown.
    pub(crate) fn attempt_failed(&mut self, at: usize, error: &Error) {
        self.unknown[at] |= error.maybe_done();
    }

    /// Whether an earlier attempt may have taken effect.
    pub(crate) fn is_unknown(&self, at: usize) -> bool {
        self.unknown[at]
    }

    /// Sets the member's final answer.
    pub(crate) fn set(&mut self, at: usize, answer: Member<R>) {
        self.answers[at] = Some(answer);
    }

    /// The member's last attempt failed. An earlier one may have taken effect.
    pub(crate) fn fail(&mut self, at: usize, error: Error) {
        let error = if self.unknown[at] { error.or_done() } else { error };
        self.answers[at] = Some(Err(error));
    }

    /// The last attempt's answers to these members are final.
    pub(crate) fn settle(&mut self, answers: Vec<(usize, Member<R>)>) {
        for (at, answer) in answers {
            match answer {
                Err(error) => self.fail(at, error),
                done => self.set(at, done),
            }
        }
    }

    /// The last attempt failed as a whole: the call fails, unless some members were answered before.
    pub(crate) fn fail_rest(mut self, error: &Error) -> Result<Vec<Member<R>>, Error> {
        if self.answers.iter().all(Option::is_none) {
            let unknown = self.unknown.contains(&true);
            return Err(if unknown { error.clone().or_done() } else { error.clone() });
        }
        for at in 0..self.answers.len() {
            if self.answers[at].is_none() {
                self.fail(at, error.clone());
            }
        }
        self.finish()
    }

    /// The answers, in the order of the members.
    pub(crate) fn finish(self) -> Result<Vec<Member<R>>, Error> {
        let members = self.answers.len();
        let answers: Vec<_> = self.answers.into_iter().flatten().collect();
        if answers.len() == members { Ok(answers) } else { Err(miscounted(members, answers.len())) }
    }
}

/// Sends `members` and retries those whose errors are transient.
///
/// `resolve` gets a final error with its member and whether an earlier attempt may have taken effect. It
/// returns a result if the error shows that it did.
pub(crate) async fn retry_members<M: Clone, R, F>(
    mut attempts: Attempts,
    members: Vec<M>,
    send: impl Fn(Vec<M>, Target) -> F,
    resolve: impl Fn(&M, bool, &Error) -> Option<R>,
) -> Result<Vec<Member<R>>, Error>
where
    F: Future<Output = Result<Vec<Member<R>>, Error>>,
{
    let mut results = MemberResults::new(members.len());
    let mut left: Vec<usize> = (0..members.len()).collect();
    while !left.is_empty() {
        let target = attempts.target()?;
        let answers = match send(left.iter().map(|&at| members[at].clone()).collect(), target).await {
            Ok(answers) if answers.len() == left.len() => answers,
            Ok(answers) => return Err(miscounted(left.len(), answers.len())),
            Err(error) => {
                left.iter().for_each(|&at| results.attempt_failed(at, &error));
                if attempts.wait_for_retry(&[&error]).await {
                    continue;
                }
                return results.fail_rest(&attempts.final_error(error));
            }
        };
        let mut failed = Vec::new();
        for (&at, answer) in left.iter().zip(answers) {
            match answer {
                Ok(done) => results.set(at, Ok(done)),
                Err(error) if error.is_transient() => {
                    results.attempt_failed(at, &error);
                    failed.push((at, error));
                }
                Err(error) => match resolve(&members[at], results.is_unknown(at), &error) {
                    Some(done) => results.set(at, Ok(done)),
                    None => results.set(at, Err(error)),
                },
            }
        }
        if failed.is_empty() {
            break;
        }
        let errors: Vec<_> = failed.iter().map(|(_, error)| error).collect();
        if !attempts.wait_for_retry(&errors).await {
            failed.into_iter().for_each(|(at, error)| results.fail(at, error));
            break;
        }
        left = failed.into_iter().map(|(at, _)| at).collect();
    }
    results.finish()
}
