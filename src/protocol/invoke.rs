//! What passes between the machine and whoever carries out a call: the ports.
//!
//! Promises: nothing here knows an era, a transport or a backend. A backend is given an
//! [`Invocation`] and a [`Caller`] and returns one [`Outcome`].

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::admit::ClientCapabilities;
use super::catalog::{Catalog, ToolName};
use super::content::Content;
use super::json::RawJson;
use super::revision::Revision;

/// A future that the engine can hold without knowing its type.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Who the peer was proven to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Cow<'static, str>);

impl Principal {
    /// Whoever can reach our standard input or our loopback port: the operator's own machine.
    pub const LOCAL: Self = Self(Cow::Borrowed("local"));

    /// The name that sealed state and sessions are bound to.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// The arguments of a call: a JSON object that fits the tool's `inputSchema`, members in the order sent.
#[derive(Debug, Clone)]
pub struct Arguments {
    text: RawJson,
    members: Vec<(Box<str>, RawJson)>,
}

impl Arguments {
    /// Reads an object; `None` if the text is any other kind of value.
    pub fn new(text: RawJson) -> Option<Self> {
        let members = text.members()?;
        Some(Self { text, members })
    }

    /// The object's text as sent.
    pub fn text(&self) -> &RawJson {
        &self.text
    }

    /// The value of one argument, as sent: numbers keep their digits.
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.members.iter().find(|(key, _)| &**key == name).map(|(_, value)| value)
    }

    /// All arguments.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.members.iter().map(|(key, value)| (&**key, value))
    }
}

/// A tool call that was admitted and whose arguments fit the schema.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Invocation {
    /// The catalog the call began with; it ends on the same one, whatever is published meanwhile.
    pub catalog: Arc<Catalog>,
    /// The tool.
    pub tool: ToolName,
    /// What it is called with.
    pub arguments: Arguments,
    /// What the client answered to the tool's last [`Ask`]: bare results by key. Empty on a first call.
    pub answers: Vec<(Box<str>, RawJson)>,
    /// What the tool put into its last [`Ask`], unsealed.
    pub state: Option<serde_json::Value>,
    /// Who calls.
    pub principal: Principal,
    /// The revision the call came in.
    pub revision: Revision,
    /// What the client can be asked.
    pub client: ClientCapabilities,
}

/// How a call ended.
#[derive(Debug)]
pub enum Outcome {
    /// It did what was asked.
    Complete(Content),
    /// It did not; the text tells the model what to change.
    Failed(Content),
    /// It cannot go on without an answer of the client.
    InputRequired(Ask),
    /// A defect of the server; the peer is told the incident number alone.
    Defect {
        /// The number under which the log has the cause.
        incident: u64,
    },
}

/// What a client may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// `elicitation/create` by form
    ElicitForm,
    /// `elicitation/create` by URL
    ElicitUrl,
    /// `sampling/createMessage`
    Sample,
    /// `sampling/createMessage` with tools
    SampleWithTools,
    /// `roots/list`
    Roots,
}

impl InputKind {
    /// The method on the wire.
    pub fn method(self) -> &'static str {
        match self {
            Self::ElicitForm | Self::ElicitUrl => "elicitation/create",
            Self::Sample | Self::SampleWithTools => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }
}

/// One question to the client.
#[derive(Debug, Clone)]
pub struct InputRequest {
    /// The key under which the answer comes back.
    pub key: String,
    /// What is asked.
    pub kind: InputKind,
    /// The `params` of the question as the modern revision has them.
    pub params: serde_json::Value,
}

/// A tool's questions and what it wants to be told again with the answers.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The questions, each key once.
    pub requests: Vec<InputRequest>,
    /// Comes back in [`Invocation::state`]; sealed on the wire, readable by the client, so nothing secret.
    pub state: Option<serde_json::Value>,
}

/// Something a running call tells its caller.
#[derive(Debug, Clone)]
pub enum Notice {
    /// Progress; sent only if the request carried a token and `progress` grew.
    Progress {
        /// How far, in any unit; must grow.
        progress: f64,
        /// How far it will be at the end.
        total: Option<f64>,
        /// What is being done.
        message: Option<String>,
    },
}

/// The far end, as a running call sees it.
pub trait Caller: Send + Sync + 'static {
    /// Tells the peer something, if it wants to hear it.
    fn notify(&self, notice: Notice);
    /// Whether the call was cancelled, timed out, or its peer is gone.
    fn is_gone(&self) -> bool;
    /// Ends when [`Caller::is_gone`] becomes true.
    fn gone(&self) -> BoxFuture<'_, ()>;
}

/// Carries out calls. Implemented by `core`'s router, or by whoever embeds the engine.
pub trait Invoke: Send + Sync + 'static {
    /// Carries out one call. When the caller is gone the future should end soon; it is dropped after a short grace.
    fn invoke(&self, invocation: Invocation, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome>;
}

/// Where the catalog in force is found.
pub trait Published: Send + Sync + 'static {
    /// The catalog in force now.
    fn current(&self) -> Arc<Catalog>;
}

impl Published for Arc<Catalog> {
    fn current(&self) -> Arc<Catalog> {
        Arc::clone(self)
    }
}
