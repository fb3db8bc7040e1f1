//! The keys of a mapping, read one by one: what is missing, unknown or of the wrong kind is reported.

use super::lint::{missing_key, unknown_key, value_kind};
use super::problem::Findings;
use super::source::{At, Span};
use super::tree::{Entry, Node, Value};

/// A mapping whose keys are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'t> {
    entries: &'t [Entry],
    /// Where to point for what is missing.
    owner: Span,
    /// What the mapping describes.
    name: &'static str,
}

impl<'t> Fields<'t> {
    /// The fields of a node; `None` if it is no mapping.
    pub(crate) fn of(
        node: &'t Node,
        owner: Span,
        name: &'static str,
        known: &[&str],
        findings: &mut Findings,
    ) -> Option<Self> {
        let Some(entries) = node.as_map() else {
            value_kind::report(name, node, "a mapping of keys to values", findings);
            return None;
        };
        for entry in entries.iter().filter(|e| !known.contains(&e.key.value.as_str())) {
            unknown_key::report(entry, name, known, findings);
        }
        Some(Self { entries, owner, name })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'t Entry> {
        self.entries.iter().find(|entry| entry.key.value == key)
    }

    pub(crate) fn require(&self, key: &str, remedy: &str, findings: &mut Findings) {
        if self.get(key).is_none() {
            missing_key::report(self.owner, self.name, key, remedy, findings);
        }
    }

    pub(crate) fn text(&self, key: &str, findings: &mut Findings) -> Option<At<String>> {
        let entry = self.get(key)?;
        let text = entry.node.as_text();
        if text.is_none() {
            value_kind::report(key, &entry.node, "text", findings);
        }
        Some(At { span: entry.node.span, value: text?.to_owned() })
    }

    /// A text, or a list of texts.
    pub(crate) fn texts(&self, key: &str, findings: &mut Findings) -> Vec<At<String>> {
        let Some(entry) = self.get(key) else { return Vec::new() };
        let nodes = match &entry.node.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(&entry.node),
        };
        let text = |node: &Node| {
            let text = node.as_text();
            if text.is_none() {
                value_kind::report(key, node, "text", findings);
            }
            Some(At { span: node.span, value: text?.to_owned() })
        };
        nodes.iter().filter_map(text).collect()
    }

    pub(crate) fn flag(&self, key: &str, findings: &mut Findings) -> Option<At<bool>> {
        let entry = self.get(key)?;
        match entry.node.value {
            Value::Bool(value) => Some(At { span: entry.node.span, value }),
            _ => {
                value_kind::report(key, &entry.node, "true or false", findings);
                None
            }
        }
    }
}
