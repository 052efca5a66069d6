//! A child process that does not outlive this one, however this one ends.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

/// The process is a child of a shell that holds the reading end of a pipe from this process. When the pipe
/// closes, because this process wants so or because it is gone, the shell kills the child, and with
/// anything but "keep" as the answer its folder too.
const KEEPER: &str = r#"
folder=$1
shift
trap : INT TERM HUP
"$@" </dev/null >>"$folder/output.log" 2>&1 &
server=$!
echo $server
read -r answer
kill -9 $server
wait $server
[ "$answer" = keep ] || rm -rf "$folder"
"#;

/// A running child. [`Kept::kill`] ends it; one that is dropped is killed as well, a moment later, and its
/// folder removed.
#[derive(Debug)]
pub struct Kept {
    keeper: Child,
    pipe: ChildStdin,
    child: Pid,
}

impl Kept {
    /// Starts program, arguments and environment of `command`; what it says goes to `output.log` in
    /// `folder`, which goes with it.
    pub fn spawn(command: &Command, folder: &Path) -> anyhow::Result<Self> {
        let mut keeper = Command::new("/bin/sh");
        keeper.args(["-c", KEEPER, "keeper"]).arg(folder).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => keeper.env(name, value),
                None => keeper.env_remove(name),
            };
        }
        if let Some(at) = command.get_current_dir() {
            keeper.current_dir(at);
        }
        let mut keeper = keeper
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting a shell")?;
        let (Some(pipe), Some(stdout)) = (keeper.stdin.take(), keeper.stdout.take()) else {
            bail!("the shell has no pipes");
        };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let child = Pid::from_raw(line.trim().parse().context("the shell names no pid")?);
        Ok(Self { keeper, pipe, child: child.context("the shell names no pid")? })
    }

    /// Ends it with SIGKILL and waits until it is gone. Its folder stays.
    pub fn kill(mut self) -> anyhow::Result<()> {
        // A shell that was itself signalled is past reading, and kills the child without being told.
        let _ = self.pipe.write_all(b"keep\n");
        drop(self.pipe);
        self.keeper.wait()?;
        Ok(())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill_process(self.child, signal)?)
    }

    /// Asks it to end, as an operator would.
    pub fn terminate(&self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether it has ended, by itself or not.
    pub fn has_ended(&self) -> bool {
        rustix::process::test_kill_process(self.child).is_err() || is_zombie(self.child)
    }
}

/// Whether the process has ended and nobody has asked for its status yet.
fn is_zombie(pid: Pid) -> bool {
    match fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
        // The state follows the name, which is in parentheses and may hold any character.
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')),
        // Where there is no such file system the child's log tells as much, only later.
        Err(_) => Path::new("/proc/self").exists(),
    }
}
