//! Messages in the frames of gRPC: a flag, the length, and the message.

use bytes::{BufMut as _, Bytes, BytesMut};
use prost::Message;

/// Bytes before a message.
const PREFIX_BYTES: usize = 5;

/// How many bytes the first message of a request has, with those before it. `None`: there is no message.
pub(crate) fn framed_bytes(framed: &[u8]) -> Option<usize> {
    let [_, length @ ..] = framed.first_chunk::<PREFIX_BYTES>()?;
    usize::try_from(u32::from_be_bytes(*length)).ok()?.checked_add(PREFIX_BYTES)
}

/// The first message of a request, which alone is served. `None`: it is compressed, or cut.
pub(crate) fn first_message(framed: &[u8]) -> Option<&[u8]> {
    let (prefix, rest) = framed.split_at_checked(PREFIX_BYTES)?;
    let [0, length @ ..] = prefix else { return None };
    let length = usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?;
    rest.get(..length)
}

/// Frames an encoded message. `None`: it is longer than any may be.
pub fn framed(message: &[u8]) -> Option<Bytes> {
    let mut frame = begin(message.len())?;
    frame.put_slice(message);
    Some(frame.freeze())
}

/// Encodes a message into a frame. `None`: it is longer than any may be.
pub fn encoded(message: &impl Message) -> Option<Bytes> {
    let mut frame = begin(message.encoded_len())?;
    // The frame has room for all of it.
    message.encode(&mut frame).ok()?;
    Some(frame.freeze())
}

fn begin(message_bytes: usize) -> Option<BytesMut> {
    let length = u32::try_from(message_bytes).ok()?;
    let mut frame = BytesMut::with_capacity(PREFIX_BYTES + message_bytes);
    frame.put_u8(0);
    frame.put_u32(length);
    Some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_its_message_as_it_was() {
        let frame = framed(b"message").unwrap();
        assert_eq!(frame[..], *b"\0\0\0\0\x07message");
        assert_eq!((first_message(&frame), framed_bytes(&frame)), (Some(&b"message"[..]), Some(12)));
        let message = prost_types::Duration { seconds: 7, nanos: 0 };
        assert_eq!(encoded(&message), framed(&message.encode_to_vec()));
    }

    #[test]
    fn what_is_no_whole_message_is_none() {
        for wrong in [&b""[..], b"\0\0\0\0", b"\x01\0\0\0\x01x", b"\0\0\0\0\x02x"] {
            assert_eq!(first_message(wrong), None, "{wrong:?}");
        }
        assert_eq!(first_message(b"\0\0\0\0\x01xy"), Some(&b"x"[..]));
    }
}
