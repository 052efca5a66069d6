//! Follows an operation to its end. Ctrl-C asks at a terminal what is to become of it; elsewhere the
//! operation goes on.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    thread,
};

use forebay_client::{Client, Operation};
use tokio::{signal::ctrl_c, sync::oneshot};

use crate::{
    failure::{Failure, Status},
    output::{Format, Output},
};

/// What whoever sits at the terminal wants.
enum Wish {
    /// The operation is to end.
    Stop,
    /// It is to go on, and nobody waits for it.
    Leave,
    /// It is followed further.
    Follow,
}

/// Waits for the end of an operation, and shows how far it is on a terminal.
pub async fn to_the_end(
    client: &Client,
    mut operation: Operation,
    format: &Format,
) -> Result<Operation, Failure> {
    let id = operation.id.clone();
    loop {
        tokio::select! {
            ended = watch(client, &mut operation, format) => {
                ended?;
                return Ok(operation);
            }
            _ = ctrl_c() => {}
        }
        match wish(&id).await? {
            Wish::Stop => operation = client.cancel_operation(&id).await?,
            Wish::Follow => {}
            Wish::Leave => {
                let line = format!("it goes on as operation {id}; `forebay operation cancel {id}` ends it");
                return Err(Failure::new(line).with(Status::Interrupted));
            }
        }
    }
}

async fn watch(client: &Client, operation: &mut Operation, format: &Format) -> Result<(), Failure> {
    let shows = io::stderr().is_terminal() && matches!(format.output, Output::Table | Output::Wide);
    while !operation.state.has_ended() {
        *operation = client.operation(&operation.id, Some(operation.version)).await?;
        if shows {
            let counts = operation.counts;
            eprint!("\r{}: {} changed of {} matched  ", operation.id, counts.changed, counts.matched);
        }
    }
    if shows {
        eprintln!();
    }
    Ok(())
}

/// Asks what is to become of the operation. Who is interrupted again, or says nothing, leaves it running.
async fn wish(id: &str) -> Result<Wish, Failure> {
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
        _ = ctrl_c() => {
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
