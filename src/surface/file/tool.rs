//! A tool as written.

use super::backend::{self, BackendEntry};
use super::described::{self, Described};
use super::http::{self, HttpEntry};
use super::target::{self, TargetEntry};
use super::upstream::{self, UpstreamToolEntry};
use crate::protocol::TaskSupport;
use crate::surface::arguments::{self, ArgumentEntry};
use crate::surface::builtin::Builtin;
use crate::surface::fields::Fields;
use crate::surface::lint::backend::Kind;
use crate::surface::lint::{self, misplaced_key, unknown_key, value_kind};
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
    "pillar",
];

/// Keys of a tool that is a command, beside those of every command.
const COMMAND_KEYS: &[&str] = &["stdin", "talk", "asks_itself"];

/// Whether names of arguments may have `_` for `-`: a key of what runs capabilities alone.
const COERCE: &str = "coerce_arg_names";

/// Keys of a tool that is built in: its definition comes with it.
const BUILTIN_KEYS: &[&str] =
    &["builtin", "title", "description", "icons", "meta", "timeout", "cap", COERCE, "task", "scopes"];

/// What carries a tool out, as written.
#[derive(Debug)]
pub(crate) enum KindEntry {
    /// The command of the tool's `backend`.
    Command,
    /// An HTTP request; `None` if it cannot be read.
    Http(Option<HttpEntry>),
    /// A tool of an upstream; `None` if it cannot be read.
    Upstream(Option<UpstreamToolEntry>),
    /// A built-in tool.
    Builtin(Builtin),
    /// An action of a registered capability.
    Target(TargetEntry),
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
    pub(crate) asks_itself: Option<At<bool>>,
    pub(crate) divergent: bool,
    pub(crate) coerce_arg_names: bool,
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
pub(super) fn read<'t>(entry: &'t Entry, common: &[ArgumentEntry], findings: &mut Findings) -> Option<ToolEntry<'t>> {
    let kind = lint::backend::of(entry, findings);
    let keys: &[&[&str]] = match kind {
        Some(Kind::Run) => &[KEYS, backend::RUN_KEYS, COMMAND_KEYS],
        Some(Kind::Http) => &[KEYS, http::TOOL_KEYS],
        Some(Kind::Upstream) => &[KEYS, upstream::TOOL_KEYS],
        Some(Kind::Builtin) => &[BUILTIN_KEYS],
        Some(Kind::Target) => &[KEYS, target::TARGET_KEYS],
        // Whatever is meant, its keys are not unknown.
        _ => &[KEYS, &lint::backend::KEYS, backend::RUN_KEYS, COMMAND_KEYS, target::TARGET_KEYS],
    };
    let fields = Fields::of(&entry.node, entry.key.span, "a tool", &keys.concat(), findings)?;
    // For people who read the file.
    let _ = fields.text("pillar", findings);
    let target = match kind {
        Some(Kind::Target) => target::read(&fields, findings),
        _ => None,
    };
    let input = match &target {
        Some(target) => arguments::read_target(&fields, &target.common, common, findings),
        None => arguments::read(&fields, findings),
    };
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
        Kind::Builtin => builtin(&fields, findings).map(KindEntry::Builtin),
        Kind::Target => {
            misplaced_key::data(&backend.input, findings);
            target.map(KindEntry::Target)
        }
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
        asks_itself: fields.flag("asks_itself", findings),
        coerce_arg_names: fields.flag(COERCE, findings).is_some_and(|flag| flag.value),
        divergent: fields.flag("divergent", findings).is_some_and(|flag| flag.value),
        task: task(&fields, findings),
        scopes: fields.texts("scopes", findings),
        kind,
        backend,
    })
}

/// The built-in tool that is named.
fn builtin(fields: &Fields<'_>, findings: &mut Findings) -> Option<Builtin> {
    let said = fields.text("builtin", findings)?;
    let found = Builtin::parse(&said.value);
    if let Some(entry) = fields.get(COERCE).filter(|_| found.is_some_and(|builtin| !builtin.runs())) {
        let known: Vec<&str> = BUILTIN_KEYS.iter().copied().filter(|key| *key != COERCE).collect();
        unknown_key::report(entry, "a built-in tool that runs nothing", &known, findings);
    }
    if found.is_none() {
        value_kind::one_of("builtin", &said, &Builtin::ALL.map(Builtin::name), findings);
    }
    found
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
