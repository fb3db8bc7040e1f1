//! The protocol as a machine: events in, outputs out, time passed in as an argument.
//!
//! Promises: no I/O, no clock, no runtime, no randomness, nothing of ours imported. Everything a
//! peer can send is either an answer or a [`Fault`]; nothing here panics on input.
//! Used by the transports (which carry bytes), by `surface` (which publishes a [`Catalog`]), by
//! `core` (which carries out an [`Invocation`]) and by `client` (which speaks the other side).

pub mod admit;
pub mod catalog;
pub mod connection;
pub mod content;
pub mod digest;
pub mod dispatch;
pub mod exchange;
pub mod fault;
pub mod framing;
pub mod headers;
pub mod invoke;
pub mod json;
pub mod limits;
pub mod message;
pub mod revision;
pub mod schema;
pub mod seal;
pub mod session;

pub use admit::{Admitted, ClientCapabilities};
pub use catalog::{
    Annotations, CacheHints, CacheScope, Catalog, CatalogError, CatalogParts, Identity, Tool, ToolName, ToolParts,
};
pub use connection::{Arrival, CallId, Connection, Moment, Output, Reply};
pub use content::{Block, Content};
pub use digest::Digest;
pub use dispatch::{Dispatcher, Step};
pub use fault::{ErrorCode, Fault};
pub use headers::Mirror;
pub use invoke::{
    Arguments, Ask, Caller, InputKind, InputRequest, Invocation, Invoke, Notice, Outcome, Principal, Published,
};
pub use json::{Json, RawJson};
pub use limits::Limits;
pub use message::{Decoded, Malformed, Message, Notification, Params, Request, RequestId, Response};
pub use revision::{Era, Method, Offer, Revision, Rules};
pub use session::Session;
