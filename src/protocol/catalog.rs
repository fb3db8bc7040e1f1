//! A published, immutable set of tools, with every listing encoded once.
//!
//! Promises: a catalog that exists is valid: names, schemas, header annotations and numbers were
//! checked, validators are compiled, listings and handshakes are bytes. Both eras receive
//! byte-identical definitions, except for a tool that declares itself divergent.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::digest::{self, Digest};
use super::headers::HeaderPlan;
use super::json::Json;
use super::revision::{Era, Offer, Revision};
use super::schema::{self, Schema};

/// A tool's name: 1 to 64 of `A-Z a-z 0-9 _ . -` (2026-07-28 server/tools, Tool Names, narrowed).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolName(std::sync::Arc<str>);

impl ToolName {
    /// Checks a name.
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
        fits.then(|| Self(text.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who the server says it is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Programmatic name.
    pub name: String,
    /// The surface's version, semver.
    pub version: String,
    /// For people.
    pub title: Option<String>,
}

impl Identity {
    fn to_json(&self, revision: Revision) -> Value {
        let mut object = json!({ "name": self.name, "version": self.version });
        if let (Some(title), Some(members)) =
            (self.title.as_ref().filter(|_| revision.rules().identity_title), object.as_object_mut())
        {
            members.insert("title".to_owned(), title.as_str().into());
        }
        object
    }
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
#[derive(Debug, Clone, Copy, Default)]
pub struct CacheHints {
    /// Milliseconds.
    pub ttl_ms: u64,
    /// By whom.
    pub scope: CacheScope,
}

/// Hints on what a tool does. Absent means: not said.
#[derive(Debug, Clone, Copy, Default)]
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

/// What a tool is made from.
#[derive(Debug, Clone)]
pub struct ToolParts {
    /// See [`ToolName`].
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
    /// `_meta`, sent as written.
    pub meta: Option<Json>,
    /// Allows a definition that some revisions cannot carry to be rewritten for those.
    pub divergent: bool,
    /// Deadline of a call; the engine's default if absent.
    pub deadline: Option<Duration>,
}

impl ToolParts {
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
            meta: None,
            divergent: false,
            deadline: None,
        }
    }
}

/// What a catalog is made from.
#[derive(Debug, Clone)]
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
    /// The tools, in the order in which they are listed and digested.
    pub tools: Vec<ToolParts>,
}

/// The `_meta` key of the tools digest where a surface names none.
pub const DEFAULT_DIGEST_KEY: &str = "dev.twodoor/toolsDigest";

/// One thing that keeps a set of parts from being a catalog.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{problem}: {remedy}")]
pub struct CatalogError {
    /// The tool, or `None` for the catalog itself.
    pub tool: Option<usize>,
    /// JSON pointer into the tool's definition, such as `/inputSchema/properties/path`; empty for the whole.
    pub pointer: String,
    /// Short name of the rule that was broken.
    pub rule: &'static str,
    /// What is wrong.
    pub problem: String,
    /// How to mend it.
    pub remedy: String,
}

/// A tool of a catalog.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub name: ToolName,
    /// The arguments' schema, compiled.
    pub input: Schema,
    /// The structured result's schema, compiled.
    pub output: Option<Schema>,
    /// The arguments that HTTP requests mirror in headers.
    pub headers: HeaderPlan,
    /// Deadline of a call; the engine's default if absent.
    pub deadline: Option<Duration>,
    /// Digest of the definition as the modern era receives it.
    pub digest: Digest,
}

/// What one revision's peers are sent.
#[derive(Debug)]
struct Encoded {
    digest: Digest,
    /// The whole result of `tools/list`.
    tools_list: Bytes,
    /// The whole result of `initialize` or `server/discover`.
    opening: Bytes,
}

/// See the module.
#[derive(Debug)]
pub struct Catalog {
    tools: Vec<Tool>,
    by_name: HashMap<ToolName, usize>,
    offer: Offer,
    encoded: HashMap<Revision, Encoded>,
    /// What every modern result's `_meta` says of the server.
    identity_meta: Bytes,
}

impl Catalog {
    /// Checks the parts and encodes all that will be sent. Gives every problem at once.
    pub fn build(parts: CatalogParts) -> Result<Self, Vec<CatalogError>> {
        let mut problems = Vec::new();
        check_digest_key(&parts.digest_key, &mut problems);
        let mut tools = Vec::new();
        let mut by_name = HashMap::new();
        for (index, tool) in parts.tools.iter().enumerate() {
            let before = problems.len();
            let built = build_tool(index, tool, &mut problems);
            if let Some(built) = built.filter(|_| problems.len() == before) {
                if by_name.insert(built.name.clone(), index).is_some() {
                    problems.push(CatalogError {
                        tool: Some(index),
                        pointer: "/name".to_owned(),
                        rule: "tool-name-unique",
                        problem: format!("two tools are named {:?}", tool.name),
                        remedy: "give each tool its own name".to_owned(),
                    });
                }
                tools.push(built);
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let encoded = Revision::ALL.into_iter().map(|revision| (revision, encode(&parts, revision))).collect();
        let identity = parts.identity.to_json(Revision::MODERN);
        Ok(Self {
            tools,
            by_name,
            offer: parts.offer,
            encoded,
            identity_meta: json!({ SERVER_INFO_KEY: identity }).to_string().into(),
        })
    }

    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(&ToolName::new(name)?).and_then(|index| self.tools.get(*index))
    }

    /// All tools, in their order.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Which eras are offered.
    pub fn offer(&self) -> Offer {
        self.offer
    }

    /// The digest of the tools as peers of a revision receive them; the same for all unless a tool is divergent.
    pub fn digest(&self, revision: Revision) -> Digest {
        self.encoded.get(&revision).map_or_else(|| digest::of_bytes(b""), |e| e.digest)
    }

    /// The result of `tools/list`.
    pub(super) fn tools_list(&self, revision: Revision) -> Bytes {
        self.encoded.get(&revision).map(|e| e.tools_list.clone()).unwrap_or_default()
    }

    /// The result of `initialize` for a legacy revision, of `server/discover` for a modern one.
    pub(super) fn opening(&self, revision: Revision) -> Bytes {
        self.encoded.get(&revision).map(|e| e.opening.clone()).unwrap_or_default()
    }

    /// The `_meta` object of every modern result.
    pub(super) fn identity_meta(&self) -> &Bytes {
        &self.identity_meta
    }
}

/// The `_meta` key of the server's identity (2026-07-28 basic, General Fields).
pub const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// 2025-11-25 basic, `_meta`: an optional dotted prefix whose labels start with a letter, then a name.
fn check_digest_key(key: &str, problems: &mut Vec<CatalogError>) {
    let label = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let name = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    let problem = match key.split_once('/') {
        None => Some("it has no prefix"),
        Some((prefix, rest)) if prefix.split('.').count() < 2 || !prefix.split('.').all(label) || !name(rest) => {
            Some("it is not a dotted prefix, a slash and a name")
        }
        Some((prefix, _)) if prefix.split('.').any(|l| matches!(l, "modelcontextprotocol" | "mcp")) => {
            Some("its prefix is reserved by the protocol")
        }
        Some(_) => None,
    };
    if let Some(why) = problem {
        problems.push(CatalogError {
            tool: None,
            pointer: "/digest_key".to_owned(),
            rule: "digest-key",
            problem: format!("{key:?} cannot name the digest: {why}"),
            remedy: format!("use a reverse-DNS name of your own, such as {DEFAULT_DIGEST_KEY:?}"),
        });
    }
}

fn build_tool(index: usize, parts: &ToolParts, problems: &mut Vec<CatalogError>) -> Option<Tool> {
    let mut report = |pointer: String, rule: &'static str, problem: String, remedy: &str| {
        problems.push(CatalogError { tool: Some(index), pointer, rule, problem, remedy: remedy.to_owned() });
    };
    let name = ToolName::new(&parts.name);
    if name.is_none() {
        let remedy = "use 1 to 64 of A-Z a-z 0-9 _ . -";
        report("/name".to_owned(), "tool-name", format!("{:?} is not a tool name", parts.name), remedy);
    }
    if parts.input_schema.get("type").and_then(Json::as_str) != Some("object") {
        let problem = "the root of inputSchema is not declared an object".to_owned();
        report("/inputSchema".to_owned(), "input-root", problem, "write `type: object` at its root");
    }
    let headers = HeaderPlan::read(&parts.input_schema).unwrap_or_else(|found| {
        for (pointer, problem) in found {
            let remedy = "annotate only string, integer or boolean properties that are reached through `properties` alone, each with a name of its own";
            report(format!("/inputSchema{pointer}"), "x-mcp-header", problem, remedy);
        }
        HeaderPlan::default()
    });
    if !parts.divergent {
        for (pointer, problem) in divergences(parts) {
            report(
                pointer,
                "divergent",
                problem,
                "change it, or write `divergent: true` to publish another definition to older revisions",
            );
        }
    }
    let definition = definition(parts, Revision::MODERN);
    for (pointer, problem) in digest::not_portable(&definition) {
        report(pointer, "portable-json", problem, "write it so that every canonical form of JSON agrees on it");
    }
    let mut compile = |schema: &Json, pointer: &str| match Schema::compile(schema) {
        Ok(schema) => Some(schema),
        Err(error) => {
            report(format!("{pointer}{}", error.pointer), error.rule, error.problem, &error.remedy);
            None
        }
    };
    let input = compile(&parts.input_schema, "/inputSchema");
    let output = match &parts.output_schema {
        Some(schema) => Some(compile(schema, "/outputSchema")?),
        None => None,
    };
    Some(Tool {
        name: name?,
        input: input?,
        output,
        headers,
        deadline: parts.deadline,
        digest: digest::of(&definition),
    })
}

/// What some revision could not carry as it stands: pointer and problem.
fn divergences(parts: &ToolParts) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if parts.output_schema.as_ref().is_some_and(root_is_not_object) {
        found.push((
            "/outputSchema".to_owned(),
            "revisions before 2026 take only an outputSchema whose root is an object".to_owned(),
        ));
    }
    for (root, schema) in [("/inputSchema", Some(&parts.input_schema)), ("/outputSchema", parts.output_schema.as_ref())]
    {
        for pointer in schema.map(schema::boolean_subschemas).unwrap_or_default() {
            found.push((
                format!("{root}{pointer}"),
                "strict clients refuse a schema that is only true or false".to_owned(),
            ));
        }
    }
    found
}

fn root_is_not_object(schema: &Json) -> bool {
    schema.get("type").and_then(Json::as_str) != Some("object")
}

/// A tool's definition as a revision receives it: whole, except where the tool is divergent.
fn definition(parts: &ToolParts, revision: Revision) -> Json {
    let rewrite = parts.divergent && revision.era() == Era::Legacy;
    let schema = |schema: &Json| if rewrite { schema::without_boolean_subschemas(schema) } else { schema.clone() };
    let text = |text: &String| Json::String(text.clone());
    let output =
        parts.output_schema.as_ref().filter(|s| !rewrite || revision.rules().any_output_root || !root_is_not_object(s));
    let members = [
        ("name", Some(text(&parts.name))),
        ("title", parts.title.as_ref().map(text)),
        ("description", parts.description.as_ref().map(text)),
        ("inputSchema", Some(schema(&parts.input_schema))),
        ("outputSchema", output.map(schema)),
        ("annotations", annotations(&parts.annotations)),
        ("_meta", parts.meta.clone()),
    ];
    Json::Object(members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
}

fn annotations(hints: &Annotations) -> Option<Json> {
    let members = [
        ("readOnlyHint", hints.read_only),
        ("destructiveHint", hints.destructive),
        ("idempotentHint", hints.idempotent),
        ("openWorldHint", hints.open_world),
    ];
    let said: Vec<_> = members.into_iter().filter_map(|(k, v)| Some((k.to_owned(), Json::Bool(v?)))).collect();
    (!said.is_empty()).then_some(Json::Object(said))
}

fn encode(parts: &CatalogParts, revision: Revision) -> Encoded {
    let rules = revision.rules();
    let tools = Json::Array(parts.tools.iter().map(|tool| definition(tool, revision)).collect());
    let digest = digest::of(&tools);
    let mut meta = json!({ parts.digest_key.as_str(): digest.to_string() });
    let identity = parts.identity.to_json(revision);
    if let (true, Some(meta)) = (rules.identity_in_meta, meta.as_object_mut()) {
        meta.insert(SERVER_INFO_KEY.to_owned(), identity.clone());
    }
    let capabilities = if parts.tools.is_empty() { json!({}) } else { json!({ "tools": {} }) };
    let mut opening = json!({ "capabilities": capabilities, "_meta": meta });
    let mut hints = json!({ "_meta": meta });
    if let (Some(opening), Some(hints)) = (opening.as_object_mut(), hints.as_object_mut()) {
        if let Some(instructions) = &parts.instructions {
            opening.insert("instructions".to_owned(), instructions.as_str().into());
        }
        match rules.era {
            Era::Legacy => {
                opening.insert("protocolVersion".to_owned(), rules.name.into());
                opening.insert("serverInfo".to_owned(), identity);
            }
            Era::Modern => {
                opening.insert("supportedVersions".to_owned(), parts.offer.supported().into());
            }
        }
        for object in [opening, hints] {
            if rules.result_type {
                object.insert("resultType".to_owned(), "complete".into());
            }
            if rules.cache_hints {
                let scope = if parts.cache.scope == CacheScope::Public { "public" } else { "private" };
                object.insert("ttlMs".to_owned(), parts.cache.ttl_ms.into());
                object.insert("cacheScope".to_owned(), scope.into());
            }
        }
    }
    // The tools are spliced in as text: a tree of the JSON library would lose their key order.
    let hints = hints.to_string();
    let tail = hints.strip_prefix('{').unwrap_or("}");
    Encoded {
        digest,
        tools_list: format!("{{\"tools\":{},{tail}", tools.to_text()).into(),
        opening: opening.to_string().into(),
    }
}
