//! The containers of `docker-compose.yml`, in a project of their own.

use std::{env, process::Command};

use anyhow::{Context as _, ensure};

use crate::cargo::workspace;

/// The service of the nodes.
const NODES: &str = "forebay";
/// Names an image that is there, so that none is built.
const IMAGE: &str = "FOREBAY_IMAGE";
/// Lines of each node's log that are printed after a failure.
const LOG_LINES: &str = "50";

/// The cluster. Dropped, it is taken down with everything that it stored.
pub struct Stack {
    /// The name under which Docker knows it.
    project: String,
}

/// The container of a node.
#[derive(Debug, Clone)]
pub struct Container {
    /// Its id.
    id: String,
}

impl Stack {
    /// Nothing runs yet. Fails where Docker is not there.
    pub fn new() -> anyhow::Result<Self> {
        let stack = Self { project: format!("forebay-check-{}", std::process::id()) };
        run(stack.compose().args(["version", "--short"])).context("docker compose is needed")?;
        println!("to remove what is left after an interruption:");
        println!("  docker compose --project-name {} down --volumes", stack.project);
        Ok(stack)
    }

    /// Builds the image, unless the environment names one.
    pub fn build(&self) -> anyhow::Result<()> {
        if env::var_os(IMAGE).is_some_and(|image| !image.is_empty()) {
            return Ok(());
        }
        show(self.compose().args(["build", NODES]))
    }

    /// Starts what does not run, with so many nodes, and returns when they are ready.
    pub fn up(&self, nodes: usize) -> anyhow::Result<()> {
        let scale = format!("{NODES}={nodes}");
        let mut command = self.compose();
        command.args(["up", "--detach", "--wait", "--no-build", "--no-recreate", "--scale", &scale]);
        run(&mut command).map(drop)
    }

    /// The nodes that run.
    pub fn nodes(&self) -> anyhow::Result<Vec<Container>> {
        let ids = run(self.compose().args(["ps", "--quiet", NODES]))?;
        Ok(ids.lines().map(|id| Container { id: id.to_owned() }).collect())
    }

    /// Ends a node at once. Docker does not start it again by itself.
    pub fn kill(&self, node: &Container) -> anyhow::Result<()> {
        run(Command::new("docker").args(["kill", &node.id])).map(drop)
    }

    /// Asks Prometheus. `None`: there is no such value.
    pub fn prometheus(&self, query: &str) -> anyhow::Result<Option<f64>> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let url = format!("http://127.0.0.1:9090/api/v1/query?query={encoded}");
        let mut command = self.compose();
        let answer = run(command.args(["exec", "-T", "prometheus", "wget", "-q", "-O", "-", &url]))?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        let value = answer.pointer("/data/result/0/value/1").and_then(serde_json::Value::as_str);
        Ok(value.map(str::parse).transpose()?)
    }

    /// Prints the ends of the nodes' logs.
    pub fn print_logs(&self) {
        // Something has failed already, which is what is reported.
        let _ = show(self.compose().args(["ps", "--all"]));
        let _ = show(self.compose().args(["logs", "--no-color", "--tail", LOG_LINES, NODES]));
    }

    fn compose(&self) -> Command {
        let mut command = Command::new("docker");
        command.current_dir(workspace()).args(["compose", "--project-name", &self.project]);
        command
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let down = ["down", "--volumes", "--remove-orphans"];
        if let Err(error) = run(self.compose().args(down)) {
            eprintln!("xtask: {error:#}");
        }
    }
}

impl Container {
    /// The name of its host, which is the node's name too.
    pub fn name(&self) -> &str {
        self.id.get(..12).unwrap_or(&self.id)
    }

    /// Runs the program in it.
    pub fn exec(&self) -> Command {
        let mut command = Command::new("docker");
        command.args(["exec", "--interactive", &self.id, "forebay"]);
        command
    }

    /// Fails if the node is not ready.
    pub fn check_ready(&self) -> anyhow::Result<()> {
        run(self.exec().arg("health")).map(drop).with_context(|| format!("{} is not ready", self.name()))
    }
}

/// Runs a command to its end, and returns what it printed.
fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{}", output.status, errors.trim());
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a command that prints for whoever waits.
fn show(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
