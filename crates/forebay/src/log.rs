//! Logs to stderr.

use std::io::IsTerminal as _;

use forebay_config::{Config, LogFormat, log_filter};

use crate::failure::Failure;

/// Starts to log as configured.
pub fn start(config: &Config) -> Result<(), Failure> {
    // The configuration was checked with the same function.
    let filter = log_filter(&config.log).map_err(Failure::new)?;
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

/// Starts to log what goes wrong for a client that works for long. If more is logged already, it stays so.
pub fn start_warnings() {
    begin("error,forebay=warn,forebay_client=warn,h2=off");
}

/// Starts to log what a client does, for somebody who looks into it. A second time does nothing.
pub fn start_verbose() {
    begin("warn,forebay=debug,forebay_client=debug,h2=off");
}

fn begin(filter: &str) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    drop(builder.try_init());
}
