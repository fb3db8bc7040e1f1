//! Prompts as written.

use super::backend::{self, BackendEntry, Want};
use super::described::{self, Described};
use crate::protocol::Role;
use crate::surface::arguments;
use crate::surface::declaration::Template;
use crate::surface::fields::Fields;
use crate::surface::lint::{one_source, value_kind};
use crate::surface::problem::Findings;
use crate::surface::source::{At, Span};
use crate::surface::tree::{Entry, Node, Value};

/// Keys of a prompt, beside what it says.
const KEYS: &[&str] = &["title", "description", "icons", "meta", "args"];

/// What a prompt says: one message of the person, or several.
const SOURCES: &[(&str, &[&str])] = &[("text", &["text"]), ("file", &["file"]), ("messages", &["messages"])];

/// What a message is made of.
const MESSAGE_SOURCES: &[(&str, &[&str])] = &[
    ("text", &["text"]),
    ("file", &["file"]),
    ("resource", &["resource"]),
    ("link", &["link"]),
    ("image", &["image"]),
    ("audio", &["audio"]),
];

/// A prompt.
#[derive(Debug)]
pub(crate) struct PromptEntry<'t> {
    pub(crate) name: &'t At<String>,
    pub(crate) node: &'t Node,
    pub(crate) described: Described<'t>,
    /// Those that can be read; `None` if it is not known which they are.
    pub(crate) messages: Option<Vec<MessageEntry>>,
    pub(crate) backend: BackendEntry<'t>,
}

/// A message of a prompt.
#[derive(Debug)]
pub(crate) struct MessageEntry {
    pub(crate) role: Role,
    pub(crate) said: SaidEntry,
}

/// What a message says.
#[derive(Debug)]
pub(crate) enum SaidEntry {
    Text(Template),
    File(String),
    Resource(At<Template>),
    Link(At<Template>),
    Image(At<String>),
    Audio(At<String>),
}

impl PromptEntry<'_> {
    /// Where a pointer into the published definition leads.
    pub(crate) fn locate(&self, pointer: &str) -> Span {
        let mut steps = pointer.split('/').skip(1);
        let key = match steps.next() {
            Some("arguments") => {
                let index = steps.next().and_then(|step| step.parse::<usize>().ok());
                let argument = index.and_then(|index| self.backend.input.arguments.get(index));
                return argument.map_or(self.name.span, |argument| argument.name.span);
            }
            Some("_meta") => "meta",
            Some(key) => key,
            None => return self.name.span,
        };
        self.node.get(key).map_or(self.name.span, |entry| entry.node.locate(entry.key.span, steps))
    }
}

/// Reads a prompt.
pub(super) fn read<'t>(entry: &'t Entry, findings: &mut Findings) -> Option<PromptEntry<'t>> {
    let (source, known) = one_source::among(entry, "a prompt", SOURCES, KEYS, findings);
    let fields = Fields::of(&entry.node, entry.key.span, "a prompt", &known, findings)?;
    let input = arguments::read_prompt(&fields, findings);
    let mut backend = BackendEntry::new(&entry.key, input);
    let messages = match source {
        Some("messages") => fields.get("messages").and_then(|list| read_messages(list, &mut backend, findings)),
        Some(source) => {
            let said = read_said(&fields, source, &mut backend, findings);
            said.map(|said| vec![MessageEntry { role: Role::User, said }])
        }
        None => None,
    };
    backend.whole &= messages.is_some();
    Some(PromptEntry {
        name: &entry.key,
        node: &entry.node,
        described: described::read(&fields, findings),
        messages,
        backend,
    })
}

fn read_messages(list: &Entry, backend: &mut BackendEntry<'_>, findings: &mut Findings) -> Option<Vec<MessageEntry>> {
    let items = match &list.node.value {
        Value::List(items) if !items.is_empty() => items,
        _ => {
            value_kind::report("messages", &list.node, "a list of messages", findings);
            return None;
        }
    };
    let messages: Vec<_> = items.iter().filter_map(|item| read_message(item, backend, findings)).collect();
    backend.whole &= messages.len() == items.len();
    Some(messages)
}

fn read_message(node: &Node, backend: &mut BackendEntry<'_>, findings: &mut Findings) -> Option<MessageEntry> {
    let known: &[&str] = &["role", "text", "file", "resource", "link", "image", "audio"];
    let fields = Fields::of(node, node.span, "a message", known, findings)?;
    let source = one_source::of(node, node.span, "a message", MESSAGE_SOURCES, findings);
    let role = match fields.text("role", findings) {
        Some(said) => described::role("role", &said, findings),
        None => Some(Role::User),
    };
    let said = read_said(&fields, source?, backend, findings);
    Some(MessageEntry { role: role?, said: said? })
}

fn read_said(
    fields: &Fields<'_>,
    source: &str,
    backend: &mut BackendEntry<'_>,
    findings: &mut Findings,
) -> Option<SaidEntry> {
    match source {
        "text" | "resource" | "link" => {
            let template = backend::text(fields, source, findings)?;
            backend.texts.push(template.clone());
            Some(match source {
                "text" => SaidEntry::Text(template.value),
                "resource" => SaidEntry::Resource(template),
                _ => SaidEntry::Link(template),
            })
        }
        _ => {
            let path = fields.text(source, findings)?;
            if source == "file" {
                // What the file uses is known to the rule on such files alone.
                backend.whole = false;
                let arguments = backend.input.arguments.iter().map(|a| a.name.value.clone()).collect();
                backend.reads(path.clone(), Want::Text(arguments));
                return Some(SaidEntry::File(path.value));
            }
            backend.reads(path.clone(), Want::File);
            Some(if source == "image" { SaidEntry::Image(path) } else { SaidEntry::Audio(path) })
        }
    }
}
