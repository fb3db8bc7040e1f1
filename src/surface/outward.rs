//! What a surface declares of servers that others run: HTTP requests, and MCP servers behind us.
//!
//! Promises: an origin is fixed when the file is read, a placeholder cannot reach it; a secret is a
//! name here, never a value. Made by `declare`, read by `core`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::declaration::{Argument, Output, Template, Variable};
use crate::protocol::Json;
use crate::protocol::digest::Digest;

/// A method of HTTP that a request may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVerb {
    /// Reads.
    Get,
    /// Does what the address says.
    Post,
    /// Puts the whole in place.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

impl HttpVerb {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// The key that declares it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Whom a request goes to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HttpOrigin {
    /// Whether it is spoken to over TLS.
    pub tls: bool,
    /// A name or an address, one of version 6 without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HttpOrigin {
    /// `host` or `host:port`, as the `Host` header has it.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for HttpOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

/// A piece of a header's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderPiece {
    /// Text as it stands.
    Literal(String),
    /// The value of the argument of that name.
    Argument(String),
    /// The server's own variable of that name: a secret.
    Secret(String),
}

/// A header that goes with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredHeader {
    /// Its name, in lower case.
    pub name: String,
    /// Its value, in pieces.
    pub value: Vec<HeaderPiece>,
}

/// What a request carries.
#[derive(Debug, Clone, PartialEq)]
pub enum HttpBody {
    /// A JSON value.
    Json(JsonTemplate),
    /// A text.
    Text(Template),
}

/// A JSON value with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonTemplate {
    /// As it stands.
    Literal(Json),
    /// A text; one that is a placeholder and nothing else becomes the argument's own value.
    Text(Template),
    /// All arguments, as one object.
    Arguments,
    /// A list.
    Array(Vec<JsonTemplate>),
    /// An object.
    Object(Vec<(String, JsonTemplate)>),
}

/// A declared HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpRequest {
    /// The method.
    pub verb: HttpVerb,
    /// Whom it goes to.
    pub origin: HttpOrigin,
    /// The segments of the path; what is literal is percent-encoded already.
    pub segments: Vec<Template>,
    /// The query that the URL was written with, as it goes on the wire.
    pub fixed_query: Option<String>,
    /// Names and values of the query; one whose argument is not given is left out.
    pub query: Vec<(String, Template)>,
    /// The headers.
    pub headers: Vec<DeclaredHeader>,
    /// The body.
    pub body: Option<HttpBody>,
    /// What each placeholder may stand for.
    pub arguments: Vec<Argument>,
    /// Whether an address of this machine or of a private network may be connected to.
    pub allow_private: bool,
    /// What the answer is: text, or one JSON value.
    pub output: Output,
    /// Most bytes of the answer in a result; more is cut with a hint.
    pub cap: usize,
    /// How long it may take; as long as the engine waits if absent.
    pub timeout: Option<Duration>,
}

/// A tool of another MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct UpstreamTool {
    /// The server.
    pub upstream: Arc<DeclaredUpstream>,
    /// The tool's name there.
    pub tool: String,
    /// The arguments that may be given.
    pub arguments: Vec<Argument>,
    /// Most bytes of text in a result; more is cut with a hint.
    pub cap: usize,
    /// How long a call may take; as long as the engine waits if absent.
    pub timeout: Option<Duration>,
}

/// Another MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredUpstream {
    /// The name that the file gives it.
    pub name: String,
    /// How it is reached.
    pub way: UpstreamWay,
    /// The digest of its whole list as it was reviewed; `None` where any list is taken.
    pub pin: Option<Digest>,
    /// Which of its doors is opened.
    pub era: UpstreamEra,
}

/// How an upstream is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum UpstreamWay {
    /// A program with standard streams.
    Program {
        /// Its absolute path.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
        /// Variables beyond the minimal environment.
        env: Vec<Variable>,
        /// The folder it runs in.
        cwd: PathBuf,
    },
    /// An address.
    Url {
        /// Whom requests go to.
        origin: HttpOrigin,
        /// Path and query, as they go on the wire.
        path: String,
        /// The headers of every request.
        headers: Vec<DeclaredHeader>,
        /// Whether an address of this machine or of a private network may be connected to.
        allow_private: bool,
    },
}

/// Which door of an upstream is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpstreamEra {
    /// The modern one or, where there is none, the legacy one.
    #[default]
    Auto,
    /// The legacy one.
    Legacy,
    /// The modern one.
    Modern,
}
