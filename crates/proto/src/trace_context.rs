//! How calls and items name spans: the headers `traceparent` and `tracestate` of the W3C.

use forebay_types::TRACE_HEADERS;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use tonic::metadata::MetadataMap;

/// Names a span.
pub const PARENT: &str = TRACE_HEADERS[0];
/// State that tools want to know of it again.
pub const STATE: &str = TRACE_HEADERS[1];
/// The longest state that is passed on. A longer one is left away, as the recommendation allows.
const STATE_BYTES_MAX: usize = 512;

/// Has a call name a span.
pub fn carry(context: &SpanContext, metadata: &mut MetadataMap) {
    // Both are text of printable ASCII.
    if let Ok(parent) = write_parent(context).parse() {
        metadata.insert(PARENT, parent);
    }
    if let Some(Ok(state)) = write_state(context).map(|state| state.parse()) {
        metadata.insert(STATE, state);
    }
}

/// The span that both headers name. `None`: the first names none, or not validly.
pub fn read(parent: &str, state: Option<&str>) -> Option<SpanContext> {
    let parent = read_parent(parent)?;
    let state = state.and_then(read_state).unwrap_or_default();
    let (trace, span, flags) = (parent.trace_id(), parent.span_id(), parent.trace_flags());
    Some(SpanContext::new(trace, span, flags, true, state))
}

/// Reads a `traceparent`.
pub fn read_parent(text: &str) -> Option<SpanContext> {
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

/// Reads a `tracestate`.
pub fn read_state(text: &str) -> Option<TraceState> {
    text.parse().ok().filter(|_| text.len() <= STATE_BYTES_MAX)
}

/// The `traceparent` of a span.
pub fn write_parent(context: &SpanContext) -> String {
    let flags = context.trace_flags() & TraceFlags::SAMPLED;
    format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id())
}

/// The `tracestate` of a span, if it has one that may be passed on.
pub fn write_state(context: &SpanContext) -> Option<String> {
    let state = context.trace_state();
    let state = (*state != TraceState::NONE).then(|| state.header())?;
    (!state.is_empty() && state.len() <= STATE_BYTES_MAX).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn headers_name_the_span_that_they_were_written_for() {
        let context = read(GOOD, Some("a=1,b=2")).unwrap();
        assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id().to_string(), "00f067aa0ba902b7");
        assert!(context.is_sampled() && context.is_remote());
        let written = (write_parent(&context), write_state(&context));
        assert_eq!(written, (GOOD.to_owned(), Some("a=1,b=2".to_owned())));
        let unsampled = GOOD.replace("-01", "-00");
        assert_eq!(write_parent(&read(&unsampled, None).unwrap()), unsampled);
        assert!(!read_parent(&GOOD.replace("-01", "-02")).unwrap().is_sampled());
        let later = format!("{}-and-more", GOOD.replacen("00", "cc", 1));
        assert_eq!(write_parent(&read(&later, None).unwrap()), GOOD);
    }

    #[test]
    fn text_that_names_no_span_is_ignored() {
        let zeros = |from: &str| GOOD.replace(from, &"0".repeat(from.len()));
        for wrong in [
            "".to_owned(),
            GOOD[..54].to_owned(),
            format!("{GOOD}0"),
            format!("{GOOD}-more"),
            format!(" {GOOD}x"),
            GOOD.to_uppercase(),
            GOOD.replacen("00", "ff", 1),
            GOOD.replacen("4b", "+b", 1),
            zeros("4bf92f3577b34da6a3ce929d0e0e4736"),
            zeros("00f067aa0ba902b7"),
        ] {
            assert_eq!(read(&wrong, Some("a=1")), None, "{wrong}");
        }
    }

    #[test]
    fn a_state_is_passed_on_up_to_512_bytes() {
        let with = |bytes: usize| {
            let text = format!("a={}", "x".repeat(bytes - 2));
            (read(GOOD, Some(&text)).unwrap(), text)
        };
        let (context, text) = with(200);
        assert_eq!(write_state(&context), Some(text));
        assert_eq!(write_state(&with(513).0), None, "it is not read");
        let pairs = ["a", "b", "c"].map(|key| (key, "x".repeat(200)));
        let long = TraceState::from_key_value(pairs).unwrap();
        let context = SpanContext::new(TraceId::from(1), SpanId::from(2), TraceFlags::SAMPLED, false, long);
        assert_eq!(write_state(&context), None, "it is not written");
        assert_eq!(write_state(&read(GOOD, Some("no state")).unwrap()), None);
    }
}
