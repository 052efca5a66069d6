//! f
fn main() {}
