//! The trace in which an item was created: it stays with the item as two of its headers, so that a consumer
//! finds it, whenever and wherever that is.

use std::collections::HashMap;

use forebay_proto::trace_context::{PARENT, STATE, read_parent, read_state, write_parent};
use forebay_types::Limits;
use tonic::metadata::MetadataMap;

use super::context::of_headers;

/// The trace of a call, for items that name none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The `traceparent`.
    parent: String,
    /// The `tracestate`. It may be empty.
    state: String,
}

impl Origin {
    /// The trace that a call names.
    pub fn of_call(metadata: &MetadataMap) -> Option<Self> {
        let caller = of_headers(metadata.as_ref())?;
        Some(Self { parent: write_parent(&caller), state: caller.trace_state().header() })
    }
}

/// Sees to it that the headers of an item name the trace in which it was created: their own, else that of the
/// call. What names no trace is dropped, and what does not fit among the headers is left away.
pub fn name_origin(headers: &mut HashMap<String, String>, origin: Option<&Origin>, limits: &Limits) {
    if headers.get(PARENT).is_some_and(|parent| read_parent(parent).is_some()) {
        if headers.get(STATE).is_some_and(|state| read_state(state).is_none()) {
            headers.remove(STATE);
        }
        return;
    }
    headers.remove(PARENT);
    headers.remove(STATE);
    let Some(Origin { parent, state }) = origin else { return };
    let mut add = |name: &str, value: &str| {
        let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let fits = headers.len() < limits.headers && bytes + name.len() + value.len() <= limits.header_bytes;
        if fits {
            headers.insert(name.to_owned(), value.to_owned());
        }
        fits
    };
    if add(PARENT, parent) && !state.is_empty() {
        add(STATE, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    const CALLS: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn origin() -> Option<Origin> {
        let mut metadata = MetadataMap::new();
        metadata.insert(PARENT, CALLS.parse().unwrap());
        metadata.insert(STATE, "a=1".parse().unwrap());
        Origin::of_call(&metadata)
    }

    fn headers(list: &[(&str, &str)]) -> HashMap<String, String> {
        list.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[track_caller]
    fn becomes(given: &[(&str, &str)], origin: Option<&Origin>, expected: &[(&str, &str)]) {
        let mut item = headers(given);
        name_origin(&mut item, origin, &Limits::default());
        assert_eq!(item, headers(expected));
    }

    #[test]
    fn an_item_names_its_own_trace_else_that_of_its_call() {
        let call = origin();
        let calls = [(PARENT, CALLS), (STATE, "a=1"), ("h", "1")];
        becomes(&[("h", "1")], call.as_ref(), &calls);
        becomes(&[("h", "1")], None, &[("h", "1")]);
        let own = [(PARENT, OWN), (STATE, "b=2")];
        becomes(&own, call.as_ref(), &own);
        becomes(&own, None, &own);
        becomes(&own[..1], call.as_ref(), &own[..1]);
    }

    #[test]
    fn what_names_no_trace_is_dropped() {
        let call = origin();
        for wrong in [[(PARENT, "00-1"), (STATE, "b=2")], [(PARENT, ""), ("tracestate", "x")]] {
            becomes(&wrong, None, &[]);
            becomes(&wrong, call.as_ref(), &[(PARENT, CALLS), (STATE, "a=1")]);
        }
        becomes(&[(STATE, "b=2")], None, &[]);
        let long = format!("a={}", "x".repeat(511));
        becomes(&[(PARENT, OWN), (STATE, &long)], None, &[(PARENT, OWN)]);
        assert_eq!(Origin::of_call(&MetadataMap::new()), None);
    }

    #[test]
    fn what_does_not_fit_among_the_headers_is_left_away() {
        let call = origin();
        let left = |headers: usize, header_bytes: usize| {
            let mut item = self::headers(&[("h", "1")]);
            let limits = Limits { headers, header_bytes, ..Limits::default() };
            name_origin(&mut item, call.as_ref(), &limits);
            item.len()
        };
        let (parent, state) = (PARENT.len() + CALLS.len(), STATE.len() + 3);
        assert_eq!([left(1, 4_096), left(2, 4_096), left(3, 4_096)], [1, 2, 3]);
        assert_eq!([left(16, 2 + parent - 1), left(16, 2 + parent), left(16, 2 + parent + state)], [1, 2, 3]);
        assert_eq!(left(16, 2 + parent + state - 1), 2);
    }
}
