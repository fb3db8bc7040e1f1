//! The operations of a document: what they are called, what they take, how they are authorized.

use super::document::Document;
use crate::protocol::Json;
use crate::protocol::json::shortened;

/// Most operations that are read.
const OPERATIONS: usize = 5000;

/// An operation as the document has it.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `get`, `post` and so on.
    pub method: String,
    /// The path, with its variables in braces.
    pub path: String,
    /// Its own name, if it has one.
    pub id: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its summary.
    pub summary: String,
    pub(super) description: String,
    pub(super) deprecated: bool,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) security: Option<Json>,
    pub(super) server: Option<Json>,
    pub(super) gives_json: bool,
    /// What could not be read of it.
    pub(super) notes: Vec<String>,
}

/// A parameter.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) place: String,
    pub(super) required: bool,
    pub(super) description: Option<String>,
    pub(super) schema: Json,
    pub(super) explode: Option<bool>,
}

/// A body.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) required: bool,
    /// The media type that is taken of those it may have, and its schema.
    pub(super) media: String,
    pub(super) schema: Json,
    pub(super) description: Option<String>,
}

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

impl Operation {
    /// Whether it has that tag, or its name, or `METHOD /path`, fits the pattern.
    pub fn is_chosen(&self, tag: &str, fits: &dyn Fn(&str) -> bool) -> bool {
        let line = format!("{} {}", self.method.to_ascii_uppercase(), self.path);
        self.tags.iter().any(|own| own.eq_ignore_ascii_case(tag))
            || self.id.as_deref().is_some_and(fits)
            || fits(&self.path)
            || fits(&line)
    }
}

fn text(node: &Json, key: &str) -> Option<String> {
    node.get(key).and_then(Json::as_str).map(str::to_owned)
}

fn list<'j>(node: &'j Json, key: &str) -> &'j [Json] {
    match node.get(key) {
        Some(Json::Array(items)) => items,
        _ => &[],
    }
}

/// All operations, in the order of the document.
pub fn operations(document: &Document) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, item) in document.get("paths").and_then(Json::as_object).unwrap_or_default() {
        let Ok(item) = document.resolve(item) else { continue };
        for (method, operation) in item.as_object().unwrap_or_default() {
            if METHODS.contains(&method.as_str()) && operation.as_object().is_some() && found.len() < OPERATIONS {
                found.push(read(document, path, method, item, operation));
            }
        }
    }
    found
}

/// The paths whose operations cannot be found, and why.
pub(super) fn unread(document: &Document) -> Vec<String> {
    let paths = document.get("paths").and_then(Json::as_object).unwrap_or_default().iter();
    let told = paths.filter_map(|(path, item)| {
        let why = document.resolve(item).err()?;
        Some(format!("{} was left out: {why}", shortened(path, 80)))
    });
    told.take(5).collect()
}

fn read(document: &Document, path: &str, method: &str, item: &Json, operation: &Json) -> Operation {
    let mut notes = Vec::new();
    let mut parameters: Vec<Parameter> = Vec::new();
    // Those of the operation come last: they replace those of the path.
    for node in list(item, "parameters").iter().chain(list(operation, "parameters")) {
        match document.resolve(node) {
            Ok(node) => {
                let Some(parameter) = parameter(node) else { continue };
                parameters.retain(|known| (&known.name, &known.place) != (&parameter.name, &parameter.place));
                parameters.push(parameter);
            }
            Err(why) => notes.push(format!("a parameter was left out: {why}")),
        }
    }
    let body = operation.get("requestBody").and_then(|body| match document.resolve(body) {
        Ok(body) => self::body(body),
        Err(why) => {
            notes.push(format!("the body was left out: {why}"));
            None
        }
    });
    let security = operation.get("security").or_else(|| document.get("security")).cloned();
    let server = [operation, item].into_iter().find_map(|node| list(node, "servers").first()).cloned();
    Operation {
        method: method.to_owned(),
        path: path.to_owned(),
        id: text(operation, "operationId").filter(|id| !id.trim().is_empty()),
        tags: list(operation, "tags").iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        summary: text(operation, "summary").or_else(|| text(item, "summary")).unwrap_or_default(),
        description: text(operation, "description").or_else(|| text(item, "description")).unwrap_or_default(),
        deprecated: operation.get("deprecated") == Some(&Json::Bool(true)),
        parameters,
        body,
        security,
        server,
        gives_json: gives_json(document, operation),
        notes,
    }
}

fn parameter(node: &Json) -> Option<Parameter> {
    let content = || {
        let (_, media) = node.get("content")?.as_object()?.first()?;
        media.get("schema")
    };
    let string = Json::Object(vec![("type".to_owned(), Json::String("string".to_owned()))]);
    let schema = node.get("schema").or_else(content).cloned().unwrap_or(string);
    let place = text(node, "in")?;
    Some(Parameter {
        name: text(node, "name")?,
        required: node.get("required") == Some(&Json::Bool(true)) || place == "path",
        place,
        description: text(node, "description"),
        schema,
        explode: match node.get("explode") {
            Some(Json::Bool(explode)) => Some(*explode),
            _ => None,
        },
    })
}

fn body(node: &Json) -> Option<Body> {
    let content = node.get("content")?.as_object()?;
    let (media, found) = content
        .iter()
        .find(|(media, _)| is_json(media))
        .or_else(|| content.iter().find(|(media, _)| media.starts_with("text/")))
        .or_else(|| content.first())?;
    Some(Body {
        required: node.get("required") == Some(&Json::Bool(true)),
        media: media.clone(),
        schema: found.get("schema").cloned().unwrap_or(Json::Object(Vec::new())),
        description: text(node, "description"),
    })
}

/// Whether a media type is JSON.
pub(super) fn is_json(media: &str) -> bool {
    let bare = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    bare == "application/json" || bare.ends_with("+json") || bare == "*/*"
}

/// Whether what comes back of a success is always JSON.
fn gives_json(document: &Document, operation: &Json) -> bool {
    let responses = operation.get("responses").and_then(Json::as_object).unwrap_or_default();
    let good = responses.iter().filter(|(code, _)| code.starts_with('2'));
    let mut any = false;
    for (_, response) in good {
        let content = document.resolve(response).ok().and_then(|response| response.get("content")?.as_object());
        match content {
            Some(content) if !content.is_empty() && content.iter().all(|(media, _)| is_json(media)) => any = true,
            _ => return false,
        }
    }
    any
}
