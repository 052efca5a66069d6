//! TLS settings of the configuration. The files are read when the node starts.

use std::path::PathBuf;

/// `[tls]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Of the gRPC and the HTTP port. `None`: they have no TLS.
    pub server: Option<ServerTlsFiles>,
    /// Between nodes. `None`: there is no TLS.
    pub peer: Option<PeerTlsFiles>,
}

/// Files and rules of TLS at the ports for clients and operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTlsFiles {
    /// The certificate and those between it and its authority, in this order.
    pub cert: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
    /// The authorities of clients.
    pub client_ca: Option<PathBuf>,
    /// Whether clients show a certificate.
    pub client_auth: ClientAuth,
}

/// Files and names of TLS between nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerTlsFiles {
    /// The certificate and those between it and its authority, in this order.
    pub cert: PathBuf,
    /// The certificate's private key.
    pub key: PathBuf,
    /// The authorities of all nodes' certificates.
    pub ca: PathBuf,
    /// A DNS name that every node's certificate has. `None`: that of a node that is called is for the host at
    /// which it is called, and that of a caller may have any name.
    pub name: Option<String>,
}

/// Whether clients show a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not asked for one.
    #[default]
    Off,
    /// They may. One that is shown must be valid.
    Optional,
    /// They must.
    Required,
}
