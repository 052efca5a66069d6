//! `forebay top`: the topics on one screen, again and again.

mod frame;
mod keys;
mod screen;
mod seen;
mod view;

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Duration,
};

use clap::Args;
use forebay_client::{Client, Error};
use forebay_types::{Clock as _, SystemClock};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use super::{connection::Connection, topic};
use crate::{
    failure::Failure,
    output::{Format, Output},
};
use frame::Frame;
use seen::{FrameAnswer, ask};
use view::{Then, View};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay top
  forebay top --all-namespaces --interval 5s
  forebay top --once
  forebay top -o json

Keys: q quits, s sorts by another figure, / filters by name, up and down (or k and j) choose a topic, Enter
shows it, Esc goes back, Space holds the screen. In a pipe, with --once and with another format than a table
it prints once.")]
pub struct Top {
    /// Which server is asked.
    #[command(flatten)]
    connection: Connection,
    /// How one frame is printed.
    #[command(flatten)]
    format: Format,
    /// How often to ask
    #[arg(long, value_parser = humantime::parse_duration, default_value = "1s", value_name = "TIME")]
    interval: Duration,
    /// Print one frame
    #[arg(long)]
    once: bool,
    /// Show the topics of all namespaces
    #[arg(long)]
    all_namespaces: bool,
}

impl Top {
    /// Shows the topics until it is told to end.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        if !matches!(self.format.output, Output::Table | Output::Wide) {
            let FrameAnswer::Topics(topics, incomplete) = ask(client, View::new(self.all_namespaces)).await?
            else {
                return Ok(());
            };
            return topic::print_topics(topics, String::new(), incomplete, self.all_namespaces, &self.format);
        }
        let at = self.connection.servers.addrs()?.join(", ");
        let title =
            format!("{} at {at}", if self.all_namespaces { "all namespaces" } else { client.namespace() });
        let view = View::new(self.all_namespaces);
        let mut frame = Frame::new(title, self.all_namespaces);
        if self.once || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            frame.take(ask(client, view.clone()).await?, SystemClock::default().wall());
            let text: String = frame.lines(&view).iter().map(|line| format!("{line}\n")).collect();
            return Ok(io::stdout().lock().write_all(text.as_bytes())?);
        }
        self.follow(client, view, frame).await
    }

    /// Draws again at each answer and each key.
    async fn follow(&self, client: Client, mut view: View, mut frame: Frame) -> Result<(), Failure> {
        let mut screen = screen::Screen::open()?;
        let mut resized = signal(SignalKind::window_change())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut ticks = interval(self.interval.max(Duration::from_millis(100)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut asking: Option<FrameCall> = None;
        loop {
            screen.draw(&frame.lines(&view), view.marked(&frame.names()).map(frame::line_of))?;
            tokio::select! {
                key = screen.key() => match view.press(key, &frame.names()) {
                    Then::Draw => {}
                    Then::Ask => asking = Some(FrameCall::begin(&client, &view)),
                    Then::Quit => return Ok(()),
                },
                _ = ticks.tick() => {
                    if !view.is_held() && asking.is_none() {
                        asking = Some(FrameCall::begin(&client, &view));
                    }
                }
                answer = FrameCall::end(&mut asking) => {
                    asking = None;
                    match answer {
                        Ok(seen) => frame.take(seen, SystemClock::default().wall()),
                        Err(error) => frame.fail(error.to_string()),
                    }
                }
                _ = resized.recv() => {}
                _ = terminate.recv() => return Ok(()),
            }
        }
    }
}

/// A call under way. Another one may take its place, as after a key.
struct FrameCall(JoinHandle<Result<FrameAnswer, Error>>);

impl FrameCall {
    fn begin(client: &Client, view: &View) -> Self {
        Self(tokio::spawn(ask(client.clone(), view.clone())))
    }

    /// Waits for the answer; without a call for ever.
    async fn end(asking: &mut Option<Self>) -> Result<FrameAnswer, Error> {
        match asking {
            None => std::future::pending().await,
            // The task is aborted only where nobody waits for it.
            Some(Self(task)) => match task.await {
                Ok(answer) => answer,
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Drop for FrameCall {
    fn drop(&mut self) {
        self.0.abort();
    }
}
