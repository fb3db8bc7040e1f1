//! Why a server could not be asked, or its answer not be used, in words for a person.

use std::time::Duration;

use crate::protocol::{RawJson, json::shortened};

/// Most characters of a server's own text that a problem repeats.
const REPEATED: usize = 300;

/// Why a request has no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The URL cannot be used.
    #[error("the URL cannot be used: {0}")]
    Url(String),
    /// A header to be sent is no HTTP header.
    #[error("the header {0:?} cannot be sent: a name is a token, a value is visible text")]
    Header(String),
    /// No connection came about.
    #[error("cannot connect to {to}")]
    Connect {
        /// The address, or the command.
        to: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// No connection came about in time.
    #[error("cannot connect to {to}: no connection within {within:?}")]
    ConnectTime {
        /// The address, or the command.
        to: String,
        /// How long was waited.
        within: Duration,
    },
    /// The connection ended before the answer.
    #[error("no answer to {method}: the connection ended: {why}")]
    Closed {
        /// What was asked.
        method: String,
        /// How it ended, as far as it is known.
        why: String,
    },
    /// No answer in time.
    #[error("no answer to {method} within {within:?}{}", suffix(.strays))]
    Time {
        /// What was asked.
        method: String,
        /// How long was waited.
        within: Duration,
        /// What came instead, and how the server ended.
        strays: Option<String>,
    },
    /// The server answered with an error.
    #[error("{method} was answered with error {code}: {message}")]
    Refused {
        /// What was asked.
        method: String,
        /// The code on the wire.
        code: i64,
        /// The server's text, shortened and escaped.
        message: String,
        /// The error's data, as sent.
        data: Option<RawJson>,
    },
    /// The server serves no revision that this door needs.
    #[error("this door needs {wanted}: the server serves {}", .supported.join(", "))]
    NotServed {
        /// What was asked for.
        wanted: &'static str,
        /// What the server lists, shortened and escaped.
        supported: Vec<String>,
    },
    /// An HTTP status that is no answer.
    #[error("{method} was answered with HTTP status {status}{}", suffix(.excerpt))]
    Status {
        /// What was asked.
        method: String,
        /// The status.
        status: u16,
        /// The beginning of the body, shortened and escaped.
        excerpt: Option<String>,
    },
    /// The server redirects, which is not followed.
    #[error("{method} is redirected to {to}: name that address if you trust it, redirects are not followed")]
    Redirected {
        /// What was asked.
        method: String,
        /// Where to, shortened and escaped.
        to: String,
    },
    /// The server no longer knows the session.
    #[error("the server no longer knows the session: open the door again")]
    SessionGone,
    /// The answer has a media type that is neither JSON nor an event stream.
    #[error("{method} was answered with {media_type}: expected application/json or text/event-stream")]
    MediaType {
        /// What was asked.
        method: String,
        /// What came, shortened and escaped.
        media_type: String,
    },
    /// The answer is over the limit.
    #[error("the answer to {method} is longer than {limit} bytes")]
    TooLong {
        /// What was asked.
        method: String,
        /// The limit.
        limit: usize,
    },
    /// The answer cannot be read as everyone would read it: not JSON, duplicate keys, too deep.
    #[error("the answer to {method} cannot be read strictly: {why}")]
    NotStrict {
        /// What was asked.
        method: String,
        /// Why not.
        why: String,
    },
    /// The answer is a message, but not what the method answers with.
    #[error("the answer to {method} cannot be used: {why}")]
    Shape {
        /// What was asked.
        method: String,
        /// What is wrong.
        why: String,
    },
}

fn suffix(more: &Option<String>) -> String {
    more.as_ref().map_or_else(String::new, |more| format!(": {more}"))
}

impl Problem {
    /// The answer to `method` is no JSON-RPC error but its content is wrong.
    pub(super) fn shape(method: &str, why: impl Into<String>) -> Self {
        Self::Shape { method: method.to_owned(), why: why.into() }
    }

    /// Reads the error object of a response.
    pub(super) fn refused(method: &str, error: &RawJson) -> Self {
        let members = error.members().unwrap_or_default();
        let member = |name: &str| members.iter().find(|(key, _)| &**key == name).map(|(_, value)| value);
        let Some(code) = member("code").and_then(|code| code.as_str().parse().ok()) else {
            return Self::shape(method, "it is an error without an integer code");
        };
        let message = member("message").and_then(RawJson::as_text).unwrap_or_default();
        Self::Refused {
            method: method.to_owned(),
            code,
            message: shortened(&message, REPEATED),
            data: member("data").cloned(),
        }
    }

    /// Whether the server answered and said no, as opposed to not answering or answering nonsense.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::NotServed { .. } | Self::Status { .. })
    }

    /// Adds how the server ended to a problem that its end explains.
    pub fn with_end(mut self, end: Option<String>) -> Self {
        let Some(end) = end else { return self };
        match &mut self {
            Self::Closed { why, .. } => why.push_str(&format!("; {end}")),
            Self::Time { strays: Some(strays), .. } => strays.push_str(&format!("; {end}")),
            Self::Time { strays, .. } => *strays = Some(end),
            _ => {}
        }
        self
    }

    /// The revisions that the server says it serves, if the problem is that it does not serve ours.
    pub fn supported(&self) -> Option<Vec<String>> {
        let data: serde_json::Value = match self {
            Self::NotServed { supported, .. } => return Some(supported.clone()),
            Self::Refused { data: Some(data), .. } => data.parse().ok()?,
            _ => return None,
        };
        let listed = data.get("supported")?.as_array()?;
        Some(listed.iter().filter_map(|name| Some(shortened(name.as_str()?, 64))).collect())
    }

    /// The problem and its causes in one line.
    pub fn in_full(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        if let (Self::Refused { .. }, Some(supported)) = (self, self.supported()) {
            text.push_str(&format!(" (it serves {})", supported.join(", ")));
        }
        text
    }
}

/// The beginning of a server's text, safe to show; `None` if nothing is left of it.
pub(super) fn excerpt(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    (!text.is_empty()).then(|| shortened(text, REPEATED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::json::JsonLimits;
    use bytes::Bytes;

    fn raw(text: &'static str) -> RawJson {
        RawJson::new(Bytes::from_static(text.as_bytes()), &JsonLimits::default()).unwrap()
    }

    #[test]
    fn an_error_names_method_code_text_and_what_is_served_instead() {
        let error = raw(r#"{"code":-32022,"message":"no\u001b[2J","data":{"supported":["a","b"],"requested":"c"}}"#);
        let problem = Problem::refused("server/discover", &error);
        assert!(problem.is_refusal());
        assert_eq!(problem.in_full(), "server/discover was answered with error -32022: no\\u{1b}[2J (it serves a, b)");
        assert!(matches!(Problem::refused("x", &raw(r#"{"message":"m"}"#)), Problem::Shape { .. }));
        assert!(matches!(Problem::refused("x", &raw(r#"{"code":1.5}"#)), Problem::Shape { .. }));
    }
}
