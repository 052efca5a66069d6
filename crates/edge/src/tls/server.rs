//! TLS of the ports for clients and operators.

use std::sync::Arc;

use forebay_types::Timestamp;
use tokio_rustls::rustls::{
    ServerConfig,
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::SingleCertAndKey,
    version::{TLS12, TLS13},
};

use super::{
    files::{Files, ParsedFiles, TlsError, provider},
    live::Live,
    settings::{ClientAuth, ServerTlsFiles},
};

/// The protocol of the gRPC ports.
pub const HTTP2: &[u8] = b"h2";
/// The protocol of the HTTP port.
const HTTP1: &[u8] = b"http/1.1";

/// TLS settings of the ports for clients and operators.
pub(crate) struct ServerTls {
    /// Of the gRPC port.
    pub grpc: Arc<ServerConfig>,
    /// Of the HTTP port.
    pub http: Arc<ServerConfig>,
    /// Checks the certificates of clients. `None`: they show none.
    pub clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl ServerTls {
    /// Reads the files.
    pub fn load(settings: &ServerTlsFiles, now: Timestamp) -> Result<Arc<Live<Self>>, TlsError> {
        let files = Files::new(("cert_file", &settings.cert), ("key_file", &settings.key));
        let files = match &settings.client_ca {
            Some(path) => files.with_ca("client_ca_file", path),
            None => files,
        };
        let auth = settings.client_auth;
        Live::load(files, &["grpc", "http"], now, move |files, parsed, _| Self::build(files, parsed, auth))
    }

    fn build(files: &Files, parsed: &ParsedFiles, auth: ClientAuth) -> Result<Self, TlsError> {
        let verifier = match (auth, &parsed.roots, &files.ca) {
            (ClientAuth::Off, ..) | (_, None, _) | (.., None) => None,
            (_, Some(roots), Some(file)) => {
                let builder = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider());
                let builder = match auth {
                    ClientAuth::Required => builder,
                    _ => builder.allow_unauthenticated(),
                };
                Some(builder.build().map_err(|error| file.wrong(format!("can't be used: {error}")))?)
            }
        };
        let with = |protocol| Ok(Arc::new(server_config(files, parsed, verifier.clone(), protocol)?));
        Ok(Self { grpc: with(HTTP2)?, http: with(HTTP1)?, clients: verifier.clone() })
    }
}

/// The settings of a port that speaks `protocol`.
///
/// A session is not continued on a later connection where clients show certificates: that would leave out the
/// check whether their certificate is still valid, and has an authority that is still configured.
pub(crate) fn server_config(
    files: &Files,
    parsed: &ParsedFiles,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    protocol: &[u8],
) -> Result<ServerConfig, TlsError> {
    let unusable = |error| files.cert.wrong(format!("can't be used: {error}"));
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(unusable)?;
    let checks_clients = verifier.is_some();
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let shown = SingleCertAndKey::from(parsed.certified.clone());
    let mut config = builder.with_cert_resolver(Arc::new(shown));
    config.alpn_protocols = vec![protocol.to_vec()];
    if checks_clients {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}
