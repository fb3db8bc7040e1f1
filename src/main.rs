//! The twodoor binary.

fn main() {}
