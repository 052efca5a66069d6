//! `[traces]`: where spans go.

use http::Uri;

use super::file::TraceKeys;
use crate::traces::TraceSettings;

/// The share of traces that begin at this node.
const RATIO_DEFAULT: f64 = 0.01;

/// Checks the keys. `None`: there are no spans.
pub fn traces(keys: TraceKeys, errors: &mut Vec<String>) -> Option<TraceSettings> {
    let ratio = keys.ratio.unwrap_or(RATIO_DEFAULT);
    if !(0.0..=1.0).contains(&ratio) {
        errors.push(format!("traces.ratio is {ratio}; it must be between 0 and 1"));
    }
    let endpoint = keys.endpoint?;
    if !is_endpoint(&endpoint) {
        // It may hold a password, which belongs in no log.
        errors.push("traces.endpoint must be http://host:port or https://host:port".to_owned());
    }
    Some(TraceSettings { endpoint, ratio })
}

/// Whether it names a port of a host, and nothing else.
fn is_endpoint(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority() else { return false };
    let host = authority.host();
    matches!(uri.scheme_str(), Some("http" | "https"))
        && !host.is_empty()
        && authority.port_u16().is_some_and(|port| authority.as_str() == format!("{host}:{port}"))
        && matches!(uri.path(), "" | "/")
        && uri.query().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(endpoint: Option<&str>, ratio: Option<f64>) -> Vec<String> {
        let mut errors = Vec::new();
        traces(TraceKeys { endpoint: endpoint.map(str::to_owned), ratio }, &mut errors);
        errors
    }

    #[test]
    fn without_an_endpoint_there_are_no_spans() {
        assert_eq!(traces(TraceKeys { endpoint: None, ratio: Some(0.5) }, &mut Vec::new()), None);
        let keys = TraceKeys { endpoint: Some("http://collector:4317".to_owned()), ratio: None };
        let settings = traces(keys, &mut Vec::new()).unwrap();
        assert_eq!((settings.endpoint.as_str(), settings.ratio), ("http://collector:4317", 0.01));
    }

    #[test]
    fn each_wrong_value_is_reported_by_its_key() {
        for good in ["http://c:4317", "https://c.example.com:443/", "http://10.0.0.1:1", "http://[::1]:4317"]
        {
            assert_eq!(errors(Some(good), None), Vec::<String>::new(), "{good}");
        }
        for wrong in [
            "",
            "collector:4317",
            "http://collector",
            "grpc://collector:4317",
            "http://collector:4317/v1/traces",
            "http://collector:4317?a=b",
            "http://user:hidden@collector:4317",
            "http://collector:99999",
        ] {
            let errors = errors(Some(wrong), None);
            assert!(errors.len() == 1 && errors[0].starts_with("traces.endpoint must be"), "{wrong}");
            assert!(!errors[0].contains("hidden"), "{errors:?}");
        }
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(errors(None, Some(wrong))[0].starts_with("traces.ratio is"), "{wrong}");
        }
        assert!(errors(None, Some(0.0)).is_empty() && errors(None, Some(1.0)).is_empty());
    }
}
