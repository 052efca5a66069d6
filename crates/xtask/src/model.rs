//! `cargo xtask model`.

use crate::cargo::cargo;

/// How much to check.
#[derive(clap::Args)]
pub struct Arguments {
    /// Ticks in which faults may happen beyond those of the tests, with one more delay for every two. The
    /// first takes twice as long as the tests; each further one takes much more, in time and memory.
    #[arg(long, default_value_t = 1)]
    depth: u8,
}

/// Runs the tests of the models, one after the other; says whether all passed.
pub fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let mut models = cargo();
    models.args(["test", "--package", "forebay-model"]);
    models.args(["--", "--nocapture", "--test-threads=1"]);
    models.env("FOREBAY_MODEL_DEPTH", arguments.depth.to_string());
    Ok(models.status()?.success())
}
