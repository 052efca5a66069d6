//! Real database servers for tests.
//!
//! `cargo xtask test` starts one server of each kind for the whole run and names them in the environment. A
//! plain `cargo test` starts its own, once for each process. In both cases a test creates a fresh database
//! ([`Server::fresh_url`]) and shares nothing else. A test that kills its server starts a [`Private`] one.

mod database;
mod foreign;
mod kill;
mod private;
mod replicated;
mod shared;

pub use forebay_servers::{Browser, Kind, Place, WallClock, browser, free_port, prometheus, promtool};
pub use foreign::Foreign;
pub use kill::{Kill, kill};
pub use private::Private;
pub use replicated::ReplicatedPair;
pub use shared::{Server, mariadb, mysql, shared};
