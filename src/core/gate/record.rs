//! A request for approval as it is kept.

use serde::{Deserialize, Serialize};

use crate::protocol::limits::SEALED_STATE_LIFE;

/// The newest form of a record.
pub(super) const FORM: u64 = 1;

/// Where a request for approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Nobody has decided.
    Pending,
    /// It may run once.
    Approved,
    /// It may not run.
    Denied,
    /// It was run.
    Used,
}

impl Standing {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Used => "used",
        }
    }
}

/// A request for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub(super) v: u64,
    /// Its name.
    pub id: String,
    /// The digest of all that it is bound to.
    pub key: String,
    /// Who wants it.
    pub principal: String,
    /// The surface.
    pub surface: String,
    /// The surface's version.
    pub version: String,
    /// The tool.
    pub tool: String,
    /// The digest of the tool's definition.
    pub tool_digest: String,
    /// The digest of the arguments.
    pub arguments_digest: String,
    /// What would happen, and with which arguments: for people.
    pub text: String,
    /// Where it stands.
    pub standing: Standing,
    /// When it was made, Unix seconds.
    pub created: u64,
    /// When it is over, Unix seconds.
    pub expires: u64,
}

impl Request {
    /// Whether it still counts. A clock that was set back extends nothing.
    pub fn is_alive(&self, now: u64) -> bool {
        self.expires > now && self.expires <= now.saturating_add(SEALED_STATE_LIFE.as_secs())
    }

    /// Reads a record; why it is none.
    pub(super) fn read(id: &str, bytes: &[u8]) -> Result<Self, Unreadable> {
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|e| Unreadable::Corrupt(e.to_string()))?;
        match value.get("v").and_then(serde_json::Value::as_u64) {
            Some(FORM) => {}
            Some(newer) if newer > FORM => return Err(Unreadable::Newer(newer)),
            _ => return Err(Unreadable::Corrupt("it does not say what form it has".to_owned())),
        }
        let request: Self = serde_json::from_value(value).map_err(|error| Unreadable::Corrupt(error.to_string()))?;
        if request.id == id { Ok(request) } else { Err(Unreadable::Corrupt("it has the name of another".to_owned())) }
    }
}

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unreadable {
    Newer(u64),
    Corrupt(String),
}
