//! One target under libFuzzer. `FOREBAY_FUZZ_TARGET` names it.

#![no_main]
#![allow(unsafe_code)]

use std::sync::LazyLock;

use forebay_fuzz::{Target, target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FOREBAY_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| panic!("FOREBAY_FUZZ_TARGET: there is no target {name:?}"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
