//! What a catalog is made from: plain values, not checked yet.

use std::time::Duration;

use super::definition;
use super::skills::SkillParts;
use crate::protocol::content::Audience;
use crate::protocol::json::Json;
use crate::protocol::limits::LISTING_PAGE;
use crate::protocol::revision::{Offer, Revision};

/// The `_meta` key of the tools digest where a surface names none.
pub const DEFAULT_DIGEST_KEY: &str = "dev.twodoor/toolsDigest";

/// A picture for a list (2025-11-25 basic, Icons).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Icon {
    /// An `https:` or `data:` address; clients refuse others.
    pub src: String,
    /// Media type.
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any`.
    pub sizes: Vec<String>,
    /// `light` or `dark`.
    pub theme: Option<String>,
}

/// Who the server says it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity {
    /// Programmatic name.
    pub name: String,
    /// The surface's version, semver.
    pub version: String,
    /// For people.
    pub title: Option<String>,
    /// For people, a sentence.
    pub description: Option<String>,
    /// A page about it.
    pub website: Option<String>,
    /// Pictures.
    pub icons: Vec<Icon>,
}

/// Who may keep a cached listing (2026-07-28 server/utilities/caching).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheScope {
    /// One principal alone.
    #[default]
    Private,
    /// Anyone.
    Public,
}

/// How long a listing may be kept, and by whom. A hint only.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CacheHints {
    /// Milliseconds.
    pub ttl_ms: u64,
    /// By whom.
    pub scope: CacheScope,
}

/// Hints on what a tool does. Absent means: not said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Annotations {
    /// Changes nothing.
    pub read_only: Option<bool>,
    /// May destroy something.
    pub destructive: Option<bool>,
    /// A second call with the same arguments has no further effect.
    pub idempotent: Option<bool>,
    /// Reaches beyond a closed set of things.
    pub open_world: Option<bool>,
}

/// Whether a call may outlive its request as a task (2025-11-25 basic/utilities/tasks; the tasks extension).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TaskSupport {
    /// Never.
    #[default]
    Forbidden,
    /// Where the client can follow it.
    Optional,
    /// Always; a client that cannot follow it is refused.
    Required,
}

/// What a tool is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolParts {
    /// See [`super::ToolName`].
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For models.
    pub description: Option<String>,
    /// JSON Schema of the arguments, root type `object`; sent as written.
    pub input_schema: Json,
    /// JSON Schema of the structured result; sent as written.
    pub output_schema: Option<Json>,
    /// Hints.
    pub annotations: Annotations,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// `_meta`, sent as written.
    pub meta: Option<Json>,
    /// Allows a definition that some revisions cannot carry to be rewritten for those.
    pub divergent: bool,
    /// Deadline of a call; the engine's default if absent. A task has none but its own.
    pub deadline: Option<Duration>,
    /// Whether a call may become a task.
    pub task: TaskSupport,
    /// The scopes that a caller over HTTP must have, all of them, where callers are authorized at all. Not published.
    pub scopes: Vec<String>,
}

impl ToolParts {
    /// The definition as peers of a revision receive it.
    pub fn definition(&self, revision: Revision) -> Json {
        definition::tool(self, revision)
    }

    /// A tool of that name without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        let no_arguments = Json::Object(vec![
            ("type".to_owned(), Json::String("object".to_owned())),
            ("additionalProperties".to_owned(), Json::Bool(false)),
        ]);
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: no_arguments,
            output_schema: None,
            annotations: Annotations::default(),
            icons: Vec::new(),
            meta: None,
            divergent: false,
            deadline: None,
            task: TaskSupport::default(),
            scopes: Vec::new(),
        }
    }
}

/// What a resource is made from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceParts {
    /// Its address (RFC 3986), under which it is read, exactly as listed.
    pub uri: String,
    /// Programmatic name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For models.
    pub description: Option<String>,
    /// Media type.
    pub mime_type: Option<String>,
    /// Bytes, if known.
    pub size: Option<u64>,
    /// Hints.
    pub audience: Audience,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// `_meta`, sent as written.
    pub meta: Option<Json>,
}

/// Where the values that complete an argument come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Completes {
    /// Nowhere: nothing is suggested.
    #[default]
    Nothing,
    /// Of these, those that begin with what was typed.
    Of(Vec<String>),
    /// The backend is asked.
    Backend,
}

/// What a resource template is made from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TemplateParts {
    /// RFC 6570: literals, `{name}` (one path segment) and `{+name}` (anything).
    pub uri_template: String,
    /// Programmatic name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For models.
    pub description: Option<String>,
    /// Media type of all that match, if they share one.
    pub mime_type: Option<String>,
    /// Hints.
    pub audience: Audience,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// `_meta`, sent as written.
    pub meta: Option<Json>,
    /// Where values of its variables come from.
    pub completes: Vec<(String, Completes)>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// For people (from 2025-06-18).
    pub title: Option<String>,
    /// For models.
    pub description: Option<String>,
    /// Whether the prompt cannot do without.
    pub required: bool,
    /// Where its values come from.
    pub completes: Completes,
}

/// What a prompt is made from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptParts {
    /// Programmatic name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For models.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
    /// Pictures.
    pub icons: Vec<Icon>,
    /// `_meta`, sent as written.
    pub meta: Option<Json>,
}

/// What a catalog is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogParts {
    /// Who the server is.
    pub identity: Identity,
    /// Told to every client that opens.
    pub instructions: Option<String>,
    /// The `_meta` key under which the tools digest is published, reverse-DNS prefixed.
    pub digest_key: String,
    /// Hints for caches.
    pub cache: CacheHints,
    /// Which eras are offered.
    pub offer: Offer,
    /// Most definitions on one page of a list.
    pub page: usize,
    /// Whether calls may log to their client.
    pub logging: bool,
    /// Whether a client may list its tasks: only where callers can be told apart (2025-11-25 basic/utilities/tasks).
    pub task_list: bool,
    /// The tools, in the order in which they are listed and digested.
    pub tools: Vec<ToolParts>,
    /// The resources, in the order in which they are listed.
    pub resources: Vec<ResourceParts>,
    /// The resource templates; of several that match, the first is taken.
    pub templates: Vec<TemplateParts>,
    /// The prompts, in the order in which they are listed.
    pub prompts: Vec<PromptParts>,
    /// The skills, in the order in which they are listed.
    pub skills: Vec<SkillParts>,
}

impl CatalogParts {
    /// A catalog of nothing, under a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            identity: Identity { name: name.into(), version: version.into(), ..Identity::default() },
            instructions: None,
            digest_key: DEFAULT_DIGEST_KEY.to_owned(),
            cache: CacheHints::default(),
            offer: Offer::default(),
            page: LISTING_PAGE,
            logging: false,
            task_list: false,
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            skills: Vec::new(),
        }
    }
}
