//! A server never outlives the process that started it, however that process ends.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

const END_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

struct Owner {
    process: Child,
    /// Its other end stays open, so that the owner can write.
    _stdout: BufReader<ChildStdout>,
    address: String,
    folder: String,
}

fn start() -> Owner {
    let mut process = Command::new(env!("CARGO_BIN_EXE_forebay-servers"))
        .arg("mariadb")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let (url, folder) = line.trim().split_once(' ').unwrap();
    let address = url.rsplit('@').next().unwrap().to_owned();
    let owner = Owner { process, _stdout: stdout, address, folder: folder.to_owned() };
    assert!(owner.has_server());
    owner
}

impl Owner {
    fn has_server(&self) -> bool {
        TcpStream::connect(&self.address).is_ok() || Path::new(&self.folder).exists()
    }

    #[expect(clippy::disallowed_methods, reason = "the processes outside run on real time")]
    fn wait_for_end(&self) {
        let start = std::time::Instant::now();
        while self.has_server() {
            assert!(start.elapsed() < END_TIMEOUT, "still there: {}, {}", self.address, self.folder);
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

#[test]
fn a_server_ends_with_an_owner_that_is_killed() {
    let mut owner = start();
    owner.process.kill().unwrap();
    owner.process.wait().unwrap();
    owner.wait_for_end();
}

#[test]
fn a_server_ends_with_an_owner_that_is_done() {
    let mut owner = start();
    drop(owner.process.stdin.take());
    assert!(owner.process.wait().unwrap().success());
    owner.wait_for_end();
}
