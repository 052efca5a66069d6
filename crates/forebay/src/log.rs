//! Logs to stderr. `RUST_LOG` overrides the configuration.

use std::io::IsTerminal as _;

use forebay_node::config::{Config, LogFormat};
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// Starts to log as configured.
pub fn start(config: &Config) -> Result<(), Failure> {
    let directives = std::env::var("RUST_LOG").unwrap_or_else(|_| config.log.clone());
    let filter = EnvFilter::try_new(&directives).map_err(|error| {
        Failure::new(format!(
            "{directives:?} is not a valid log filter: {error} (set `node.log`, or RUST_LOG)"
        ))
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match config.log_format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
