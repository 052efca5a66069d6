//! Files of certificates, and a client that connects over TLS, for tests.

use std::{io, net::SocketAddr, path::Path, sync::Arc};

use forebay_testkit::certificates::{Authority, IssuedCertificate};
use forebay_types::Timestamp;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    },
};

use super::{
    files::provider,
    settings::{ClientAuth, ServerTlsFiles},
};

/// 2026-09-21T14:13:20Z, in seconds.
pub(crate) const NOW_SECONDS: u64 = 1_790_000_000;
/// The same.
pub const NOW: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

/// Writes a certificate of a server, and names its files.
pub(crate) fn server_files(folder: &Path, issued: &IssuedCertificate) -> ServerTlsFiles {
    let [cert, key] = issued.write(folder, "server");
    ServerTlsFiles { cert, key, client_ca: None, client_auth: ClientAuth::Off }
}

/// Connects to a server whose certificate must be of an authority and for `localhost`.
pub async fn connect(
    address: SocketAddr,
    authority: &Authority,
    shown: Option<&IssuedCertificate>,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(client(authority, shown)).connect(name, stream).await
}

/// The settings of such a client.
pub fn client(authority: &Authority, shown: Option<&IssuedCertificate>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let builder = builder.unwrap().with_root_certificates(roots);
    Arc::new(match shown {
        None => builder.with_no_client_auth(),
        Some(issued) => {
            let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![issued.der.clone().into()], key).unwrap()
        }
    })
}
