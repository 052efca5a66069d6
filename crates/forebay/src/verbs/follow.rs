//! Begins an operation and follows it to its end. Ctrl-C asks at a terminal what is to become of it;
//! elsewhere the operation goes on.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    pin::pin,
    thread,
    time::Duration,
};

use forebay_client::{
    Client, Error,
    v1::{
        CancelOperationRequest, GetOperationRequest, Operation, OperationKind, OperationState,
        StartOperationRequest, StartOperationResponse,
    },
};
use forebay_proto::time::to_duration;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

use crate::{
    failure::{Failure, Status},
    output::{Format, Output},
};

/// The longest that one call waits for a change of an operation: shorter than an attempt may take.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// The request for an operation on all items of a topic.
pub fn of_topic(kind: OperationKind, topic: impl Into<String>) -> StartOperationRequest {
    StartOperationRequest { kind: kind.into(), topic: topic.into(), ..Default::default() }
}

/// Begins an operation in the client's namespace, or counts what it would change. A retry begins no second
/// one.
pub async fn start(client: &Client, request: StartOperationRequest) -> Result<StartOperationResponse, Error> {
    let (namespace, request_id) = (client.namespace().to_owned(), client.request_id());
    client.ask(StartOperationRequest { namespace, request_id, ..request }).await
}

/// An operation. `known`: a version for whose change the call waits for a few seconds.
pub async fn look(client: &Client, id: &str, known: Option<u64>) -> Result<Operation, Error> {
    let request = GetOperationRequest {
        namespace: client.namespace().to_owned(),
        operation_id: id.to_owned(),
        wait: known.map(|_| to_duration(WAIT_MAX)),
        version: known.unwrap_or_default(),
    };
    Ok(client.ask(request).await?.operation.unwrap_or_default())
}

/// Ends an operation. What it has done stays done.
pub async fn cancel(client: &Client, id: &str) -> Result<Operation, Error> {
    let namespace = client.namespace().to_owned();
    let request = CancelOperationRequest { namespace, operation_id: id.to_owned() };
    Ok(client.ask(request).await?.operation.unwrap_or_default())
}

/// Nothing more is done.
pub fn has_ended(operation: &Operation) -> bool {
    matches!(
        operation.state(),
        OperationState::Succeeded | OperationState::Cancelled | OperationState::Failed
    )
}

/// The interrupts of whoever waits. From their beginning on they do not end the process.
pub struct Interrupts {
    /// Interrupts to come.
    signal: Signal,
    /// One came while an operation had no id yet.
    is_due: bool,
}

/// Wish of the user at the terminal.
enum Wish {
    /// The operation is to end.
    Stop,
    /// It is to go on, and nobody waits for it.
    Leave,
    /// It is followed further.
    Follow,
}

impl Interrupts {
    /// Interrupts from now on.
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
    request: StartOperationRequest,
    interrupts: &mut Interrupts,
) -> Result<StartOperationResponse, Failure> {
    let mut call = pin!(start(client, request));
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
    let failed = ended.figures.unwrap_or_default().failed;
    let line = match ended.state() {
        OperationState::Cancelled => "it was cancelled".to_owned(),
        OperationState::Failed => match &ended.error {
            Some(error) => format!("it has failed: {}", Error::of_member(error)),
            None => "it has failed".to_owned(),
        },
        _ if failed > 0 => format!("{failed} items could not be changed"),
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
            Wish::Stop => operation = cancel(client, &id).await?,
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
    while seen.is_ok() && !has_ended(operation) {
        match look(client, &operation.id, Some(operation.version)).await {
            Ok(next) => *operation = next,
            Err(error) => seen = Err(error.into()),
        }
        if shows {
            let counts = operation.figures.unwrap_or_default();
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
