//! Who is at the other end of a connection.

use std::sync::Arc;

use tokio_rustls::rustls::pki_types::CertificateDer;

use super::certificate;

/// Who is at the other end of a connection. Every request carries it as an extension.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Principal {
    /// Nobody known: there is no TLS, or no certificate, or one without a name.
    #[default]
    Unknown,
    /// Whoever has the key of a certificate of one of the configured authorities.
    Certificate {
        /// The certificate's first URI among the alternative names, or else its first DNS name.
        name: Arc<str>,
    },
}

impl Principal {
    /// Who has shown these certificates in a handshake that succeeded. The first is the own one.
    pub fn of(shown: Option<&[CertificateDer<'_>]>) -> Self {
        let name = shown.and_then(<[_]>::first).and_then(certificate::name);
        name.map_or(Self::Unknown, |name| Self::Certificate { name: name.into() })
    }
}
