//! The flags that say which servers to call, and for whom.

use clap::Args;
use forebay_client::{Client, ClientConfig, TlsConfig, Token};

use super::tls_flags::TlsFlags;
use crate::{
    contexts::{self, Context},
    failure::Failure,
    log,
    token_flags::TokenFlags,
};

/// Where a server is unless something else is said.
const DEFAULT_ADDR: &str = "127.0.0.1:7420";
/// The namespace of calls unless something else is said.
const DEFAULT_NAMESPACE: &str = "default";

/// The servers and the namespace.
#[derive(Args, Default)]
pub struct Servers {
    /// The context that holds where no other flag or variable does; see `forebay context` [default: the
    /// current one, unless an address is given]
    #[arg(long, env = "FOREBAY_CONTEXT", value_name = "NAME", help_heading = "Server")]
    context: Option<String>,
    /// The server's gRPC address, as host:port, http://host:port or https://host:port; several, with commas
    /// between them or each after its own --addr: if one can't be reached, another is called [default:
    /// 127.0.0.1:7420]
    #[arg(
        long,
        env = "FOREBAY_ADDR",
        value_name = "ADDRESS",
        value_delimiter = ',',
        help_heading = "Server"
    )]
    addr: Vec<String>,
    /// The namespace of the call [default: default]
    #[arg(long, env = "FOREBAY_NAMESPACE", value_name = "NAME", help_heading = "Server")]
    namespace: Option<String>,
    /// TLS, if the servers use it.
    #[command(flatten)]
    tls: TlsFlags,
    /// Credentials, if nodes ask for them.
    #[command(flatten)]
    token: TokenFlags,
    /// Log to stderr what the client does
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,
}

impl Servers {
    /// The namespace of the calls.
    pub fn namespace(&self) -> Result<String, Failure> {
        let namespace = match &self.namespace {
            Some(_) => self.namespace.clone(),
            None => self.context()?.namespace,
        };
        Ok(namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()))
    }

    /// The namespace that a flag or a variable names.
    pub fn given_namespace(&self) -> Option<String> {
        self.namespace.clone()
    }

    /// Returns the settings of TLS.
    pub fn tls(&self) -> Result<TlsConfig, Failure> {
        self.tls.or(&self.context()?).config()
    }

    /// Returns the credentials for nodes that ask for them.
    pub fn token(&self) -> Result<Option<Token>, Failure> {
        self.token.or(&self.context()?).token()
    }

    /// Returns the configuration of a client.
    pub fn config(&self) -> Result<ClientConfig, Failure> {
        if self.verbose {
            log::start_verbose();
        }
        Ok(ClientConfig {
            endpoints: self.addrs()?,
            tls: self.tls()?,
            token: self.token()?,
            insecure: self.token.or(&self.context()?).is_insecure(),
            ..ClientConfig::new("").namespace(self.namespace()?)
        })
    }

    /// The addresses of the servers.
    pub fn addrs(&self) -> Result<Vec<String>, Failure> {
        let addrs = match self.addr.as_slice() {
            [] => self.context()?.addr,
            given => given.to_vec(),
        };
        Ok(if addrs.is_empty() { vec![DEFAULT_ADDR.to_owned()] } else { addrs })
    }

    /// Returns the values that hold where no flag and no variable gives one. The credentials of the current
    /// context are not for other servers than its own.
    fn context(&self) -> Result<Context, Failure> {
        match &self.context {
            None if !self.addr.is_empty() => Ok(Context::default()),
            name => contexts::chosen(name.as_deref()),
        }
    }

    /// A client of servers that need not be there yet.
    pub fn client(&self, config: ClientConfig) -> Result<Client, Failure> {
        Client::connect(config).map_err(|error| Failure::usage(format!("--addr: {}", error.message())))
    }
}
