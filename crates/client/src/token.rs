//! The token that calls show, and the span that they name.

use std::{
    fmt, fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tonic::{
    Code, Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::Channel,
};

use crate::{error::Error, traces};

/// A file that was read within this time is not read again.
const READ_EVERY: Duration = Duration::from_secs(10);

/// A connection whose calls show the client's token, and name the span that they are part of.
pub(crate) type Link = InterceptedService<Channel, Bearer>;

/// The token that a client shows. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Token {
    /// It does not change.
    Given(String),
    /// It is in a file, which is read again from time to time. What it holds then is used if it is a token.
    File(PathBuf),
}

impl Token {
    /// The text of it, without blanks at its ends.
    pub fn read(&self) -> Result<String, Error> {
        let text = match self {
            Self::Given(text) => text.clone(),
            Self::File(path) => fs::read_to_string(path)
                .map_err(|error| invalid(format!("cannot read {}: {error}", path.display())))?,
        };
        let text = text.trim().to_owned();
        match text.bytes().all(|byte| byte.is_ascii_graphic()) && !text.is_empty() {
            true => Ok(text),
            false => Err(invalid("the token must have printable ASCII characters only".to_owned())),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => f.write_str("Given(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

fn invalid(message: String) -> Error {
    Error::local(Code::InvalidArgument, message)
}

/// Adds the token to each call. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bearer(Option<Arc<TokenHeader>>);

/// A token, and what calls carry of it.
#[derive(Debug)]
struct TokenHeader {
    /// Where it comes from.
    token: Token,
    /// The header, and when it was read.
    header: Mutex<(MetadataValue<Ascii>, Instant)>,
}

impl Bearer {
    /// Shows this token. Fails if it can't be read, or can't be sent.
    pub(crate) fn new(token: Option<&Token>) -> Result<Self, Error> {
        let shown = token.map(|token| {
            let header = Mutex::new((header(token)?, Instant::now()));
            Ok(Arc::new(TokenHeader { token: token.clone(), header }))
        });
        shown.transpose().map(Self)
    }

    /// Whether there is a token.
    pub(crate) fn shows(&self) -> bool {
        self.0.is_some()
    }

    /// A connection whose calls show it.
    pub(crate) fn on(&self, channel: Channel) -> Link {
        InterceptedService::new(channel, self.clone())
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(shown) = &self.0 {
            request.metadata_mut().insert("authorization", shown.current());
        }
        // Here all calls come by, those of operators too.
        traces::carry(request.metadata_mut());
        Ok(request)
    }
}

impl TokenHeader {
    fn current(&self) -> MetadataValue<Ascii> {
        // A panic while the lock is held leaves a valid value.
        let mut header_at = self.header.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(self.token, Token::File(_)) && header_at.1.elapsed() >= READ_EVERY {
            match header(&self.token) {
                Ok(header) => header_at.0 = header,
                Err(error) => {
                    tracing::warn!(%error, "the file of the token can't be used; the token before is shown");
                }
            }
            header_at.1 = Instant::now();
        }
        header_at.0.clone()
    }
}

fn header(token: &Token) -> Result<MetadataValue<Ascii>, Error> {
    let text = format!("Bearer {}", token.read()?);
    let mut header =
        MetadataValue::try_from(text).map_err(|_| invalid("the token can't be sent".to_owned()))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bearer: &mut Bearer) -> String {
        let request = bearer.call(Request::new(())).unwrap();
        let header = request.metadata().get("authorization").unwrap();
        assert!(header.is_sensitive());
        header.to_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_is_read_again_after_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "first\n").unwrap();
        let mut bearer = Bearer::new(Some(&Token::File(path.clone()))).unwrap();
        fs::write(&path, "second").unwrap();
        assert_eq!(sent(&mut bearer), "Bearer first");
        tokio::time::advance(READ_EVERY).await;
        assert_eq!(sent(&mut bearer), "Bearer second");
        fs::write(&path, " ").unwrap();
        tokio::time::advance(READ_EVERY).await;
        assert_eq!(sent(&mut bearer), "Bearer second");
    }

    #[tokio::test]
    async fn what_is_no_token_is_refused_and_no_token_is_printed() {
        for text in ["", " ", "a b", "ä", "a\nb"] {
            assert!(Bearer::new(Some(&Token::Given(text.to_owned()))).is_err(), "{text:?}");
        }
        assert!(Bearer::new(Some(&Token::File("/nowhere/token".into()))).is_err());
        let bearer = Bearer::new(Some(&Token::Given("hidden".to_owned()))).unwrap();
        assert!(!format!("{bearer:?}").contains("hidden"));
        let request = Bearer::default().call(Request::new(())).unwrap();
        assert!(request.metadata().get("authorization").is_none());
    }
}
