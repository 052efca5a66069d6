//! `forebay context add`

use std::path::{PathBuf, absolute};

use clap::Args;
use forebay_client::{Client, ClientConfig, Token};

use crate::{
    contexts::{Context, Contexts},
    failure::Failure,
    verbs::tls_flags::TlsFlags,
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay context add dev --addr 127.0.0.1:7420
  forebay context add prod --addr https://queue1:7420 --namespace mail --ca ca.crt --replace")]
pub struct Add {
    /// Its name
    name: String,
    /// The servers' gRPC addresses, with commas between them or each after its own --addr
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', required = true)]
    addr: Vec<String>,
    /// The namespace of calls
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// The authorities of servers' certificates, as PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A certificate to show servers, as PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of --cert, as PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The name that servers' certificates are for, where that is not the host of their address
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,
    /// A file with a token to show servers
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Show the token to servers on other machines without TLS too: whoever is on the way can use it then
    #[arg(long)]
    insecure: bool,
    /// Replace a context that has this name
    #[arg(long)]
    replace: bool,
}

impl Add {
    /// Adds a context. The first one becomes the current one.
    pub async fn run(self) -> Result<(), Failure> {
        let mut contexts = Contexts::load()?;
        if contexts.context.contains_key(&self.name) && !self.replace {
            return Err(Failure::new(format!("there is a context {} already; use --replace", self.name)));
        }
        // Commands run in other folders.
        let file = |path: Option<PathBuf>| path.map(absolute).transpose();
        let context = Context {
            addr: self.addr,
            namespace: self.namespace,
            ca: file(self.ca)?,
            cert: file(self.cert)?,
            key: file(self.key)?,
            server_name: self.server_name,
            token_file: file(self.token_file)?,
            insecure: self.insecure,
        };
        let tls = TlsFlags::default().or(&context).config()?;
        // The file may come later. What matters is where its token would go.
        let token = context.token_file.as_ref().map(|_| Token::Given("any".to_owned()));
        let config = ClientConfig { endpoints: context.addr.clone(), tls, token, ..ClientConfig::new("") };
        let config = config.insecure(self.insecure);
        Client::connect(config).map_err(|error| Failure::usage(format!("--addr: {}", error.message())))?;
        contexts.current.get_or_insert_with(|| self.name.clone());
        contexts.context.insert(self.name, context);
        contexts.save()
    }
}
