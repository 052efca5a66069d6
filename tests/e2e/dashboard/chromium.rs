//! A real browser: Chromium, led by its driver.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use fantoccini::{Client, ClientBuilder, Locator};
use forebay_testkit::servers::browser;
use hyper_util::client::legacy::connect::HttpConnector;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// Expected changes of a page come within this time.
const WITHIN: Duration = Duration::from_secs(15);

/// How a browser is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Looks {
    /// It prefers dark pages.
    pub dark: bool,
    /// It is as wide as a telephone: 390 px.
    pub narrow: bool,
    /// It has no JavaScript.
    pub scriptless: bool,
}

/// A running browser with one window. It ends when this value is dropped.
pub struct Chromium {
    /// Leads it.
    pub client: Client,
    /// The browser's process.
    browser: Pid,
    /// The driver's.
    driver: Child,
    /// Its profile.
    _profile: TempDir,
}

/// Attempts to start a driver.
const STARTS: u32 = 5;

/// Starts a driver. Returns it and its port. `None`: it has ended. It takes a free port of IPv4 and then the
/// same of IPv6, which another process may have.
fn start_driver(program: &Path) -> Option<(Child, String)> {
    let mut driver = Command::new(program)
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    // "ChromeDriver was started successfully on port 12345."
    let said =
        |line: String| Some(line.split_once("successfully on port ")?.1.trim_end_matches('.').to_owned());
    let Some(port) = lines.find_map(|line| said(line.unwrap())) else {
        driver.wait().unwrap();
        return None;
    };
    std::thread::spawn(move || lines.for_each(drop));
    Some((driver, port))
}

impl Chromium {
    /// Starts a browser.
    pub async fn start(looks: Looks) -> Self {
        let programs = browser().unwrap();
        let profile = tempfile::tempdir().unwrap();
        let (driver, port) =
            (0..STARTS).find_map(|_| start_driver(&programs.driver)).expect("a driver starts");
        let mut arguments = vec![
            "--headless=new".to_owned(),
            // Tests of a container run as root, where the sandbox can't.
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            "--no-first-run".to_owned(),
            "--window-size=1280,900".to_owned(),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        arguments.push(format!("--blink-settings=preferredColorScheme={}", u8::from(!looks.dark)));
        let mut options = json!({"args": arguments, "binary": programs.chromium});
        if looks.narrow {
            options["mobileEmulation"] =
                json!({"deviceMetrics": {"width": 390, "height": 844, "pixelRatio": 1}});
        }
        if looks.scriptless {
            options["prefs"] = json!({"profile.managed_default_content_settings.javascript": 2});
        }
        let capabilities = Map::from_iter([("goog:chromeOptions".to_owned(), options)]);
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        let id = client.capabilities().and_then(|found| found.get("goog:processID")?.as_i64());
        let id = id.and_then(|id| Pid::from_raw(id.try_into().ok()?));
        Self {
            client,
            browser: id.expect("the driver names the browser's process"),
            driver,
            _profile: profile,
        }
    }

    /// Opens a page.
    pub async fn open(&self, address: &str) {
        self.client.goto(address).await.unwrap();
    }

    /// The text that is seen of what a selector finds first.
    pub async fn text(&self, selector: &str) -> String {
        let deadline = Instant::now() + WITHIN;
        loop {
            let text = async { self.client.find(Locator::Css(selector)).await?.text().await }.await;
            match text {
                Ok(text) => return text,
                // Another page comes at this moment.
                Err(error) => assert!(Instant::now() < deadline, "{selector}: {error}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// All that is seen of the page.
    pub async fn page(&self) -> String {
        self.text("body").await
    }

    /// Whether something is there.
    pub async fn has(&self, selector: &str) -> bool {
        !self.client.find_all(Locator::Css(selector)).await.unwrap().is_empty()
    }

    /// Clicks at a button, or a link, with this text, and waits for the page that follows.
    pub async fn click(&self, text: &str) {
        self.click_in("", text).await;
    }

    /// The same in the row of a table that has a text.
    pub async fn click_in_row(&self, row: &str, text: &str) {
        self.click_in(&format!("//tr[contains(., {})]", serde_json::to_string(row).unwrap()), text).await;
    }

    async fn click_in(&self, place: &str, text: &str) {
        let quoted = serde_json::to_string(text).unwrap();
        let is_lever = "[self::a or self::button or self::summary]";
        let path = format!("{place}//*{is_lever}[normalize-space(.)={quoted}]");
        self.click_at(Locator::XPath(&path)).await;
    }

    /// Clicks at the box of the row of an item.
    pub async fn mark(&self, item: &str) {
        self.click_at(Locator::Css(&format!("input[type=checkbox][value=\"{item}\"]"))).await;
    }

    /// Clicks at what is found first, as soon as it is there: a click before this one may end
    /// while its page is still on its way.
    async fn click_at(&self, place: Locator<'_>) {
        let deadline = Instant::now() + WITHIN;
        loop {
            let error = match async { self.client.find(place).await?.click().await }.await {
                Ok(()) => return,
                Err(error) => error,
            };
            if Instant::now() >= deadline {
                panic!("{place:?} is not there to be clicked at: {error}\n{}", self.page().await);
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Types into a field, in place of what is there.
    pub async fn fill(&self, selector: &str, text: &str) {
        let field = self.client.find(Locator::Css(selector)).await.unwrap();
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    /// Chooses from a list.
    pub async fn choose(&self, selector: &str, value: &str) {
        let field = self.client.find(Locator::Css(selector)).await.unwrap();
        field.select_by_value(value).await.unwrap();
    }

    /// Runs a script in the page.
    pub async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    /// Waits until the page shows a text.
    pub async fn until_shown(&self, text: &str) {
        let deadline = Instant::now() + WITHIN;
        loop {
            let page = self.page().await;
            if page.contains(text) {
                return;
            }
            assert!(Instant::now() < deadline, "{text:?} does not appear in:\n{page}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Keeps a picture of the page where the variable `FOREBAY_E2E_PICTURES` names a folder.
    pub async fn picture(&self, name: &str) {
        if let Ok(folder) = std::env::var("FOREBAY_E2E_PICTURES") {
            let picture = self.client.screenshot().await.unwrap();
            std::fs::write(format!("{folder}/{name}.png"), picture).unwrap();
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // A driver that ends leaves its browser alone.
        let _ = kill_process(self.browser, Signal::KILL);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
