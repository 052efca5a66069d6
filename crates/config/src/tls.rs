//! Checks which certificates are configured. Their files are read when a node starts.

use std::{net::IpAddr, path::PathBuf};

use forebay_edge::tls::{ClientAuth, PeerTlsFiles, ServerTlsFiles, TlsSettings};
use rustls_pki_types::DnsName;

use super::file::TlsKeys;

/// Checks `[tls]`.
pub(super) fn tls(keys: TlsKeys, errors: &mut Vec<String>) -> TlsSettings {
    let mut wrong = |message: &str| errors.push(format!("tls.{message}"));
    let path = |text: Option<String>| text.filter(|text| !text.is_empty()).map(PathBuf::from);
    let (cert, key, client_ca) = (path(keys.cert_file), path(keys.key_file), path(keys.client_ca_file));
    let client_auth = match (keys.client_auth.as_deref(), &client_ca) {
        // A configuration that names the authorities of clients means them to show certificates.
        (None, Some(_)) | (Some("required"), _) => ClientAuth::Required,
        (None, None) | (Some("off"), _) => ClientAuth::Off,
        (Some("optional"), _) => ClientAuth::Optional,
        (Some(_), _) => {
            wrong("client_auth must be off, optional or required");
            ClientAuth::Off
        }
    };
    if client_auth != ClientAuth::Off && client_ca.is_none() {
        wrong("client_ca_file is missing: by it the certificates of clients are checked (tls.client_auth)");
    }
    let server = match (cert, key) {
        (Some(cert), Some(key)) => Some(ServerTlsFiles { cert, key, client_ca, client_auth }),
        (None, None) => {
            if client_ca.is_some() || client_auth != ClientAuth::Off {
                wrong("cert_file and tls.key_file are missing: without them clients have no TLS");
            }
            None
        }
        (Some(_), None) => {
            wrong("key_file is missing: tls.cert_file is of no use without its key");
            None
        }
        (None, Some(_)) => {
            wrong("cert_file is missing: tls.key_file is of no use without its certificate");
            None
        }
    };
    let peer = [path(keys.peer_cert_file), path(keys.peer_key_file), path(keys.peer_ca_file)];
    let peer = match peer {
        [Some(cert), Some(key), Some(ca)] => Some(PeerTlsFiles { cert, key, ca, name: keys.peer_name }),
        [None, None, None] => {
            if keys.peer_name.is_some() {
                wrong("peer_name is of no use without tls.peer_cert_file, peer_key_file and peer_ca_file");
            }
            None
        }
        _ => {
            wrong("peer_cert_file, tls.peer_key_file and tls.peer_ca_file are needed together");
            None
        }
    };
    let name = peer.as_ref().and_then(|peer| peer.name.as_deref());
    if name.is_some_and(|name| DnsName::try_from(name).is_err() || name.parse::<IpAddr>().is_ok()) {
        wrong("peer_name must be a DNS name, as in node.forebay.example");
    }
    TlsSettings { server, peer }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(change: impl FnOnce(&mut TlsKeys)) -> Result<TlsSettings, Vec<String>> {
        let (mut keys, mut errors) = (TlsKeys::default(), Vec::new());
        change(&mut keys);
        let settings = tls(keys, &mut errors);
        if errors.is_empty() { Ok(settings) } else { Err(errors) }
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn server(keys: &mut TlsKeys) {
        (keys.cert_file, keys.key_file) = (some("c"), some("k"));
    }

    #[test]
    fn clients_show_certificates_if_their_authority_is_named_unless_told_otherwise() {
        let auth = |text: Option<&str>, ca: bool| {
            let settings = checked(|keys| {
                server(keys);
                keys.client_ca_file = ca.then(|| "ca".to_owned());
                keys.client_auth = text.map(str::to_owned);
            });
            settings.map(|it| it.server.unwrap().client_auth)
        };
        assert_eq!(checked(|_| {}), Ok(TlsSettings::default()));
        assert_eq!(auth(None, false), Ok(ClientAuth::Off));
        assert_eq!(auth(None, true), Ok(ClientAuth::Required));
        assert_eq!(auth(Some("optional"), true), Ok(ClientAuth::Optional));
        assert_eq!(auth(Some("off"), true), Ok(ClientAuth::Off));
        assert!(auth(Some("required"), false).unwrap_err()[0].starts_with("tls.client_ca_file is missing"));
        assert!(auth(Some("yes"), true).unwrap_err()[0].starts_with("tls.client_auth must be"));
    }

    #[test]
    fn a_part_without_the_rest_is_an_error() {
        let error = |change: fn(&mut TlsKeys)| checked(change).unwrap_err().join("; ");
        assert!(error(|keys| keys.cert_file = some("c")).starts_with("tls.key_file is missing"));
        assert!(error(|keys| keys.key_file = some("k")).starts_with("tls.cert_file is missing"));
        assert!(error(|keys| keys.client_ca_file = some("a")).starts_with("tls.cert_file and"));
        assert!(error(|keys| keys.peer_ca_file = some("a")).contains("are needed together"));
        assert!(error(|keys| keys.peer_name = some("a")).starts_with("tls.peer_name is of no use"));
    }

    #[test]
    fn nodes_share_a_dns_name() {
        let with = |name: &str| {
            checked(|keys| {
                (keys.peer_cert_file, keys.peer_key_file) = (some("c"), some("k"));
                (keys.peer_ca_file, keys.peer_name) = (some("a"), some(name));
            })
        };
        assert_eq!(with("node.example").unwrap().peer.unwrap().name.unwrap(), "node.example");
        for wrong in ["10.0.0.1", "a b", "spiffe://prod/node", ""] {
            assert!(with(wrong).unwrap_err()[0].starts_with("tls.peer_name must be"), "{wrong}");
        }
    }
}
