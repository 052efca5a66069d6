//! A browser, as far as a node sees it: it keeps cookies, sends forms, and says where they come from.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{
    node::Node,
    wire::http1::{Answer, Request},
};

/// A browser.
#[derive(Debug, Clone, Default)]
pub struct Browser {
    /// Its cookies.
    pub cookies: BTreeMap<String, String>,
}

impl Browser {
    /// Sends a request with its cookies, and keeps those of the answer.
    pub async fn send(&mut self, node: &Node, request: Request) -> Answer {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        let pairs = pairs.collect::<Vec<_>>().join("; ");
        let request = if pairs.is_empty() { request } else { request.with("Cookie", &pairs) };
        let answer = Answer::parse(node.ask(&request.encoded(&node.http)).await);
        self.keep(&answer);
        answer
    }

    /// Keeps the cookies of an answer.
    pub fn keep(&mut self, answer: &Answer) {
        for cookie in &answer.cookies {
            let (name, value) =
                cookie.split(';').next().and_then(|pair| pair.split_once('=')).expect("a cookie");
            match cookie.contains("Max-Age=0") {
                true => drop(self.cookies.remove(name)),
                false => drop(self.cookies.insert(name.to_owned(), value.to_owned())),
            }
        }
    }

    /// Opens the first page until the session is over, and the node leads to the login.
    pub async fn until_logged_out(&mut self, node: &Node, within: Duration) {
        let begun = Instant::now();
        loop {
            let answer = self.get(node, "/").await;
            if answer.status == 303 {
                assert_eq!(answer.header("location"), "login");
                return;
            }
            assert!(answer.status == 200 && begun.elapsed() < within, "{answer:?}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Opens a page.
    pub async fn get(&mut self, node: &Node, target: &str) -> Answer {
        self.send(node, Request::get(target).with("Sec-Fetch-Site", "none")).await
    }

    /// Sends a form of a page of the node.
    pub async fn post(&mut self, node: &Node, target: &str, fields: &[(&str, &str)]) -> Answer {
        self.send(node, form(target, fields).with("Sec-Fetch-Site", "same-origin")).await
    }

    /// Logs in with a token, as people do.
    pub async fn log_in(&mut self, node: &Node, token: &str) -> Answer {
        let page = self.get(node, "/login").await;
        self.post(node, "/login", &[("form", &signature(&page, "login")), ("token", token)]).await
    }

    /// The cookie of its session.
    pub fn session(&self) -> Option<(String, String)> {
        let is_session = |(name, _): &(&String, &String)| !name.ends_with("_login");
        self.cookies.iter().find(is_session).map(|(name, value)| (name.clone(), value.clone()))
    }
}

/// A form, with nothing that a browser adds.
pub fn form(target: &str, fields: &[(&str, &str)]) -> Request {
    let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let body = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value)));
    let body = body.collect::<Vec<_>>().join("&");
    Request::post(target, "application/x-www-form-urlencoded", body)
}

/// The signature of the form of a page that is sent there.
#[track_caller]
pub fn signature(page: &Answer, action: &str) -> String {
    let text = page.text();
    let begins = format!("action=\"{action}\"><input type=\"hidden\" name=\"form\" value=\"");
    let (_, rest) = text.split_once(&begins).unwrap_or_else(|| panic!("no form for {action} in {page:?}"));
    rest.split('"').next().unwrap().to_owned()
}
