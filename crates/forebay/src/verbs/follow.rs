//! Begins an operation and follows it to its end. Ctrl-C asks at a terminal what is to become of it;
//! elsewhere the operation goes on.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    pin::pin,
    thread,
};

use forebay_client::{Client, Operation, OperationQuery, OperationState, StartedOperation};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

use crate::{
    failure::{Failure, Status},
    output::{Format, Output},
};

/// The interrupts of whoever waits. From their beginning on they do not end the process.
pub struct Interrupts {
    /// Those to come.
    signal: Signal,
    /// One came while an operation had no id yet.
    is_due: bool,
}

/// What whoever sits at the terminal wants.
enum Wish {
    /// The operation is to end.
    Stop,
    /// It is to go on, and nobody waits for it.
    Leave,
    /// It is followed further.
    Follow,
}

impl Interrupts {
    /// Those from now on.
    pub fn new() -> Result<Self, Failure> {
        Ok(Self { signal: signal(SignalKind::interrupt())?, is_due: false })
    }

    /// Whether one has come, without waiting for it.
    pub async fn has_come(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.next() => true,
            () = std::future::ready(()) => false,
        }
    }

    async fn next(&mut self) {
        if !std::mem::take(&mut self.is_due) {
            self.signal.recv().await;
        }
    }
}

/// Begins an operation. An interrupt waits for its id, without which nobody could end it.
pub async fn begin(
    client: &Client,
    query: OperationQuery,
    interrupts: &mut Interrupts,
) -> Result<StartedOperation, Failure> {
    let mut call = pin!(client.start_operation(query));
    tokio::select! {
        started = &mut call => return Ok(started?),
        () = interrupts.next() => {}
    }
    eprintln!("forebay: waits for the operation's id; another interrupt ends that");
    tokio::select! {
        started = &mut call => {
            interrupts.is_due = true;
            Ok(started?)
        }
        () = interrupts.next() => {
            let line = "the operation may have begun; `forebay operation list` shows it then";
            Err(Failure::new(line).with(Status::Interrupted))
        }
    }
}

/// Waits for the end of an operation, and shows how far it is on a terminal. Each failure names it.
pub async fn to_the_end(
    client: &Client,
    operation: Operation,
    format: &Format,
    interrupts: &mut Interrupts,
) -> Result<Operation, Failure> {
    let id = operation.id.clone();
    follow(client, operation, format, interrupts).await.map_err(|failure| named(failure, &id))
}

/// Fails unless an operation that has ended has done all that it was to do.
pub fn judge(ended: &Operation) -> Result<(), Failure> {
    let line = match ended.state {
        OperationState::Cancelled => "it was cancelled".to_owned(),
        OperationState::Failed => match &ended.error {
            Some(error) => format!("it has failed: {error}"),
            None => "it has failed".to_owned(),
        },
        _ if ended.counts.failed > 0 => format!("{} items could not be changed", ended.counts.failed),
        _ => return Ok(()),
    };
    Err(named(Failure::new(line).with(Status::Partly), &ended.id))
}

fn named(failure: Failure, id: &str) -> Failure {
    failure.begin(&format!("operation {id}: "))
}

async fn follow(
    client: &Client,
    mut operation: Operation,
    format: &Format,
    interrupts: &mut Interrupts,
) -> Result<Operation, Failure> {
    let id = operation.id.clone();
    loop {
        tokio::select! {
            ended = watch(client, &mut operation, format) => {
                ended?;
                return Ok(operation);
            }
            () = interrupts.next() => {}
        }
        match wish(&id, interrupts).await? {
            Wish::Stop => operation = client.cancel_operation(&id).await?,
            Wish::Follow => {}
            Wish::Leave => {
                let line = format!("it goes on; `forebay operation cancel {id}` ends it");
                return Err(Failure::new(line).with(Status::Interrupted));
            }
        }
    }
}

async fn watch(client: &Client, operation: &mut Operation, format: &Format) -> Result<(), Failure> {
    let shows = io::stderr().is_terminal() && matches!(format.output, Output::Table | Output::Wide);
    let mut seen = Ok(());
    while seen.is_ok() && !operation.state.has_ended() {
        match client.operation(&operation.id, Some(operation.version)).await {
            Ok(next) => *operation = next,
            Err(error) => seen = Err(error.into()),
        }
        if shows {
            let counts = operation.counts;
            eprint!("\r{}: {} changed of {} matched  ", operation.id, counts.changed, counts.matched);
        }
    }
    if shows {
        eprintln!();
    }
    seen
}

/// Asks what is to become of the operation. Who is interrupted again, or says nothing, leaves it running.
async fn wish(id: &str, interrupts: &mut Interrupts) -> Result<Wish, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(Wish::Leave);
    }
    eprint!("\nOperation {id} runs. [s]top it, [l]eave it running, or [f]ollow it further? [L] ");
    io::stderr().flush()?;
    let (said, answer) = oneshot::channel();
    // A thread of its own, for which the end of the process does not wait.
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        let _ = said.send(read.map(|_| line));
    });
    let line = tokio::select! {
        line = answer => line.ok().transpose()?.unwrap_or_default(),
        () = interrupts.next() => {
            eprintln!();
            String::new()
        }
    };
    Ok(match line.trim() {
        "s" | "S" | "stop" => Wish::Stop,
        "f" | "F" | "follow" => Wish::Follow,
        _ => Wish::Leave,
    })
}
