//! The caller's span, as the headers of a call name it.

use forebay_proto::trace_context::{PARENT, STATE, read};
use http::HeaderMap;
use opentelemetry::trace::SpanContext;

/// The caller's span. `None`: the headers name none, or not in one valid header.
pub(crate) fn of_headers(headers: &HeaderMap) -> Option<SpanContext> {
    let mut parents = headers.get_all(PARENT).iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    let states: Option<Vec<&str>> = headers.get_all(STATE).iter().map(|state| state.to_str().ok()).collect();
    read(parent.to_str().ok()?, states.map(|states| states.join(",")).as_deref())
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
        assert!(context.is_sampled() && context.is_remote());
        assert_eq!(context.trace_state().header(), "a=1,b=2,c=3");
    }

    #[test]
    fn a_call_that_names_no_span_validly_has_no_caller() {
        assert_eq!(of(&[(PARENT, &GOOD.to_uppercase())]), None);
        assert_eq!(of(&[(PARENT, GOOD), (PARENT, GOOD)]), None, "two callers");
        assert_eq!(of(&[(STATE, "a=1")]), None);
        for state in ["no state", &format!("a={}", "x".repeat(511))] {
            assert_eq!(of(&[(PARENT, GOOD), (STATE, state)]).unwrap().trace_state().header(), "");
        }
    }
}
