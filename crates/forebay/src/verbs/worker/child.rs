//! One run of the command, from its start to its end.

use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use forebay_client::Delivery;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};

use super::{
    environment, stderr_tail,
    stopping::{Stage, StopSignal},
};

/// How long the rest of a command's stderr is awaited: what it has started may keep it open.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// How a run of the command ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// With this status.
    Exited(u8),
    /// By a signal from elsewhere.
    Signalled(i32),
    /// It could not be started, for this reason.
    NotRun(io::ErrorKind, String),
    /// It took too long and was stopped.
    TimedOut,
    /// The worker stops and has stopped it.
    Stopped,
    /// The lease was lost, so it was stopped.
    LeaseLost,
}

impl End {
    fn not_run(error: &io::Error) -> Self {
        Self::NotRun(error.kind(), error.to_string())
    }
}

/// How the command is run.
#[derive(Debug)]
pub struct Runner {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The namespace of the items.
    pub namespace: String,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// How long it has after SIGTERM.
    pub kill_after: Duration,
    /// Whether the worker stops.
    pub stopping: StopSignal,
}

impl Runner {
    /// Runs the command on an item. Returns how it ended, and the end of its stderr.
    pub async fn run(&self, delivery: &mut Delivery, result_file: &Path) -> (End, Vec<u8>) {
        let mut child = match self.start(delivery, result_file) {
            Ok(child) => child,
            Err(error) => return (End::not_run(&error), Vec::new()),
        };
        let tail = watch::Sender::new(Vec::new());
        let stderr = child.stderr.take().map(|stderr| {
            tokio::spawn(stderr_tail::follow(stderr, delivery.item.item_id.clone(), tail.clone()))
        });
        let stdin = child.stdin.take().map(|mut stdin| {
            let payload = delivery.item.payload.clone();
            // A command that does not read it is fine.
            tokio::spawn(async move { drop(stdin.write_all(&payload).await) })
        });
        let end = self.wait(&mut child, delivery).await;
        stdin.iter().for_each(JoinHandle::abort);
        if let Some(mut stderr) = stderr
            && timeout(STDERR_TIMEOUT, &mut stderr).await.is_err()
        {
            stderr.abort();
        }
        let tail = tail.borrow().clone();
        (end, tail)
    }

    fn start(&self, delivery: &Delivery, result_file: &Path) -> io::Result<Child> {
        let (program, arguments) = self.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        environment::set(&mut command, &self.namespace, &delivery.item, result_file);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C is for the worker, and signals reach all that the command has started.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
    }

    async fn wait(&self, child: &mut Child, delivery: &mut Delivery) -> End {
        let too_long = async {
            match self.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let end = tokio::select! {
            biased;
            status = child.wait() => return ended(status),
            () = delivery.lost() => End::LeaseLost,
            () = self.stopping.reached(Stage::Terminate) => End::Stopped,
            () = too_long => End::TimedOut,
        };
        self.stop(child).await;
        end
    }

    /// Tells the command and all that it has started to stop, and kills what does not.
    async fn stop(&self, child: &mut Child) {
        // Not waited for yet, so the number is still its own.
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let signal = |signal| group.is_some_and(|group| kill_process_group(group, signal).is_ok());
        signal(Signal::TERM);
        tokio::select! {
            _ = child.wait() => {}
            () = tokio::time::sleep(self.kill_after) => {}
            () = self.stopping.reached(Stage::Kill) => {}
        }
        // Also what the command leaves behind.
        signal(Signal::KILL);
        // It was killed, so it ends.
        let _ = child.wait().await;
    }
}

fn ended(status: io::Result<ExitStatus>) -> End {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            // A status has eight bits.
            (Some(code), _) => End::Exited(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, signal) => End::Signalled(signal.unwrap_or(0)),
        },
        Err(error) => End::not_run(&error),
    }
}
