//! The stderr of a command: passed on line by line with the item's id, and its end kept as a reason.

use std::collections::VecDeque;

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    sync::watch,
};

use forebay_types::CutAt;

use crate::output::visible;

/// Bytes that are kept: as many as a reason may have.
const TAIL_BYTES: usize = 1 << 10;
/// A line that is longer is passed on in pieces.
const LINE_BYTES_MAX: usize = 8 << 10;

/// Reads until the end, or until this task is aborted. `tail` is what came last.
pub async fn follow(mut stderr: impl AsyncRead + Unpin, item_id: String, tail: watch::Sender<Vec<u8>>) {
    let (mut buffer, mut line) = (vec![0; LINE_BYTES_MAX], Vec::new());
    let mut last = VecDeque::with_capacity(TAIL_BYTES);
    loop {
        let read = match stderr.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => &buffer[..read],
        };
        last.extend(read);
        last.drain(..last.len().saturating_sub(TAIL_BYTES));
        tail.send_replace(last.iter().copied().collect());
        for &byte in read {
            if byte == b'\n' || line.len() == LINE_BYTES_MAX {
                pass_on(&item_id, &line);
                line.clear();
            }
            if byte != b'\n' {
                line.push(byte);
            }
        }
    }
    if !line.is_empty() {
        pass_on(&item_id, &line);
    }
}

fn pass_on(item_id: &str, line: &[u8]) {
    eprintln!("[{item_id}] {}", clean(line));
}

/// Text without what could change a terminal or a log, but with its tabs.
fn clean(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.trim_end_matches('\r').split('\t').map(visible).collect::<Vec<_>>().join("\t")
}

/// The end of a command's stderr as a reason: one line, and no longer than a reason may be.
pub fn reason(tail: &[u8]) -> String {
    let text = String::from_utf8_lossy(tail);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(visible).collect();
    let mut text = lines.join("; ");
    CutAt::Beginning.cut(&mut text, TAIL_BYTES);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_clean_line() {
        assert_eq!(
            reason(b"Traceback:\n  at x\x1b[1m\n\nfailed \xff\n"),
            "Traceback:; at x\\u{1b}[1m; failed \u{fffd}"
        );
        assert_eq!(reason(&b"x".repeat(3_000)).len(), TAIL_BYTES);
        assert!(reason("\u{1}".repeat(1_000).as_bytes()).len() <= TAIL_BYTES);
        assert_eq!(reason(b""), "");
        assert_eq!(clean(b"a\tb\x07\r"), "a\tb\\u{7}");
    }

    #[tokio::test]
    async fn the_end_is_kept() {
        let tail = watch::Sender::new(Vec::new());
        let text = [&b"y".repeat(9_000)[..], b"end"].concat();
        follow(&text[..], "1-1".to_owned(), tail.clone()).await;
        assert!(tail.borrow().len() == TAIL_BYTES && tail.borrow().ends_with(b"yend"));
    }
}
