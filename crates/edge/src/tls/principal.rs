//! The caller at the other end of a connection.

use std::sync::Arc;

use forebay_types::Timestamp;
use tokio_rustls::rustls::pki_types::CertificateDer;

use super::certificate;

/// The caller at the other end of a connection. Every request carries it as an extension.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Principal {
    /// Nobody known: there is no TLS, or no certificate, or one without a name.
    #[default]
    Unknown,
    /// Whoever has the key of a certificate of one of the configured authorities.
    Certificate {
        /// The certificate's first URI among the alternative names, or else its first DNS name.
        name: Arc<str>,
        /// When the certificate ends.
        ends: Timestamp,
    },
}

impl Principal {
    /// The holder of these certificates, shown in a handshake that succeeded. The first is its own.
    pub fn of(shown: &[CertificateDer<'_>]) -> Self {
        let read = |own| Some((certificate::name(own)?, certificate::validity(own)?.ends));
        match shown.first().and_then(read) {
            Some((name, ends)) => Self::Certificate { name: name.into(), ends },
            None => Self::Unknown,
        }
    }
}
