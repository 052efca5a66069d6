//! TLS of the node's ports: certificates from files, which may change while the node runs, and handshakes.
//!
//! `files.rs` reads and checks a certificate, its key and an authority. `server.rs` and `peer.rs` make the
//! settings of the ports of them. `live.rs` holds what is in use, and takes over what the files say anew.
//! `reload.rs` looks at the files from time to time. `listener/` accepts connections, by what `source.rs`
//! says that their ports show and ask for; `preface.rs` reads how those of HTTP/2 begin,
//! and `guarded.rs` ends them.

mod certificate;
mod failure;
mod files;
mod guarded;
mod listener;
mod live;
mod peer;
mod preface;
mod principal;
mod reload;
mod server;
mod settings;
mod source;
mod stream;
#[cfg(test)]
mod testing;

pub use certificate::end_of as end_of_certificate;
pub use files::TlsError;
pub use files::provider;
pub use guarded::{GuardedStream, Usage};
pub use listener::{AcceptedConnection, HandshakeConfig, Listener};
pub use live::Live;
pub use peer::PeerTls;
pub use principal::Principal;
pub use reload::{CertificateState, Certificates, ReloadTask};
pub use settings::{ClientAuth, PeerTlsFiles, ServerTlsFiles, TlsSettings};
pub use source::Source;
pub use stream::Stream;
