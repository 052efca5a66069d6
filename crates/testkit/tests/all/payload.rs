//! Payloads that follow from a number.

use forebay_testkit::sim::{payload, tag_of};

#[test]
fn a_payload_tells_its_number_and_every_change() {
    for tag in [0, 1, 77, u64::from(u32::MAX)] {
        let bytes = payload(tag, false);
        assert_eq!(tag_of(&bytes), Some(tag));
        let mut changed = bytes.to_vec();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(tag_of(&changed), None, "{tag}");
    }
    assert_eq!(tag_of(&payload(5, true)), Some(5));
}
