//! The payloads of an enqueue, cut into calls.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::PathBuf,
};

use bytes::Bytes;
use tokio::sync::mpsc;

use super::stdin;
use crate::failure::Failure;

/// Items of one call.
const CALL_ITEMS_MAX: usize = 1_000;
/// Bytes of one call, below the limit of 4 MiB for a whole request.
const CALL_BYTES_MAX: usize = 3 << 20;

/// Bounds of one call.
#[derive(Debug, Clone, Copy)]
pub struct CallLimit {
    /// Bytes of an item beside its payload.
    item_bytes: usize,
}

impl CallLimit {
    /// For items that have so many bytes beside their payloads.
    pub fn new(item_bytes: usize) -> Self {
        Self { item_bytes }
    }

    fn has_room(self, payloads: &[Bytes], payload_bytes: usize) -> bool {
        let bytes = payload_bytes + payloads.len() * self.item_bytes;
        payloads.len() < CALL_ITEMS_MAX && (payloads.is_empty() || bytes + self.item_bytes <= CALL_BYTES_MAX)
    }
}

/// Where the payloads come from.
pub enum Batches {
    /// One payload, so many times.
    Copies {
        /// The payload.
        payload: Bytes,
        /// Copies that are left.
        left: usize,
        /// Of each call.
        limit: CallLimit,
    },
    /// The lines of a file or of stdin, as a thread reads them.
    Lines(mpsc::Receiver<Result<Vec<Bytes>, Failure>>),
}

impl Batches {
    /// The lines of a file, or of stdin. If `whole`, each batch but the last one is as large as can be: the
    /// same lines then always make the same batches. Otherwise lines that are there do not wait for others.
    pub fn lines(file: Option<PathBuf>, limit: CallLimit, whole: bool) -> Result<Self, Failure> {
        let input: Box<dyn io::Read + Send> = match &file {
            Some(path) => Box::new(File::open(path).map_err(|error| stdin::unreadable(path, &error))?),
            None => {
                stdin::say_what_it_is_for("one item a line");
                Box::new(io::stdin())
            }
        };
        let (sender, receiver) = mpsc::channel(1);
        // A thread, because reading blocks and can't be interrupted.
        std::thread::spawn(move || {
            let mut reader = Lines { input: BufReader::new(input), number: 0, limit, whole, next: None };
            loop {
                let Some(batch) = reader.batch().transpose() else { return };
                let is_last = batch.is_err();
                // Nobody receives it if a call has failed.
                if sender.blocking_send(batch).is_err() || is_last {
                    return;
                }
            }
        });
        Ok(Self::Lines(receiver))
    }

    /// The payloads of the next call; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Vec<Bytes>>, Failure> {
        match self {
            Self::Lines(receiver) => receiver.recv().await.transpose(),
            Self::Copies { payload, left, limit } => {
                let mut batch = Vec::new();
                while *left > 0 && limit.has_room(&batch, (batch.len() + 1) * payload.len()) {
                    batch.push(payload.clone());
                    *left -= 1;
                }
                Ok(Some(batch).filter(|batch| !batch.is_empty()))
            }
        }
    }
}

/// Reads lines into batches.
struct Lines<R> {
    /// The text.
    input: BufReader<R>,
    /// Lines that were read.
    number: u64,
    /// Of each batch.
    limit: CallLimit,
    /// Batches are as large as can be.
    whole: bool,
    /// A line that had no room in the last batch, or what is wrong with it.
    next: Option<Result<Bytes, Failure>>,
}

impl<R: io::Read> Lines<R> {
    fn batch(&mut self) -> Result<Option<Vec<Bytes>>, Failure> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        loop {
            let line = match self.next.take().map_or_else(|| self.line(), |next| next.map(Some)) {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(Some(batch).filter(|batch| !batch.is_empty())),
                // The lines before it come first.
                Err(failure) if !batch.is_empty() => {
                    self.next = Some(Err(failure));
                    return Ok(Some(batch));
                }
                Err(failure) => return Err(failure),
            };
            if !self.limit.has_room(&batch, bytes + line.len()) {
                self.next = Some(Ok(line));
                return Ok(Some(batch));
            }
            bytes += line.len();
            batch.push(line);
            if !self.whole && self.input.buffer().is_empty() {
                return Ok(Some(batch));
            }
        }
    }

    /// The next line, without its end; `None` after the last one.
    fn line(&mut self) -> Result<Option<Bytes>, Failure> {
        self.number += 1;
        let failed = |what: String| Failure::new(format!("line {}: {what}", self.number));
        let mut line = Vec::new();
        let limit = CALL_BYTES_MAX as u64 + 1;
        let read = (&mut self.input).take(limit).read_until(b'\n', &mut line);
        if read.map_err(|error| failed(format!("cannot be read: {error}")))? == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > CALL_BYTES_MAX {
            return Err(failed(format!("it has more than {CALL_BYTES_MAX} bytes, which no call holds")));
        }
        Ok(Some(line.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], whole: bool) -> Lines<&[u8]> {
        let limit = CallLimit::new(100);
        Lines { input: BufReader::new(text), number: 0, limit, whole, next: None }
    }

    fn sizes(mut lines: Lines<&[u8]>) -> Vec<usize> {
        std::iter::from_fn(|| lines.batch().unwrap().map(|batch| batch.len())).collect()
    }

    #[test]
    fn lines_are_payloads() {
        let mut lines = lines(b"a\r\n\n\xff c\nlast", true);
        assert_eq!(lines.batch().unwrap().unwrap(), [&b"a\r"[..], b"", b"\xff c", b"last"]);
        assert!(lines.batch().unwrap().is_none());
        assert!(self::lines(b"", true).batch().unwrap().is_none());
    }

    #[test]
    fn a_batch_has_the_items_and_bytes_of_one_call() {
        assert_eq!(sizes(lines(&b"x\n".repeat(2_500), true)), [1_000, 1_000, 500]);
        let mib = [vec![b'x'; 1 << 20], vec![b'\n']].concat();
        assert_eq!(sizes(lines(&mib.repeat(5), true)), [2, 2, 1]);
        // Lines that are there are not kept back for others that may come.
        assert!(sizes(lines(&b"x\n".repeat(20_000), false)).len() >= 20);
    }

    #[test]
    fn a_line_that_no_call_holds_is_named_after_those_before_it() {
        let text = [&b"1\n2\n"[..], &vec![b'x'; CALL_BYTES_MAX + 1], b"\n4\n"].concat();
        let mut lines = lines(&text, true);
        assert_eq!(lines.batch().unwrap().unwrap().len(), 2);
        let failure = lines.batch().unwrap_err();
        assert!(format!("{failure:?}").contains("line 3: it has more than 3145728 bytes"), "{failure:?}");
    }

    #[tokio::test]
    async fn copies_fill_calls_too() {
        let limit = CallLimit::new(100);
        let mut batches = Batches::Copies { payload: vec![0; 1 << 20].into(), left: 5, limit };
        let mut sizes = Vec::new();
        while let Some(batch) = batches.next().await.unwrap() {
            sizes.push(batch.len());
        }
        assert_eq!(sizes, [2, 2, 1]);
    }
}
