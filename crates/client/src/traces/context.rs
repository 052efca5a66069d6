//! How spans are named to others: the headers `traceparent` and `tracestate` of the W3C.

use std::collections::HashMap;

use opentelemetry::{
    Context,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use tonic::metadata::MetadataMap;

/// Names a span.
pub(super) const PARENT: &str = "traceparent";
/// State that tools want to know of it again.
pub(super) const STATE: &str = "tracestate";
/// The longest state that is passed on, as on the server. A longer one is left away.
const STATE_BYTES_MAX: usize = 512;

/// Has a call carry the current span: that of its operation, or whatever its caller has begun.
pub(crate) fn carry(metadata: &mut MetadataMap) {
    let current = Context::map_current(|current| {
        let span = current.span();
        let context = span.span_context();
        context.is_valid().then(|| (parent(context), state(context)))
    });
    let Some((parent, state)) = current else { return };
    // Both are text of printable ASCII.
    if let Ok(parent) = parent.parse() {
        metadata.insert(PARENT, parent);
    }
    if let Some(Ok(state)) = state.map(|state| state.parse()) {
        metadata.insert(STATE, state);
    }
}

/// The span in which an item was created, as its headers name it. `None`: they name none, or not validly.
pub(super) fn of_item(headers: &HashMap<String, String>) -> Option<SpanContext> {
    let parent = parse(headers.get(PARENT)?)?;
    let state = headers.get(STATE).filter(|state| state.len() <= STATE_BYTES_MAX);
    let state = state.and_then(|state| state.parse().ok()).unwrap_or_default();
    Some(SpanContext::new(parent.trace_id(), parent.span_id(), parent.trace_flags(), true, state))
}

/// The `traceparent` of a span.
pub(super) fn parent(context: &SpanContext) -> String {
    let flags = context.trace_flags() & TraceFlags::SAMPLED;
    format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id())
}

/// The `tracestate` of a span, if it has one that may be passed on.
pub(super) fn state(context: &SpanContext) -> Option<String> {
    let state = context.trace_state();
    let state = (*state != TraceState::NONE).then(|| state.header())?;
    (!state.is_empty() && state.len() <= STATE_BYTES_MAX).then_some(state)
}

/// Reads a `traceparent`.
fn parse(text: &str) -> Option<SpanContext> {
    let mut parts = text.splitn(5, '-');
    let mut hex = |length: usize| {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        parts.next().filter(|part| part.len() == length && part.bytes().all(is_hex))
    };
    let (version, trace, span, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
    // Later versions may have more parts, and these four as well.
    if version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let context = SpanContext::new(trace, span, flags, true, TraceState::NONE);
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(parent: &str, state: &str) -> Option<SpanContext> {
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        of_item(&[(PARENT, parent), (STATE, state)].map(pair).into())
    }

    #[test]
    fn headers_name_the_span_that_they_were_written_for() {
        let context = of(GOOD, "a=1,b=2").unwrap();
        assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id().to_string(), "00f067aa0ba902b7");
        assert!(context.is_sampled() && context.is_remote());
        assert_eq!((parent(&context), state(&context)), (GOOD.to_owned(), Some("a=1,b=2".to_owned())));
        let unsampled = GOOD.replace("-01", "-00");
        assert_eq!(parent(&of(&unsampled, "").unwrap()), unsampled);
        let later = format!("{}-and-more", GOOD.replacen("00", "cc", 1));
        assert_eq!(parent(&of(&later, "").unwrap()), GOOD);
        assert_eq!(of_item(&HashMap::new()), None);
    }

    #[test]
    fn what_names_no_span_is_ignored() {
        let zeros = |from: &str| GOOD.replace(from, &"0".repeat(from.len()));
        for wrong in [
            "".to_owned(),
            GOOD[..54].to_owned(),
            format!("{GOOD}-more"),
            GOOD.to_uppercase(),
            GOOD.replacen("00", "ff", 1),
            GOOD.replacen("4b", "+b", 1),
            zeros("4bf92f3577b34da6a3ce929d0e0e4736"),
            zeros("00f067aa0ba902b7"),
        ] {
            assert_eq!(of(&wrong, "a=1"), None, "{wrong}");
        }
    }

    #[test]
    fn a_state_is_passed_on_up_to_512_bytes() {
        let with = |bytes: usize| {
            let text = format!("a={}", "x".repeat(bytes - 2));
            (of(GOOD, &text).unwrap(), text)
        };
        let (context, text) = with(200);
        assert_eq!(state(&context), Some(text));
        assert_eq!(state(&with(513).0), None, "it is not read");
        let pairs = ["a", "b", "c"].map(|key| (key, "x".repeat(200)));
        let long = TraceState::from_key_value(pairs).unwrap();
        let context = SpanContext::new(TraceId::from(1), SpanId::from(2), TraceFlags::SAMPLED, false, long);
        assert_eq!(state(&context), None, "it is not written");
        assert_eq!(state(&of(GOOD, "no state").unwrap()), None);
    }
}
