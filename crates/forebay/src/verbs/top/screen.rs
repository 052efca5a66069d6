//! The terminal: its raw mode, what is drawn, and its keys. All is as before once this is dropped.

use std::{
    collections::VecDeque,
    io::{self, Read as _, Write as _},
    thread,
};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use super::keys::{self, Key};

/// Another screen, without a cursor.
const OPEN: &str = "\x1b[?1049h\x1b[?25l";
/// Back.
const CLOSE: &str = "\x1b[?25h\x1b[?1049l";
/// The size of a terminal that does not tell it: columns and rows.
const SIZE: (usize, usize) = (80, 24);

/// The terminal.
pub struct Screen {
    /// As it was.
    before: Termios,
    /// Bytes that its keys send.
    typed: mpsc::Receiver<Vec<u8>>,
    /// Keys that came together with another one.
    keys: VecDeque<Key>,
}

impl Screen {
    /// Keys come one by one from now on, and are not shown.
    pub fn open() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let (read, typed) = mpsc::channel(16);
        // It waits in a read when the process ends, which ends it too.
        thread::spawn(move || follow(&read));
        let screen = Self { before, typed, keys: VecDeque::new() };
        write(OPEN)?;
        Ok(screen)
    }

    /// Draws lines, as far as there is room. One of them is marked.
    pub fn draw(&self, lines: &[String], marked: Option<usize>) -> io::Result<()> {
        let (columns, rows) = tcgetwinsize(io::stdout())
            .ok()
            .map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)))
            .filter(|(columns, rows)| *columns > 0 && *rows > 0)
            .unwrap_or(SIZE);
        write(&render(lines, marked, columns, rows))
    }

    /// The next key.
    pub async fn key(&mut self) -> Key {
        loop {
            if let Some(key) = self.keys.pop_front() {
                return key;
            }
            // The end of the input is one too.
            self.keys.extend(keys::parse(&self.typed.recv().await.unwrap_or_default()));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = write(CLOSE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Passes on what is typed, until the terminal is gone.
fn follow(typed: &mpsc::Sender<Vec<u8>>) {
    let mut bytes = [0; 64];
    while let Ok(read @ 1..) = io::stdin().lock().read(&mut bytes) {
        if typed.blocking_send(bytes[..read].to_vec()).is_err() {
            return;
        }
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Returns the text of a frame. Each line replaces the one before, so that nothing flickers.
fn render(lines: &[String], marked: Option<usize>, columns: usize, rows: usize) -> String {
    let mut text = String::from("\x1b[H");
    for (index, line) in lines.iter().take(rows).enumerate() {
        let line: String = line.chars().take(columns).collect();
        let line = if marked == Some(index) { format!("\x1b[7m{line}\x1b[0m") } else { line };
        text.extend([if index == 0 { "" } else { "\r\n" }, &line, "\x1b[K"]);
    }
    text + "\x1b[J"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_screen_and_one_is_marked() {
        let lines = ["abc", "def", "ghi"].map(str::to_owned);
        assert_eq!(render(&lines, Some(1), 2, 2), "\x1b[Hab\x1b[K\r\n\x1b[7mde\x1b[0m\x1b[K\x1b[J");
    }
}
