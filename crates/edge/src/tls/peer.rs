//! TLS between nodes: both sides show a certificate of one of the same authorities.

use std::{io, sync::Arc, time::Duration};

use forebay_types::Timestamp;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig,
        SignatureScheme,
        client::{
            Resumption, danger::HandshakeSignatureValid, verify_server_cert_signed_by_trust_anchor,
            verify_server_name,
        },
        pki_types::{CertificateDer, ServerName, UnixTime},
        server::{
            ParsedCertificate, WebPkiClientVerifier,
            danger::{ClientCertVerified, ClientCertVerifier},
        },
        sign::SingleCertAndKey,
        version::{TLS12, TLS13},
    },
};

use super::{
    files::{Files, ParsedFiles, TlsError, provider},
    live::Live,
    server::{HTTP2, server_config},
    settings::PeerTlsFiles,
};

/// TLS settings of connections between nodes.
pub struct PeerTls {
    /// Of the port for other nodes.
    pub server: Arc<ServerConfig>,
    /// Checks the certificates of nodes.
    pub nodes: Arc<dyn ClientCertVerifier>,
    /// Of connections to other nodes.
    client: TlsConnector,
    /// A name that every node's certificate has.
    name: Option<ServerName<'static>>,
}

impl PeerTls {
    /// Reads the files.
    pub fn load(settings: &PeerTlsFiles, now: Timestamp) -> Result<Arc<Live<Self>>, TlsError> {
        let files = Files::new(("peer_cert_file", &settings.cert), ("peer_key_file", &settings.key))
            .with_ca("peer_ca_file", &settings.ca);
        let name = settings.name.as_deref().and_then(|name| ServerName::try_from(name.to_owned()).ok());
        Live::load(files, &["peer"], now, move |files, parsed, now| {
            Self::build(files, parsed, name.clone(), now)
        })
    }

    fn build(
        files: &Files,
        parsed: &ParsedFiles,
        name: Option<ServerName<'static>>,
        now: Timestamp,
    ) -> Result<Self, TlsError> {
        let roots = parsed.roots.clone().unwrap_or_else(|| Arc::new(RootCertStore::empty()));
        let authority = files.ca.as_ref().unwrap_or(&files.cert);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider())
            .build()
            .map_err(|error| authority.wrong(format!("can't be used: {error}")))?;
        let verifier: Arc<dyn ClientCertVerifier> = match &name {
            Some(name) => Arc::new(NamedNodes { inner: verifier, name: name.clone() }),
            None => verifier,
        };
        // The certificate that this node shows must be one that it takes from others: all are configured
        // alike.
        check_own(parsed, &roots, &*verifier, now)
            .map_err(|error| files.cert.wrong(format!("would not be taken by other nodes: {error}")))?;
        let unusable = |error| files.cert.wrong(format!("can't be used: {error}"));
        let mut client = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(parsed.certified.clone())));
        client.alpn_protocols = vec![HTTP2.to_vec()];
        client.resumption = Resumption::disabled();
        let server = server_config(files, parsed, Some(verifier.clone()), HTTP2)?;
        Ok(Self {
            server: Arc::new(server),
            nodes: verifier,
            client: TlsConnector::from(Arc::new(client)),
            name,
        })
    }

    /// Secures a connection to the node at `host`, a name or an address without brackets.
    pub async fn connect(&self, stream: TcpStream, host: &str) -> io::Result<TlsStream<TcpStream>> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => ServerName::try_from(host.to_owned()).map_err(io::Error::other)?,
        };
        self.client.connect(name, stream).await
    }
}

/// Checks the node's own certificate as another node does, on both sides of a connection.
fn check_own(
    parsed: &ParsedFiles,
    roots: &RootCertStore,
    verifier: &dyn ClientCertVerifier,
    now: Timestamp,
) -> Result<(), Error> {
    let chain = &parsed.certified.cert;
    let Some((own, between)) = chain.split_first() else { return Err(Error::NoCertificatesPresented) };
    let now = Duration::from_micros(u64::try_from(now.as_micros()).unwrap_or(0));
    let now = UnixTime::since_unix_epoch(now);
    verifier.verify_client_cert(own, between, now)?;
    let algorithms = provider().signature_verification_algorithms.all;
    let own = ParsedCertificate::try_from(own)?;
    verify_server_cert_signed_by_trust_anchor(&own, roots, between, now, algorithms)
}

/// Takes callers whose certificates have a name, and no others of the same authority.
#[derive(Debug)]
struct NamedNodes {
    /// Checks everything else.
    inner: Arc<dyn ClientCertVerifier>,
    /// The name.
    name: ServerName<'static>,
}

impl ClientCertVerifier for NamedNodes {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(end_entity, intermediates, now)?;
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, &self.name)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
