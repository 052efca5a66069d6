//! `cargo xtask compose`: runs the test that brings the cluster of `docker-compose.yml` up. It needs Docker,
//! and takes a few minutes.

use crate::{
    cargo::{cargo, run_and_listen},
    count::of_cargo_test,
};

/// Builds and runs it.
const TEST: [&str; 9] =
    ["test", "--package", "forebay-tests", "--test", "e2e", "--features", "containers", "--", "compose::"];

/// Runs it; says whether it passed.
pub fn run() -> anyhow::Result<bool> {
    let (done, lines) = run_and_listen(cargo().args(TEST).arg("--nocapture"))?;
    // A run of no test at all is no pass.
    Ok(done && of_cargo_test(&lines).passed > 0)
}
