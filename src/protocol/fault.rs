//! What the peer is told when a message cannot be served: one JSON-RPC error.
//!
//! Promises: no text here holds a path, an environment value, another call's arguments or a
//! secret; text of the peer's own is shortened and escaped before it is repeated.

use serde_json::{Value, json};

use super::json::shortened;
use super::limits::ECHOED_CHARACTERS;

/// The error codes this engine sends (2026-07-28 basic, Error Codes; JSON-RPC 2.0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// -32700
    Parse,
    /// -32600
    InvalidRequest,
    /// -32601
    MethodNotFound,
    /// -32602
    InvalidParams,
    /// -32603
    Internal,
    /// -32020
    HeaderMismatch,
    /// -32021
    MissingClientCapability,
    /// -32022
    UnsupportedProtocolVersion,
    /// -32002, up to 2025-11-25
    ResourceNotFound,
}

impl ErrorCode {
    /// The number on the wire.
    pub const fn number(self) -> i64 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::HeaderMismatch => -32020,
            Self::MissingClientCapability => -32021,
            Self::UnsupportedProtocolVersion => -32022,
            Self::ResourceNotFound => -32002,
        }
    }
}

/// Why a message cannot be served, for the peer that sent it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    /// Not JSON.
    #[error("parse error: {0}")]
    Parse(String),
    /// JSON, but not a message, or a message that may not come now.
    #[error("invalid request: {0}")]
    InvalidRequest(String),
    /// The revision has no such method, or the server does not offer what it belongs to.
    #[error("method not found: {0}")]
    MethodNotFound(String),
    /// The per-request metadata is missing or incomplete (2026-07-28 basic, `_meta`).
    #[error("invalid params: {problem}")]
    IncompleteClaim {
        /// What is wrong.
        problem: String,
        /// The keys that are missing or of the wrong type.
        missing: Vec<&'static str>,
        /// What could be claimed.
        supported: Vec<&'static str>,
    },
    /// Before any opening: neither metadata nor a handshake.
    #[error(
        "invalid params: this request belongs to no session: either send _meta with io.modelcontextprotocol/protocolVersion \
         and io.modelcontextprotocol/clientCapabilities, or open with initialize"
    )]
    NotOpened {
        /// What could be opened with.
        supported: Vec<&'static str>,
    },
    /// Params that do not fit the method.
    #[error("invalid params: {0}")]
    InvalidParams(String),
    /// No tool of that name is published (2025-11-25 server/tools, Error Handling).
    #[error("Unknown tool: {0}")]
    UnknownTool(String),
    /// No resource of that URI is published (2026-07-28 server/resources, Error Handling).
    #[error("Resource not found: {}", shortened(.uri, ECHOED_CHARACTERS))]
    ResourceNotFound {
        /// What was asked for, as it was sent.
        uri: String,
        /// The code of the revision.
        code: ErrorCode,
    },
    /// What stands behind a prompt or a resource failed; a tool's failure is a result.
    #[error("{0}")]
    Failed(String),
    /// The error that a task ended with, told as it was kept.
    #[error("{message}")]
    Kept {
        /// The code on the wire.
        code: i64,
        /// The message.
        message: String,
        /// The data.
        data: Option<Value>,
    },
    /// A mirrored HTTP header is missing, malformed, or differs from the body.
    #[error("header mismatch: {problem}")]
    HeaderMismatch {
        /// The header.
        header: String,
        /// What is wrong.
        problem: String,
    },
    /// The client declared none of what the call needs.
    #[error("this call needs client capabilities that the request does not declare")]
    MissingClientCapability {
        /// Only what is missing, as a capabilities object.
        required: Value,
    },
    /// The revision is not served this way.
    #[error("unsupported protocol version {requested:?}")]
    UnsupportedProtocolVersion {
        /// What is served instead.
        supported: Vec<&'static str>,
        /// What was asked for, shortened.
        requested: String,
    },
    /// A defect of ours; the log has the cause under this number.
    #[error("internal error, incident {incident:016x}")]
    Internal {
        /// The number in the log.
        incident: u64,
    },
}

impl Fault {
    /// The tool does not exist here.
    pub fn unknown_tool(name: &str) -> Self {
        Self::UnknownTool(shortened(name, ECHOED_CHARACTERS))
    }

    /// The method does not exist here.
    pub fn unknown_method(name: &str) -> Self {
        Self::MethodNotFound(shortened(name, ECHOED_CHARACTERS))
    }

    /// The code on the wire.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Parse(_) => ErrorCode::Parse,
            Self::InvalidRequest(_) => ErrorCode::InvalidRequest,
            Self::MethodNotFound(_) => ErrorCode::MethodNotFound,
            Self::IncompleteClaim { .. } | Self::NotOpened { .. } => ErrorCode::InvalidParams,
            Self::InvalidParams(_) | Self::UnknownTool(_) => ErrorCode::InvalidParams,
            Self::HeaderMismatch { .. } => ErrorCode::HeaderMismatch,
            Self::MissingClientCapability { .. } => ErrorCode::MissingClientCapability,
            Self::UnsupportedProtocolVersion { .. } => ErrorCode::UnsupportedProtocolVersion,
            Self::ResourceNotFound { code, .. } => *code,
            Self::Internal { .. } | Self::Failed(_) | Self::Kept { .. } => ErrorCode::Internal,
        }
    }

    /// The number on the wire.
    pub fn number(&self) -> i64 {
        match self {
            Self::Kept { code, .. } => *code,
            _ => self.code().number(),
        }
    }

    /// What a program can read of the error.
    pub fn data(&self) -> Option<Value> {
        match self {
            Self::IncompleteClaim { missing, supported, .. } => {
                Some(json!({ "missing": missing, "supported": supported }))
            }
            Self::NotOpened { supported } => Some(json!({ "supported": supported })),
            Self::HeaderMismatch { header, .. } => Some(json!({ "header": header })),
            Self::MissingClientCapability { required } => Some(json!({ "requiredCapabilities": required })),
            Self::UnsupportedProtocolVersion { supported, requested } => {
                Some(json!({ "supported": supported, "requested": requested }))
            }
            Self::ResourceNotFound { uri, .. } => Some(json!({ "uri": uri })),
            Self::Kept { data, .. } => data.clone(),
            Self::Parse(_)
            | Self::Failed(_)
            | Self::InvalidRequest(_)
            | Self::MethodNotFound(_)
            | Self::InvalidParams(_)
            | Self::UnknownTool(_)
            | Self::Internal { .. } => None,
        }
    }

    /// The JSON-RPC error object.
    pub fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.number(), "message": self.to_string() });
        if let (Some(data), Some(members)) = (self.data(), error.as_object_mut()) {
            members.insert("data".to_owned(), data);
        }
        error
    }
}
