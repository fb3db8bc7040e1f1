//! A surface file as written: its keys read into fields that know where they stand.
//!
//! Promises: reading goes on after a problem; a field that is `None` is either absent or was
//! reported. Rules that look at several fields stand in `lint`. One file here for each kind of
//! entry: its keys stand at its top.

mod backend;
mod described;
mod gate;
mod http;
mod prompt;
mod resource;
mod rules;
mod skill;
mod target;
mod tool;
mod upstream;

use std::time::Duration;

pub(crate) use self::backend::{BackendEntry, ElementEntry, PathEntry, Want};
pub(crate) use self::http::{HeaderEntry, HttpEntry};
pub(crate) use self::prompt::{MessageEntry, PromptEntry, SaidEntry};
pub(crate) use self::resource::{READ_AT_MOST, ResourceEntry, SourceEntry};
pub(crate) use self::rules::RuleEntry;
pub(crate) use self::skill::SkillEntry;
pub(crate) use self::target::{ExcludedEntry, TargetEntry};
pub(crate) use self::tool::{KindEntry, ToolEntry};
pub(crate) use self::upstream::{PinEntry, UpstreamEntry, UpstreamToolEntry};
use super::arguments::ArgumentEntry;
use super::fields::Fields;
use super::level::Latitude;
use super::lint::{duration, value_kind};
use super::problem::Findings;
use super::source::{At, Span};
use super::tree::{Entry, Node, Value};
use crate::protocol::Icon;

/// Keys of a surface file.
const FILE_KEYS: &[&str] = &[
    "surface",
    "version",
    "title",
    "description",
    "website",
    "icons",
    "instructions",
    "root",
    "digest_key",
    "ttl",
    "tools",
    "resources",
    "templates",
    "prompts",
    "skills",
    "registry",
    "common_args",
    "excluded",
    "rules",
    "gate",
    "upstreams",
];

/// A surface file.
#[derive(Debug)]
pub(crate) struct SurfaceFile<'t> {
    pub(crate) name: Option<At<String>>,
    pub(crate) version: Option<At<String>>,
    pub(crate) title: Option<At<String>>,
    pub(crate) description: Option<At<String>>,
    pub(crate) website: Option<At<String>>,
    pub(crate) icons: Vec<Icon>,
    pub(crate) instructions: Option<At<String>>,
    pub(crate) root: Option<At<String>>,
    pub(crate) digest_key: Option<At<String>>,
    pub(crate) ttl: Option<Duration>,
    /// The first of the keys under which anything can be declared.
    pub(crate) list_key: Option<Span>,
    pub(crate) tools: Vec<ToolEntry<'t>>,
    pub(crate) resources: Vec<ResourceEntry<'t>>,
    pub(crate) templates: Vec<ResourceEntry<'t>>,
    pub(crate) prompts: Vec<PromptEntry<'t>>,
    pub(crate) skills: Vec<SkillEntry<'t>>,
    pub(crate) upstreams: Vec<UpstreamEntry<'t>>,
    /// `None` if there is no such key, which is something else than no rule.
    pub(crate) rules: Option<Vec<RuleEntry>>,
    /// What runs unasked, where the file says it.
    pub(crate) gate: Option<Latitude>,
    /// The project whose capabilities are published.
    pub(crate) registry: Option<At<String>>,
    /// What of it is not published on purpose.
    pub(crate) excluded: Vec<ExcludedEntry>,
}

impl<'t> SurfaceFile<'t> {
    /// The tools that are actions of registered capabilities.
    pub(crate) fn targets(&self) -> impl Iterator<Item = (&ToolEntry<'t>, &TargetEntry)> {
        self.tools.iter().filter_map(|tool| match &tool.kind {
            Some(KindEntry::Target(target)) => Some((tool, target)),
            _ => None,
        })
    }

    /// What stands behind everything that is declared, in a fixed order.
    pub(crate) fn backends(&self) -> impl Iterator<Item = &BackendEntry<'t>> {
        let tools = self.tools.iter().map(|tool| &tool.backend);
        let resources = self.resources.iter().map(|resource| &resource.backend);
        let templates = self.templates.iter().map(|template| &template.backend);
        let prompts = self.prompts.iter().map(|prompt| &prompt.backend);
        let upstreams = self.upstreams.iter().map(|upstream| &upstream.backend);
        tools.chain(resources).chain(templates).chain(prompts).chain(upstreams)
    }
}

/// Reads a surface file.
pub(crate) fn read<'t>(root: &'t Node, findings: &mut Findings) -> Option<SurfaceFile<'t>> {
    let fields = Fields::of(root, Span::START, "a surface file", FILE_KEYS, findings)?;
    fields.require("surface", "write the name that clients see, such as `surface: repo`", findings);
    fields.require("version", "write the contract's version, such as `version: 1.0.0`", findings);
    let common: Vec<ArgumentEntry> = target::common_args(&fields, findings);
    let read_tool = |entry: &'t Entry, findings: &mut Findings| tool::read(entry, &common, findings);
    let lists = ["tools", "resources", "templates", "prompts", "skills"].into_iter().filter_map(|key| fields.get(key));
    Some(SurfaceFile {
        name: fields.text("surface", findings),
        version: version(&fields, findings),
        title: fields.text("title", findings),
        description: fields.text("description", findings),
        website: fields.text("website", findings),
        icons: described::icons(&fields, findings),
        instructions: fields.text("instructions", findings),
        root: fields.text("root", findings),
        digest_key: fields.text("digest_key", findings),
        ttl: fields.get("ttl").and_then(|entry| duration::read_ttl(entry, findings)),
        list_key: lists.map(|entry| entry.key.span).min_by_key(|span| span.start),
        tools: read_all(&fields, "tools", "a mapping of names to tools", read_tool, findings),
        resources: read_all(&fields, "resources", "a mapping of names to resources", resource::read, findings),
        templates: read_all(&fields, "templates", "a mapping of names to templates", resource::read_template, findings),
        prompts: read_all(&fields, "prompts", "a mapping of names to prompts", prompt::read, findings),
        skills: read_all(&fields, "skills", "a mapping of names to skills", skill::read, findings),
        upstreams: read_all(&fields, "upstreams", "a mapping of names to upstreams", upstream::read, findings),
        rules: rules::read(&fields, findings),
        gate: gate::read(&fields, findings),
        registry: fields.text("registry", findings),
        excluded: target::excluded(&fields, findings),
    })
}

/// A version that looks like a number is text to the rule on versions, which knows the remedy.
fn version(fields: &Fields<'_>, findings: &mut Findings) -> Option<At<String>> {
    match fields.get("version").map(|entry| &entry.node) {
        Some(Node { span, value: Value::Number(text) }) => Some(At { span: *span, value: text.to_string() }),
        _ => fields.text("version", findings),
    }
}

/// Reads every entry of one of the file's mappings.
fn read_all<'t, T>(
    fields: &Fields<'t>,
    key: &str,
    expected: &str,
    read: impl Fn(&'t Entry, &mut Findings) -> Option<T>,
    findings: &mut Findings,
) -> Vec<T> {
    let Some(list) = fields.get(key) else { return Vec::new() };
    match &list.node.value {
        Value::Map(entries) => entries.iter().filter_map(|entry| read(entry, findings)).collect(),
        Value::Null => Vec::new(),
        _ => {
            value_kind::report(key, &list.node, expected, findings);
            Vec::new()
        }
    }
}
