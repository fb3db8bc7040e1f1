//! twodoor: an MCP server engine with two entrances and one room.
//!
//! Legacy clients open with `initialize` (2024-11-05 to 2025-11-25), modern clients send
//! per-request `_meta` (2026-07-28). Both are served at once, over stdio and HTTP, by one
//! dispatcher that does no I/O, and both receive the same tool definitions under one digest.
//!
//! Invariants that hold everywhere in this crate:
//! - [`protocol`] does no I/O, reads no clock and knows no runtime; time is an argument.
//! - A request is dispatched only once it is `Admitted`; its era never depends on another message.
//! - No input from a peer ends the process, and no error tells a peer about paths or secrets.
//!
//! To embed the engine begin with [`embed`]: a server of your own async functions. Beneath it: build a
//! [`protocol::Catalog`], wrap it in a [`protocol::Dispatcher`], implement [`protocol::Invoke`] and hand all three to a
//! transport as a [`transport::Engine`].

pub mod client;
pub mod core;
pub mod embed;
pub mod import;
pub mod protocol;
pub mod surface;
pub mod transport;
