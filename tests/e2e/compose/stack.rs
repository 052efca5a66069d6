//! The containers of `docker-compose.yml`, in a project of their own. A command that fails is a panic.

use std::{env, path::Path, process::Command};

use tonic::transport::{Channel, Endpoint};

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
    /// Where this machine reaches its port for clients.
    address: String,
}

impl Stack {
    /// Nothing runs yet.
    pub fn new() -> Self {
        let stack = Self { project: format!("forebay-check-{}", std::process::id()) };
        println!("to remove what is left after an interruption:");
        println!("  docker compose --project-name {} down --volumes", stack.project);
        stack
    }

    /// Builds the image, unless the environment names one.
    pub fn build(&self) {
        if env::var_os(IMAGE).is_none_or(|image| image.is_empty()) {
            show(self.compose().args(["build", NODES]));
        }
    }

    /// Has so many nodes run, and returns them when they are ready.
    pub fn up(&self, nodes: usize) -> Vec<Container> {
        let scale = format!("{NODES}={nodes}");
        let mut command = self.compose();
        output(command.args(["up", "--detach", "--wait", "--no-build", "--no-recreate", "--scale", &scale]));
        let ids = output(self.compose().args(["ps", "--quiet", NODES]));
        let running: Vec<Container> = ids.lines().map(Container::of).collect();
        assert_eq!(running.len(), nodes, "{running:?}");
        running
    }

    /// Ends a node at once. Docker does not start it again by itself.
    pub fn kill(&self, node: &Container) {
        output(Command::new("docker").args(["kill", &node.id]));
    }

    /// Asks Prometheus. `None`: there is no such value.
    pub fn prometheus(&self, query: &str) -> Option<f64> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let url = format!("http://127.0.0.1:9090/api/v1/query?query={encoded}");
        let mut command = self.compose();
        let answer = output(command.args(["exec", "-T", "prometheus", "wget", "-q", "-O", "-", &url]));
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let value = answer.pointer("/data/result/0/value/1").and_then(serde_json::Value::as_str);
        value.map(|value| value.parse().unwrap())
    }

    fn compose(&self) -> Command {
        let mut command = Command::new("docker");
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
        command.args(["compose", "--project-name", &self.project]);
        command
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if std::thread::panicking() {
            show(self.compose().args(["ps", "--all"]));
            show(self.compose().args(["logs", "--no-color", "--tail", LOG_LINES, NODES]));
        }
        show(self.compose().args(["down", "--volumes", "--remove-orphans"]));
    }
}

impl Container {
    fn of(id: &str) -> Self {
        let address = output(Command::new("docker").args(["port", id, "7420"]));
        Self { id: id.to_owned(), address: address.trim().to_owned() }
    }

    /// The name of its host, which is the node's name too.
    pub fn name(&self) -> &str {
        self.id.get(..12).unwrap_or(&self.id)
    }

    /// A connection that is opened on first use, and reopened after it broke.
    pub fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address)).unwrap().connect_lazy()
    }
}

/// Runs a command to its end, and returns what it printed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that prints for whoever waits. It may fail while something else has.
fn show(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success() || std::thread::panicking(), "{command:?}: {status}");
}
