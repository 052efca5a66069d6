//! Private MariaDB and MySQL servers for tests: where to find one, how to run it, how to end it. And
//! Prometheus's check of a metrics page ([`promtool`]).
//!
//! A server comes from the PATH, else from the distribution's packages, unpacked under `target/servers`
//! and not installed ([`locate`]). It runs in a temporary folder, listens on 127.0.0.1 only, and ends
//! with the process that started it, however that process ends ([`Process`]).

#[cfg(feature = "docker")]
pub mod docker;
mod environment;
mod find;
mod handshake;
mod kind;
mod process;
mod promtool;
mod supervised_child;
mod template;
mod unpack;

pub use environment::{MARIADB_URL, MYSQL_URL, REQUIRE, named_by_environment, required};
pub use find::{Install, locate};
pub use handshake::{Handshake, read_handshake};
pub use kind::Kind;
pub use process::{Process, free_port, random};
pub use promtool::promtool;
pub use supervised_child::SupervisedChild;
