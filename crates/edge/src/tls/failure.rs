//! Why handshakes fail, in the words of the metric.

use std::io;

use tokio_rustls::rustls::{self, Error};

/// The client did not finish in time.
pub const TIMEOUT: &str = "timeout";
/// It made room for another one.
pub(crate) const DISPLACED: &str = "displaced";

/// Why a handshake failed.
pub fn reason(error: &io::Error) -> &'static str {
    let tls = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>());
    match tls {
        None => "closed",
        Some(Error::InvalidMessage(_)) => "not_tls",
        Some(Error::NoCertificatesPresented) => "no_certificate",
        Some(Error::InvalidCertificate(_)) => "bad_certificate",
        Some(Error::AlertReceived(_)) => "refused_by_client",
        Some(Error::PeerIncompatible(_) | Error::NoApplicationProtocol) => "incompatible",
        Some(_) => "other",
    }
}

/// A handshake failed.
pub fn count(port: &'static str, reason: &'static str) {
    metrics::counter!("forebay_tls_handshake_failures_total", "listener" => port, "reason" => reason)
        .increment(1);
}
