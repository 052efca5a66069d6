//! Whether somebody lives at a port with TLS.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, ClientConfig, RootCertStore,
        pki_types::{DnsName, ServerName},
        version::{TLS12, TLS13},
    },
};

use super::files::provider;

/// Whether the other side answers the beginning of a handshake. Nothing is said to it and nothing is
/// believed: no authority is known, so every certificate is refused.
pub async fn answers(stream: TcpStream) -> bool {
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13, &TLS12]);
    let (Ok(builder), Ok(name)) = (builder, DnsName::try_from("node.invalid")) else { return false };
    let config = builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    match TlsConnector::from(Arc::new(config)).connect(ServerName::DnsName(name), stream).await {
        Ok(_) => true,
        // An error of TLS is about what the other side has sent. Any other one is about the connection.
        Err(error) => error.get_ref().is_some_and(|source| source.is::<rustls::Error>()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_testkit::certificates::Authority;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::tls::{
        server::ServerTls,
        testing::{NOW, server_files},
    };

    #[tokio::test]
    async fn only_who_lives_answers() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
        let live = ServerTls::load(&server_files(folder.path(), &authority.issue(&["a"])), NOW).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            // The other side takes no certificate.
            TlsAcceptor::from(live.current().grpc.clone()).accept(stream).await.unwrap_err();
            // Whoever comes next is accepted by the kernel alone, as of a process that stands still.
            listener
        });
        assert!(answers(TcpStream::connect(address).await.unwrap()).await);
        let listener = serving.await.unwrap();
        let still = answers(TcpStream::connect(address).await.unwrap());
        assert!(tokio::time::timeout(Duration::from_millis(500), still).await.is_err());
        let dying = TcpStream::connect(address).await.unwrap();
        drop(listener);
        assert!(!answers(dying).await);
    }
}
