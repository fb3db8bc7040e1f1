//! A tool of a catalog: its definition checked and its schemas compiled.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::definition;
use super::parts::{TaskSupport, ToolParts};
use super::{CatalogError, Place};
use crate::protocol::content::Content;
use crate::protocol::digest::{self, Digest};
use crate::protocol::headers::HeaderPlan;
use crate::protocol::json::Json;
use crate::protocol::revision::Revision;
use crate::protocol::schema::{self, Schema};

/// A tool's name: 1 to 64 of `A-Z a-z 0-9 _ . -` (2026-07-28 server/tools, Tool Names, narrowed).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolName(Arc<str>);

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
    /// Whether a call may become a task.
    pub task: TaskSupport,
    /// The scopes that a caller must have, where callers are authorized.
    pub scopes: Vec<String>,
    /// Digest of the definition as the modern era receives it.
    pub digest: Digest,
}

impl Tool {
    /// Why content is no result of this tool, for a log: one with an `outputSchema` must return what fits it
    /// (2025-06-18 server/tools, Output Schema).
    pub fn misfit(&self, content: &Content) -> Option<String> {
        let schema = self.output.as_ref()?;
        let Some(value) = &content.structured else {
            return Some("the tool has an outputSchema but returned no structured content".to_owned());
        };
        let violations = schema.violations(value);
        let first = violations.first()?;
        Some(format!("the structured content does not fit the outputSchema at {:?}", first.pointer))
    }
}

/// Whether a text can be a scope: visible ASCII without `"` and `\` (RFC 6749 3.3).
pub fn is_scope(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
}

pub(super) fn build(index: usize, parts: &ToolParts, problems: &mut Vec<CatalogError>) -> Option<Tool> {
    let mut report = |pointer: String, rule: &'static str, problem: String, remedy: &str| {
        problems.push(CatalogError { place: Place::Tool(index), pointer, rule, problem, remedy: remedy.to_owned() });
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
    for (index, scope) in parts.scopes.iter().enumerate().filter(|(_, scope)| !is_scope(scope)) {
        let remedy = "use 1 to 128 visible ASCII characters, without quotes, backslashes and spaces";
        report(format!("/scopes/{index}"), "scope", format!("{scope:?} is not a scope"), remedy);
    }
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
    let definition = definition::tool(parts, Revision::MODERN);
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
        task: parts.task,
        scopes: parts.scopes.clone(),
        digest: digest::of(&definition),
    })
}

/// What some revision could not carry as it stands: pointer and problem.
fn divergences(parts: &ToolParts) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if parts.output_schema.as_ref().is_some_and(definition::root_is_not_object) {
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
