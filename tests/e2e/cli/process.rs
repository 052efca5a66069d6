//! What a terminal and its user see of the process.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::Stdio,
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{Server, forebay};

/// Both ends of a terminal of its own.
fn terminal() -> (File, File) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
    (controller.into(), File::options().read(true).write(true).open(name).unwrap())
}

#[tokio::test]
async fn somebody_at_a_terminal_is_told_what_is_read() {
    let server = Server::start().await;
    for (flags, what) in [(&[][..], "the payload"), (&["--lines"][..], "one item a line")] {
        let (mut controller, terminal) = terminal();
        let mut command = forebay(&["enqueue", "--topic", "t"]);
        command.args(flags).env("FOREBAY_ADDR", &server.node.grpc);
        command.stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains(what) && line.contains("Ctrl-D"), "{line}");
        controller.write_all(b"typed\n\x04").unwrap();
        let mut stdout = String::new();
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        assert!(child.wait().unwrap().success() && stdout.contains("stored"), "{stdout}");
    }
    // A pipe is not told.
    assert_eq!(server.run_with(&["enqueue", "--topic", "t"], "x").await.stderr, "");
}
