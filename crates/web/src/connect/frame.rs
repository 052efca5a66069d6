//! The frame around a message of gRPC: a flag and the length.

use bytes::Bytes;
use forebay_edge::rpc::frame;
use prost_reflect::DynamicMessage;

use super::failure::Failure;

/// Bytes of a frame before its message.
const PREFIX_BYTES: usize = 5;

/// Frames an encoded message.
pub fn framed(message: &[u8]) -> Result<Bytes, Failure> {
    frame::framed(message).ok_or_else(too_long)
}

/// Encodes a message into a frame.
pub fn encoded(message: &DynamicMessage) -> Result<Bytes, Failure> {
    frame::encoded(message).ok_or_else(too_long)
}

/// The message of an answer, which is the only one there.
pub(crate) fn unframed(mut answer: Bytes) -> Result<Bytes, Failure> {
    let broken = || Failure::internal("the answer is not one message");
    let length = match answer.get(..PREFIX_BYTES) {
        Some(&[0, a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
        _ => return Err(broken()),
    };
    let message = answer.split_off(PREFIX_BYTES);
    if usize::try_from(length) != Ok(message.len()) {
        return Err(broken());
    }
    Ok(message)
}

fn too_long() -> Failure {
    Failure::internal("a message has more than 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_off_as_it_was_put_on() {
        let frame = framed(b"message").unwrap();
        assert_eq!(frame[..], *b"\0\0\0\0\x07message");
        assert_eq!(unframed(frame).unwrap(), "message");
        assert_eq!(unframed(framed(b"").unwrap()).unwrap(), "");
    }

    #[test]
    fn what_is_not_one_message_is_a_bug() {
        for wrong in [&b""[..], b"\0\0\0\0", b"\x01\0\0\0\x01x", b"\0\0\0\0\x02x", b"\0\0\0\0\x01xy"] {
            assert!(unframed(Bytes::from_static(wrong)).is_err(), "{wrong:?}");
        }
    }
}
