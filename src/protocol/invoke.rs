//! What passes between the machine and whoever carries out a call: the ports.
//!
//! Promises: nothing here knows an era, a transport or a backend. A backend is given an
//! [`Invocation`] and a [`Caller`] and returns one [`Outcome`].

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use smallvec::SmallVec;

use super::admit::ClientCapabilities;
use super::catalog::{Catalog, Found, Tool, ToolName};
use super::content::{Content, PromptMessage, ResourceContents};
use super::json::{JsonLimits, Kind, RawJson};
use super::log::LogLevel;
use super::members::{Members, Text};
use super::message::Params;
use super::revision::Revision;
use super::scan::{self, Role};
use super::task::{TaskAnswer, TaskRequest};

/// A future that the engine can hold without knowing its type.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Who the peer was proven to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(Cow<'static, str>);

impl Principal {
    /// Whoever can reach our standard input or our loopback port: the operator's own machine.
    pub const LOCAL: Self = Self(Cow::Borrowed("local"));

    /// Whoever has that name, for those who prove who their peers are, or kept the name of one who was proven.
    pub fn named(name: impl Into<String>) -> Self {
        Self(Cow::Owned(name.into()))
    }

    /// The name that sealed state and sessions are bound to.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// The arguments of a call: a JSON object that fits the tool's `inputSchema`, members in the order sent.
#[derive(Debug, Clone)]
pub struct Arguments {
    text: RawJson,
    members: SmallVec<[(Text, RawJson); 2]>,
}

impl Arguments {
    /// Reads an object; `None` if the text is any other kind of value.
    pub fn new(text: RawJson) -> Option<Self> {
        let limits = JsonLimits { depth: usize::MAX, keys: usize::MAX, items: usize::MAX };
        let outline = scan::walk(text.as_bytes(), &limits, Role::Arguments).ok()?.outline;
        let members = Members::new(text.to_bytes(), outline);
        (text.kind() == Kind::Object).then(|| Self { members: members.of(Role::Arguments).iter().collect(), text })
    }

    /// Those of a request; `None` if they are no object. None at all are none.
    pub(super) fn of(params: &Params) -> Option<Self> {
        match (params.get("arguments"), params.arguments()) {
            (None, _) => Some(Self { text: RawJson::empty_object(), members: SmallVec::new() }),
            (Some(text), Some(members)) => Some(Self { text, members: members.iter().collect() }),
            (Some(_), None) => None,
        }
    }

    /// The same arguments in memory of their own.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::new(self.text.detached()).unwrap_or_else(|| self.clone())
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

/// What is to be carried out.
#[derive(Debug, Clone)]
pub enum Operation {
    /// `tools/call`, its arguments checked against the schema.
    Call {
        /// The tool.
        tool: ToolName,
        /// What it is called with.
        arguments: Arguments,
        /// Whether the call is to become a task, and how long that may be kept after it ended, milliseconds.
        task: Option<TaskWish>,
    },
    /// `prompts/get`, its required arguments there and none but those declared.
    Prompt {
        /// The prompt.
        name: Box<str>,
        /// Its arguments.
        arguments: Vec<(Box<str>, String)>,
    },
    /// `resources/read` of what the catalog names.
    Read {
        /// As it was asked for.
        uri: Box<str>,
        /// What it names.
        found: Found,
    },
    /// `completion/complete` of what the catalog leaves to the backend.
    Complete(Completing),
    /// A `tasks/` request.
    Task(TaskRequest),
}

impl Operation {
    /// The tool that is called.
    pub fn tool(&self) -> Option<&ToolName> {
        match self {
            Self::Call { tool, .. } => Some(tool),
            Self::Prompt { .. } | Self::Read { .. } | Self::Complete(_) | Self::Task(_) => None,
        }
    }

    /// The arguments of a tool call.
    pub fn arguments(&self) -> Option<&Arguments> {
        match self {
            Self::Call { arguments, .. } => Some(arguments),
            Self::Prompt { .. } | Self::Read { .. } | Self::Complete(_) | Self::Task(_) => None,
        }
    }

    /// The method on the wire and what it is about, for a log or a text to a person.
    pub fn name(&self) -> String {
        match self {
            Self::Call { tool, .. } => format!("tool {tool}"),
            Self::Prompt { name, .. } => format!("prompt {name}"),
            Self::Read { uri, .. } => format!("resource {uri}"),
            Self::Complete(_) => "completion".to_owned(),
            Self::Task(_) => "task".to_owned(),
        }
    }
}

/// A call that is to become a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskWish {
    /// How long it is to be kept, milliseconds from its creation; the server's choice if absent.
    pub ttl_ms: Option<u64>,
}

/// What an argument belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A prompt, by name.
    Prompt(Box<str>),
    /// A resource template, as written.
    Template(Box<str>),
}

/// An argument that is being typed.
#[derive(Debug, Clone)]
pub struct Completing {
    /// What it belongs to.
    pub of: Reference,
    /// Its name.
    pub argument: Box<str>,
    /// What was typed of it.
    pub typed: String,
    /// The arguments that are known already.
    pub context: Vec<(Box<str>, String)>,
}

/// What an argument may be completed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The values; at most 100 of them are sent.
    pub values: Vec<String>,
    /// How many there are, if known and more than are given here.
    pub total: Option<u64>,
    /// Whether there are more than are given here.
    pub more: bool,
}

/// What a prompt comes to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompted {
    /// For people.
    pub description: Option<String>,
    /// What is said.
    pub messages: Vec<PromptMessage>,
}

/// A request that was admitted and checked, for a backend.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The catalog it began with; it ends on the same one, whatever is published meanwhile.
    pub catalog: Arc<Catalog>,
    /// What is to be done.
    pub operation: Operation,
    /// What the client answered to the last [`Ask`]: bare results by key. Empty at first.
    pub answers: Vec<(Box<str>, RawJson)>,
    /// What was put into the last [`Ask`], unsealed.
    pub state: Option<serde_json::Value>,
    /// Who asks.
    pub principal: Principal,
    /// The revision it came in.
    pub revision: Revision,
    /// What the client can be asked.
    pub client: ClientCapabilities,
}

impl Invocation {
    /// The tool that is called, as the catalog has it.
    pub fn tool(&self) -> Option<&Tool> {
        self.operation.tool().and_then(|name| self.catalog.tool(name.as_str()))
    }

    /// The client's answer under a key.
    pub fn answer(&self, key: &str) -> Option<&RawJson> {
        self.answers.iter().find(|(k, _)| &**k == key).map(|(_, answer)| answer)
    }

    /// The same with nothing of the message it came in, for whoever keeps it longer than its request: a message takes
    /// room of those to come.
    #[must_use]
    pub fn detached(mut self) -> Self {
        if let Operation::Call { arguments, .. } = &mut self.operation {
            *arguments = arguments.detached();
        }
        self.answers.iter_mut().for_each(|(_, answer)| *answer = answer.detached());
        self
    }
}

/// How an invocation ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The tool did what was asked.
    Complete(Content),
    /// The tool, or what stands behind a prompt or a resource, did not; the text tells the model what to change.
    Failed(Content),
    /// The prompt's messages.
    Prompted(Prompted),
    /// The resource's contents; more than one for a folder.
    Read(Vec<ResourceContents>),
    /// The values.
    Completed(Completion),
    /// The answer to a task's request, or the task that a call became.
    Task(TaskAnswer),
    /// There is nothing behind a URI that a template matched, or no such task of this principal.
    NotFound,
    /// The params ask for what cannot be, such as an end to a task that has ended.
    Refused(String),
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

    /// The capability that a client declares to be asked this.
    pub fn needs(self) -> &'static str {
        match self {
            Self::ElicitForm => "elicitation",
            Self::ElicitUrl => "elicitation.url",
            Self::Sample => "sampling",
            Self::SampleWithTools => "sampling.tools",
            Self::Roots => "roots",
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

/// Questions, and what is to be told again with the answers.
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
    /// A log message; sent only to a peer that wants its level. Nothing secret may be in it.
    Log {
        /// How much it matters.
        level: LogLevel,
        /// What it is about.
        logger: Option<String>,
        /// A text, or any other value.
        data: serde_json::Value,
    },
    /// A resource is not what it was; sent to whoever subscribed to it.
    Updated {
        /// Its URI.
        uri: String,
    },
    /// The answer will take a while: where the revision lets a client fetch it later, its connection may be closed now.
    Detach,
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

/// A far end that hears nothing and is never gone, for tests.
#[cfg(test)]
pub(crate) struct Nobody;

#[cfg(test)]
impl Caller for Nobody {
    fn notify(&self, _: Notice) {}
    fn is_gone(&self) -> bool {
        false
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// Carries out calls. Implemented by `core`'s router, or by whoever embeds the engine.
pub trait Invoke: Send + Sync + 'static {
    /// Carries out one call. When the caller is gone the future should end soon; it is dropped after a short grace.
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome>;
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
