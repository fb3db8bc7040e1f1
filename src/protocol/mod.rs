//! The protocol as a machine: events in, outputs out, time passed in as an argument.
//!
//! Promises: no I/O, no clock, no runtime, no randomness, nothing of ours imported. Everything a
//! peer can send is either an answer or a [`Fault`]; nothing here panics on input.
//! Used by the transports (which carry bytes), by `surface` (which publishes a [`Catalog`]), by
//! `core` (which carries out an [`Invocation`]) and by `client` (which speaks the other side).

pub mod admit;
mod asking;
pub mod catalog;
pub mod compare;
pub mod connection;
pub mod content;
pub mod digest;
pub mod dispatch;
mod exchange;
pub mod fault;
pub(crate) mod few;
pub mod framing;
pub mod headers;
pub mod invoke;
pub mod json;
pub mod limits;
pub mod log;
mod members;
pub mod message;
pub mod method;
mod notice;
pub mod revision;
mod scan;
pub mod schema;
pub mod seal;
pub mod session;
pub mod subscription;
pub mod task;
pub mod uri_template;

pub use admit::{Admitted, ClientCapabilities};
pub use catalog::{
    Annotations, CacheHints, CacheScope, Catalog, CatalogError, CatalogParts, Completes, Found, Icon, Identity, List,
    Place, PromptArgument, PromptParts, ResourceParts, SkillFile, SkillParts, TaskSupport, TemplateParts, Tool,
    ToolName, ToolParts,
};
pub use compare::{Bump, Change, Class, Comparison, compare};
pub use connection::{Arrival, CallId, Connection, Moment, Output, Reply};
pub use content::{Audience, Block, Body, Content, Piece, PromptMessage, ResourceContents, ResourceLink, Role};
pub use digest::Digest;
pub use dispatch::{Dispatcher, Step};
pub use fault::{ErrorCode, Fault};
pub use headers::Mirror;
pub use invoke::{
    Arguments, Ask, Caller, Completing, Completion, InputKind, InputRequest, Invocation, Invoke, Notice, Operation,
    Outcome, Principal, Prompted, Published, Reference,
};
pub use json::{Json, RawJson};
pub use limits::Limits;
pub use log::LogLevel;
pub use members::{Members, Text};
pub use message::{Decoded, Malformed, Message, Notification, Params, Request, RequestId, Response};
pub use revision::{Era, Method, Offer, Revision, Rules};
pub use session::Session;
pub use subscription::Changed;
pub use task::{TaskAnswer, TaskDetail, TaskId, TaskRequest, TaskStatus, TaskView};
pub use uri_template::UriTemplate;
