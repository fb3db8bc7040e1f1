//! What a curated surface says of its registry: the action behind a tool, arguments that tools share, what is left out.

use crate::surface::arguments::{self, ArgumentEntry};
use crate::surface::fields::Fields;
use crate::surface::lint::{missing_key, value_kind};
use crate::surface::manifest::CapabilityKind;
use crate::surface::problem::Findings;
use crate::surface::source::{At, Span};
use crate::surface::tree::{Entry, Node, Value};

/// Keys of a tool that is a target, beside those of every tool.
pub(super) const TARGET_KEYS: &[&str] = &["target", "common", "narrow_by", "timeout", "cap"];

const MAPPING_KEYS: &[&str] = &["tool", "agent", "action"];
const EXCLUDED_KEYS: &[&str] = &["target", "reason"];

/// An action of a registered capability.
#[derive(Debug)]
pub(crate) struct TargetEntry {
    /// Where it is said.
    pub(crate) span: Span,
    /// What it is, if that was said; else a tool comes before an agent.
    pub(crate) kind: Option<CapabilityKind>,
    pub(crate) name: At<String>,
    pub(crate) action: Option<At<String>>,
    /// The shared arguments that it takes.
    pub(crate) common: Vec<At<String>>,
    /// The arguments that make a result smaller.
    pub(crate) narrow_by: Vec<At<String>>,
}

/// What is not published on purpose.
#[derive(Debug)]
pub(crate) struct ExcludedEntry {
    /// `NAME/ACTION`, in which `*` stands for anything but a slash.
    pub(crate) target: At<String>,
    pub(crate) reason: Option<At<String>>,
}

/// Reads the target of a tool.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Option<TargetEntry> {
    let entry = fields.get("target")?;
    let (common, narrow_by) = (fields.texts("common", findings), fields.texts("narrow_by", findings));
    let span = entry.node.span;
    let part = |value: &str| At { span, value: value.to_owned() };
    let (kind, name, action) = match &entry.node.value {
        Value::Text(text) => match text.split_once('/') {
            Some((name, action)) => (None, part(name), Some(part(action))),
            None => (None, part(text), None),
        },
        Value::Map(_) => of_mapping(entry, findings)?,
        _ => {
            value_kind::report("target", &entry.node, "NAME/ACTION, or a mapping", findings);
            return None;
        }
    };
    Some(TargetEntry { span, kind, name, action, common, narrow_by })
}

type Named = (Option<CapabilityKind>, At<String>, Option<At<String>>);

fn of_mapping(entry: &Entry, findings: &mut Findings) -> Option<Named> {
    let fields = Fields::of(&entry.node, entry.key.span, "a target", MAPPING_KEYS, findings)?;
    let (tool, agent) = (fields.text("tool", findings), fields.text("agent", findings));
    let action = fields.text("action", findings);
    match (tool, agent) {
        (Some(name), None) => Some((Some(CapabilityKind::Tool), name, action)),
        (None, Some(name)) => Some((Some(CapabilityKind::Agent), name, action)),
        (Some(_), Some(agent)) => {
            let remedy = "leave out one of the two";
            findings.report(&value_kind::RULE, agent.span, "a target names a tool and an agent", remedy);
            None
        }
        (None, None) => {
            if fields.get("tool").or(fields.get("agent")).is_none() {
                missing_key::report(
                    entry.key.span,
                    "a target",
                    "tool",
                    "write `tool: NAME` or `agent: NAME`",
                    findings,
                );
            }
            None
        }
    }
}

/// Reads the arguments that tools share.
pub(super) fn common_args(fields: &Fields<'_>, findings: &mut Findings) -> Vec<ArgumentEntry> {
    fields.get("common_args").map(|entry| arguments::read_common(entry, findings)).unwrap_or_default()
}

/// Reads what is left out.
pub(super) fn excluded(fields: &Fields<'_>, findings: &mut Findings) -> Vec<ExcludedEntry> {
    let Some(entry) = fields.get("excluded") else { return Vec::new() };
    let Some(items) = entry.node.as_list() else {
        value_kind::report("excluded", &entry.node, "a list of targets with reasons", findings);
        return Vec::new();
    };
    items.iter().filter_map(|item| exclusion(item, findings)).collect()
}

fn exclusion(node: &Node, findings: &mut Findings) -> Option<ExcludedEntry> {
    let fields = Fields::of(node, node.span, "an exclusion", EXCLUDED_KEYS, findings)?;
    fields.require("target", "write what is left out, such as `target: xlsx/dump`", findings);
    fields.require("reason", "say why it is left out", findings);
    let reason = fields.text("reason", findings);
    Some(ExcludedEntry { target: fields.text("target", findings)?, reason })
}
