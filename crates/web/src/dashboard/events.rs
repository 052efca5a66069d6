//! Changes of an open page, as server-sent events: every second the page is made again, and the differences
//! are sent. The stream ends with the rights to the page, which `guard/lasting.rs` looks at, and with the
//! connection.

use std::{convert::Infallible, time::Duration};

use axum::response::{IntoResponse as _, Response, Sse, sse::Event};
use futures_util::{Stream, stream};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio::time::{Instant, sleep_until};

use super::{asked::PageRequest, frame::Health, live::Live, pages, trouble::Trouble};
use crate::streams::OpenStream;

/// Between two messages. A page that takes long is made less often.
const EVERY: Duration = Duration::from_secs(1);
/// A page takes at most this share of the time: one that takes 50 ms is made again a second later, one that
/// takes 200 ms after four.
const PAUSE_RATIO: u32 = 20;
/// A stream ends after this time, before its connection does; browsers ask again.
const STREAM_AGE_MAX: Duration = Duration::from_secs(50);
/// Serves `/events`.
pub async fn events(asked: PageRequest) -> Response {
    let stream = match asked.info.streams.begin(asked.whose()) {
        Ok(stream) => stream,
        Err(message) => {
            let (status, message) = (StatusCode::TOO_MANY_REQUESTS, message.to_owned());
            return Trouble { status, title: "Too much at once", message }.into_response();
        }
    };
    // Whoever may not see the page, or asks for one that is not there, hears that before it begins.
    let first = match look(&asked).await {
        Ok(first) => first,
        Err(trouble) => return trouble.into_response(),
    };
    let mut answer = Sse::new(changes(asked, first, stream)).into_response();
    answer.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    answer
}

/// The changing parts of the page, as they are now.
async fn look(asked: &PageRequest) -> Result<Live, Trouble> {
    let page = asked.fields.get("page");
    let mut live = match pages::stands_still(page) {
        true => Live::default(),
        false => pages::make(page, asked).await?.live,
    };
    let health = Health::of(asked).await;
    health.word(&mut live);
    health.strip(&mut live);
    Ok(live)
}

/// How the reader of a stream stands.
struct Reader {
    /// The page that it asked for.
    asked: PageRequest,
    /// The parts that it has been sent.
    sent: Live,
    /// When its next message is due.
    due: Instant,
    /// When the stream ends.
    until: Instant,
    /// Its place among the streams.
    _open: OpenStream,
}

/// The first message has all, the others what changed.
fn changes(
    asked: PageRequest,
    first: Live,
    open: OpenStream,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let now = Instant::now();
    let reader =
        Reader { asked, sent: Live::default(), due: now + EVERY, until: now + STREAM_AGE_MAX, _open: open };
    stream::unfold((reader, Some(first)), |(mut reader, first)| async move {
        let live = match first {
            Some(first) => first,
            None => next(&mut reader).await?,
        };
        let event = message(&live.since(&reader.sent), &reader.asked);
        reader.sent = live;
        Some((Ok(event), (reader, None)))
    })
}

/// Waits for the next look. `None`: the stream is over, or the page is no longer for its reader. One
/// that can't be made is not sent: its reader sees that its figures are old.
async fn next(reader: &mut Reader) -> Option<Live> {
    loop {
        sleep_until(reader.due).await;
        let began = Instant::now();
        if began >= reader.until {
            return None;
        }
        // Rights may have become fewer since it was opened.
        reader.asked = reader.asked.clone().again()?;
        let looked = look(&reader.asked).await;
        reader.due = Instant::now() + EVERY.max(began.elapsed() * PAUSE_RATIO);
        match looked {
            Ok(live) => return Some(live),
            Err(trouble) if trouble.status == StatusCode::FORBIDDEN => return None,
            Err(_) => {}
        }
    }
}

fn message(changed: &Live, asked: &PageRequest) -> Event {
    #[derive(serde::Serialize)]
    struct Message<'a> {
        /// The time of the figures.
        t: String,
        #[serde(flatten)]
        changed: &'a Live,
    }
    let message = Message { t: super::texts::utc(asked.now()), changed };
    // Texts and numbers alone.
    let data = serde_json::to_string(&message).unwrap_or_default();
    Event::default().retry(Duration::from_secs(2)).data(data)
}
