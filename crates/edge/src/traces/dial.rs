//! How the connection to the collector is opened.
//!
//! TLS is done here and not by tonic: with its feature for TLS, tonic no longer takes the connections that
//! nodes secure among themselves.

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls_native_certs::load_native_certs;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};
use tonic::transport::{self, Channel, Endpoint};

use super::{export::TIMEOUT, settings::TraceSettings};
use crate::tls::provider;

/// How often a connection is checked while it waits for an answer: else one to a machine that is gone would
/// be tried for a quarter of an hour.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Why there can be no spans.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The transport does not take the address.
    #[error("traces.endpoint can't be used: {0}")]
    Endpoint(#[from] transport::Error),
    /// No certificate could be checked.
    #[error("traces.endpoint begins with https://, but this system knows no certificate authorities")]
    NoAuthorities,
    /// A file of authorities can't be used.
    #[error("traces.ca_file {} can't be used: {why}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The authorities can't be used.
    #[error("there can be no TLS for traces.endpoint: {0}")]
    Tls(#[from] rustls::Error),
}

/// The way to a collector. It is opened with the first spans, and anew when it breaks. With `https` its
/// certificate must be of one of the authorities of the settings, else of one that the system knows.
pub fn channel(settings: &TraceSettings) -> Result<Channel, TracesError> {
    let has_tls = settings.endpoint.starts_with("https:");
    let endpoint = Endpoint::from_shared(settings.endpoint.clone())?
        .connect_timeout(TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE);
    if !has_tls {
        return Ok(endpoint.connect_lazy());
    }
    let tls = connector(authorities(settings.ca_file.as_ref())?)?;
    let connector = tower::service_fn(move |uri| secured(uri, tls.clone()));
    Ok(endpoint.connect_with_connector_lazy(connector))
}

/// Authorities of a file, else those that the system knows.
fn authorities(file: Option<&PathBuf>) -> Result<RootCertStore, TracesError> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            let wrong = |why: String| TracesError::CaFile { path: path.clone(), why };
            let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
            for certificate in read {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("it has no certificate".to_owned()));
            }
        }
        // Some authorities of a system may be of no use; the others are.
        None => drop(roots.add_parsable_certificates(load_native_certs().certs)),
    }
    if roots.is_empty() { Err(TracesError::NoAuthorities) } else { Ok(roots) }
}

fn connector(roots: RootCertStore) -> Result<TlsConnector, rustls::Error> {
    let mut settings = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    settings.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(settings)))
}

/// Opens a connection and secures it.
async fn secured(
    uri: Uri,
    tls: TlsConnector,
) -> io::Result<TokioIo<tokio_rustls::client::TlsStream<TcpStream>>> {
    let authority = uri.authority().ok_or_else(|| io::Error::other("the address has no host"))?;
    let stream = TcpStream::connect(authority.as_str()).await?;
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    Ok(TokioIo::new(tls.connect(name, stream).await?))
}

#[cfg(test)]
mod tests {
    use forebay_testkit::certificates::Authority;
    use tokio::net::TcpListener;
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{ServerConfig, pki_types::PrivateKeyDer},
    };

    use super::*;

    /// Bytes that a collector with a certificate of `signer` speaks with a node that knows `known`. `None`:
    /// the node does not take its certificate.
    async fn spoken(signer: &Authority, known: &Authority) -> Option<Vec<u8>> {
        let issued = signer.issue(&["127.0.0.1"]);
        let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let mut settings =
            builder.unwrap().with_no_client_auth().with_single_cert(vec![issued.der.into()], key).unwrap();
        settings.alpn_protocols = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("https://{}", listener.local_addr().unwrap()).parse().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), known.pem()).unwrap();
        let roots = authorities(Some(&file.path().to_owned())).unwrap();
        let accepted = async {
            let stream = listener.accept().await.unwrap().0;
            TlsAcceptor::from(Arc::new(settings)).accept(stream).await
        };
        let (accepted, opened) = tokio::join!(accepted, secured(uri, connector(roots).unwrap()));
        opened.ok()?;
        accepted.unwrap().get_ref().1.alpn_protocol().map(<[u8]>::to_vec)
    }

    #[tokio::test]
    async fn a_collector_with_https_shows_a_certificate_that_can_be_checked() {
        let (known, other) = (Authority::new("known"), Authority::new("other"));
        assert_eq!(spoken(&known, &known).await.as_deref(), Some(&b"h2"[..]));
        assert_eq!(spoken(&other, &known).await, None);
    }

    #[test]
    fn a_file_without_authorities_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = authorities(Some(&file.path().to_owned())).unwrap_err().to_string();
        let expected =
            format!("traces.ca_file {} can't be used: it has no certificate", file.path().display());
        assert_eq!(error, expected);
        let gone = authorities(Some(&PathBuf::from("/nowhere/ca.pem"))).unwrap_err().to_string();
        assert!(gone.starts_with("traces.ca_file /nowhere/ca.pem can't be used: "), "{gone}");
    }
}
