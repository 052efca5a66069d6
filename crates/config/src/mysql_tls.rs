//! TLS to the MySQL servers.

use std::path::PathBuf;

use forebay_store::Tls;
use rustls_pki_types::{CertificateDer, pem::PemObject as _};

/// Whether connections are encrypted.
pub(super) fn mysql_tls(text: &str, has_ca: bool, errors: &mut Vec<String>) -> Tls {
    match text {
        "auto" => Tls::Auto,
        "required" => Tls::Required,
        "off" => {
            if has_ca {
                errors.push("node.mysql_tls is \"off\", and node.mysql_tls_ca_file is set".to_owned());
            }
            Tls::Off
        }
        other => {
            errors.push(format!("node.mysql_tls must be auto, required or off, not {other:?}"));
            Tls::Auto
        }
    }
}

/// The path, if there are certificates.
pub(super) fn tls_ca_file(path: String, errors: &mut Vec<String>) -> PathBuf {
    let read = std::fs::read(&path).map_err(|error| format!("cannot read {path}: {error}"));
    let checked = read.and_then(|text| {
        let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        match certificates {
            Ok(certificates) if certificates.is_empty() => Err(format!("{path} holds no certificate")),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{path} is not PEM: {error}")),
        }
    });
    errors.extend(checked.err().map(|wrong| format!("node.mysql_tls_ca_file: {wrong}")));
    path.into()
}
