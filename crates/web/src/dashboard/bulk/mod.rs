//! Changes of many items, as the pages and the forms of them have them: words, questions, and the same as a
//! command.

mod command;

use forebay_proto::v1::{Operation, OperationKind, OperationState};

pub use command::{command, word};

use super::texts::{count, counted};

/// Above so many items the topic's name has to be typed.
const UNTYPED_MAX: u64 = 1_000;
/// The actions that the page with the question knows, and what they do.
const ACTIONS: [(&str, OperationKind); 5] = [
    ("purge", OperationKind::Purge),
    ("redrive", OperationKind::Redrive),
    ("delete-dead", OperationKind::DeleteDead),
    ("reset-leases", OperationKind::ResetLeases),
    ("cancel", OperationKind::Cancel),
];

/// The kind of operation that an action of a page or a form begins.
pub(crate) fn kind_of(action: &str) -> Option<OperationKind> {
    ACTIONS.iter().find(|(name, _)| *name == action).map(|(_, kind)| *kind)
}

/// The action of a form.
pub(crate) fn action_of(kind: OperationKind) -> &'static str {
    ACTIONS.iter().find(|(_, of)| *of == kind).map_or("", |(name, _)| name)
}

/// Names a kind of operation in a few words.
pub(crate) fn kind_text(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Purge => "purge",
        OperationKind::Redrive => "redrive dead letters",
        OperationKind::DeleteDead => "delete dead letters",
        OperationKind::ResetLeases => "end leases",
        OperationKind::Cancel => "cancel items",
        OperationKind::Update => "change items",
        OperationKind::Unspecified => "unknown",
    }
}

/// The verb on the button that begins an operation. The objects follow it.
pub fn verb(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Redrive => "Redrive",
        OperationKind::ResetLeases => "End",
        OperationKind::Cancel => "Cancel",
        OperationKind::Update => "Change",
        OperationKind::Purge | OperationKind::DeleteDead | OperationKind::Unspecified => "Delete",
    }
}

/// The noun for the objects that an operation counts.
pub fn noun(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Redrive | OperationKind::DeleteDead => "dead letter",
        OperationKind::ResetLeases => "lease",
        _ => "item",
    }
}

/// Whether what it does can't be had back.
pub(crate) fn destroys(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::Purge | OperationKind::DeleteDead | OperationKind::Cancel)
}

/// How many, `≥` where not all could be counted.
pub(crate) fn how_many(kind: OperationKind, matched: u64, exact: bool) -> String {
    format!("{}{}", if exact { "" } else { "≥ " }, counted(matched, noun(kind)))
}

/// The consequence for the objects of an operation, in sentences.
pub(crate) fn consequence(operation: &Operation, matched: u64, exact: bool) -> String {
    let kind = operation.kind();
    let many = how_many(kind, matched, exact);
    let is_one = matched == 1;
    let are = if is_one { "is" } else { "are" };
    let they = if is_one { "It" } else { "They" };
    match kind {
        OperationKind::Purge => {
            let leased = match operation.leased {
                true => "Leased items are among them, and their receipts are over then.",
                false => "Leased items stay.",
            };
            format!("{many} {are} deleted. {they} can't be had back. {leased}")
        }
        OperationKind::DeleteDead => format!("{many} {are} deleted. {they} can't be had back."),
        OperationKind::Cancel => format!(
            "{many} {are} deleted, whether ready, scheduled, leased or dead. {they} can't be had back. The \
             receipts of leased ones are over then."
        ),
        OperationKind::Redrive => {
            let become_items = if is_one { "becomes an item" } else { "become items" };
            let to = &operation.to_topic;
            let place = if to.is_empty() { String::new() } else { format!(" of the topic {to}") };
            format!("{many} {become_items}{place} again, without failures.")
        }
        OperationKind::ResetLeases => {
            format!("{many} {are} ended. The items are delivered again, and no failure counts.")
        }
        OperationKind::Update | OperationKind::Unspecified => format!("{many} {are} changed."),
    }
}

/// Tells how many objects a filter has chosen, and of how many; and whether these are all there are. `None`:
/// there is no filter, or the numbers are not known.
pub(crate) fn chosen_of(operation: &Operation) -> Option<(String, bool)> {
    let figures = operation.figures.unwrap_or_default();
    let is_known = figures.scanned > 0 && figures.scanned >= figures.matched;
    let all = figures.matched == figures.scanned;
    let more = if all { ", so it passes all that there are." } else { "." };
    let text = format!("{} of {} pass the filter{more}", count(figures.matched), count(figures.scanned));
    (is_known && !operation.filter.is_empty()).then_some((text, all))
}

/// Whether the topic's name has to be typed: it is about a whole topic, about many items, or about nobody
/// knows how many.
pub(crate) fn must_type(filter: &str, expected: Option<u64>) -> bool {
    filter.trim().is_empty() || expected.is_none_or(|expected| expected > UNTYPED_MAX)
}

/// The word for a state of an operation, and its class.
pub(crate) fn state_word(state: OperationState) -> (&'static str, &'static str) {
    match state {
        OperationState::Pending => ("none", "waits for its turn"),
        OperationState::Running => ("good", "running"),
        OperationState::Cancelling => ("warn", "is being stopped"),
        OperationState::Succeeded => ("good", "done"),
        OperationState::Cancelled => ("warn", "stopped"),
        OperationState::Failed => ("bad", "failed"),
        OperationState::Unspecified => ("none", "unknown"),
    }
}

/// Whether it may still be stopped, and have another rate.
pub fn goes_on(state: OperationState) -> bool {
    matches!(state, OperationState::Pending | OperationState::Running)
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::OperationFigures;

    use super::*;

    #[test]
    fn the_consequence_is_said_before_it_happens() {
        let of = |kind: OperationKind| Operation { kind: kind.into(), ..Operation::default() };
        let purge = of(OperationKind::Purge);
        assert_eq!(
            consequence(&purge, 48_112, true),
            "48,112 items are deleted. They can't be had back. Leased items stay."
        );
        let leased = Operation { leased: true, ..purge };
        assert!(consequence(&leased, 2, true).contains("receipts are over"));
        let dead = of(OperationKind::DeleteDead);
        assert_eq!(consequence(&dead, 1, true), "1 dead letter is deleted. It can't be had back.");
        assert!(consequence(&dead, 1, false).starts_with("≥ 1 dead letter is deleted"));
        let elsewhere = Operation { to_topic: "slow".to_owned(), ..of(OperationKind::Redrive) };
        assert_eq!(
            consequence(&elsewhere, 3, true),
            "3 dead letters become items of the topic slow again, without failures."
        );
        let kinds = ACTIONS.map(|(_, kind)| (destroys(kind), consequence(&of(kind), 2, true)));
        assert!(kinds.iter().all(|(destroys, text)| *destroys == text.contains("can't be had back")));
    }

    #[test]
    fn a_name_is_typed_for_a_whole_topic_and_for_many_items() {
        assert!(must_type(" ", Some(1)), "a whole topic");
        assert!(must_type("age > 1h", Some(1_001)));
        assert!(must_type("age > 1h", None), "not all were counted");
        assert!(!must_type("age > 1h", Some(1_000)));
    }

    #[test]
    fn it_is_said_what_a_filter_passes() {
        let of = |filter: &str, scanned, matched| {
            let figures = Some(OperationFigures { scanned, matched, ..OperationFigures::default() });
            chosen_of(&Operation { filter: filter.to_owned(), figures, ..Operation::default() })
        };
        assert_eq!(of("age > 1h", 1_200, 7), Some(("7 of 1,200 pass the filter.".to_owned(), false)));
        let (text, all) = of("NOT age > 1h", 7, 7).unwrap();
        assert!(all && text == "7 of 7 pass the filter, so it passes all that there are.", "{text}");
        assert_eq!((of("", 7, 7), of("age > 1h", 0, 7), of("age > 1h", 0, 0)), (None, None, None));
    }

    #[test]
    fn an_action_and_its_kind_name_each_other() {
        for (action, kind) in ACTIONS {
            assert_eq!((kind_of(action), action_of(kind)), (Some(kind), action));
        }
        assert_eq!((kind_of("update"), action_of(OperationKind::Update)), (None, ""));
    }
}
