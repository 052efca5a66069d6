//! One answer per member: a member that is refused before the engine sees it does not fail its siblings.

use forebay_types::Refusal;

/// The members of a call, sorted into those that go on and those that were refused.
pub struct Members<T> {
    /// What goes on to the engine, in the order of the call.
    pub good: Vec<T>,
    /// One a member of the call: why it was refused, or nothing if it goes on.
    refused: Vec<Option<Refusal>>,
}

impl<T> FromIterator<Result<T, Refusal>> for Members<T> {
    fn from_iter<I: IntoIterator<Item = Result<T, Refusal>>>(checked: I) -> Self {
        let mut members = Self { good: Vec::new(), refused: Vec::new() };
        for member in checked {
            match member {
                Ok(good) => {
                    members.good.push(good);
                    members.refused.push(None);
                }
                Err(refusal) => members.refused.push(Some(refusal)),
            }
        }
        members
    }
}

impl<T> Members<T> {
    /// Takes what goes on, and leaves what puts the engine's answers back into their places.
    pub fn split(self) -> (Vec<T>, Places) {
        (self.good, Places(self.refused))
    }
}

/// Where the engine's answers belong among all members of the call.
pub struct Places(Vec<Option<Refusal>>);

impl Places {
    /// The answers of all members. `list` is the name of the call's field. `None` if the engine answered
    /// another number of members than it was given.
    pub fn fill<A>(self, list: &str, answers: Vec<Result<A, Refusal>>) -> Option<Vec<Result<A, Refusal>>> {
        let mut answers = answers.into_iter();
        let mut all = Vec::with_capacity(self.0.len());
        for (index, refused) in self.0.into_iter().enumerate() {
            all.push(match refused {
                Some(refusal) => Err(refusal),
                None => answers.next()?.map_err(|refusal| at(list, index, refusal)),
            });
        }
        answers.next().is_none().then_some(all)
    }
}

/// The engine counts only the members that reached it: a path of its making gets the call's own index.
fn at(list: &str, index: usize, mut refusal: Refusal) -> Refusal {
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
    fn answers_find_their_places() {
        let checked = vec![Ok(1), Err(refusal("items[1].topic")), Ok(2), Ok(3)];
        let (good, places) = checked.into_iter().collect::<Members<_>>().split();
        assert_eq!(good, [1, 2, 3]);
        let answers = vec![Ok("a"), Err(refusal("items[1].shard")), Err(refusal("shard"))];
        let all = places.fill("items", answers).unwrap();
        let fields: Vec<_> =
            all.iter().map(|answer| answer.as_ref().map_err(|e| e.field.as_deref())).collect();
        assert_eq!(
            fields,
            [Ok(&"a"), Err(Some("items[1].topic")), Err(Some("items[2].shard")), Err(Some("items[3].shard"))]
        );
    }

    #[test]
    fn another_number_of_answers_is_noticed() {
        for answers in [vec![], vec![Ok(1), Ok(2)]] {
            let (_, places) = [Ok::<_, Refusal>(())].into_iter().collect::<Members<_>>().split();
            assert!(places.fill("items", answers).is_none());
        }
    }
}
