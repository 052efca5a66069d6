//! Puts the context of a span on items, as far as there is room for it.

use std::collections::HashMap;

use forebay_proto::{
    trace_context::{PARENT, STATE, write_parent, write_state},
    v1,
};
use forebay_types::Limits;
use opentelemetry::trace::SpanContext;
use prost::Message as _;

/// Bytes that the encoding of an entry or a member has beside its content: tags and lengths.
const OVERHEAD_BYTES: usize = 8;
/// Bytes for what a call has beside its items: the namespace and the request id.
const CALL_BYTES: usize = 1 << 10;

/// Bytes that the headers of contexts may still add to a call. A call that is full without them must not be
/// refused for them: where they are left away, the server puts the context of the call on the item.
pub(super) struct Room(usize);

impl Room {
    /// Of a call with these items.
    pub(super) fn of_call(items: &[v1::EnqueueItem]) -> Self {
        let bytes: usize = items.iter().map(|item| item.encoded_len() + OVERHEAD_BYTES).sum();
        Self(Limits::default().request_bytes.saturating_sub(CALL_BYTES + bytes))
    }

    /// Of an item whose call is put together later, by its size with them.
    pub(super) fn of_item() -> Self {
        Self(usize::MAX)
    }

    fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// Whether an item names the span in which it was created. Then it keeps that, whatever it is.
pub(super) fn names_creation(item: &v1::EnqueueItem) -> bool {
    item.headers.contains_key(PARENT)
}

/// Has an item that names no span name this one. What does not fit among its headers is left away.
pub(super) fn put(item: &mut v1::EnqueueItem, context: &SpanContext, room: &mut Room) {
    // A state without a parent belongs to no span.
    item.headers.remove(STATE);
    let headers = &mut item.headers;
    if add(headers, PARENT, write_parent(context), room)
        && let Some(state) = write_state(context)
    {
        add(headers, STATE, state, room);
    }
}

/// Adds a header if it fits into what a server takes, unless it is configured otherwise.
fn add(headers: &mut HashMap<String, String>, name: &str, value: String, room: &mut Room) -> bool {
    let limits = Limits::default();
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let more = name.len() + value.len();
    let fits = headers.len() < limits.headers
        && bytes + more <= limits.header_bytes
        && room.take(more + OVERHEAD_BYTES);
    if fits {
        headers.insert(name.to_owned(), value);
    }
    fits
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{SpanId, TraceFlags, TraceId};

    use super::*;
    use crate::item::NewItem;

    fn context() -> SpanContext {
        let state = "a=1".parse().unwrap();
        SpanContext::new(TraceId::from(1), SpanId::from(2), TraceFlags::SAMPLED, false, state)
    }

    /// The names of the headers of an item that had these and got a context.
    fn named(headers: impl IntoIterator<Item = (String, String)>, room: &mut Room) -> Vec<String> {
        let mut item = NewItem::new("a", "1").into_proto();
        item.headers.extend(headers);
        put(&mut item, &context(), room);
        let mut names: Vec<_> = item.headers.into_keys().filter(|name| name.starts_with("trace")).collect();
        names.sort_unstable();
        names
    }

    fn headers(count: usize, bytes: usize) -> impl Iterator<Item = (String, String)> {
        // Names of three bytes.
        (0..count).map(move |number| (format!("h{number:02}"), "x".repeat(bytes / count - 3)))
    }

    #[test]
    fn a_context_is_put_on_an_item_as_far_as_its_headers_have_room() {
        let (parent, state) = (PARENT.len() + 55, STATE.len() + 3);
        let mut free = Room::of_item();
        assert_eq!(named(headers(14, 140), &mut free), [PARENT, STATE]);
        assert_eq!(named(headers(15, 150), &mut free), [PARENT]);
        assert_eq!(named(headers(16, 160), &mut free), Vec::<String>::new());
        assert_eq!(named(headers(1, 4_096 - parent - state), &mut free), [PARENT, STATE]);
        assert_eq!(named(headers(1, 4_096 - parent - state + 1), &mut free), [PARENT]);
        assert_eq!(named(headers(1, 4_096 - parent + 1), &mut free), Vec::<String>::new());
        let stale = [(STATE.to_owned(), "b=2".to_owned())];
        assert_eq!(named(headers(1, 4_096 - parent + 1).chain(stale), &mut free), Vec::<String>::new());
    }

    #[test]
    fn a_full_call_gets_no_larger() {
        let item = |bytes: usize| NewItem::new("a", vec![b'x'; bytes]).into_proto();
        let mut items: Vec<_> = (0..1_000).map(|_| item(4_100)).collect();
        let mut room = Room::of_call(&items);
        items.iter_mut().for_each(|item| put(item, &context(), &mut room));
        let named = items.iter().filter(|item| names_creation(item)).count();
        assert!((1..1_000).contains(&named), "{named}");
        let request = v1::EnqueueRequest {
            namespace: "x".repeat(200),
            request_id: "x".repeat(200),
            items,
            ..Default::default()
        };
        assert!(((4 << 20) - 20_000..=4 << 20).contains(&request.encoded_len()), "{}", request.encoded_len());
        assert_eq!(Room::of_call(&[item(5 << 20)]).0, 0);
    }
}
