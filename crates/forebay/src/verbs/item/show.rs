//! How items are printed. Cells have no control characters, whatever others have written.

use std::fmt::Write as _;

use forebay_client::v1::{Item, ItemDeath, ItemFailure, ItemLease, ItemState};
use forebay_proto::time::from_timestamp;

use crate::output::{self, PayloadForm, Style};

/// The payload in a table. It says how much is missing.
pub fn payload(item: &Item, form: PayloadForm) -> String {
    let mut text = output::payload(&item.payload, form);
    if form != PayloadForm::None && (item.payload.len() as u64) < item.payload_size {
        // Writing to a String cannot fail.
        let _ = write!(text, "… ({} of {} B)", item.payload.len(), item.payload_size);
    }
    text
}

/// A state.
pub fn state(state: ItemState) -> String {
    output::word(state.as_str_name(), "ITEM_STATE_")
}

/// Details of the item's state that a table shows beside its name.
pub fn detail(item: &Item, style: &Style) -> String {
    let time = |at| style.optional_time(at);
    if !item.unreadable.is_empty() {
        return format!("can't be read: {}", item.unreadable);
    }
    match (item.state(), &item.lease, &item.death) {
        (_, Some(ItemLease { consumer, ends_at, .. }), _) if consumer.is_empty() => {
            format!("ends {}", time(*ends_at))
        }
        (_, Some(ItemLease { consumer, ends_at, .. }), _) => {
            format!("by {consumer}, ends {}", time(*ends_at))
        }
        (_, _, Some(ItemDeath { cause, reason, died_at, .. })) if reason.is_empty() => {
            format!("{cause} {}", time(*died_at))
        }
        (_, _, Some(ItemDeath { cause, reason, died_at, .. })) => {
            format!("{cause} {}: {reason}", time(*died_at))
        }
        (ItemState::Scheduled, ..) => format!("due {}", time(item.ready_at)),
        _ => format!("since {}", time(item.ready_at)),
    }
}

/// A failed delivery: how, when, at whom, and what that one said.
pub fn failure(failure: &ItemFailure, style: &Style) -> String {
    let mut text = format!("{} {}", failure.cause, style.optional_time(failure.ended_at));
    if let (Some(from), Some(to)) = (failure.leased_at, failure.ended_at) {
        // Writing to a String cannot fail.
        let _ = write!(text, " after {}", output::span(from_timestamp(to).since(from_timestamp(from))));
    }
    if !failure.consumer.is_empty() {
        let _ = write!(text, " by {}", failure.consumer);
    }
    if !failure.reason.is_empty() {
        let _ = write!(text, ": {}", failure.reason);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(payload: &[u8], payload_size: u64) -> Item {
        Item {
            state: ItemState::Leased.into(),
            payload: payload.to_vec().into(),
            payload_size,
            lease: Some(ItemLease { consumer: "worker".into(), ..Default::default() }),
            ..Default::default()
        }
    }

    #[test]
    fn a_payload_says_what_is_missing() {
        let item = item(b"a\x1b[2J", 9);
        assert_eq!(payload(&item, PayloadForm::Text), "a\\u{1b}[2J… (5 of 9 B)");
        assert_eq!(payload(&item, PayloadForm::Hex), "611b5b324a… (5 of 9 B)");
        assert_eq!(payload(&item, PayloadForm::None), "");
        assert_eq!(payload(&super::tests::item(b"\xff", 1), PayloadForm::Text), "base64:/w==");
    }

    #[test]
    fn a_failure_says_when_after_how_long_by_whom_and_why() {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let nacked = ItemFailure {
            attempt: 2,
            consumer: "worker-7".into(),
            leased_at: at(0),
            ended_at: at(31),
            cause: "nacked".into(),
            reason: "no such user".into(),
        };
        let style = Style::iso();
        let text = failure(&nacked, &style);
        assert_eq!(text, "nacked 1970-01-01T00:00:31.000000Z after 31s by worker-7: no such user");
        let (consumer, reason) = Default::default();
        let text = failure(&ItemFailure { consumer, reason, leased_at: None, ..nacked }, &style);
        assert_eq!(text, "nacked 1970-01-01T00:00:31.000000Z");
    }

    #[test]
    fn the_state_says_who_and_why() {
        assert_eq!(detail(&item(b"", 0), &Style::iso()), "by worker, ends -");
        let death = ItemDeath { cause: "nacked".into(), reason: "no".into(), ..Default::default() };
        let dead = Item { lease: None, death: Some(death), ..item(b"", 0) };
        assert_eq!(detail(&dead, &Style::iso()), "nacked -: no");
        let unreadable = Item { unreadable: "an item's attributes".into(), ..dead };
        assert_eq!(detail(&unreadable, &Style::iso()), "can't be read: an item's attributes");
    }
}
