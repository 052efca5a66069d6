//! Context that calls carry of their trace: the headers `traceparent` and `tracestate` of the W3C.

use forebay_types::TRACE_HEADERS;
use http::HeaderMap;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// Names the caller's span.
pub const PARENT: &str = TRACE_HEADERS[0];
/// State that the caller's tools want to know again.
pub const STATE: &str = TRACE_HEADERS[1];
/// The longest state that is passed on. A longer one is left away, as the recommendation allows.
const STATE_BYTES_MAX: usize = 512;

/// The caller's span, as the headers of a call name it. `None`: they name none, or not in one valid header.
pub fn of_headers(headers: &HeaderMap) -> Option<SpanContext> {
    let mut parents = headers.get_all(PARENT).iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    let parent = parse(parent.to_str().ok()?)?;
    let states: Option<Vec<&str>> = headers.get_all(STATE).iter().map(|state| state.to_str().ok()).collect();
    let state = states.and_then(|states| parse_state(&states.join(","))).unwrap_or_default();
    let (trace, span, flags) = (parent.trace_id(), parent.span_id(), parent.trace_flags());
    Some(SpanContext::new(trace, span, flags, true, state))
}

/// Reads a `traceparent`.
pub fn parse(text: &str) -> Option<SpanContext> {
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
pub fn parse_state(text: &str) -> Option<TraceState> {
    text.parse().ok().filter(|_| text.len() <= STATE_BYTES_MAX)
}

/// A `traceparent` that names a span.
pub fn write(context: &SpanContext) -> String {
    format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), context.trace_flags())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(list: &[(&'static str, &str)]) -> Option<SpanContext> {
        let pair = |(name, value): &(&'static str, &str)| {
            (http::HeaderName::from_static(name), value.parse::<http::HeaderValue>().unwrap())
        };
        let mut headers = HeaderMap::new();
        for (name, value) in list.iter().map(pair) {
            headers.append(name, value);
        }
        of_headers(&headers)
    }

    #[test]
    fn a_call_names_the_span_of_its_caller() {
        let context = of(&[(PARENT, GOOD), (STATE, "a=1,b=2"), (STATE, "c=3")]).unwrap();
        assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id().to_string(), "00f067aa0ba902b7");
        assert!(context.is_sampled() && context.is_remote());
        assert_eq!(context.trace_state().header(), "a=1,b=2,c=3");
        assert_eq!(write(&context), GOOD);
        assert!(!of(&[(PARENT, &GOOD.replace("-01", "-02"))]).unwrap().is_sampled());
        let later = format!("{}-and-more", GOOD.replacen("00", "cc", 1));
        assert_eq!(write(&of(&[(PARENT, &later)]).unwrap()), GOOD);
    }

    #[test]
    fn what_is_no_valid_name_of_a_span_is_dropped() {
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
            assert_eq!(of(&[(PARENT, &wrong)]), None, "{wrong}");
        }
        assert_eq!(of(&[(PARENT, GOOD), (PARENT, GOOD)]), None, "two callers");
        assert_eq!(of(&[(STATE, "a=1")]), None);
        for state in ["no state", &format!("a={}", "x".repeat(511))] {
            assert_eq!(of(&[(PARENT, GOOD), (STATE, state)]).unwrap().trace_state().header(), "");
        }
    }
}
