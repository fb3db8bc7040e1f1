//! What a surface file declares of its backends, checked and ready to be carried out.
//!
//! Promises: every path here is absolute, every placeholder names a declared argument, every
//! element of an argument vector renders into exactly one element. Made by `load`, read by `core`.

use std::path::PathBuf;
use std::time::Duration;

pub use super::address::encoded;
use super::builtin::Builtin;
use super::effect::Policy;
use super::manifest::CapabilityKind;
pub use super::matching::{Matching, is_in_sight};
pub use super::media::type_of;
use super::outward::{HttpRequest, UpstreamTool};
use crate::protocol::{Json, Role};

/// Longest text that a prompt may come to, bytes, and longest file of one.
pub const PROMPT_BYTES: usize = 1024 * 1024;

/// A tool as declared: its backend, beside the definition that the catalog publishes.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredTool {
    /// The name under which the catalog publishes it.
    pub name: String,
    /// What is declared of what it does.
    pub policy: Policy,
    /// Whether it asks a person itself before it does what cannot be undone.
    pub asks_itself: bool,
    /// Its arguments that have a value where the caller gives none.
    pub defaults: Vec<(String, Json)>,
    /// What carries it out.
    pub backend: DeclaredBackend,
}

impl DeclaredTool {
    /// The command that carries it out, if one does.
    pub fn command(&self) -> Option<&Run> {
        match &self.backend {
            DeclaredBackend::Command(run) => Some(run),
            DeclaredBackend::Target(_)
            | DeclaredBackend::Http(_)
            | DeclaredBackend::Upstream(_)
            | DeclaredBackend::Builtin(_) => None,
        }
    }

    /// The built-in tool that carries it out, if one does.
    pub fn builtin(&self) -> Option<&DeclaredBuiltin> {
        match &self.backend {
            DeclaredBackend::Builtin(builtin) => Some(builtin),
            DeclaredBackend::Command(_)
            | DeclaredBackend::Target(_)
            | DeclaredBackend::Http(_)
            | DeclaredBackend::Upstream(_) => None,
        }
    }
}

/// What carries a tool out, as declared.
#[derive(Debug, Clone, PartialEq)]
pub enum DeclaredBackend {
    /// A command.
    Command(Run),
    /// An HTTP request.
    Http(HttpRequest),
    /// A tool of another MCP server.
    Upstream(UpstreamTool),
    /// An action of a registered capability.
    Target(Target),
    /// A built-in tool.
    Builtin(DeclaredBuiltin),
}

/// A built-in tool as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredBuiltin {
    /// Which.
    pub builtin: Builtin,
    /// How long what it runs may take; as long as the contract says if absent.
    pub timeout: Option<Duration>,
    /// Most bytes of an answer; as many as usual if absent.
    pub cap: Option<usize>,
    /// Whether an argument of a capability may be named with `_` for `-`, or the other way round.
    pub coerce_arg_names: bool,
}

/// An action of a registered capability as declared: what it is was checked, and is found again at each call.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The project's folder; absolute, links resolved.
    pub registry: PathBuf,
    /// The manifest as it was found.
    pub manifest: PathBuf,
    /// Tool or agent.
    pub kind: CapabilityKind,
    /// The capability's name.
    pub name: String,
    /// The action; `None` of a capability without actions.
    pub action: Option<String>,
    /// Each argument of the tool, and that of the action that it is passed on as.
    pub flags: Vec<(String, String)>,
    /// The folder that paths stay beneath; absolute, links resolved.
    pub root: PathBuf,
    /// The tool's arguments that are paths beneath the root.
    pub paths: Vec<String>,
    /// Values of the tool's arguments where none is given.
    pub defaults: Vec<(String, Json)>,
    /// The tool's arguments that make a result smaller.
    pub narrow_by: Vec<String>,
    /// How long it may take; as long as its kind may if absent.
    pub timeout: Option<Duration>,
    /// Most bytes of a result; more is cut with a hint.
    pub cap: usize,
}

/// A resource as declared: what is read under its address.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredResource {
    /// The address under which the catalog publishes it.
    pub uri: String,
    /// Its media type, if one was said.
    pub mime_type: Option<String>,
    /// What it is read from.
    pub source: Source,
}

/// A resource template as declared: what is read for the values of its variables.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredTemplate {
    /// The template as the catalog publishes it.
    pub uri_template: String,
    /// The media type of all that match, if one was said.
    pub mime_type: Option<String>,
    /// JSON Schema of the variables, an object.
    pub schema: Json,
    /// What they are read from.
    pub source: Source,
}

/// What a resource is read from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A text.
    Text(Template),
    /// A regular file.
    File(FileSource),
    /// The files of a folder, by the variable `path`.
    Folder(FolderSource),
    /// What a command writes.
    Command(CommandSource),
}

/// A regular file beneath a root.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSource {
    /// The folder that it stays beneath; absolute, links resolved.
    pub root: PathBuf,
    /// Its path relative to the root. What a placeholder stands for is one name, unless the variable takes anything.
    pub path: Template,
    /// The variables that take anything, slashes included.
    pub deep: Vec<String>,
    /// Most bytes that are read; a larger file is refused.
    pub cap: usize,
}

/// A folder whose files are read.
#[derive(Debug, Clone, PartialEq)]
pub struct FolderSource {
    /// The folder that they stay beneath; absolute, links resolved.
    pub root: PathBuf,
    /// The folder's path relative to the root.
    pub path: PathBuf,
    /// Which of its files are read.
    pub matching: Matching,
    /// Most bytes that are read; a larger file is refused.
    pub cap: usize,
}

/// A command whose output is read.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandSource {
    /// The name of what is read, for a text about it.
    pub name: String,
    /// The command.
    pub run: Run,
    /// How long it may take; as long as the engine waits if absent.
    pub timeout: Option<Duration>,
    /// Exit codes that mean that there is nothing to read.
    pub missing_codes: Vec<i32>,
}

/// A prompt as declared.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredPrompt {
    /// The name under which the catalog publishes it.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// JSON Schema of its arguments, an object of texts.
    pub schema: Json,
    /// Its arguments that have a value where none is given.
    pub defaults: Vec<(String, String)>,
    /// The folder that its files stay beneath; absolute, links resolved.
    pub root: PathBuf,
    /// What is said.
    pub messages: Vec<DeclaredMessage>,
}

/// A message of a prompt as declared.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub said: Said,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// A text.
    Text(Template),
    /// The text of a file, read at each call.
    File(PathBuf),
    /// The contents of the resource of this address.
    Resource(Template),
    /// The address of a resource.
    Link(Template),
    /// The picture in a file.
    Image(PathBuf),
    /// The sound in a file.
    Audio(PathBuf),
}

/// A command: an argument vector, never a shell.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The program and its arguments; the first element has no placeholder.
    pub argv: Vec<Element>,
    /// What each placeholder may stand for.
    pub arguments: Vec<Argument>,
    /// The folder that relative paths stay beneath; absolute, links resolved.
    pub root: PathBuf,
    /// The folder the program runs in: the root, or one beneath it.
    pub cwd: PathBuf,
    /// Variables beyond the minimal environment.
    pub env: Vec<Variable>,
    /// What is written to standard input; empty input if nothing is.
    pub stdin: Option<Feed>,
    /// Most bytes of output in a result; more is cut with a hint.
    pub cap: usize,
    /// Exit codes that count as success.
    pub exit_codes: Vec<i32>,
    /// What the output is.
    pub output: Output,
    /// Whether it is given a descriptor to talk on while it runs.
    pub talk: bool,
}

/// One element of an argument vector as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// Renders into one element; left out where a placeholder has no value.
    One(Template),
    /// Several elements that are left out together where any placeholder has no value.
    Group(Vec<Template>),
}

/// Text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(pub Vec<Piece>);

impl Template {
    /// Text without placeholders.
    pub fn literal(text: impl Into<String>) -> Self {
        Self(vec![Piece::Literal(text.into())])
    }

    /// The text, if it has no placeholder.
    pub fn as_literal(&self) -> Option<&str> {
        super::template::literal(self)
    }

    /// Reads text with placeholders; an error says which brace is none of one, nor doubled.
    pub fn parse(text: &str) -> Result<Self, String> {
        super::template::parse(text).map_err(|stray| stray.problem)
    }
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text as it stands.
    Literal(String),
    /// The value of the argument of that name.
    Argument(String),
}

/// An argument of a tool, as far as rendering needs to know it.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What its text is.
    pub kind: ArgumentKind,
    /// Its value where the caller gives none.
    pub default: Option<Json>,
}

/// What an argument's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArgumentKind {
    /// A value: refused where it begins with `-`, unless it cannot be taken for an option there.
    #[default]
    Value,
    /// Data: may begin with `-`.
    Data,
    /// A path beneath the root, relative, which need not exist.
    Path,
}

/// What is written to a program's standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feed {
    /// The value of the argument of that name.
    Argument(String),
    /// All arguments, as one JSON object.
    Arguments,
}

impl Feed {
    /// Whether it holds that argument.
    pub fn holds(&self, argument: &str) -> bool {
        match self {
            Self::Argument(name) => name == argument,
            Self::Arguments => true,
        }
    }
}

/// A variable of the program's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// This text.
    Literal(String, String),
    /// The server's own variable of that name, if it is set when the program starts.
    Inherited(String),
}

/// What a program's output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// Text for the model.
    #[default]
    Text,
    /// One JSON value, which becomes `structuredContent`.
    Json,
    /// A whole result as JSON: content blocks of any kind.
    Content,
}
