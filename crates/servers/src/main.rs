//! Runs a private server until its standard input ends: `cargo run -p forebay-servers -- mysql`.

use std::{env, io};

use anyhow::Context as _;
use forebay_servers::{Kind, Process, locate};

fn main() -> anyhow::Result<()> {
    let mut arguments = env::args().skip(1);
    let kind: Kind = arguments.next().context("name the kind of server: mariadb or mysql")?.parse()?;
    let flags: Vec<String> = arguments.collect();
    let server = Process::start(locate(kind)?, &flags)?;
    println!("{} {}", server.url(), server.folder().display());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
