//! What a surface file declares of its tools' backends, checked and ready to be carried out.
//!
//! Promises: every path here is absolute, every placeholder names a declared argument, every
//! element of an argument vector renders into exactly one element. Made by `load`, read by `core`.

use std::path::PathBuf;

use crate::protocol::Json;

/// A tool as declared: its backend, beside the definition that the catalog publishes.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredTool {
    /// The name under which the catalog publishes it.
    pub name: String,
    /// The command behind it.
    pub run: Run,
}

/// A command behind a tool: an argument vector, never a shell.
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
}
