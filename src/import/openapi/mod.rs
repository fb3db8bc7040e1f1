//! From an OpenAPI document to a surface file: an operation becomes a tool that is an HTTP request.
//!
//! Promises: any document gives a surface file or a reason; no reference out of it is followed, and nothing is asked of
//! the server. A secret is named, never written. What reads is called so only where the method says it.

mod document;
mod operation;
mod reach;
mod schema;

use std::path::Path;

pub use document::{DOCUMENT_BYTES, Document};
pub use operation::{Operation, operations};
pub(super) use reach::is_private;

use super::effect;
use super::name::{self, Names};
use super::sheet::{Drafted, Head, ImportError, Imported, settle};
use super::text::{DESCRIPTION_BYTES, cut, one_line, paragraphs};
use super::yaml::{Line, Yaml};
use crate::protocol::Json;
use crate::protocol::json::shortened;
use crate::surface::{Problem, can_say};
use operation::{Parameter, is_json};
use schema::Converter;

/// Methods that a surface file has.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// Headers that OpenAPI gives another meaning, and those that are not a surface's to set.
const OTHER_HEADERS: [&str; 8] =
    ["accept", "content-type", "authorization", "host", "content-length", "cookie", "accept-encoding", "connection"];

/// What is chosen of a document.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'c> {
    /// The operations to take.
    pub operations: &'c [Operation],
    /// The server to ask, in the place of the document's own.
    pub server: Option<&'c str>,
}

/// The name for a document's surface.
fn title(document: &Document) -> (String, String) {
    let told = |key: &str| document.get("info").and_then(|info| info.get(key)).and_then(Json::as_str);
    (one_line(told("title").unwrap_or("API")), one_line(told("version").unwrap_or_default()))
}

/// The surface file of a document; `folder` is where it will stand.
pub fn surface(document: &Document, choice: Choice<'_>, folder: &Path) -> Result<Imported, ImportError> {
    let (title, version) = title(document);
    let surface = name::of_surface(&title, &["open", "openapi", "api", "rest", "v1", "v2", "v3", "0", "1", "2", "3"]);
    let mut names = Names::default();
    let mut tools = Vec::new();
    for operation in choice.operations {
        let wanted = operation.id.clone().unwrap_or_else(|| by_path(operation));
        let mut tool = Tool::new(document, operation, &surface);
        tool.place(document, operation, choice.server)?;
        let off = tool.refused.take();
        tools.push(Drafted { name: names.take(&wanted), of: tool, off });
    }
    let many = if tools.len() > 40 { " There are more than 40: choose with --only, by tag or by pattern." } else { "" };
    let mut comments = vec![
        format!("Imported from the OpenAPI document {title:?}, version {version:?}. Review it before it is served."),
        format!("- Keep the tools that are needed; a model loses its way among more than 40.{many}"),
        "- Each `decide:` is a question. A tool that is switched off says why.".to_owned(),
        "- ${NAME} is a variable of the server's environment: a secret, which no file holds.".to_owned(),
    ];
    let unread = operation::unread(document);
    comments.extend(document.remarks.iter().chain(&unread).map(|remark| format!("- The document: {remark}.")));
    let mut lines = vec![Line::text("surface", surface), Line::text("version", "0.1.0")];
    let about = document.get("info").and_then(|info| info.get("description")).and_then(Json::as_str);
    let about = about.map(paragraphs).filter(|about| !about.is_empty());
    lines.push(Line::text("title", cut(&title, 200)));
    if let Some(about) = about {
        // The first paragraph says what it is; the rest is for people who write programs.
        let first = about.split("\n\n").next().unwrap_or_default();
        lines.push(Line::Comment("decide: what a model should know before it calls.".to_owned()));
        lines.push(Line::text("instructions", cut(&one_line(first), DESCRIPTION_BYTES)));
    }
    let mut imported = settle(&Head { comments, lines }, tools, folder, Tool::lines, Tool::mend)?;
    imported.remarks.extend(unread);
    Ok(imported)
}

/// A name for an operation that has none: `get_pets_by_petId`. Its verb is what the method is for, which reads
/// better than the method and is not taken for another deed.
fn by_path(operation: &Operation) -> String {
    let verb = match operation.method.as_str() {
        "post" => "create",
        "put" => "replace",
        "patch" => "update",
        method => method,
    };
    let mut words = vec![verb.to_owned()];
    for segment in operation.path.split('/').filter(|segment| !segment.is_empty()) {
        match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(variable) => words.push(format!("by_{variable}")),
            None => words.push(segment.to_owned()),
        }
    }
    words.join("_")
}

#[derive(Debug, Clone)]
struct Tool {
    description: String,
    notes: Vec<String>,
    effect: Vec<Line>,
    arguments: Vec<Argument>,
    method: String,
    path: String,
    url: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    json: Option<Json>,
    text: Option<String>,
    allow_private: bool,
    output_json: bool,
    refused: Option<String>,
}

#[derive(Debug, Clone)]
struct Argument {
    key: String,
    required: bool,
    schema: Json,
}

impl Tool {
    fn new(document: &Document, operation: &Operation, surface: &str) -> Self {
        let line = format!("{} {}", operation.method.to_ascii_uppercase(), operation.path);
        let own = operation.id.as_deref().map(|id| format!(", {}", shortened(id, 80))).unwrap_or_default();
        let mut tool = Self {
            description: describe(operation),
            notes: vec![format!("{}{own}", shortened(&line, 160))],
            effect: effects(operation),
            arguments: Vec::new(),
            method: operation.method.clone(),
            path: operation.path.clone(),
            url: String::new(),
            query: Vec::new(),
            headers: Vec::new(),
            json: None,
            text: None,
            allow_private: false,
            output_json: operation.gives_json,
            refused: None,
        };
        tool.notes.extend(operation.notes.iter().cloned());
        if operation.deprecated {
            tool.notes.push("decide: it is deprecated; leave it out?".to_owned());
        }
        if operation.summary.is_empty() && operation.description.is_empty() {
            tool.notes.push("decide: the document says nothing of it; write what it does, for models.".to_owned());
        }
        if !METHODS.contains(&operation.method.as_str()) {
            tool.refused = Some(format!("a surface makes no {} requests", operation.method.to_ascii_uppercase()));
        }
        let mut converter = Converter::new(document);
        for parameter in &operation.parameters {
            tool.parameter(parameter, &mut converter);
        }
        tool.body(operation, &mut converter);
        tool.secure(document, operation, surface);
        tool.notes.extend(converter.notes);
        tool
    }

    /// A name for an argument that no other has.
    fn key(&self, wanted: &str, place: &str) -> String {
        let base = name::of_argument(wanted);
        let candidates = [base.clone(), format!("{base}_{place}")];
        let numbered = (2u32..).map(|number| format!("{base}_{number}"));
        let is_free = |key: &String| key.len() <= 64 && self.arguments.iter().all(|argument| argument.key != *key);
        candidates.into_iter().chain(numbered.take(10_000)).find(is_free).unwrap_or(base)
    }

    fn add(&mut self, key: &str, required: bool, mut schema: Json, description: Option<&String>) {
        let said = description.map(|text| cut(&one_line(text), 400)).filter(|text| !text.is_empty());
        if let Json::Object(members) = &mut schema {
            if let Some(said) = said {
                members.retain(|(key, _)| key != "description");
                members.push(("description".to_owned(), Json::String(said)));
            }
            // Whoever must give it needs none, and one that does not fit is none.
            if required {
                members.retain(|(key, _)| key != "default");
            }
        }
        self.arguments.push(Argument { key: key.to_owned(), required, schema });
    }

    fn parameter(&mut self, parameter: &Parameter, converter: &mut Converter<'_>) {
        let Parameter { name, place, required, description, .. } = parameter;
        let shown = shortened(name, 60);
        let lower = name.to_ascii_lowercase();
        let left_out = match place.as_str() {
            "path" => None,
            "query" => None,
            "header" if OTHER_HEADERS.contains(&lower.as_str()) => return,
            "header" => None,
            _ => Some("a cookie is not a surface's to set"),
        };
        let mut schema = without_null(converter.convert(&parameter.schema));
        let kind = schema.get("type").and_then(Json::as_str).unwrap_or_default().to_owned();
        let left_out =
            left_out.or((kind == "object").then_some("an object in an address is written in ways of its own"));
        if let Some(why) = left_out {
            if *required {
                self.refused.get_or_insert(format!("it needs the {place} parameter {shown}: {why}"));
            } else {
                self.notes.push(format!("the {place} parameter {shown} is left out: {why}."));
            }
            return;
        }
        if kind == "array" {
            schema = self.one_of_several(parameter, &schema, &shown);
        }
        let key = self.key(name, place);
        let placeholder = format!("{{{key}}}");
        match place.as_str() {
            "path" => self.path = self.path.replace(&format!("{{{name}}}"), &format!("\u{1}{key}\u{2}")),
            "query" => self.query.push((name.clone(), placeholder)),
            _ => self.headers.push((name.clone(), placeholder)),
        }
        self.add(&key, *required, schema, description.as_ref());
    }

    /// A list in an address: as one text with commas where the document says so, else one value.
    fn one_of_several(&mut self, parameter: &Parameter, schema: &Json, shown: &str) -> Json {
        let string = || vec![("type".to_owned(), Json::String("string".to_owned()))];
        let commas = parameter.place != "query" || parameter.explode == Some(false);
        if commas {
            self.notes.push(format!("{shown} is a list: give it as one text with commas."));
            return Json::Object(string());
        }
        self.notes.push(format!("decide: {shown} may be given several times; one value is sent here."));
        match schema.get("items") {
            Some(items) if can_say(items) => items.clone(),
            _ => Json::Object(string()),
        }
    }

    fn body(&mut self, operation: &Operation, converter: &mut Converter<'_>) {
        let Some(body) = &operation.body else { return };
        if operation.method == "get" {
            self.notes.push("its body is left out: servers drop that of a GET.".to_owned());
            return;
        }
        let media = shortened(&body.media, 60);
        if body.media.starts_with("text/") && !is_json(&body.media) {
            let key = self.key("body", "text");
            self.text = Some(format!("{{{key}}}"));
            self.headers.push(("Content-Type".to_owned(), body.media.clone()));
            let schema = Json::Object(vec![("type".to_owned(), Json::String("string".to_owned()))]);
            self.add(&key, body.required, schema, body.description.as_ref());
            return;
        }
        if !is_json(&body.media) {
            if body.required {
                self.refused.get_or_insert(format!("its body is {media}, and a surface sends JSON or text"));
            } else {
                self.notes.push(format!("its body is left out: it is {media}, and a surface sends JSON or text."));
            }
            return;
        }
        let schema = converter.convert(&body.schema);
        let properties = schema.get("properties").and_then(Json::as_object).unwrap_or_default().to_vec();
        let is_plain = !properties.is_empty()
            && schema.as_object().is_some_and(|members| {
                members.iter().all(|(key, value)| match key.as_str() {
                    "type" => value.as_str() == Some("object"),
                    "additionalProperties" => !matches!(value, Json::Object(_)),
                    "properties" | "required" | "description" | "title" | "deprecated" => true,
                    _ => false,
                })
            });
        if !is_plain {
            let key = self.key("body", "json");
            self.json = Some(Json::String(format!("{{{key}}}")));
            self.add(&key, body.required, schema, body.description.as_ref());
            return;
        }
        let required: Vec<&str> = match schema.get("required") {
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        let is_all = self.arguments.is_empty();
        let mut members = Vec::new();
        for (property, of_property) in properties {
            let needed = body.required && required.contains(&property.as_str());
            let key = self.key(&property, "body");
            let of_property = if needed { of_property } else { without_null(of_property) };
            members.push((property, Json::String(format!("{{{key}}}"))));
            self.add(&key, needed, of_property, None);
        }
        let same = members.iter().all(|(property, value)| value.as_str() == Some(&format!("{{{property}}}")));
        self.json = Some(if is_all && same { Json::String("{*}".to_owned()) } else { Json::Object(members) });
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.notes.iter().cloned().map(Line::Comment).collect();
        lines.push(Line::text("description", self.description.clone()));
        lines.extend(self.effect.iter().cloned());
        if !self.arguments.is_empty() {
            lines.push(self.input());
        }
        lines.push(Line::Entry("http".to_owned(), Yaml::Map(self.request())));
        if self.output_json {
            lines.push(Line::text("output", "json"));
        }
        lines
    }

    fn input(&self) -> Line {
        let text = |text: &str| Json::String(text.to_owned());
        if self.arguments.iter().all(|argument| can_say(&argument.schema)) {
            let entries = self.arguments.iter().map(|argument| {
                let mut members = argument.schema.as_object().unwrap_or_default().to_vec();
                if argument.required {
                    members.push(("required".to_owned(), Json::Bool(true)));
                }
                Line::value(&argument.key, Json::Object(members))
            });
            return Line::Entry("args".to_owned(), Yaml::Map(entries.collect()));
        }
        let properties = self.arguments.iter().map(|argument| Line::value(&argument.key, argument.schema.clone()));
        let required: Vec<Json> =
            self.arguments.iter().filter(|argument| argument.required).map(|argument| text(&argument.key)).collect();
        let mut schema =
            vec![Line::text("type", "object"), Line::Entry("properties".to_owned(), Yaml::Map(properties.collect()))];
        if !required.is_empty() {
            schema.push(Line::value("required", Json::Array(required)));
        }
        schema.push(Line::flag("additionalProperties", false));
        Line::Entry("inputSchema".to_owned(), Yaml::Map(schema))
    }

    fn request(&self) -> Vec<Line> {
        let pairs = |pairs: &[(String, String)]| {
            Json::Object(pairs.iter().map(|(name, value)| (name.clone(), Json::String(value.clone()))).collect())
        };
        let mut lines = vec![Line::text(&self.method, self.url.clone())];
        if !self.query.is_empty() {
            lines.push(Line::value("query", pairs(&self.query)));
        }
        if !self.headers.is_empty() {
            lines.push(Line::value("headers", pairs(&self.headers)));
        }
        if let Some(json) = &self.json {
            lines.push(Line::value("json", json.clone()));
        }
        if let Some(text) = &self.text {
            lines.push(Line::text("body", text.clone()));
        }
        if self.allow_private {
            lines.push(Line::Comment("decide: the server is on this machine or a private network.".to_owned()));
            lines.push(Line::flag("allow_private", true));
        }
        lines
    }

    /// Takes out a default that its own schema refuses.
    fn mend(&mut self, problem: &Problem, _: &str) -> bool {
        if problem.rule != "default-value" {
            return false;
        }
        let mut mended = false;
        for argument in &mut self.arguments {
            if let Json::Object(members) = &mut argument.schema {
                let before = members.len();
                members.retain(|(key, _)| key != "default");
                mended |= members.len() < before;
            }
        }
        mended
    }
}

fn describe(operation: &Operation) -> String {
    let summary = one_line(&operation.summary);
    let description = paragraphs(&operation.description);
    let whole = match (summary.is_empty(), description.is_empty()) {
        (true, true) => format!("{} {}", operation.method.to_ascii_uppercase(), one_line(&operation.path)),
        (false, true) => summary,
        (true, false) => description,
        (false, false) if description.starts_with(summary.trim_end_matches('.')) => description,
        (false, false) => format!("{}. {description}", summary.trim_end_matches('.')),
    };
    cut(&whole, DESCRIPTION_BYTES)
}

fn effects(operation: &Operation) -> Vec<Line> {
    match operation.method.as_str() {
        "get" => vec![
            Line::Comment("decide: a GET should change nothing; does this one?".to_owned()),
            Line::flag("read_only", true),
        ],
        "delete" => vec![Line::flag("reversible", false)],
        _ => effect::lines(&operation.id.clone().unwrap_or_else(|| by_path(operation))),
    }
}

/// Without the type that stands for nothing: what is not given is not sent.
fn without_null(mut schema: Json) -> Json {
    if let Json::Object(members) = &mut schema {
        for (key, value) in members.iter_mut() {
            if let (true, Json::Array(kinds)) = (key == "type" || key == "enum", &mut *value) {
                kinds.retain(|kind| *kind != Json::Null && !(key == "type" && kind.as_str() == Some("null")));
                if let (true, [one]) = (key == "type", kinds.as_slice()) {
                    *value = one.clone();
                }
            }
        }
        let is_null = |(key, value): &(String, Json)| key == "default" && *value == Json::Null;
        members.retain(|member| !is_null(member));
    }
    schema
}
