//! test, tidy, docs, bench: the only scripts there are.
fn main() {}
