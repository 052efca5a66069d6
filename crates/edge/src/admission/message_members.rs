//! Counts a message's members before it is decoded: an empty member takes two bytes of a request, and a few
//! hundred bytes of memory.

use bytes::Buf as _;
use forebay_types::{Reason, Refusal};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Bytes before the message: a flag and the length.
const PREFIX_BYTES: usize = 5;

/// Refuses a request with more than `max` fields that have a length: strings and members. One that cannot be
/// decoded is left to the decoder.
pub fn check(request: &[u8], max: usize) -> Result<(), Refusal> {
    let fields = count(request.get(PREFIX_BYTES..).unwrap_or_default()).unwrap_or(0);
    if fields > max {
        let message = format!("the request has {fields} members and more; far fewer are allowed");
        return Err(Refusal::new(Reason::TooLarge, message));
    }
    Ok(())
}

fn count(mut message: &[u8]) -> Option<usize> {
    let mut fields = 0;
    while message.has_remaining() {
        let (tag, wire_type) = decode_key(&mut message).ok()?;
        if wire_type == WireType::LengthDelimited {
            let length = usize::try_from(decode_varint(&mut message).ok()?).ok()?;
            message = message.get(length..)?;
            fields += 1;
        } else {
            skip_field(wire_type, tag, &mut message, DecodeContext::default()).ok()?;
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::{Ack, AckRequest, DequeueRequest};
    use prost::Message as _;

    use super::*;

    fn framed(message: &impl prost::Message) -> Vec<u8> {
        [vec![0; PREFIX_BYTES], message.encode_to_vec()].concat()
    }

    #[test]
    fn members_are_counted_without_decoding_them() {
        let acks = vec![Ack { receipt: String::new() }; 1_000];
        let request = framed(&AckRequest { namespace: "n".to_owned(), acks });
        assert!(check(&request, 1_001).is_ok());
        assert_eq!(check(&request, 1_000).unwrap_err().reason, Reason::TooLarge);
        let other = DequeueRequest { max_bytes: 7, consumer: "c".to_owned(), ..Default::default() };
        assert_eq!(count(&other.encode_to_vec()), Some(1));
    }

    #[test]
    fn what_cannot_be_decoded_is_left_to_the_decoder() {
        for request in [&b""[..], b"\0\0\0\0\x01\xff", b"\0\0\0\0\x02\x0a\x7f"] {
            assert!(check(request, 0).is_ok());
        }
    }
}
