//! A tool as written.

use super::backend::{self, BackendEntry};
use super::described::{self, Described};
use super::http::{self, HttpEntry};
use super::upstream::{self, UpstreamToolEntry};
use crate::protocol::TaskSupport;
use crate::surface::arguments;
use crate::surface::fields::Fields;
use crate::surface::lint::backend::Kind;
use crate::surface::lint::{self, misplaced_key, value_kind};
use crate::surface::problem::Findings;
use crate::surface::source::{At, Span};
use crate::surface::tree::{Entry, Node};

/// Keys of a tool, whatever carries it out.
const KEYS: &[&str] = &[
    "title",
    "description",
    "icons",
    "meta",
    "args",
    "inputSchema",
    "as",
    "outputSchema",
    "read_only",
    "reversible",
    "idempotent",
    "open_world",
    "divergent",
    "task",
    "scopes",
];

/// Keys of a tool that is a command, beside those of every command.
const COMMAND_KEYS: &[&str] = &["stdin", "talk"];

/// What carries a tool out, as written.
#[derive(Debug)]
pub(crate) enum KindEntry {
    /// The command of the tool's `backend`.
    Command,
    /// An HTTP request; `None` if it cannot be read.
    Http(Option<HttpEntry>),
    /// A tool of an upstream; `None` if it cannot be read.
    Upstream(Option<UpstreamToolEntry>),
}

/// A tool.
#[derive(Debug)]
pub(crate) struct ToolEntry<'t> {
    pub(crate) name: &'t At<String>,
    pub(crate) node: &'t Node,
    pub(crate) described: Described<'t>,
    pub(crate) output_schema: Option<&'t Entry>,
    pub(crate) read_only: Option<At<bool>>,
    pub(crate) reversible: Option<At<bool>>,
    pub(crate) idempotent: Option<At<bool>>,
    pub(crate) open_world: Option<At<bool>>,
    pub(crate) divergent: bool,
    pub(crate) task: TaskSupport,
    pub(crate) scopes: Vec<At<String>>,
    /// `None` if it is not known which it is.
    pub(crate) kind: Option<KindEntry>,
    pub(crate) backend: BackendEntry<'t>,
}

impl ToolEntry<'_> {
    /// Where a pointer into the published definition leads.
    pub(crate) fn locate(&self, pointer: &str) -> Span {
        let mut steps = pointer.split('/').skip(1);
        let field = match steps.next() {
            Some("inputSchema") => return self.backend.input.locate(self.name.span, steps),
            Some("_meta") => "meta",
            Some("scopes") => "scopes",
            Some(field @ ("title" | "description" | "outputSchema" | "icons")) => field,
            _ => return self.name.span,
        };
        self.node.get(field).map_or(self.name.span, |entry| entry.node.locate(entry.key.span, steps))
    }
}

/// Reads a tool.
pub(super) fn read<'t>(entry: &'t Entry, findings: &mut Findings) -> Option<ToolEntry<'t>> {
    let kind = lint::backend::of(entry, findings);
    let keys: &[&[&str]] = match kind {
        Some(Kind::Run) => &[KEYS, backend::RUN_KEYS, COMMAND_KEYS],
        Some(Kind::Http) => &[KEYS, http::TOOL_KEYS],
        Some(Kind::Upstream) => &[KEYS, upstream::TOOL_KEYS],
        // Whatever is meant, its keys are not unknown.
        _ => &[KEYS, &lint::backend::KEYS, backend::RUN_KEYS, COMMAND_KEYS],
    };
    let fields = Fields::of(&entry.node, entry.key.span, "a tool", &keys.concat(), findings)?;
    let input = arguments::read(&fields, findings);
    let mut backend = BackendEntry::of_command(&entry.key, input, &fields, findings);
    let kind = kind.and_then(|kind| match kind {
        Kind::Run => Some(KindEntry::Command),
        Kind::Http => {
            misplaced_key::roles(&backend.input, findings);
            Some(KindEntry::Http(fields.get("http").and_then(|entry| http::read(entry, &mut backend, findings))))
        }
        Kind::Upstream => {
            misplaced_key::roles(&backend.input, findings);
            Some(KindEntry::Upstream(upstream::read_tool(&fields, findings)))
        }
        Kind::Target | Kind::Builtin => None,
    });
    Some(ToolEntry {
        name: &entry.key,
        node: &entry.node,
        described: described::read(&fields, findings),
        output_schema: fields.get("outputSchema"),
        read_only: fields.flag("read_only", findings),
        reversible: fields.flag("reversible", findings),
        idempotent: fields.flag("idempotent", findings),
        open_world: fields.flag("open_world", findings),
        divergent: fields.flag("divergent", findings).is_some_and(|flag| flag.value),
        task: task(&fields, findings),
        scopes: fields.texts("scopes", findings),
        kind,
        backend,
    })
}

fn task(fields: &Fields<'_>, findings: &mut Findings) -> TaskSupport {
    let said = fields.text("task", findings);
    match said.as_ref().map(|said| said.value.as_str()) {
        Some("optional") => TaskSupport::Optional,
        Some("required") => TaskSupport::Required,
        Some("forbidden") | None => TaskSupport::Forbidden,
        Some(_) => {
            let known = ["optional", "required", "forbidden"];
            said.iter().for_each(|said| value_kind::one_of("task", said, &known, findings));
            TaskSupport::Forbidden
        }
    }
}
