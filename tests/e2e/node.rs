//! A real `forebay` process.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::Duration,
};

use forebay_client::Tls;
use forebay_testkit::program;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep},
};
use tonic::transport::{Channel, Endpoint};

/// A node must be ready within this time.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// A process must exit within this time.
const EXIT_TIMEOUT: Duration = Duration::from_secs(30);
/// How often an exit is checked for.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// A running node. It is killed when this value is dropped.
pub struct Node {
    /// The process.
    child: Child,
    /// `host:port`, as the ready line names it.
    pub grpc: String,
    /// `host:port`, as the ready line names it.
    pub http: String,
    /// Reads its HTTP port. `None`: that has no TLS.
    tls: Option<Tls>,
    /// Holds its stderr, for panic messages.
    log: PathBuf,
    /// Kept open, because a node that writes to a closed stdout fails.
    _stdout: BufReader<ChildStdout>,
}

impl Node {
    /// Starts `forebay` with these arguments and waits for its ready line. Its stderr goes to `log`.
    pub async fn start(arguments: &[String], log: &Path) -> Self {
        let mut command = Command::new(program());
        command.args(arguments);
        Self::start_command(command, log, None).await
    }

    /// The same of a node whose ports have TLS.
    pub async fn start_with_tls(arguments: &[String], log: &Path, tls: Tls) -> Self {
        let mut command = Command::new(program());
        command.args(arguments);
        Self::start_command(command, log, Some(tls)).await
    }

    /// The same, of a node that runs already.
    pub fn with_tls(self, tls: Tls) -> Self {
        // A value that ends a process when it is dropped is not taken apart.
        let mut node = self;
        node.tls = Some(tls);
        node
    }

    /// The same with these environment variables.
    pub async fn start_with<const N: usize>(
        arguments: &[String],
        log: &Path,
        variables: [(&str, &str); N],
    ) -> Self {
        let mut command = Command::new(program());
        command.args(arguments).envs(variables);
        Self::start_command(command, log, None).await
    }

    /// The same with at most so many file descriptors.
    pub async fn start_with_descriptors(arguments: &[String], log: &Path, descriptors: u32) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {descriptors}; exec \"$0\" \"$@\"")]);
        command.arg(program()).args(arguments);
        Self::start_command(command, log, None).await
    }

    /// The same with a file system of so many megabytes in place of a folder, which only the process sees.
    /// That takes a kernel that lets this user mount one.
    pub async fn start_on_small_disk(arguments: &[String], log: &Path, folder: &Path, mib: u64) -> Self {
        let mut command = Command::new("unshare");
        let mount = format!("mount -t tmpfs -o size={mib}m none \"$0\" && exec \"$@\"");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &mount]);
        command.arg(folder).arg(program()).args(arguments);
        Self::start_command(command, log, None).await
    }

    /// The same, of a node that may never be ready. Waits until it answers at these addresses: of gRPC, then
    /// of HTTP.
    pub async fn start_standby(arguments: &[String], log: &Path, addresses: [String; 2]) -> Self {
        Self::start_standby_by(Command::new(program()), arguments, log, addresses).await
    }

    /// The same by another command.
    pub async fn start_standby_by(
        mut command: Command,
        arguments: &[String],
        log: &Path,
        [grpc, http]: [String; 2],
    ) -> Self {
        command.args(arguments);
        let mut child = spawn(&mut command, log);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let node = Self { child, grpc, http, tls: None, log: log.to_owned(), _stdout: stdout };
        let deadline = Instant::now() + READY_TIMEOUT;
        while TcpStream::connect(&node.http).await.is_err() {
            assert!(Instant::now() < deadline, "{arguments:?} does not answer");
            sleep(POLL_EVERY).await;
        }
        node
    }

    /// Waits until `/readyz` answers this.
    pub async fn wait_for_readyz(&self, status: u16) {
        let deadline = Instant::now() + READY_TIMEOUT;
        while self.get("/readyz").await != status {
            assert!(Instant::now() < deadline, "/readyz never answered {status}");
            sleep(POLL_EVERY).await;
        }
    }

    /// Waits until it knows owners of so many shards. A node is ready as soon as it has one.
    pub async fn owns(&self, shards: usize) {
        let deadline = Instant::now() + READY_TIMEOUT;
        let owned = async || {
            let status: serde_json::Value = serde_json::from_str(&self.fetch("/status.json").await.1).ok()?;
            let homes = status["cluster"]["shards"].as_array()?;
            Some(homes.iter().filter(|home| home["owner"].is_string()).count())
        };
        while owned().await.unwrap_or(0) < shards {
            assert!(Instant::now() < deadline, "fewer than {shards} shards have owners");
            sleep(POLL_EVERY).await;
        }
    }

    /// Where this process finds a file that the node sees at `path`.
    pub fn path_of(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.child.id()));
        root.join(path.strip_prefix("/").expect("an absolute path"))
    }

    async fn start_command(mut command: Command, log: &Path, tls: Option<Tls>) -> Self {
        let mut child = spawn(&mut command, log);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        // A thread, because the line may never arrive. Killing the node ends the thread too.
        let reading = tokio::task::spawn_blocking(move || read_ready_line(stdout));
        match tokio::time::timeout(READY_TIMEOUT, reading).await {
            Ok(Ok(Some((grpc, http, stdout)))) => {
                let node = Self { child, grpc, http, tls, log: log.to_owned(), _stdout: stdout };
                assert_eq!(node.get("/readyz").await, 200, "the ready line and the probe disagree");
                node
            }
            outcome => {
                let _ = child.kill();
                let status = child.wait();
                let why = if outcome.is_err() { "in time" } else { "at all" };
                panic!("{command:?} was not ready {why} ({status:?}):\n{}", tail(log));
            }
        }
    }

    /// Runs a verb of `forebay`. Panics with its stderr if it fails.
    pub async fn run(arguments: &[String]) {
        Self::run_of(program(), arguments).await;
    }

    /// The same of another program.
    pub async fn run_of(program: &Path, arguments: &[String]) {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "forebay {arguments:?}: {}\n{stderr}", output.status);
    }

    /// Runs a verb of `forebay` that is refused. Returns its stderr.
    pub async fn refused(arguments: &[String]) -> String {
        let log = tempfile::NamedTempFile::new().unwrap();
        Self::refused_with_log(arguments, log.path()).await
    }

    /// The same with its stderr in a file meanwhile.
    pub async fn refused_with_log(arguments: &[String], log: &Path) -> String {
        let mut child = spawn(Command::new(program()).args(arguments), log);
        let ended = tokio::task::spawn_blocking(move || child.wait());
        let status = tokio::time::timeout(EXIT_TIMEOUT, ended).await.unwrap().unwrap().unwrap();
        assert!(!status.success(), "forebay {arguments:?} was not refused");
        fs::read_to_string(log).unwrap()
    }

    /// A connection that is opened on first use, and reopened after it broke.
    pub fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap();
        endpoint.connect_timeout(Duration::from_secs(2)).connect_lazy()
    }

    /// The status of a GET over HTTP.
    pub async fn get(&self, path: &str) -> u16 {
        self.fetch(path).await.0
    }

    /// The status and the body of a GET over HTTP.
    pub async fn fetch(&self, path: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.http);
        let answer = String::from_utf8(self.ask(request.as_bytes()).await).unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        status.zip(body).unwrap_or_else(|| panic!("{path}: no HTTP answer: {answer:?}"))
    }

    /// Sends these bytes over HTTP, and reads until the end.
    pub async fn ask(&self, bytes: &[u8]) -> Vec<u8> {
        let stream = TcpStream::connect(&self.http).await.unwrap();
        let host = self.http.rsplit_once(':').unwrap().0;
        match &self.tls {
            None => exchange(stream, bytes).await,
            Some(tls) => exchange(tls.connect(stream, host, "http/1.1").await.unwrap(), bytes).await,
        }
    }

    /// The most bytes of data that the process has had in memory at once. The pages of its program are left
    /// out: they hold no data, and are many in a build for tests.
    pub fn peak_bytes(&self) -> u64 {
        self.memory("VmHWM:") - self.memory("RssFile:")
    }

    /// From now on [`Node::peak_bytes`] is about what comes.
    pub fn forget_peak(&self) {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    /// The bytes of data that the process has in memory now.
    pub fn resident_bytes(&self) -> u64 {
        self.memory("RssAnon:")
    }

    /// Whether the system may give the process huge pages.
    pub fn has_huge_pages(&self) -> bool {
        self.memory("THP_enabled:") > 0
    }

    /// A line of the process's memory in `/proc`, in bytes.
    fn memory(&self, line: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let value = status.lines().find_map(|found| found.strip_prefix(line)).expect("a line");
        let kib: u64 = value.trim().trim_end_matches(" kB").parse().expect("a number");
        kib << 10
    }

    /// Waits until the process ends by itself.
    pub async fn wait(mut self) -> ExitStatus {
        self.exited(EXIT_TIMEOUT).await
    }

    /// Sends SIGKILL and waits for the exit.
    pub async fn kill9(mut self) {
        self.signal(Signal::KILL);
        self.exited(EXIT_TIMEOUT).await;
    }

    /// Sends SIGTERM. Returns the exit status and how long the exit took.
    pub async fn terminate(mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        self.signal(Signal::TERM);
        (self.exited(EXIT_TIMEOUT).await, start.elapsed())
    }

    /// SIGSTOP.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGHUP.
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        // A process that ended is not reaped before `exited`, so that its pid is still its own.
        kill_process(pid, signal).unwrap();
    }

    async fn exited(&mut self, timeout: Duration) -> ExitStatus {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "still running after {timeout:?}:\n{}", tail(&self.log));
            sleep(POLL_EVERY).await;
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), tail(&self.log));
        }
    }
}

/// Sends these bytes, and reads until the end.
pub async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Vec<u8> {
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}

/// Starts a node's process. Its stderr goes to `log`.
fn spawn(command: &mut Command, log: &Path) -> Child {
    let file = File::options().create(true).append(true).open(log).unwrap();
    // Tests wait for what the status shows.
    command.env("FOREBAY_STATUS_AGE_MS", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).spawn().unwrap()
}

/// The addresses in the line that begins with `forebay ready`: gRPC first, then HTTP.
fn read_ready_line(mut stdout: BufReader<ChildStdout>) -> Option<(String, String, BufReader<ChildStdout>)> {
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let Some(rest) = line.strip_prefix("forebay ready") else { continue };
        let mut addresses =
            rest.split(|c: char| c.is_whitespace() || matches!(c, '=' | ',' | '/')).filter(|word| {
                let port = word.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
                matches!(port, Some(Ok(port)) if port != 0)
            });
        let (grpc, http) = (addresses.next()?.to_owned(), addresses.next()?.to_owned());
        return Some((grpc, http, stdout));
    }
}

/// The last lines of a node's log.
fn tail(log: &Path) -> String {
    let mut text = String::new();
    let _ = File::open(log).and_then(|mut file| file.read_to_string(&mut text));
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
