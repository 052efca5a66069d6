//! One answer per member, gathered over the attempts of a call.

use crate::{Client, Error, client::miscounted, retry::Attempts};

/// The answer to one member.
pub(crate) type Member<R> = Result<R, Error>;

/// What is known of each member so far.
#[derive(Debug)]
pub(crate) struct Tally<R> {
    answers: Vec<Option<Member<R>>>,
    unknown: Vec<bool>,
}

impl<R> Tally<R> {
    /// Nothing is known of `members` members.
    pub(crate) fn new(members: usize) -> Self {
        Self { answers: (0..members).map(|_| None).collect(), unknown: vec![false; members] }
    }

    /// An attempt left it open whether the member was done.
    pub(crate) fn leave_open(&mut self, at: usize, error: &Error) {
        self.unknown[at] |= error.maybe_done();
    }

    /// Whether some attempt left it open.
    pub(crate) fn is_open(&self, at: usize) -> bool {
        self.unknown[at]
    }

    /// The member's last answer.
    pub(crate) fn settle(&mut self, at: usize, answer: Member<R>) {
        self.answers[at] = Some(answer);
    }

    /// The member failed for good; an earlier attempt may have done it none the less.
    pub(crate) fn fail(&mut self, at: usize, error: Error) {
        let error = if self.unknown[at] { error.or_done() } else { error };
        self.answers[at] = Some(Err(error));
    }

    /// The whole call failed for good: that is its answer, unless members were answered before.
    pub(crate) fn fail_rest(mut self, error: &Error) -> Result<Vec<Member<R>>, Error> {
        if self.answers.iter().all(Option::is_none) {
            let open = self.unknown.contains(&true);
            return Err(if open { error.clone().or_done() } else { error.clone() });
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

/// Sends `members` and repeats those that failed for a while. `judge` sees a final failure together with
/// the member and whether an earlier attempt may have done it, and may call it done.
pub(crate) async fn repeat_members<M: Clone, R, F>(
    client: &Client,
    mut attempts: Attempts,
    members: Vec<M>,
    send: impl Fn(Vec<M>, tokio::time::Instant) -> F,
    judge: impl Fn(&M, bool, &Error) -> Option<R>,
) -> Result<Vec<Member<R>>, Error>
where
    F: Future<Output = Result<Vec<Member<R>>, Error>>,
{
    let mut tally = Tally::new(members.len());
    let mut left: Vec<usize> = (0..members.len()).collect();
    while !left.is_empty() {
        let answers = match send(left.iter().map(|&at| members[at].clone()).collect(), attempts.until()).await
        {
            Ok(answers) if answers.len() == left.len() => answers,
            Ok(answers) => return Err(miscounted(left.len(), answers.len())),
            Err(error) => {
                left.iter().for_each(|&at| tally.leave_open(at, &error));
                if attempts.again(&error, &client.dice).await {
                    continue;
                }
                return tally.fail_rest(&error);
            }
        };
        let mut failed = Vec::new();
        for (&at, answer) in left.iter().zip(answers) {
            match answer {
                Ok(done) => tally.settle(at, Ok(done)),
                Err(error) if error.is_transient() => {
                    tally.leave_open(at, &error);
                    failed.push((at, error));
                }
                Err(error) => match judge(&members[at], tally.is_open(at), &error) {
                    Some(done) => tally.settle(at, Ok(done)),
                    None => tally.settle(at, Err(error)),
                },
            }
        }
        let Some(longest) = latest(failed.iter().map(|(_, error)| error)).cloned() else { break };
        if !attempts.again(&longest, &client.dice).await {
            failed.into_iter().for_each(|(at, error)| tally.fail(at, error));
            break;
        }
        left = failed.into_iter().map(|(at, _)| at).collect();
    }
    tally.finish()
}

/// The error whose server asks for the longest pause.
pub(crate) fn latest<'a>(errors: impl Iterator<Item = &'a Error>) -> Option<&'a Error> {
    errors.max_by_key(|error| error.retry_after())
}
