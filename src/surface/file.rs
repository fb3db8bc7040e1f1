//! A surface file as written: its keys read into fields that know where they stand.
//!
//! Promises: reading goes on after a problem; a field that is `None` is either absent or was
//! reported. Rules that look at several fields stand in `lint`.

use std::time::Duration;

use super::arguments::{self, Input};
use super::declaration::{Feed, Output, Template, Variable};
use super::fields::Fields;
use super::lint::{backend, braces, cap, duration, env_name, exit_code, missing_key, stdin_argument, value_kind};
use super::problem::Findings;
use super::source::{At, Span};
use super::tree::{Entry, Node, Value};

/// Keys of a surface file.
const FILE_KEYS: &[&str] = &["surface", "version", "title", "instructions", "root", "digest_key", "ttl", "tools"];

/// Keys of a tool.
const TOOL_KEYS: &[&str] = &[
    "title",
    "description",
    "args",
    "inputSchema",
    "as",
    "outputSchema",
    "read_only",
    "reversible",
    "idempotent",
    "open_world",
    "meta",
    "divergent",
    "run",
    "cwd",
    "env",
    "stdin",
    "timeout",
    "cap",
    "exit_codes",
    "output",
    "talk",
];

/// A surface file.
#[derive(Debug)]
pub(crate) struct SurfaceFile<'t> {
    pub(crate) name: Option<At<String>>,
    pub(crate) version: Option<At<String>>,
    pub(crate) title: Option<At<String>>,
    pub(crate) instructions: Option<At<String>>,
    pub(crate) root: Option<At<String>>,
    pub(crate) digest_key: Option<At<String>>,
    pub(crate) ttl: Option<Duration>,
    /// The key `tools`.
    pub(crate) tools_key: Option<Span>,
    pub(crate) tools: Vec<ToolEntry<'t>>,
}

/// A tool.
#[derive(Debug)]
pub(crate) struct ToolEntry<'t> {
    pub(crate) name: &'t At<String>,
    pub(crate) node: &'t Node,
    pub(crate) title: Option<At<String>>,
    pub(crate) description: Option<At<String>>,
    pub(crate) input: Input<'t>,
    pub(crate) output_schema: Option<&'t Entry>,
    pub(crate) read_only: Option<At<bool>>,
    pub(crate) reversible: Option<At<bool>>,
    pub(crate) idempotent: Option<At<bool>>,
    pub(crate) open_world: Option<At<bool>>,
    pub(crate) meta: Option<&'t Entry>,
    pub(crate) divergent: bool,
    /// Empty if there is none, or none that can be read.
    pub(crate) run: Vec<ElementEntry>,
    pub(crate) cwd: Option<At<String>>,
    pub(crate) env: Vec<At<Variable>>,
    pub(crate) stdin: Option<At<Feed>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) cap: Option<usize>,
    pub(crate) exit_codes: Option<Vec<i32>>,
    pub(crate) output: Option<At<Output>>,
    pub(crate) talk: bool,
}

/// An element of `run`.
#[derive(Debug, Clone)]
pub(crate) enum ElementEntry {
    One(At<Template>),
    Group(Vec<At<Template>>),
}

impl ElementEntry {
    pub(crate) fn templates(&self) -> &[At<Template>] {
        match self {
            Self::One(template) => std::slice::from_ref(template),
            Self::Group(templates) => templates,
        }
    }
}

impl ToolEntry<'_> {
    /// The elements of `run`, groups opened.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &At<Template>> {
        self.run.iter().flat_map(ElementEntry::templates)
    }

    /// Where a pointer into the published definition leads.
    pub(crate) fn locate(&self, pointer: &str) -> Span {
        let mut steps = pointer.split('/').skip(1);
        let field = match steps.next() {
            Some("inputSchema") => return self.input.locate(self.name.span, steps),
            Some("_meta") => "meta",
            Some(field @ ("title" | "description" | "outputSchema")) => field,
            _ => return self.name.span,
        };
        self.node.get(field).map_or(self.name.span, |entry| entry.node.locate(entry.key.span, steps))
    }
}

/// Reads a surface file.
pub(crate) fn read<'t>(root: &'t Node, findings: &mut Findings) -> Option<SurfaceFile<'t>> {
    let fields = Fields::of(root, Span::START, "a surface file", FILE_KEYS, findings)?;
    fields.require("surface", "write the name that clients see, such as `surface: repo`", findings);
    fields.require("version", "write the contract's version, such as `version: 1.0.0`", findings);
    fields.require("tools", "write `tools:` and at least one tool below it", findings);
    let tools = fields.get("tools");
    Some(SurfaceFile {
        name: fields.text("surface", findings),
        version: version(&fields, findings),
        title: fields.text("title", findings),
        instructions: fields.text("instructions", findings),
        root: fields.text("root", findings),
        digest_key: fields.text("digest_key", findings),
        ttl: fields.get("ttl").and_then(|entry| duration::read_ttl(entry, findings)),
        tools_key: tools.map(|entry| entry.key.span),
        tools: tools.map(|entry| read_tools(entry, findings)).unwrap_or_default(),
    })
}

/// A version that looks like a number is text to the rule on versions, which knows the remedy.
fn version(fields: &Fields<'_>, findings: &mut Findings) -> Option<At<String>> {
    match fields.get("version").map(|entry| &entry.node) {
        Some(Node { span, value: Value::Number(text) }) => Some(At { span: *span, value: text.to_string() }),
        _ => fields.text("version", findings),
    }
}

fn read_tools<'t>(tools: &'t Entry, findings: &mut Findings) -> Vec<ToolEntry<'t>> {
    match &tools.node.value {
        Value::Map(entries) => entries.iter().filter_map(|entry| read_tool(entry, findings)).collect(),
        Value::Null => Vec::new(),
        _ => {
            value_kind::report("tools", &tools.node, "a mapping of names to tools", findings);
            Vec::new()
        }
    }
}

fn read_tool<'t>(entry: &'t Entry, findings: &mut Findings) -> Option<ToolEntry<'t>> {
    let known = [TOOL_KEYS, backend::among(&entry.node)].concat();
    let fields = Fields::of(&entry.node, entry.key.span, "a tool", &known, findings)?;
    backend::check(&entry.node, findings);
    if backend::among(&entry.node).is_empty() {
        fields.require("run", "write the program and its arguments, such as `run: [git, --version]`", findings);
    }
    Some(ToolEntry {
        name: &entry.key,
        node: &entry.node,
        title: fields.text("title", findings),
        description: fields.text("description", findings),
        input: arguments::read(&fields, findings),
        output_schema: fields.get("outputSchema"),
        read_only: fields.flag("read_only", findings),
        reversible: fields.flag("reversible", findings),
        idempotent: fields.flag("idempotent", findings),
        open_world: fields.flag("open_world", findings),
        meta: fields.get("meta").filter(|entry| {
            let is_map = entry.node.as_map().is_some();
            if !is_map {
                value_kind::report("meta", &entry.node, "a mapping", findings);
            }
            is_map
        }),
        divergent: fields.flag("divergent", findings).is_some_and(|flag| flag.value),
        run: fields.get("run").map(|entry| read_run(entry, findings)).unwrap_or_default(),
        cwd: fields.text("cwd", findings),
        env: fields.get("env").map(|entry| env_name::read(entry, findings)).unwrap_or_default(),
        stdin: fields.get("stdin").and_then(|entry| stdin_argument::read(entry, findings)),
        timeout: fields.get("timeout").and_then(|entry| duration::read_timeout(entry, findings)),
        cap: fields.get("cap").and_then(|entry| cap::read(entry, findings)),
        exit_codes: fields.get("exit_codes").and_then(|entry| exit_code::read(entry, findings)),
        output: fields.text("output", findings).and_then(|said| {
            let value = match said.value.as_str() {
                "text" => Output::Text,
                "json" => Output::Json,
                _ => {
                    value_kind::one_of("output", &said, &["text", "json"], findings);
                    return None;
                }
            };
            Some(At { span: said.span, value })
        }),
        talk: fields.flag("talk", findings).is_some_and(|flag| flag.value),
    })
}

fn read_run(entry: &Entry, findings: &mut Findings) -> Vec<ElementEntry> {
    let Some(items) = entry.node.as_list() else {
        value_kind::report("run", &entry.node, "a list of the program and its arguments", findings);
        return Vec::new();
    };
    if items.is_empty() {
        let remedy = "name a program, such as `run: [git, --version]`";
        findings.report(&missing_key::RULE, entry.key.span, "`run` is empty", remedy);
    }
    // Every element is read before one bad element gives the list up: positions in it would be wrong.
    let elements: Vec<_> = items.iter().map(|item| read_element(item, findings)).collect();
    elements.into_iter().collect::<Option<_>>().unwrap_or_default()
}

fn read_element(item: &Node, findings: &mut Findings) -> Option<ElementEntry> {
    let Some(group) = item.as_list() else { return read_template(item, findings).map(ElementEntry::One) };
    let templates: Vec<_> = group.iter().map(|item| read_template(item, findings)).collect();
    templates.into_iter().collect::<Option<_>>().map(ElementEntry::Group)
}

fn read_template(node: &Node, findings: &mut Findings) -> Option<At<Template>> {
    let text: &str = match &node.value {
        Value::Text(text) => text,
        // As written: an argument vector has no numbers.
        Value::Number(text) => text,
        _ => {
            value_kind::element(node, findings);
            return None;
        }
    };
    braces::read(text, node.span, findings).map(|value| At { span: node.span, value })
}
