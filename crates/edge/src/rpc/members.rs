//! One answer per member: a member that is refused before it reaches the engine does not fail the others.

use forebay_types::{Reason, Refusal};

/// The members of a call, split into those for the engine and those that were refused.
pub struct Members<T> {
    /// The members for the engine, in the order of the call.
    accepted: Vec<T>,
    /// One entry a member of the call: why it was refused, or `None` if the engine gets it.
    refused: Vec<Option<Refusal>>,
}

impl<T> FromIterator<Result<T, Refusal>> for Members<T> {
    fn from_iter<I: IntoIterator<Item = Result<T, Refusal>>>(checked: I) -> Self {
        let mut members = Self { accepted: Vec::new(), refused: Vec::new() };
        for member in checked {
            match member {
                Ok(accepted) => {
                    members.accepted.push(accepted);
                    members.refused.push(None);
                }
                Err(refusal) => members.refused.push(Some(refusal)),
            }
        }
        members
    }
}

impl<T> Members<T> {
    /// The accepted members, and what merges the engine's answers with the refusals.
    pub fn split(self) -> (Vec<T>, MemberResults) {
        (self.accepted, MemberResults(self.refused))
    }
}

/// The refusals of a call's members, until the engine's answers fill the gaps.
pub struct MemberResults(Vec<Option<Refusal>>);

impl MemberResults {
    /// The answers of all members. `list` is the name of the call's field.
    ///
    /// The engine answers as many members as it was given. If it ever did not, the outcome of every member
    /// would be unknown.
    pub fn merge<A>(
        self,
        list: &str,
        answers: Vec<Result<A, Refusal>>,
    ) -> Result<Vec<Result<A, Refusal>>, Refusal> {
        let miscounted = "the engine returned a different number of results than it was given members";
        self.fill(list, answers).ok_or_else(|| Refusal::new(Reason::OutcomeUnknown, miscounted))
    }

    fn fill<A>(self, list: &str, answers: Vec<Result<A, Refusal>>) -> Option<Vec<Result<A, Refusal>>> {
        let mut answers = answers.into_iter();
        let mut all = Vec::with_capacity(self.0.len());
        for (index, refused) in self.0.into_iter().enumerate() {
            all.push(match refused {
                Some(refusal) => Err(refusal),
                None => answers.next()?.map_err(|refusal| with_index(list, index, refusal)),
            });
        }
        answers.next().is_none().then_some(all)
    }
}

/// The engine counts only the members that it was given, so a path from it gets the call's own index.
fn with_index(list: &str, index: usize, mut refusal: Refusal) -> Refusal {
    if let Some(path) = &refusal.field {
        let indexed = path.strip_prefix(list).is_some_and(|rest| rest.starts_with('['));
        let inner = match path.split_once("].") {
            Some((_, inner)) if indexed => inner,
            _ => path,
        };
        refusal.field = Some(format!("{list}[{index}].{inner}"));
    }
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(field: &str) -> Refusal {
        Refusal::field(field, "wrong")
    }

    #[test]
    fn answers_are_merged_with_refusals_in_order() {
        let checked = vec![Ok(1), Err(refusal("items[1].topic")), Ok(2), Ok(3)];
        let (accepted, results) = checked.into_iter().collect::<Members<_>>().split();
        assert_eq!(accepted, [1, 2, 3]);
        let answers = vec![Ok("a"), Err(refusal("items[1].shard")), Err(refusal("shard"))];
        let all = results.merge("items", answers).unwrap();
        let fields: Vec<_> =
            all.iter().map(|answer| answer.as_ref().map_err(|e| e.field.as_deref())).collect();
        assert_eq!(
            fields,
            [Ok(&"a"), Err(Some("items[1].topic")), Err(Some("items[2].shard")), Err(Some("items[3].shard"))]
        );
    }

    #[test]
    fn a_wrong_number_of_answers_is_an_unknown_outcome() {
        for answers in [vec![], vec![Ok(1), Ok(2)]] {
            let (_, results) = [Ok::<_, Refusal>(())].into_iter().collect::<Members<_>>().split();
            let refusal = results.merge("items", answers).unwrap_err();
            assert_eq!(refusal.reason, Reason::OutcomeUnknown);
        }
    }
}
