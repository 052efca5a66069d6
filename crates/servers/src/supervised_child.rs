//! A child process that does not outlive this process, however this process ends.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

/// A shell starts the child and reads from a pipe whose other end this process holds. When the pipe closes,
/// because this process closes it or has ended, the shell kills the child. It also removes the folder,
/// unless it has read "keep".
const SUPERVISOR: &str = r#"
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

/// A running child. [`SupervisedChild::kill`] ends it. Dropping it also kills the child, a moment later, and
/// removes its folder.
#[derive(Debug)]
pub struct SupervisedChild {
    /// The shell that supervises the child.
    supervisor: Child,
    /// Closing it makes the shell kill the child.
    pipe: ChildStdin,
    /// The process id of the child itself.
    child: Pid,
}

impl SupervisedChild {
    /// Starts the program of `command` with its arguments, environment and folder. Its output goes to
    /// `output.log` in `folder`, which is removed with the child.
    pub fn spawn(command: &Command, folder: &Path) -> anyhow::Result<Self> {
        let mut supervisor = Command::new("/bin/sh");
        supervisor
            .args(["-c", SUPERVISOR, "supervisor"])
            .arg(folder)
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => supervisor.env(name, value),
                None => supervisor.env_remove(name),
            };
        }
        if let Some(at) = command.get_current_dir() {
            supervisor.current_dir(at);
        }
        let mut supervisor = supervisor
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting /bin/sh")?;
        let (Some(pipe), Some(stdout)) = (supervisor.stdin.take(), supervisor.stdout.take()) else {
            bail!("the shell has no pipes");
        };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let child = Pid::from_raw(line.trim().parse().context("the shell printed no process id")?);
        Ok(Self { supervisor, pipe, child: child.context("the shell printed no process id")? })
    }

    /// Ends the child with SIGKILL and waits until it is gone. Its folder stays.
    pub fn kill(mut self) -> anyhow::Result<()> {
        // A shell that was itself signalled is past reading, and kills the child without being told.
        let _ = self.pipe.write_all(b"keep\n");
        drop(self.pipe);
        self.supervisor.wait()?;
        Ok(())
    }

    /// Sends the child a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill_process(self.child, signal)?)
    }

    /// Sends SIGTERM, as an operator would.
    pub fn terminate(&self) -> anyhow::Result<()> {
        self.signal(Signal::TERM)
    }

    /// The process id of the child.
    pub fn pid(&self) -> u32 {
        self.child.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether the child has ended, by itself or not.
    pub fn has_ended(&self) -> bool {
        rustix::process::test_kill_process(self.child).is_err() || is_zombie(self.child)
    }
}

/// A server refuses to run as root unless this flag is set. Empty for other users.
pub(crate) fn as_root() -> Vec<String> {
    if rustix::process::geteuid().is_root() { vec!["--user=root".into()] } else { Vec::new() }
}

/// Whether the process has ended and nobody has asked for its status yet.
fn is_zombie(pid: Pid) -> bool {
    match fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
        // The state follows the name, which is in parentheses and may hold any character.
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')),
        // Without /proc the child's log shows its end, only later.
        Err(_) => Path::new("/proc/self").exists(),
    }
}
