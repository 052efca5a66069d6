//! One connection through a proxy: two directions that share their end.

use std::{
    collections::VecDeque,
    future::pending,
    slice,
    sync::atomic::{AtomicU8, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use super::{
    rules::{Rules, Toward},
    trap::{Spring, Tail},
};

/// The most that is read at once.
const PIECE_BYTES: usize = 64 << 10;

/// The connection is to be reset.
struct Reset;

/// Ends a connection so that the other side sees a reset.
pub(super) fn reset(stream: TcpStream) {
    // Where the other side is gone already there is nothing to tell it.
    let _ = stream.set_zero_linger();
}

/// Runs a connection to its end.
pub(super) async fn run(mut client: TcpStream, target: &str, rules: watch::Receiver<Rules>) {
    let resets = rules.borrow().resets;
    let Ok(mut server) = TcpStream::connect(target).await else { return reset(client) };
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
    }
    let mut all = rules.clone();
    let ended = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let state = AtomicU8::new(OPEN);
        let way = |toward| Way {
            toward,
            rules: rules.clone(),
            state: &state,
            cut: (0, 0),
            armed: false,
            tail: Tail::default(),
        };
        let (mut up, mut down) = (way(Toward::Target), way(Toward::Client));
        let both =
            async { tokio::try_join!(up.pump(from_client, to_server), down.pump(from_server, to_client)) };
        tokio::select! {
            ended = both => ended.map(drop),
            _ = all.wait_for(|rules| rules.resets != resets) => Err(Reset),
        }
    };
    if ended.is_err() {
        reset(client);
        reset(server);
    }
}

/// Bytes pass.
const OPEN: u8 = 0;
/// The target's next answer ends the connection.
const RESET_ON_ANSWER: u8 = 1;
/// Nothing passes any more.
const SILENT: u8 = 2;

/// Pieces that are held up at one time.
const HELD_MAX: usize = 1_024;

/// Bytes that are passed on later.
struct HeldPiece {
    /// When.
    due: Instant,
    /// The bytes.
    bytes: Vec<u8>,
}

/// Waits until the first piece may be passed on. For ever if there is none.
async fn first_is_due(held: &VecDeque<HeldPiece>) {
    match held.front() {
        Some(first) => sleep_until(first.due).await,
        None => pending().await,
    }
}

/// One direction of a connection.
struct Way<'a> {
    /// Where its bytes go.
    toward: Toward,
    /// The proxy's rules.
    rules: watch::Receiver<Rules>,
    /// State of the connection by its traps, of which both directions take note.
    state: &'a AtomicU8,
    /// The number of the last cut that was seen, and how many bytes have passed since.
    cut: (u64, usize),
    /// The bytes that a trap waits for first have passed.
    armed: bool,
    /// The last bytes that were passed on.
    tail: Tail,
}

impl Way<'_> {
    /// Passes bytes on until one side ends its stream.
    async fn pump(&mut self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> Result<(), Reset> {
        let mut buffer = vec![0; PIECE_BYTES];
        let (mut held, mut is_open) = (VecDeque::new(), true);
        while is_open || !held.is_empty() {
            self.not_stalled().await?;
            let count = tokio::select! {
                biased;
                () = first_is_due(&held) => None,
                count = from.read(&mut buffer), if is_open && held.len() < HELD_MAX => Some(count),
            };
            // Bytes that have come meanwhile are not passed on either.
            self.not_stalled().await?;
            let Some(count) = count else {
                let Some(HeldPiece { bytes, .. }) = held.pop_front() else { continue };
                self.pass_if_open(&bytes, &mut to).await?;
                continue;
            };
            let count = count.map_err(|_| Reset)?;
            if count == 0 {
                is_open = false;
                continue;
            }
            let delay = self.rules.borrow().delays[self.toward as usize];
            if delay.is_zero() && held.is_empty() {
                self.pass_if_open(&buffer[..count], &mut to).await?;
            } else {
                held.push_back(HeldPiece { due: Instant::now() + delay, bytes: buffer[..count].to_vec() });
            }
        }
        to.shutdown().await.map_err(|_| Reset)
    }

    /// Passes a piece on, as far as the state of the connection allows.
    async fn pass_if_open(&mut self, piece: &[u8], to: &mut WriteHalf<'_>) -> Result<(), Reset> {
        match self.state.load(Ordering::Relaxed) {
            SILENT => pending().await,
            RESET_ON_ANSWER if self.toward == Toward::Client => Err(Reset),
            _ => self.pass(piece, to).await,
        }
    }

    /// Waits while this direction is stalled.
    async fn not_stalled(&mut self) -> Result<(), Reset> {
        let at = self.toward as usize;
        self.rules.wait_for(|rules| !rules.stalled[at]).await.map(drop).map_err(|_| Reset)
    }

    /// Passes a piece on, as far as cuts and traps allow.
    async fn pass(&mut self, piece: &[u8], to: &mut WriteHalf<'_>) -> Result<(), Reset> {
        let rules = self.rules.borrow().clone();
        if let Some(cut) = rules.cut.as_ref().filter(|cut| cut.toward == self.toward) {
            if self.cut.0 != cut.number {
                self.cut = (cut.number, 0);
            }
            let left = cut.bytes - self.cut.1;
            if piece.len() >= left {
                write(to, &piece[..left]).await?;
                cut.sprung.send_modify(|sprung| *sprung += 1);
                return Err(Reset);
            }
            self.cut.1 += piece.len();
        }
        let Some(trap) = rules.trap.filter(|_| self.toward == Toward::Target) else {
            (self.armed, self.tail) = (false, Tail::default());
            return write(to, piece).await;
        };
        let mut from = 0;
        if !trap.after.is_empty() && !self.armed {
            let after = slice::from_ref(&trap.after);
            let Some(at) = self.tail.find(after, piece) else {
                self.tail.passed(after, piece);
                return write(to, piece).await;
            };
            (self.armed, from) = (true, at);
            self.tail.forget();
        }
        let Some(at) = self.tail.find(&trap.markers, &piece[from..]).filter(|_| trap.go_off()) else {
            self.tail.passed(&trap.markers, &piece[from..]);
            return write(to, piece).await;
        };
        let at = from + at;
        self.tail.forget();
        match trap.spring {
            Spring::ResetBefore => {
                write(to, &piece[..at]).await?;
                Err(Reset)
            }
            Spring::SilentBefore => {
                self.state.store(SILENT, Ordering::Relaxed);
                write(to, &piece[..at]).await?;
                pending().await
            }
            Spring::ResetAfter => {
                self.state.store(RESET_ON_ANSWER, Ordering::Relaxed);
                write(to, piece).await
            }
            Spring::SilentAfter => {
                self.state.store(SILENT, Ordering::Relaxed);
                write(to, piece).await?;
                pending().await
            }
            Spring::Hold(held) => {
                sleep(held).await;
                write(to, piece).await
            }
        }
    }
}

async fn write(to: &mut WriteHalf<'_>, piece: &[u8]) -> Result<(), Reset> {
    to.write_all(piece).await.map_err(|_| Reset)
}
