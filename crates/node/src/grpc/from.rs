//! From where a call comes, for operators.

use forebay_edge::admission::Caller;
use forebay_engine::CallerFrom;
use tonic::Request;

/// Bytes that are kept of what a program calls itself.
const CLIENT_BYTES_MAX: usize = 100;

/// From where a call comes.
pub fn of<T>(request: &Request<T>) -> CallerFrom {
    let peer = request.extensions().get::<Caller>().map(Caller::from);
    let client = request.metadata().get("user-agent").and_then(|value| value.to_str().ok());
    CallerFrom {
        peer: peer.map(|peer| peer.to_string()).unwrap_or_default(),
        client: shortened(client.unwrap_or_default()),
    }
}

/// The value of a header has no control characters; beyond ASCII it is no text.
fn shortened(client: &str) -> String {
    client.chars().take(CLIENT_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_and_no_name_is_none() {
        let mut request = Request::new(());
        assert_eq!(of(&request), CallerFrom::default());
        request.metadata_mut().insert("user-agent", "x".repeat(300).parse().unwrap());
        assert_eq!(of(&request).client.len(), CLIENT_BYTES_MAX);
    }
}
