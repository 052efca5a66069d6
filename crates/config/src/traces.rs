//! `[traces]`: where spans go.

use forebay_edge::traces::TraceSettings;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use super::{file::TraceKeys, secret_file::secret_file, values::Secret};

/// Checks the keys. `None`: there are no spans.
pub fn traces(keys: TraceKeys, errors: &mut Vec<String>) -> Option<TraceSettings> {
    let ratio = keys.ratio;
    if !(0.0..=1.0).contains(&ratio) {
        errors.push(format!("traces.ratio is {ratio}; it must be between 0 and 1"));
    }
    let headers = keys.headers_file.and_then(|path| secret_file("traces.headers_file", path, errors));
    let headers = headers.map(|text| headers_of(&text, errors)).unwrap_or_default();
    let endpoint = keys.endpoint?;
    if !is_endpoint(&endpoint) {
        // It may hold a password, which belongs in no log.
        errors.push("traces.endpoint must be http://host:port or https://host:port".to_owned());
    }
    if keys.ca_file.is_some() && !endpoint.starts_with("https:") {
        errors.push("traces.ca_file is of no use: traces.endpoint does not begin with https://".to_owned());
    }
    Some(TraceSettings { endpoint, ratio, ca_file: keys.ca_file.map(Into::into), headers })
}

/// Reads headers, one a line. An error names the line and not what is in it, which is secret.
fn headers_of(text: &Secret, errors: &mut Vec<String>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let lines = text.reveal().lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (index, line) in lines {
        let header = line.split_once(':').and_then(|(name, value)| {
            let name: HeaderName = name.trim().parse().ok()?;
            let mut value: HeaderValue = value.trim().parse().ok()?;
            value.set_sensitive(true);
            Some((name, value)).filter(|(_, value)| value.to_str().is_ok())
        });
        match header {
            Some((name, value)) => drop(headers.append(name, value)),
            None => errors.push(format!("traces.headers_file: line {} is not `name: value`", index + 1)),
        }
    }
    headers
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

    fn errors(endpoint: Option<&str>, ratio: f64) -> Vec<String> {
        let mut errors = Vec::new();
        let endpoint = endpoint.map(str::to_owned);
        traces(TraceKeys { endpoint, ratio, ..TraceKeys::default() }, &mut errors);
        errors
    }

    #[test]
    fn without_an_endpoint_there_are_no_spans() {
        let keys = TraceKeys { ratio: 0.5, ..TraceKeys::default() };
        assert_eq!(traces(keys, &mut Vec::new()), None);
        let endpoint = Some("http://collector:4317".to_owned());
        let keys = TraceKeys { endpoint, ..TraceKeys::default() };
        let settings = traces(keys, &mut Vec::new()).unwrap();
        assert_eq!((settings.endpoint.as_str(), settings.ratio), ("http://collector:4317", 0.01));
    }

    #[test]
    fn a_collector_may_want_a_login_which_is_in_no_message() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            let mut errors = Vec::new();
            let keys = TraceKeys {
                endpoint: Some("https://c:4317".to_owned()),
                headers_file: Some(file.path().to_str().unwrap().to_owned()),
                ..TraceKeys::default()
            };
            (traces(keys, &mut errors).unwrap().headers, errors)
        };
        let (headers, errors) = read("Authorization: Bearer a:b\n\nx-tenant:7\n");
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(
            (&headers["authorization"], &headers["x-tenant"]),
            (&"Bearer a:b".parse().unwrap(), &"7".parse().unwrap())
        );
        assert!(!format!("{headers:?}").contains("Bearer"));
        let (_, errors) = read("x-tenant: 7\nhidden\n");
        assert_eq!(errors, ["traces.headers_file: line 2 is not `name: value`"]);
    }

    #[test]
    fn authorities_are_for_tls() {
        let with = |endpoint: &str| {
            let mut errors = Vec::new();
            let (endpoint, ca_file) = (Some(endpoint.to_owned()), Some("ca.pem".to_owned()));
            traces(TraceKeys { endpoint, ca_file, ..TraceKeys::default() }, &mut errors);
            errors
        };
        assert!(with("https://c:4317").is_empty());
        assert!(with("http://c:4317")[0].starts_with("traces.ca_file is of no use"));
    }

    #[test]
    fn each_wrong_value_is_reported_by_its_key() {
        for good in ["http://c:4317", "https://c.example.com:443/", "http://10.0.0.1:1", "http://[::1]:4317"]
        {
            assert_eq!(errors(Some(good), 0.01), Vec::<String>::new(), "{good}");
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
            let errors = errors(Some(wrong), 0.01);
            assert!(errors.len() == 1 && errors[0].starts_with("traces.endpoint must be"), "{wrong}");
            assert!(!errors[0].contains("hidden"), "{errors:?}");
        }
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(errors(None, wrong)[0].starts_with("traces.ratio is"), "{wrong}");
        }
        assert!(errors(None, 0.0).is_empty() && errors(None, 1.0).is_empty());
    }
}
