//! Resources and resource templates as written.

use std::time::Duration;

use super::backend::{self, BackendEntry, Want};
use super::described::{self, Described, Hints};
use crate::surface::arguments::{self, Input};
use crate::surface::declaration::Template;
use crate::surface::fields::Fields;
use crate::surface::lint::{braces, cap, duration, exit_code, glob, one_source};
use crate::surface::problem::Findings;
use crate::surface::source::{At, Span};
use crate::surface::tree::{Entry, Node};

/// Keys of every resource and template.
const KEYS: &[&str] = &["uri", "title", "description", "mime_type", "audience", "priority", "icons", "meta"];

/// What a resource is read from, and the keys that go with each.
const SOURCES: &[(&str, &[&str])] = &[
    ("file", &["file", "cap"]),
    ("folder", &["folder", "match", "cap"]),
    ("text", &["text"]),
    ("run", &["run", "cwd", "env", "timeout", "cap", "exit_codes", "missing_codes", "output"]),
];

/// What a template is read from.
const TEMPLATE_SOURCES: &[(&str, &[&str])] = &[
    ("file", &["file", "cap"]),
    ("text", &["text"]),
    ("run", &["run", "cwd", "env", "stdin", "timeout", "cap", "exit_codes", "missing_codes", "output"]),
];

/// Longest that reading may take: the engine waits for a read no longer.
pub(crate) const READ_AT_MOST: Duration = Duration::from_secs(60);

/// A resource, a folder of them, or a template: they say the same of themselves.
#[derive(Debug)]
pub(crate) struct ResourceEntry<'t> {
    pub(crate) name: &'t At<String>,
    pub(crate) node: &'t Node,
    pub(crate) uri: Option<At<String>>,
    pub(crate) described: Described<'t>,
    pub(crate) mime_type: Option<String>,
    pub(crate) hints: Hints,
    /// `None` if it cannot be read.
    pub(crate) source: Option<SourceEntry>,
    pub(crate) backend: BackendEntry<'t>,
}

/// What a resource is read from.
#[derive(Debug)]
pub(crate) enum SourceEntry {
    /// A file; only a template's has placeholders.
    File(Template),
    /// The first of the backend's paths.
    Folder,
    Text(Template),
    Command,
}

impl ResourceEntry<'_> {
    /// Where a pointer into the published definition leads.
    pub(crate) fn locate(&self, pointer: &str) -> Span {
        let mut steps = pointer.split('/').skip(1);
        let key = match steps.next() {
            Some("uri" | "uriTemplate") => "uri",
            Some("_meta") => "meta",
            Some(key) => key,
            None => return self.name.span,
        };
        self.node.get(key).map_or(self.name.span, |entry| entry.node.locate(entry.key.span, steps))
    }
}

/// Reads a resource.
pub(super) fn read<'t>(entry: &'t Entry, findings: &mut Findings) -> Option<ResourceEntry<'t>> {
    let (source, known) = one_source::among(entry, "a resource", SOURCES, KEYS, findings);
    let fields = Fields::of(&entry.node, entry.key.span, "a resource", &known, findings)?;
    let mut backend = BackendEntry::new(&entry.key, Input::none());
    let cap = |findings: &mut Findings| fields.get("cap").and_then(|entry| cap::read(entry, findings));
    let source = match source {
        Some("file") => {
            backend.cap = cap(findings);
            fields.text("file", findings).map(|path| {
                backend.reads(path.clone(), Want::File);
                SourceEntry::File(Template::literal(path.value))
            })
        }
        Some("folder") => {
            backend.cap = cap(findings);
            if let Some(uri) =
                fields.get("uri").filter(|uri| uri.node.as_text().is_some_and(|t| t.contains(['{', '}'])))
            {
                let message = "the `uri` of a folder has no placeholders: the path of a file is added to it";
                findings.report(&braces::RULE, uri.node.span, message, "write what stands before that path");
            }
            let matching = glob::read(&fields.texts("match", findings), findings);
            fields.text("folder", findings).map(|path| {
                backend.reads(path, Want::Folder(matching));
                SourceEntry::Folder
            })
        }
        Some("text") => fields.text("text", findings).map(|text| SourceEntry::Text(Template::literal(text.value))),
        Some("run") => {
            backend = command(&entry.key, Input::none(), &fields, findings);
            Some(SourceEntry::Command)
        }
        _ => None,
    };
    Some(ResourceEntry {
        name: &entry.key,
        node: &entry.node,
        uri: fields.text("uri", findings),
        described: described::read(&fields, findings),
        mime_type: fields.text("mime_type", findings).map(|at| at.value),
        hints: described::hints(&fields, findings),
        source,
        backend,
    })
}

/// Reads a template.
pub(super) fn read_template<'t>(entry: &'t Entry, findings: &mut Findings) -> Option<ResourceEntry<'t>> {
    let (source, known) =
        one_source::among(entry, "a template", TEMPLATE_SOURCES, &[KEYS, &["args"]].concat(), findings);
    let fields = Fields::of(&entry.node, entry.key.span, "a template", &known, findings)?;
    fields.require("uri", "write its address with variables, such as `uri: \"notes:{day}\"`", findings);
    let uri = fields.text("uri", findings);
    let input = arguments::read_variables(&fields, uri.as_ref(), source == Some("run"), findings);
    let (source, backend) = match source {
        Some("file") => {
            let mut backend = BackendEntry::new(&entry.key, input);
            backend.cap = fields.get("cap").and_then(|entry| cap::read(entry, findings));
            let path = fields
                .get("file")
                .and_then(|entry| Some(At { span: entry.node.span, value: entry.node.as_text()?.to_owned() }));
            let template = backend::text(&fields, "file", findings);
            backend.paths.extend(path.map(|path| super::PathEntry { path, want: Want::Pattern }));
            (source_of(template, SourceEntry::File, &mut backend), backend)
        }
        Some("text") => {
            let mut backend = BackendEntry::new(&entry.key, input);
            let template = backend::text(&fields, "text", findings);
            (source_of(template, SourceEntry::Text, &mut backend), backend)
        }
        Some("run") => (Some(SourceEntry::Command), command(&entry.key, input, &fields, findings)),
        _ => (None, BackendEntry { whole: false, ..BackendEntry::new(&entry.key, input) }),
    };
    Some(ResourceEntry {
        name: &entry.key,
        node: &entry.node,
        uri,
        described: described::read(&fields, findings),
        mime_type: fields.text("mime_type", findings).map(|at| at.value),
        hints: described::hints(&fields, findings),
        source,
        backend,
    })
}

fn source_of(
    template: Option<At<Template>>,
    kind: fn(Template) -> SourceEntry,
    backend: &mut BackendEntry<'_>,
) -> Option<SourceEntry> {
    backend.whole = template.is_some();
    backend.texts.extend(template.clone());
    template.map(|template| kind(template.value))
}

fn command<'t>(
    name: &'t At<String>,
    input: Input<'t>,
    fields: &Fields<'_>,
    findings: &mut Findings,
) -> BackendEntry<'t> {
    let mut backend = BackendEntry::of_command(name, input, fields, findings);
    if let Some(entry) = fields.get("timeout").filter(|_| backend.timeout.is_some_and(|t| t > READ_AT_MOST)) {
        duration::too_long_to_read(entry, findings);
    }
    backend.missing_codes =
        fields.get("missing_codes").and_then(|entry| exit_code::read(entry, findings)).unwrap_or_default();
    backend
}
