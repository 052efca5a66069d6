//! `[http]`: who may use the HTTP port.

use forebay_edge::connections::Network;
use http::Uri;

use super::file::HttpKeys;
use crate::grafana::Grafana;

/// Bounds on the use of the HTTP port, and links to Grafana.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpAccess {
    /// Names by which the node may be called there, beside those that it knows. `*.x` stands for all that end
    /// in `.x`.
    pub hosts: Vec<String>,
    /// Origins whose web pages may make calls, as in `https://app.example.com`.
    pub cors_origins: Vec<String>,
    /// Proxies whose `X-Forwarded-For` says where requests come from. No port bounds their connections as
    /// those of one address.
    pub trusted_proxies: Vec<Network>,
    /// The template of links to Grafana. `None`: pages have none.
    pub grafana: Option<Grafana>,
}

/// Checks the keys.
pub fn http(keys: HttpKeys, errors: &mut Vec<String>) -> HttpAccess {
    for host in keys.hosts.iter().filter(|host| !is_host(host)) {
        errors.push(format!("http.hosts: {host:?} must be a name without a port, or *. and a name"));
    }
    for origin in keys.cors_origins.iter().filter(|origin| !is_origin(origin)) {
        let origin = without_user(origin);
        errors.push(format!(
            "http.cors_origins: {origin:?} must be scheme://host or scheme://host:port, in small letters"
        ));
    }
    let mut trusted_proxies = Vec::new();
    for text in &keys.trusted_proxies {
        match text.parse() {
            Ok(network) => trusted_proxies.push(network),
            Err(()) => errors.push(format!(
                "http.trusted_proxies: {text:?} must be an address, or a network as in 10.0.0.0/8"
            )),
        }
    }
    let grafana = keys.grafana.and_then(|text| match text.parse() {
        Ok(grafana) => Some(grafana),
        Err(()) => {
            let what = "http.grafana must be an address without a user as in \
                        https://grafana.example.com/d/forebay, in which {namespace} and {topic} stand for \
                        names behind the host";
            errors.push(what.to_owned());
            None
        }
    });
    HttpAccess { hosts: keys.hosts, cors_origins: keys.cors_origins, trusted_proxies, grafana }
}

/// The part of an address behind its user and password.
fn without_user(text: &str) -> &str {
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

fn is_host(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let byte = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(byte)
}

/// Whether browsers write an origin so.
fn is_origin(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let parts = (uri.scheme_str(), uri.authority().filter(|authority| !authority.as_str().contains('@')));
    let (Some(scheme), Some(authority)) = parts else { return false };
    let default_port = if scheme == "https" { 443 } else { 80 };
    matches!(scheme, "http" | "https")
        && uri.port_u16() != Some(default_port)
        && text == format!("{scheme}://{authority}").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_entry_is_reported() {
        let list = |entries: &[&str]| entries.iter().map(|entry| entry.to_string()).collect::<Vec<_>>();
        let hosts = ["queue1", "queue.example.com", "*.example.com"];
        let origins = ["https://app.example.com", "http://localhost:3000", "http://[::1]:3000"];
        let mut errors = Vec::new();
        let proxies = ["10.0.0.1", "10.0.0.0/8", "::1", "2001:db8::/32"];
        let template = "https://g.example/d/x?var-namespace={namespace}";
        let keys = HttpKeys {
            hosts: list(&hosts),
            cors_origins: list(&origins),
            trusted_proxies: list(&proxies),
            grafana: Some(template.to_owned()),
        };
        let access = http(keys, &mut errors);
        assert_eq!((access.hosts, access.cors_origins), (list(&hosts), list(&origins)));
        assert_eq!(access.trusted_proxies, proxies.map(|text| text.parse().unwrap()));
        assert_eq!(access.grafana, template.parse().ok());
        assert!(errors.is_empty(), "{errors:?}");

        let hosts = ["", "*", "*.", "a:7421", "http://a", "a/b", "*.*.a"];
        let origins = [
            "*",
            "null",
            "app.example.com",
            "https://app.example.com/",
            "https://App.example.com",
            "https://app.example.com:443",
            "ftp://a",
            "https://u@a",
        ];
        let proxies = ["proxy1", "10.0.0.0/33", "10.0.0.1:80"];
        let keys = HttpKeys {
            hosts: list(&hosts),
            cors_origins: list(&origins),
            trusted_proxies: list(&proxies),
            grafana: Some("grafana".to_owned()),
        };
        http(keys, &mut errors);
        assert_eq!(errors.len(), hosts.len() + origins.len() + proxies.len() + 1, "{errors:#?}");
        assert!(errors[18].starts_with("http.grafana must be an address"), "{errors:#?}");
        assert!(errors[15].starts_with("http.trusted_proxies: \"proxy1\""), "{errors:#?}");
        assert!(errors[0].starts_with("http.hosts: ") && errors[7].starts_with("http.cors_origins: "));
    }
}
