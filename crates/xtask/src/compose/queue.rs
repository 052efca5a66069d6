//! The queue, as the command line in a container shows it.

use std::{
    collections::BTreeSet,
    io::Write as _,
    process::{Output, Stdio},
    thread,
};

use anyhow::{Context as _, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::stack::Container;

/// The most items of a call.
pub const ITEMS_MAX: usize = 500;
/// Leases are short: what a dead node has delivered comes again soon.
const LEASE: &str = "15s";
/// The topic of all items.
const TOPIC: &str = "compose";
/// How the command line ends if no item came in time.
const EMPTY: i32 = 3;

/// Outcome of one member of a call, as an answer has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done for sure.
    Done,
    /// Refused, or nobody knows.
    Failed,
}

/// An item that came.
#[derive(Debug)]
pub struct Delivery {
    /// Its payload.
    pub payload: String,
    /// Receipt that acks it.
    pub receipt: String,
    /// Which delivery of the item it is, from 1.
    pub attempt: u64,
}

/// A node, called from within its own container.
pub struct Queue<'a> {
    /// The container.
    node: &'a Container,
}

impl<'a> Queue<'a> {
    /// The queue at this node.
    pub fn at(node: &'a Container) -> Self {
        Self { node }
    }

    /// Enqueues one item for each payload, at the first of these nodes that answers.
    pub fn enqueue(
        &self,
        nodes: &[Container],
        payloads: &[String],
    ) -> anyhow::Result<Vec<(String, Outcome)>> {
        let addresses: Vec<_> = nodes.iter().map(|node| format!("{}:7420", node.name())).collect();
        let arguments =
            ["enqueue", "--addr", &addresses.join(","), "--topic", TOPIC, "--lines", "--output", "json"];
        let output = self.run(&arguments, Some(payloads.join("\n")))?;
        // Where the call failed as a whole, no item has an answer.
        let answers = json(&output)?;
        let answers = list(&answers, "results")?;
        let mut outcomes: Vec<_> =
            payloads.iter().map(|payload| (payload.clone(), Outcome::Failed)).collect();
        for answer in answers {
            let line = answer["line"].as_u64().context("an answer without its line")? as usize;
            outcomes.get_mut(line - 1).context("an answer to no line")?.1 = outcome(answer);
        }
        Ok(outcomes)
    }

    /// Dequeues up to so many items of the node's shards, at most [`ITEMS_MAX`].
    pub fn dequeue(&self, items: usize) -> anyhow::Result<Vec<Delivery>> {
        let items = items.to_string();
        let output = self.run(
            &[
                "dequeue", "--topic", TOPIC, "--max", &items, "--wait", "1s", "--lease", LEASE, "--output",
                "json",
            ],
            None,
        )?;
        ensure!(output.status.success() || output.status.code() == Some(EMPTY), "dequeue: {}", said(&output));
        list(&json(&output)?, "items")?.iter().map(delivery).collect()
    }

    /// Acks deliveries.
    pub fn ack(&self, deliveries: &[Delivery]) -> anyhow::Result<Vec<(String, Outcome)>> {
        if deliveries.is_empty() {
            return Ok(Vec::new());
        }
        let mut arguments = vec!["ack", "--output", "json"];
        arguments.extend(deliveries.iter().map(|delivery| delivery.receipt.as_str()));
        let output = self.run(&arguments, None)?;
        if output.stdout.is_empty() {
            return Ok(deliveries.iter().map(|it| (it.payload.clone(), Outcome::Failed)).collect());
        }
        let answers = json(&output)?;
        let answers = list(&answers, "results")?;
        ensure!(
            answers.len() == deliveries.len(),
            "{} acks have {} answers",
            deliveries.len(),
            answers.len()
        );
        Ok(deliveries.iter().zip(answers).map(|(it, answer)| (it.payload.clone(), outcome(answer))).collect())
    }

    /// The names of all nodes that own shards. It has an empty name if a shard has no owner.
    pub fn owners(&self) -> anyhow::Result<BTreeSet<String>> {
        let output = self.run(&["shard", "list", "--output", "json"], None)?;
        ensure!(output.status.success(), "shards: {}", said(&output));
        let shards = json(&output)?;
        let owners = list(&shards, "shards")?.iter().map(|shard| shard["owner"].as_str());
        owners.map(|owner| Ok(owner.context("a shard without an owner's name")?.to_owned())).collect()
    }

    /// Runs the command line in the container, with this as its standard input.
    fn run(&self, arguments: &[&str], input: Option<String>) -> anyhow::Result<Output> {
        let mut command = self.node.exec();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("docker")?;
        let mut stdin = child.stdin.take().context("no stdin")?;
        // Its output is read meanwhile. If it ends before it has read everything, its status says why.
        let writer = thread::spawn(move || drop(stdin.write_all(input.unwrap_or_default().as_bytes())));
        let output = child.wait_with_output()?;
        writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?;
        Ok(output)
    }
}

fn outcome(answer: &Value) -> Outcome {
    if answer.get("error").is_none() { Outcome::Done } else { Outcome::Failed }
}

fn delivery(item: &Value) -> anyhow::Result<Delivery> {
    let text = |key: &str| item[key].as_str().with_context(|| format!("an item without {key}: {item}"));
    Ok(Delivery {
        payload: String::from_utf8(STANDARD.decode(text("payload")?)?)?,
        receipt: text("receipt")?.to_owned(),
        attempt: item["attempt"].as_u64().context("an item without its attempt")?,
    })
}

fn json(output: &Output) -> anyhow::Result<Value> {
    serde_json::from_slice(&output.stdout).with_context(|| said(output))
}

fn list<'a>(answer: &'a Value, key: &str) -> anyhow::Result<&'a Vec<Value>> {
    answer[key].as_array().with_context(|| format!("an answer without {key}: {answer}"))
}

/// How it ended and what it said.
fn said(output: &Output) -> String {
    format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())
}
