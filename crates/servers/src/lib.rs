//! Private MariaDB and MySQL servers for tests: where to find one, how to run it, how to end it. Also
//! Prometheus and its check of a metrics page ([`prometheus`], [`promtool`]), a real browser ([`browser`]),
//! and clocks that a test sets ([`WallClock`]).
//!
//! A server comes from the PATH, else from the distribution's packages, unpacked under `target/servers`
//! and not installed ([`locate`]). It runs in a temporary folder, listens on the address of its place
//! ([`Place`]), and ends with the process that started it, however that process ends ([`Process`]).

mod browser;
mod clock;
#[cfg(feature = "docker")]
pub mod docker;
mod environment;
mod find;
mod handshake;
mod kind;
mod place;
mod process;
mod prometheus;
mod supervised_child;
mod template;
mod unpack;

pub use browser::{Browser, browser};
pub use clock::WallClock;
pub use environment::{MARIADB_URL, MYSQL_URL, REQUIRE, named_by_environment, required};
pub use find::{Install, locate};
pub use handshake::{Handshake, read_handshake};
pub use kind::Kind;
pub use place::Place;
pub use process::{Process, free_port, random};
pub use prometheus::{prometheus, promtool};
pub use supervised_child::SupervisedChild;
