//! The flags of TLS that client verbs share.

use std::path::PathBuf;

use clap::Args;
use forebay_client::{Error, Tls, TlsConfig};

use crate::{contexts::Context, failure::Failure};

/// Authorities to believe, and the certificate to show, at `https://` addresses.
#[derive(Args, Default)]
pub struct TlsFlags {
    /// The authorities of servers' certificates, as PEM; by default those of the system
    #[arg(long, env = "FOREBAY_CA", value_name = "FILE", help_heading = "Server")]
    ca: Option<PathBuf>,
    /// A certificate to show servers, as PEM, with those between it and its authority
    #[arg(long, env = "FOREBAY_CERT", value_name = "FILE", help_heading = "Server", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of --cert, as PEM
    #[arg(long, env = "FOREBAY_KEY", value_name = "FILE", help_heading = "Server", requires = "cert")]
    key: Option<PathBuf>,
    /// The name that servers' certificates are for, where that is not the host of their address
    #[arg(long, env = "FOREBAY_SERVER_NAME", value_name = "NAME", help_heading = "Server")]
    server_name: Option<String>,
}

impl TlsFlags {
    /// The same with what a context says where no flag does.
    pub fn or(&self, context: &Context) -> Self {
        // A certificate belongs to its key.
        let (cert, key) = match &self.cert {
            Some(_) => (&self.cert, &self.key),
            None => (&context.cert, &context.key),
        };
        Self {
            ca: self.ca.as_ref().or(context.ca.as_ref()).cloned(),
            cert: cert.clone(),
            key: key.clone(),
            server_name: self.server_name.as_ref().or(context.server_name.as_ref()).cloned(),
        }
    }

    /// Reads the files, and checks what they hold.
    pub fn config(&self) -> Result<TlsConfig, Failure> {
        let mut config = TlsConfig::default();
        if let Some(path) = &self.ca {
            config = config.ca_certificate_file(path);
        }
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            config = config.client_certificate_files(cert, key);
        }
        if let Some(name) = &self.server_name {
            config = config.server_name(name);
        }
        let wrong = |error: Error| Failure::usage(format!("--ca, --cert, --key: {}", error.message()));
        if config != TlsConfig::default() {
            Tls::new(&config).map_err(wrong)?;
        }
        Ok(config)
    }
}
