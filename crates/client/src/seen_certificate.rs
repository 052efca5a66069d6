//! Keeps the certificate that a server shows, and judges it as ever.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_rustls::rustls::{
    DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
};

/// Keeps the certificate of one handshake.
#[derive(Debug)]
pub(crate) struct CertificateRecorder {
    /// Judges it.
    judge: Arc<WebPkiServerVerifier>,
    /// It, in DER.
    certificate: Mutex<Option<Vec<u8>>>,
}

impl CertificateRecorder {
    /// Nothing yet. `roots`: the authorities that are believed.
    pub(crate) fn new(roots: RootCertStore) -> io::Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let judge = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self { judge: judge.build().map_err(io::Error::other)?, certificate: Mutex::default() })
    }

    /// The certificate, if one was shown.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        self.certificate.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ServerCertVerifier for CertificateRecorder {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.certificate.lock().unwrap_or_else(PoisonError::into_inner) = Some(end_entity.to_vec());
        self.judge.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.judge.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.judge.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use forebay_testkit::certificates::{Authority, IssuedCertificate};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{
            ServerConfig,
            pki_types::{PrivateKeyDer, pem::PemObject as _},
        },
    };

    use crate::tls::{Tls, TlsConfig, explain};

    /// Sees, as a client that believes `authority`, a server that shows a certificate.
    async fn seen(authority: &Authority, issued: IssuedCertificate) -> (Option<Vec<u8>>, Option<String>) {
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
        let config =
            ServerConfig::builder_with_provider(std::sync::Arc::new(super::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![issued.der.into()], key)
                .unwrap();
        let acceptor = TlsAcceptor::from(std::sync::Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { drop(acceptor.accept(listener.accept().await.unwrap().0).await) });
        let tls = Tls::new(&TlsConfig::default().ca_certificate(authority.pem())).unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let (der, end) = tls.shown_certificate(stream, "127.0.0.1").await;
        (der, end.err().map(|error| explain("it", &error).unwrap()))
    }

    #[tokio::test]
    async fn what_is_shown_is_kept_even_if_it_is_not_accepted() {
        let authority = Authority::new("authority");
        let ended = || authority.issue_valid(&["127.0.0.1"], 1_000, 2_000);
        for (issued, why) in [
            (authority.issue(&["127.0.0.1"]), None),
            (ended(), Some("it is not accepted")),
            (authority.issue(&["127.0.0.2"]), Some("it is not accepted")),
            (Authority::new("other").issue(&["127.0.0.1"]), Some("it is of an authority")),
        ] {
            let der = issued.der.clone();
            let (shown, error) = seen(&authority, issued).await;
            assert_eq!(shown, Some(der));
            assert_eq!(error.is_some(), why.is_some(), "{error:?}");
            assert!(error.is_none_or(|error| error.contains(why.unwrap_or_default())));
        }
    }
}
