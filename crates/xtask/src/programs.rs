//! Runs the programs of README.md and docs/START.md against a node with TLS and tokens: curl, Python by gRPC
//! and by the Connect protocol, and Rust. It needs `openssl`, `curl`, `python3`, and what pip installs.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, ensure};

use crate::cargo::{build_forebay, cargo, workspace};

/// Packages of pip that the programs need.
const PACKAGES: [&str; 5] =
    ["grpcio", "grpcio-tools", "googleapis-common-protos", "connectrpc", "protoc-gen-connectrpc"];
/// How the commands for curl begin in a document.
const CURL: &str = "curl http://127.0.0.1:7421";

/// A node, and what a client needs to call it.
struct Node {
    /// The process.
    child: Child,
    /// `host:port` of gRPC and of HTTP.
    addresses: [String; 2],
    /// The token of a tenant.
    token: String,
    /// The folder with everything.
    folder: PathBuf,
}

impl Drop for Node {
    fn drop(&mut self) {
        // It has nothing that is worth a clean stop.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs them all, one after the other. Fails with the first one that does.
pub fn run() -> anyhow::Result<bool> {
    let node = start(&build_forebay()?)?;
    for document in ["README.md", "docs/START.md"] {
        curl(&node, document).with_context(|| document.to_owned())?;
    }
    println!("curl: done");
    let python = install(&node.folder)?;
    let [grpc, http] = &node.addresses;
    node.expect(Command::new(&python).arg("docs/examples/worker.py").arg(grpc), "done")?;
    println!("Python, gRPC: done");
    let http = format!("https://{http}");
    node.expect(Command::new(&python).arg("docs/examples/connect_worker.py").arg(http), "done")?;
    println!("Python, Connect: done");
    let example = ["run", "--quiet", "--package", "forebay-client", "--example", "worker", "--"];
    node.expect(cargo().args(example).arg(format!("https://{grpc}")), "10000 items are done")?;
    println!("Rust: done");
    Ok(true)
}

/// The stdout of a command, which must succeed.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.current_dir(workspace()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

impl Node {
    /// Runs a program that is to say something at its end.
    fn expect(&self, command: &mut Command, says: &str) -> anyhow::Result<()> {
        let command = command
            .env("FOREBAY_CA", self.folder.join("ca.crt"))
            .env("FOREBAY_TOKEN", &self.token)
            .env("PYTHONPATH", self.folder.join("gen"));
        let said = output(command)?;
        ensure!(said.contains(says), "{command:?} does not say {says:?}: {said}");
        Ok(())
    }
}

/// Starts a node that asks for tokens, with a certificate of an authority of its own.
fn start(forebay: &Path) -> anyhow::Result<Node> {
    let folder = workspace().canonicalize()?.join("target/programs");
    for file in ["1.db", "1.db-wal", "1.db-shm", "tokens.toml"] {
        // Removes a file that an earlier run has left, if there was one.
        let _ = fs::remove_file(folder.join(file));
    }
    fs::create_dir_all(&folder)?;
    let at = |file: &str| folder.join(file).display().to_string();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    let script = format!(
        "cd '{}' && printf 'subjectAltName=IP:127.0.0.1\\n' > names && \
         openssl req -x509 {key} -keyout ca.key -out ca.crt -days 2 -subj /CN=ca && \
         openssl req {key} -keyout node.key -out node.csr -subj /CN=node && \
         openssl x509 -req -in node.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names \
         -out node.crt",
        folder.display()
    );
    output(Command::new("sh").args(["-c", &script]))?;
    let config = format!(
        "[node]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\n\
         [tls]\ncert_file = \"{}\"\nkey_file = \"{}\"\n\
         [access]\ntokens_file = \"{}\"\n[[shard]]\nid = 1\nurl = \"sqlite://{}\"\n",
        at("node.crt"),
        at("node.key"),
        at("tokens.toml"),
        at("1.db"),
    );
    fs::write(at("forebay.toml"), config)?;
    let create = ["token", "create", "--name", "tenant", "--grant", "default:produce,consume"];
    let token = output(Command::new(forebay).args(create).args(["--tokens-file", &at("tokens.toml")]))?;
    output(Command::new(forebay).args(["migrate", "--config", &at("forebay.toml")]))?;
    let log = fs::File::create(at("log"))?;
    let serve = ["serve", "--config", &at("forebay.toml")];
    let child = Command::new(forebay).args(serve).stdout(Stdio::piped()).stderr(log).spawn()?;
    let addresses = Default::default();
    let mut node = Node { child, addresses, token: token.trim().to_owned(), folder };
    let mut ready = String::new();
    BufReader::new(node.child.stdout.take().context("no stdout")?).read_line(&mut ready)?;
    let word = |name: &str| {
        let found = ready.split_whitespace().find_map(|word| word.strip_prefix(name));
        found.map(str::to_owned).with_context(|| format!("the node is not ready, see its log: {ready:?}"))
    };
    node.addresses = [word("grpc=")?, word("http=")?];
    Ok(node)
}

/// Runs the commands for curl of a document.
fn curl(node: &Node, document: &str) -> anyhow::Result<()> {
    // A command that goes on in the next line is one line here.
    let text = fs::read_to_string(workspace().join(document))?.replace("\\\n", "");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with(CURL)).collect();
    ensure!(lines.len() == 3, "{} commands for curl instead of 3", lines.len());
    let ca = node.folder.join("ca.crt");
    let secured = format!(
        "curl --fail-with-body --silent --cacert '{}' -H 'Authorization: Bearer {}' https://{}",
        ca.display(),
        node.token,
        node.addresses[1]
    );
    let mut receipt = String::new();
    for (line, field) in lines.iter().zip(["itemId", "receipt", "results"]) {
        let line = line.replace(CURL, &secured).replace("PUT THE RECEIPT HERE", &receipt);
        let answer: serde_json::Value =
            serde_json::from_str(&output(Command::new("sh").args(["-c", &line]))?)?;
        let found = match field {
            "itemId" => &answer["results"][0]["itemId"],
            "receipt" => &answer["items"][0]["receipt"],
            // An ack that worked has no reason.
            _ => &answer["results"][0]["reason"],
        };
        let found = found.as_str().with_context(|| format!("{field} is missing: {answer}"))?;
        ensure!(found.is_empty() == (field == "results"), "{field}: {answer}");
        receipt = found.to_owned();
    }
    Ok(())
}

/// The Python of an environment with what the programs need, and the generated code.
fn install(folder: &Path) -> anyhow::Result<PathBuf> {
    let (venv, code) = (folder.join("venv"), folder.join("gen"));
    let python = venv.join("bin/python");
    if !python.exists() {
        output(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    output(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES))?;
    fs::create_dir_all(&code)?;
    let out = |flag: &str| format!("--{flag}_out={}", code.display());
    let plugin = format!("--plugin={}", venv.join("bin/protoc-gen-connectrpc").display());
    let protoc = ["-m", "grpc_tools.protoc", "-I", "proto", "--connectrpc_opt=protobuf=google"];
    let outs = [out("python"), out("grpc_python"), out("connectrpc"), plugin];
    output(Command::new(&python).args(protoc).args(outs).arg("forebay/v1/queue.proto"))?;
    Ok(python)
}
