//! `[access]`: who may do what, and whether strangers may do everything.

use std::{collections::BTreeSet, path::PathBuf};

use forebay_access::Grant;
use forebay_edge::{
    access::AccessSettings,
    tls::{ClientAuth, TlsSettings},
};
use forebay_types::is_loopback;

use super::{file::AccessKeys, values::Config};

/// Checks the keys. `tls`: by it clients show certificates.
pub(super) fn access(keys: AccessKeys, tls: &TlsSettings, errors: &mut Vec<String>) -> AccessSettings {
    let (mut certificates, mut names) = (Vec::new(), BTreeSet::new());
    let shown = tls.server.as_ref().is_some_and(|files| files.client_auth != ClientAuth::Off);
    if !keys.certificate.is_empty() && !shown {
        errors.push(
            "access.certificate is of no use: clients show no certificates (tls.client_ca_file)".to_owned(),
        );
    }
    for (index, keys) in keys.certificate.into_iter().enumerate() {
        let mut wrong = |message: String| errors.push(format!("access.certificate[{index}].{message}"));
        let mut grants = Vec::new();
        if keys.grants.is_none() {
            wrong("grants is missing".to_owned());
        }
        for text in keys.grants.iter().flatten() {
            match text.parse::<Grant>() {
                Ok(grant) => grants.push(grant),
                Err(error) => wrong(format!("grants: {error}")),
            }
        }
        let san = keys.san.unwrap_or_default();
        if san.is_empty() {
            wrong("san is empty; it is the first URI of the certificate, or else its first DNS name".into());
        } else if !names.insert(san.clone()) {
            wrong(format!("san: {san:?} is there twice"));
        }
        certificates.push((san, grants));
    }
    let path = |path: Option<String>| path.filter(|path| !path.is_empty()).map(PathBuf::from);
    let (tokens_file, bootstrap_token_file) = (path(keys.tokens_file), path(keys.bootstrap_token_file));
    let catalog_tokens = keys.catalog_tokens;
    if bootstrap_token_file.is_some() && !catalog_tokens {
        let what = "access.bootstrap_token_file (or FOREBAY_BOOTSTRAP_TOKEN_FILE) is of no use";
        errors.push(format!("{what} without access.catalog_tokens"));
    }
    AccessSettings { tokens_file, catalog_tokens, bootstrap_token_file, certificates }
}

/// Warnings of what strangers who reach these ports from other machines may do, one sentence each. `peer`:
/// the port for other nodes, if there are any.
pub(super) fn exposed(
    ports: [(&str, &str); 2],
    peer: Option<&str>,
    tls: &TlsSettings,
    access: &AccessSettings,
) -> Vec<String> {
    let of_nodes = peer.filter(|address| tls.peer.is_none() && !is_loopback(address)).map(|address| {
        let what = "who is on the way to it reads the cluster's secret, with which everything may be done";
        format!("there is no TLS (tls.peer_cert_file) for other nodes at {address}: {what}")
    });
    of_clients(ports, tls, access).into_iter().chain(of_nodes).collect()
}

fn of_clients(ports: [(&str, &str); 2], tls: &TlsSettings, access: &AccessSettings) -> Vec<String> {
    let reached = ports.iter().filter(|(_, address)| !is_loopback(address));
    let reached: Vec<_> = reached.map(|(name, address)| format!("{name} at {address}")).collect();
    if reached.is_empty() {
        return Vec::new();
    }
    let (ports, mut exposed) = (reached.join(" and "), Vec::new());
    if tls.server.is_none() {
        let what = "who is on the way to it reads tokens and items, and changes them";
        exposed.push(format!("there is no TLS ([tls]) for {ports}: {what}"));
    }
    if !access.is_on() {
        exposed.push(format!("there is no access control ([access]): who reaches {ports} may do everything"));
    }
    exposed
}

impl Config {
    /// Asks for credentials, with the tokens of a file.
    pub fn set_tokens_file(&mut self, path: PathBuf) {
        self.access.tokens_file = Some(path);
        let ports = [("gRPC", self.grpc.as_str()), ("HTTP", self.http.as_str())];
        let peer = (!self.is_alone()).then_some(self.peer.as_str());
        self.exposed = exposed(ports, peer, &self.tls, &self.access);
    }
}

/// Refuses to serve strangers, unless that is what is wanted.
pub(super) fn refuse(exposed: &[String], insecure: bool, errors: &mut Vec<String>) {
    if !insecure {
        let what =
            "other machines reach this node; with `insecure = true` under [node] it serves them anyway";
        errors.extend(exposed.iter().map(|sentence| format!("{sentence} ({what})")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> Vec<String> {
        let shard = "[[shard]]\nid = 1\nurl = \"sqlite://0001.db\"\n";
        Config::parse(&format!("{text}\n{shard}"), [], Vec::new())
            .map_or_else(|error| error.0, |_| Vec::new())
    }

    #[test]
    fn strangers_are_served_only_if_that_is_wanted() {
        let outside = "[node]\ngrpc = \"0.0.0.0:7420\"\n";
        let found = errors(outside);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("there is no TLS ([tls]) for gRPC at 0.0.0.0:7420: "), "{found:?}");
        assert!(found[1].starts_with("there is no access control ([access]): "), "{found:?}");
        assert!(found.iter().all(|error| error.contains("`insecure = true` under [node]")), "{found:?}");
        assert!(errors(&format!("{outside}insecure = true")).is_empty());
        let tls = "[tls]\ncert_file = \"c\"\nkey_file = \"k\"";
        assert_eq!(errors(&format!("{outside}{tls}")).len(), 1);
        let access = "[access]\ntokens_file = \"t\"";
        assert_eq!(errors(&format!("{outside}{access}")).len(), 1);
        assert!(errors(&format!("{outside}{tls}\n{access}")).is_empty());
        assert!(errors("").is_empty());
    }

    #[test]
    fn the_secret_of_the_cluster_does_not_cross_a_network_in_plain_text_unless_that_is_wanted() {
        let with = |peer: &str, more: &str| {
            let folder = tempfile::tempdir().unwrap();
            let secret = folder.path().join("secret");
            std::fs::write(&secret, "a-secret-of-20-bytes").unwrap();
            errors(&format!(
                "[node]\npeer = \"{peer}\"\npeer_secret_file = \"{}\"\n{more}\n\
                 [catalog]\nurl = \"sqlite://catalog.db\"",
                secret.display()
            ))
        };
        let found = with("0.0.0.0:7422", "");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("there is no TLS (tls.peer_cert_file) for other nodes at 0.0.0.0:7422"));
        assert!(found[0].contains("`insecure = true` under [node]"), "{found:?}");
        assert!(with("0.0.0.0:7422", "insecure = true").is_empty());
        assert!(with("127.0.0.1:7422", "").is_empty());
        let tls = "[tls]\npeer_cert_file = \"c\"\npeer_key_file = \"k\"\npeer_ca_file = \"a\"";
        assert!(with("0.0.0.0:7422", tls).is_empty());
        assert!(errors("[node]\npeer = \"0.0.0.0:7422\"").is_empty(), "there are no other nodes");
    }

    #[test]
    fn the_first_token_of_the_catalog_needs_tokens_of_the_catalog() {
        assert!(errors("[access]\ncatalog_tokens = true\nbootstrap_token_file = \"t\"").is_empty());
        let found = errors("[access]\nbootstrap_token_file = \"t\"");
        assert!(found.len() == 1 && found[0].ends_with("without access.catalog_tokens"), "{found:?}");
    }

    #[test]
    fn each_wrong_certificate_is_named() {
        let tls = "[tls]\ncert_file = \"c\"\nkey_file = \"k\"\nclient_ca_file = \"a\"";
        let of = |san: &str, grant: &str| {
            format!("[[access.certificate]]\nsan = \"{san}\"\ngrants = [\"{grant}\"]\n")
        };
        let good = of("spiffe://prod/worker", "a:consume");
        assert!(errors(&format!("{tls}\n{good}{}", of("b", "*:all"))).is_empty());
        let found = errors(&format!("{tls}\n{good}{good}{}{}", of("", "a:consume"), of("c", "a:write")));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("access.certificate[1].san: "), "{found:?}");
        assert!(found[1].starts_with("access.certificate[2].san is empty"), "{found:?}");
        assert!(found[2].starts_with("access.certificate[3].grants: \"a:write\" is no grant"), "{found:?}");
        assert!(errors(&good)[0].contains("(tls.client_ca_file)"));
        let unknown = format!("{tls}\n{good}scopes = []");
        assert!(errors(&unknown)[0].contains("unknown field `scopes`"), "{:?}", errors(&unknown));
    }
}
