//! What the manifests of command-line capabilities state: facts, as read from their files.
//!
//! Promises: identity is the manifest's name, never its folder's; argument and action names stand as written;
//! nothing here was run and no secret was read; a manifest that cannot be read hides no other, and reading blocks on
//! nothing and follows no link out of the project. Read by `core::capability`, and by the rules that hold a curated
//! surface against its registry.

mod file;
mod parts;
mod read;
mod readiness;
mod rules;
mod scan;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use super::effect::{BlastClass, Effect, Policy};
use crate::protocol::Json;

pub use readiness::{Readiness, State, ToolStatus, readiness};
pub use rules::rules;
pub use scan::{Found, HIDDEN_FILE, Scan, ScanEntry, Stamp, scan};

/// What a capability is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapabilityKind {
    /// A program: `tools/*/tool.yaml`.
    Tool,
    /// A program that drives tools: `agents/*/agent.yaml`.
    Agent,
    /// A text that teaches: `skills/*/SKILL.md`.
    Skill,
}

impl CapabilityKind {
    /// The word for it, as models see it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::Skill => "skill",
        }
    }
}

/// A tool or an agent as its manifest states it.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Tool or agent.
    pub kind: CapabilityKind,
    /// Its identity.
    pub name: String,
    /// What it does, for models.
    pub description: String,
    /// Its own version; `0.1.0` if none is stated.
    pub version: String,
    /// What runs its entry point.
    pub runtime: Runtime,
    /// The entry point: absolute, links resolved, beneath the folder.
    pub entrypoint: PathBuf,
    /// The folder of the manifest: absolute, links resolved.
    pub folder: PathBuf,
    /// How a text becomes elements of its argument vector.
    pub argv_style: ArgvStyle,
    /// How many runs of it may go on at once.
    pub max_concurrent: usize,
    /// Arguments of a flat capability, which has no actions.
    pub args: Vec<ManifestArg>,
    /// Actions, in the manifest's order.
    pub actions: Vec<ManifestAction>,
    /// Secrets that it needs, by reference.
    pub secrets: Vec<ManifestSecret>,
    /// How it is to be found.
    pub routing: Routing,
    /// The names of the tools that an agent drives.
    pub drives: Vec<String>,
    /// What it prints, in words.
    pub output_schema: Option<String>,
    /// Calls as examples.
    pub examples: Vec<Json>,
}

/// What runs an entry point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Runtime {
    /// The entry point is a program itself.
    #[default]
    Exec,
    /// `python3`
    Python,
    /// `node`
    Node,
}

/// How a text becomes elements of an argument vector. One that begins with `-` is `--name=value` in either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArgvStyle {
    /// `--name=value`, one element.
    #[default]
    Eq,
    /// `--name`, then `value`: for programs that know nothing else.
    Space,
}

/// An action of a capability: the first element of its argument vector.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestAction {
    /// As written.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its arguments, in the manifest's order.
    pub args: Vec<ManifestArg>,
    /// What it is declared to do; by its names if absent.
    pub effects: Option<Effects>,
    /// What kind of harm it could do, as declared.
    pub blast_class: Option<String>,
    /// What it prints, in words.
    pub output_schema: Option<String>,
    /// Calls as examples.
    pub examples: Vec<Json>,
}

impl ManifestAction {
    /// What its manifest declares of it, for whoever judges it.
    pub fn policy(&self) -> Policy {
        let manifest = self.effects.map(|effects| match effects {
            Effects::Read => Effect::Read,
            Effects::Write => Effect::Write,
            Effects::Irreversible => Effect::Irreversible,
        });
        Policy { said: None, manifest, blast_class: self.blast_class.as_deref().and_then(BlastClass::parse) }
    }
}

/// What an action is declared to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// It changes nothing.
    Read,
    /// What it changes can be changed back.
    Write,
    /// What it does cannot be undone.
    Irreversible,
}

/// An argument of a capability.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestArg {
    /// The flag without its dashes, as written.
    pub name: String,
    /// What its value is.
    pub kind: ArgType,
    /// Whether it must be given.
    pub required: bool,
    /// What it means.
    pub description: String,
    /// What the program takes where it is not given; null counts as none.
    pub default: Option<Json>,
    /// JSON Schema of a structured value.
    pub schema: Option<Json>,
    /// Whether a value too long for an argument vector may be written to standard input.
    pub stdin: bool,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArgType {
    /// A text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list, passed as JSON.
    Array,
    /// An object, passed as JSON.
    Object,
}

impl ArgType {
    pub(crate) const ALL: [Self; 6] =
        [Self::String, Self::Integer, Self::Number, Self::Boolean, Self::Array, Self::Object];

    /// The type of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name, as manifests and JSON Schema have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

/// A secret by reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestSecret {
    /// Its name; `ns:name` is shared by capabilities.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Whether the capability is ready without it.
    pub optional: bool,
}

impl ManifestSecret {
    /// The variable that holds it, in the server's environment and in that of the program.
    pub fn variable(&self) -> String {
        variable(&self.name)
    }
}

/// The variable of a secret of that name: upper case, with `_` for everything but letters and digits.
pub(crate) fn variable(name: &str) -> String {
    let upper = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    upper.collect()
}

impl Manifest {
    /// The action of that name.
    pub fn action(&self, name: &str) -> Option<&ManifestAction> {
        self.actions.iter().find(|action| action.name == name)
    }
}

/// How a capability is to be found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routing {
    /// Words of a task that it is for.
    pub triggers: Vec<String>,
    /// The action to look at first.
    pub primary_action: Option<String>,
    /// A task that it carries out.
    pub example: Option<String>,
}

/// A skill as its front matter states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillManifest {
    /// Its identity.
    pub name: String,
    /// What it teaches.
    pub description: String,
    /// Its version, if one is stated.
    pub version: Option<String>,
    /// How it is to be found.
    pub routing: Routing,
    /// The folder of the skill: absolute, links resolved.
    pub folder: PathBuf,
}
