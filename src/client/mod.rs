//! The other side of the protocol: one client for both eras, over stdio and HTTP.
//!
//! Promises: every wait and every answer is bounded; what a server sends is read as strictly as
//! the engine reads its own peers, and what cannot be read so is "cannot tell", never a guess;
//! a definition is kept as it was delivered. Never follows a redirect, asks a proxy or spawns a
//! process: a server that is a program comes as a [`Connect`] closure. Used by `probe`, `verify`
//! and `import`, and by `core` for upstreams and requests.

mod aside;
mod door;
#[cfg(test)]
mod fake;
mod hear;
mod http;
mod listing;
pub mod outbound;
mod peer;
mod probe;
mod problem;
mod render;
mod sse;
mod stdio;
mod wire;

use std::time::Duration;

pub(crate) use aside::reading;
pub use door::{Answers, Call, Called, Door, Ending, Opening, Server};
pub use hear::Hear;
pub use http::HttpTarget;
pub use listing::{Listing, Published};
pub use peer::{Connect, Program, Target};
pub use probe::{Changed, Differences, Digests, DoorReport, PublishedSays, Report, Verdict, probe};
pub use problem::Problem;
pub use stdio::{End, Pipes};

use crate::protocol::limits::ANSWER_BYTES;

/// How patient a client is, how much it takes, and who it says it is.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a connection, or the start of a program, may take.
    pub connect: Duration,
    /// How long one answer to an opening or a page may take.
    pub answer: Duration,
    /// How long a listing may take, all pages together.
    pub listing: Duration,
    /// Longest single answer, bytes.
    pub answer_bytes: usize,
    /// The client's name, as servers see it.
    pub name: String,
    /// The client's version, as servers see it.
    pub version: String,
    /// Hears the server's notifications.
    pub hear: Option<Hear>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(20),
            listing: Duration::from_secs(60),
            answer_bytes: ANSWER_BYTES,
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hear: None,
        }
    }
}
