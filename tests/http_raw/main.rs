//! Raw bytes against the HTTP transport, in this process, on loopback.
//!
//! Expected values are those of the requirement sheet (its HTTP table, HTC, HTL, HTM) and of the
//! security sheet (rows H, B, S, D), not those of the code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may fail by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod asks;
mod auth;
mod bytes;
mod guard;
mod limits;
mod mirror;
mod mounts;
mod resume;
mod rows;
mod sessions;
mod sse;
mod stop;
mod streams;
mod wire;
