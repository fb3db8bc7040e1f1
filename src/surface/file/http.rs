//! An HTTP request as written: of a tool, and the parts that an upstream's address shares with it.

use super::backend::BackendEntry;
use crate::surface::declaration::{Output, Piece, Template};
use crate::surface::fields::Fields;
use crate::surface::lint::{braces, http_body, http_header, http_method, http_url, secret_variable, value_kind};
use crate::surface::outward::{HeaderPiece, HttpBody, HttpVerb, JsonTemplate};
use crate::surface::problem::Findings;
use crate::surface::source::{At, Span};
use crate::surface::template::arguments;
use crate::surface::tree::{Entry, Node, Value};
use crate::surface::url::Url;

/// Keys of `http`.
const KEYS: &[&str] = &["get", "post", "put", "patch", "delete", "query", "headers", "json", "body", "allow_private"];

/// Keys of a tool that is a request, beside those of every tool.
pub(super) const TOOL_KEYS: &[&str] = &["http", "timeout", "cap", "output"];

/// A request.
#[derive(Debug)]
pub(crate) struct HttpEntry {
    pub(crate) verb: At<HttpVerb>,
    pub(crate) url: At<Url>,
    pub(crate) query: Vec<(String, At<Template>)>,
    pub(crate) headers: Vec<HeaderEntry>,
    pub(crate) body: Option<HttpBody>,
    pub(crate) allow_private: bool,
}

/// A header.
#[derive(Debug)]
pub(crate) struct HeaderEntry {
    pub(crate) name: At<String>,
    pub(crate) value: At<Vec<HeaderPiece>>,
}

/// Reads `http`; tells the tool's backend which texts have placeholders.
pub(super) fn read(entry: &Entry, backend: &mut BackendEntry<'_>, findings: &mut Findings) -> Option<HttpEntry> {
    let fields = Fields::of(&entry.node, entry.key.span, "an HTTP request", KEYS, findings)?;
    if let Some(output) = backend.output.as_ref().filter(|output| output.value == Output::Content) {
        let said = At { span: output.span, value: "content".to_owned() };
        value_kind::one_of("output", &said, &["text", "json"], findings);
    }
    let method = http_method::of(&fields, entry.key.span, findings);
    let url = method.as_ref().and_then(|(_, node)| http_url::read(node, findings));
    let query = query(&fields, findings);
    let headers = headers(&fields, findings);
    let verb = method.as_ref().map(|(verb, _)| verb.clone());
    let body = http_body::of(&fields, verb.as_ref(), findings).and_then(|entry| read_body(entry, findings));
    let allow_private = fields.flag("allow_private", findings).is_some_and(|flag| flag.value);
    backend.whole = true;
    for (_, value) in &query {
        backend.texts.push(value.clone());
    }
    for HeaderEntry { value, .. } in &headers {
        backend.texts.push(At { span: value.span, value: arguments_of(&value.value) });
    }
    match &body {
        Some((span, HttpBody::Text(text))) => backend.texts.push(At { span: *span, value: text.clone() }),
        Some((span, HttpBody::Json(json))) => texts_of(json, *span, backend),
        None => {}
    }
    let (verb, url) = (verb?, url?);
    for segment in &url.value.segments {
        backend.texts.push(At { span: url.span, value: segment.clone() });
    }
    Some(HttpEntry { verb, url, query, headers, body: body.map(|(_, body)| body), allow_private })
}

fn query(fields: &Fields<'_>, findings: &mut Findings) -> Vec<(String, At<Template>)> {
    let Some(entry) = fields.get("query") else { return Vec::new() };
    let Some(entries) = entry.node.as_map() else {
        value_kind::report("query", &entry.node, "a mapping of names to values", findings);
        return Vec::new();
    };
    let pair = |Entry { key, node }: &Entry| {
        let text = match &node.value {
            Value::Text(text) => text.clone(),
            Value::Number(text) => text.to_string(),
            Value::Bool(value) => value.to_string(),
            _ => {
                value_kind::report(&format!("the query's {:?}", key.value), node, "text", findings);
                return None;
            }
        };
        let value = template(&text, node.span, findings)?;
        Some((key.value.clone(), At { span: node.span, value }))
    };
    entries.iter().filter_map(pair).collect()
}

/// Reads `headers`, of a request or of an upstream's address.
pub(super) fn headers(fields: &Fields<'_>, findings: &mut Findings) -> Vec<HeaderEntry> {
    let Some(entry) = fields.get("headers") else { return Vec::new() };
    let Some(entries) = entry.node.as_map() else {
        value_kind::report("headers", &entry.node, "a mapping of names to values", findings);
        return Vec::new();
    };
    let mut headers: Vec<HeaderEntry> = Vec::new();
    for Entry { key, node } in entries {
        let text = match &node.value {
            Value::Text(text) => text.clone(),
            Value::Number(text) => text.to_string(),
            _ => {
                value_kind::report(&format!("the header {:?}", key.value), node, "text", findings);
                continue;
            }
        };
        http_header::check(key, &text, node.span, &headers, findings);
        if let Some(value) = secret_variable::read(&text, node.span, findings) {
            let name = At { span: key.span, value: key.value.to_ascii_lowercase() };
            headers.push(HeaderEntry { name, value: At { span: node.span, value } });
        }
    }
    headers
}

/// The arguments of a header's value, as a text that names them.
fn arguments_of(value: &[HeaderPiece]) -> Template {
    let argument = |piece: &HeaderPiece| match piece {
        HeaderPiece::Argument(name) => Some(Piece::Argument(name.clone())),
        HeaderPiece::Literal(_) | HeaderPiece::Secret(_) => None,
    };
    Template(value.iter().filter_map(argument).collect())
}

fn read_body(entry: &Entry, findings: &mut Findings) -> Option<(Span, HttpBody)> {
    let span = entry.node.span;
    if entry.key.value == "json" {
        return read_json(&entry.node, findings).map(|json| (span, HttpBody::Json(json)));
    }
    let Some(text) = entry.node.as_text() else {
        value_kind::report("body", &entry.node, "text", findings);
        return None;
    };
    template(text, span, findings).map(|text| (span, HttpBody::Text(text)))
}

/// A text with placeholders and without secrets.
fn template(text: &str, span: Span, findings: &mut Findings) -> Option<Template> {
    secret_variable::is_absent(text, span, findings).then(|| braces::read(text, span, findings))?
}

fn read_json(node: &Node, findings: &mut Findings) -> Option<JsonTemplate> {
    match &node.value {
        Value::Text(text) if text == "{*}" => Some(JsonTemplate::Arguments),
        Value::Text(text) => template(text, node.span, findings).map(JsonTemplate::Text),
        Value::List(items) => {
            // All are read, so that every problem is named.
            let items: Vec<_> = items.iter().map(|item| read_json(item, findings)).collect();
            items.into_iter().collect::<Option<_>>().map(JsonTemplate::Array)
        }
        Value::Map(entries) => {
            let members: Vec<_> =
                entries.iter().map(|e| Some((e.key.value.clone(), read_json(&e.node, findings)?))).collect();
            members.into_iter().collect::<Option<_>>().map(JsonTemplate::Object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(JsonTemplate::Literal(node.to_json())),
    }
}

fn texts_of(json: &JsonTemplate, span: Span, backend: &mut BackendEntry<'_>) {
    match json {
        JsonTemplate::Literal(_) => {}
        JsonTemplate::Text(text) => backend.texts.push(At { span, value: text.clone() }),
        // Every argument is used.
        JsonTemplate::Arguments => backend.whole = false,
        JsonTemplate::Array(items) => items.iter().for_each(|item| texts_of(item, span, backend)),
        JsonTemplate::Object(members) => members.iter().for_each(|(_, item)| texts_of(item, span, backend)),
    }
}

impl HttpEntry {
    /// The arguments that the path is made of.
    pub(crate) fn in_path(&self) -> impl Iterator<Item = &str> {
        self.url.value.segments.iter().flat_map(arguments)
    }
}
