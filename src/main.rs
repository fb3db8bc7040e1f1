//! The `twodoor` program.

fn main() {}
