//! Plays the transcripts of `tests/wire/`: reads them, serves a small world, carries the lines each way.

pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod memory;
pub(crate) mod play;
pub(crate) mod record;
mod served;
pub(crate) mod sse;
pub(crate) mod tasks;
pub(crate) mod transcript;
pub(crate) mod whole;
pub(crate) mod world;
