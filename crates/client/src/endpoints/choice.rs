//! Which server the next attempt goes to.

use std::cmp::Reverse;

use tokio::time::Instant;

/// Facts about a server that the choice knows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Candidate {
    /// The call would rather go there than elsewhere.
    pub(super) preferred: bool,
    /// It is called only if no other server works that this round has not been to, or if it is preferred.
    pub(super) spare: bool,
    /// The call has been there in this round. A round takes a call to each server once.
    pub(super) tried: bool,
    /// It failed, and is avoided until then.
    pub(super) avoided_until: Option<Instant>,
}

/// The chosen server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    /// Which of the candidates.
    pub(super) index: usize,
    /// It works as far as is known, and was not tried yet: a retry need not wait.
    pub(super) fresh: bool,
}

/// How good a candidate is; the least is the best.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It works, as far as is known.
    Works {
        /// Whether this round has been there.
        tried: bool,
        /// Preferred ones come first.
        preferred: Reverse<bool>,
    },
    /// It is avoided.
    Avoided {
        /// Whether this round has been there.
        tried: bool,
        /// The one that may be tried again first comes first.
        until: Instant,
    },
}

/// Chooses one of the candidates. `turn` grows with each choice, so that equal ones have their turns.
/// `None`: there is no candidate.
pub(super) fn choose(candidates: &[Candidate], turn: usize) -> Option<Choice> {
    let use_spares = !candidates.iter().any(|one| !one.spare && one.avoided_until.is_none() && !one.tried);
    let eligible = || {
        let indexed = candidates.iter().enumerate();
        indexed.filter(|(_, one)| !one.spare || one.preferred || use_spares)
    };
    let best = eligible().map(|(_, one)| rank(one)).min()?;
    let equal: Vec<_> = eligible().filter(|(_, one)| rank(one) == best).collect();
    let (index, one) = equal[turn % equal.len()];
    Some(Choice { index, fresh: one.avoided_until.is_none() && !one.tried })
}

fn rank(one: &Candidate) -> Rank {
    match one.avoided_until {
        None => Rank::Works { tried: one.tried, preferred: Reverse(one.preferred) },
        Some(until) => Rank::Avoided { tried: one.tried, until },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NEW: Candidate = Candidate { preferred: false, spare: false, tried: false, avoided_until: None };
    const TRIED: Candidate = Candidate { tried: true, ..NEW };
    const PREFERRED: Candidate = Candidate { preferred: true, ..NEW };
    const SPARE: Candidate = Candidate { spare: true, ..NEW };

    fn avoided(ms: u64) -> Candidate {
        static NOW: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        Candidate { avoided_until: Some(*NOW + Duration::from_millis(ms)), ..NEW }
    }

    fn fresh(index: usize) -> Option<Choice> {
        Some(Choice { index, fresh: true })
    }

    fn last_resort(index: usize) -> Option<Choice> {
        Some(Choice { index, fresh: false })
    }

    #[test]
    fn calls_go_to_each_in_turn() {
        let chosen: Vec<_> = (0..5).map(|turn| choose(&[NEW; 3], turn).unwrap().index).collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1]);
        let chosen: Vec<_> =
            (0..4).map(|turn| choose(&[NEW, avoided(1), NEW], turn).unwrap().index).collect();
        assert_eq!(chosen, [0, 2, 0, 2], "those that work share the turn of one that is avoided");
        assert_eq!(choose(&[], 1), None);
    }

    #[test]
    fn a_preferred_one_comes_first_while_it_works_and_once_a_round() {
        assert_eq!(choose(&[NEW, NEW, PREFERRED], 0), fresh(2));
        assert_eq!(choose(&[NEW, NEW, Candidate { tried: true, ..PREFERRED }], 0), fresh(0));
        assert_eq!(choose(&[NEW, NEW, Candidate { preferred: true, ..avoided(1) }], 0), fresh(0));
        assert_eq!(choose(&[TRIED, Candidate { tried: true, ..PREFERRED }], 0), last_resort(1));
    }

    #[test]
    fn one_that_works_is_tried_again_before_one_that_is_avoided() {
        assert_eq!(choose(&[avoided(1), TRIED], 0), last_resort(1));
    }

    #[test]
    fn of_those_that_are_avoided_each_is_tried_once_and_the_soonest_first() {
        assert_eq!(choose(&[avoided(3), avoided(2)], 0), last_resort(1));
        assert_eq!(choose(&[avoided(3), Candidate { tried: true, ..avoided(2) }], 0), last_resort(0));
    }

    #[test]
    fn a_spare_is_called_if_no_other_is_left_or_if_it_is_preferred() {
        assert_eq!(choose(&[SPARE, NEW], 0), fresh(1));
        assert_eq!(choose(&[SPARE, TRIED], 0), fresh(0), "it may know of a node that was not learnt");
        assert_eq!(choose(&[Candidate { tried: true, ..SPARE }, TRIED], 0), last_resort(0));
        assert_eq!(choose(&[SPARE, avoided(1)], 1), fresh(0));
        assert_eq!(choose(&[Candidate { preferred: true, ..SPARE }, NEW], 1), fresh(0));
    }
}
