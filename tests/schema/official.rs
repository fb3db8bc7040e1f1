//! The specification's schema of one revision: which definition a message must satisfy, and whether it does.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use anyhow::Context as _;
use base64::Engine as _;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Map, Value, json};

/// Definitions that are sent whole to every revision, newer members included, so that one digest holds for all.
const WHOLE: [&str; 4] = ["Tool", "Resource", "ResourceTemplate", "Prompt"];

/// One revision's schema.
pub(crate) struct Schema {
    /// As published.
    published: Document,
    /// As published, but an object has no other members than those that its definition names.
    closed: Document,
    /// Definitions of what a client may ask, by method.
    client_requests: BTreeMap<String, String>,
    /// Definitions of what a server may ask, by method; empty where it may ask nothing.
    server_requests: BTreeMap<String, String>,
    server_notifications: BTreeMap<String, String>,
    /// Definitions of whole error responses, by code.
    errors: BTreeMap<i64, String>,
    text: String,
}

/// Definitions and their validators, compiled as they are needed.
struct Document {
    schema: Value,
    key: &'static str,
    validators: RefCell<BTreeMap<String, Rc<Validator>>>,
}

impl Schema {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let schema: Value = serde_json::from_str(&text)?;
        let key = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
        let definitions = schema[key].as_object().context("a schema without definitions")?.clone();
        let mut errors = BTreeMap::new();
        for (name, definition) in &definitions {
            for part in definition["properties"]["error"]["allOf"].as_array().into_iter().flatten() {
                if let Some(code) = part["properties"]["code"]["const"].as_i64() {
                    errors.insert(code, name.clone());
                }
            }
        }
        let client_requests = by_method(&definitions, "ClientRequest")?;
        let server_notifications = by_method(&definitions, "ServerNotification")?;
        anyhow::ensure!(!client_requests.is_empty() && !server_notifications.is_empty(), "a schema without messages");
        Ok(Self {
            client_requests,
            server_requests: by_method(&definitions, "ServerRequest")?,
            server_notifications,
            errors,
            closed: Document::new(closed(&definitions, key), key),
            published: Document::new(schema, key),
            text,
        })
    }

    pub(crate) fn has(&self, definition: &str) -> bool {
        self.published.definition(definition).is_some()
    }

    /// Whether a client may ask by a method.
    pub(crate) fn is_asked(&self, method: &str) -> bool {
        self.client_requests.contains_key(method)
    }

    /// The definition of a method's result.
    pub(crate) fn of_result(&self, method: &str) -> Option<String> {
        let stem = self.client_requests.get(method)?.strip_suffix("Request")?;
        let named = format!("{stem}Result");
        // Requests without a result of their own are answered by the empty one.
        Some(if self.has(&named) { named } else { "EmptyResult".to_owned() })
    }

    /// Whether a method may be answered by a demand for input.
    pub(crate) fn may_ask_back(&self, method: &str) -> bool {
        let stem = self.client_requests.get(method).and_then(|request| request.strip_suffix("Request"));
        let response = stem.and_then(|stem| self.published.definition(&format!("{stem}ResultResponse")));
        let results = response.and_then(|response| response["properties"]["result"]["anyOf"].as_array());
        let named = |choice: &Value| choice["$ref"].as_str().is_some_and(|r| r.ends_with("/InputRequiredResult"));
        results.is_some_and(|results| results.iter().any(named))
    }

    /// The definition of an error response.
    pub(crate) fn of_error(&self, code: i64) -> Option<&str> {
        let named = self.errors.get(&code).map(String::as_str);
        named.or_else(|| ["JSONRPCErrorResponse", "JSONRPCError"].into_iter().find(|name| self.has(name)))
    }

    /// The definition of a response that carries a result.
    pub(crate) fn of_response(&self) -> Option<&str> {
        ["JSONRPCResultResponse", "JSONRPCResponse"].into_iter().find(|name| self.has(name))
    }

    /// Whether a definition demands a member.
    pub(crate) fn demands(&self, definition: &str, member: &str) -> bool {
        let required = self.published.definition(definition).map(|definition| &definition["required"]);
        required.and_then(Value::as_array).is_some_and(|required| required.iter().any(|name| name == member))
    }

    /// What is wrong with a value by the published definition; if nothing is, which of its members the definition
    /// does not know.
    pub(crate) fn problems(&self, definition: &str, value: &Value) -> anyhow::Result<Vec<String>> {
        let problems = self.published.problems(definition, value)?;
        if problems.is_empty() { self.closed.problems(definition, value) } else { Ok(problems) }
    }

    /// What is wrong with a value by the published definition alone.
    pub(crate) fn published_problems(&self, definition: &str, value: &Value) -> anyhow::Result<Vec<String>> {
        self.published.problems(definition, value)
    }

    /// What is wrong with a server's request or notification; nothing is known of a method that no server has.
    pub(crate) fn message_problems(&self, method: &str, message: &Value) -> anyhow::Result<Option<Vec<String>>> {
        let (envelope, definition) = match (self.server_requests.get(method), self.server_notifications.get(method)) {
            (Some(definition), _) => ("JSONRPCRequest", definition),
            (None, Some(definition)) => ("JSONRPCNotification", definition),
            (None, None) => return Ok(None),
        };
        let mut problems = self.published.problems(envelope, message)?;
        problems.extend(self.unknown_members(envelope, message));
        // Older definitions leave the envelope to JSON-RPC's.
        let mut inner = message.clone();
        let named = self.published.definition(definition).map(|definition| &definition["properties"]);
        if let Some(members) = inner.as_object_mut() {
            members.retain(|name, _| {
                !["jsonrpc", "id"].contains(&name.as_str()) || named.is_some_and(|named| named.get(name).is_some())
            });
        }
        problems.extend(self.problems(definition, &inner)?);
        Ok(Some(problems))
    }

    /// Keys of the protocol's own in the metadata of a result or of params that this revision does not speak of.
    pub(crate) fn unknown_metadata(&self, metadata: &Value) -> Vec<String> {
        let keys = metadata.as_object().into_iter().flat_map(Map::keys);
        let own = keys.filter(|key| key.starts_with("io.modelcontextprotocol/") && !self.text.contains(key.as_str()));
        own.map(|key| format!("_meta: this revision knows no {key:?}")).collect()
    }

    /// Members of a value that its definition does not name.
    pub(crate) fn unknown_members(&self, definition: &str, value: &Value) -> Vec<String> {
        let known = self.published.definition(definition).map(|definition| &definition["properties"]);
        let members = value.as_object().into_iter().flat_map(Map::keys);
        let unknown = members.filter(|member| known.is_none_or(|known| known.get(member).is_none()));
        unknown.map(|member| format!("{definition}: it has no member {member:?}")).collect()
    }
}

/// The members of a union of messages, by their methods.
fn by_method(definitions: &Map<String, Value>, union: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let Some(union) = definitions.get(union) else { return Ok(BTreeMap::new()) };
    let choices = union["anyOf"].as_array().map_or(std::slice::from_ref(union), Vec::as_slice);
    let named = choices.iter().map(|choice| {
        let name = choice["$ref"].as_str().and_then(|target| target.rsplit('/').next()).context("no reference")?;
        let method = definitions[name]["properties"]["method"]["const"].as_str();
        Ok((method.with_context(|| format!("{name} has no method"))?.to_owned(), name.to_owned()))
    });
    named.collect()
}

impl Document {
    fn new(schema: Value, key: &'static str) -> Self {
        Self { schema, key, validators: RefCell::default() }
    }

    fn definition(&self, name: &str) -> Option<&Value> {
        self.schema[self.key].get(name)
    }

    fn problems(&self, definition: &str, value: &Value) -> anyhow::Result<Vec<String>> {
        let validator = self.validator(definition)?;
        Ok(validator.iter_errors(value).map(|error| format!("{definition}{}", explained(&error))).collect())
    }

    fn validator(&self, definition: &str) -> anyhow::Result<Rc<Validator>> {
        if let Some(validator) = self.validators.borrow().get(definition) {
            return Ok(Rc::clone(validator));
        }
        anyhow::ensure!(self.definition(definition).is_some(), "no definition {definition}");
        let mut schema = self.schema.clone();
        schema["$ref"] = format!("#/{}/{definition}", self.key).into();
        let mut options = jsonschema::options().offline().should_validate_formats(true);
        let base64 = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).is_ok();
        options = options.with_format("byte", base64);
        // A reference hides its neighbours in the older draft: the published schemas have only descriptions there.
        options = options.with_draft(Draft::Draft202012);
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        let validator = options.build(&schema).map_err(|error| anyhow::anyhow!("{definition}: {error}"))?;
        let validator = Rc::new(validator);
        self.validators.borrow_mut().insert(definition.to_owned(), Rc::clone(&validator));
        Ok(validator)
    }
}

/// Where and what, and for a choice of several what is wrong with the nearest one.
fn explained(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } = error.kind()
        && let Some(nearest) = context.iter().min_by_key(|errors| errors.len())
        && let [one] = nearest.as_slice()
    {
        return format!("{} (none of {} choices fits)", explained(one), context.len());
    }
    let text = error.to_string();
    let short: String = text.chars().take(300).collect();
    format!("{}: {short}", error.instance_path())
}

/// The definitions with their objects closed. Whole ones and `_meta` stay open, and so does what they refer to.
fn closed(definitions: &Map<String, Value>, key: &str) -> Value {
    let mut open = definitions.clone();
    // It is open for all results, which makes none of them checkable; here it stands for an empty result alone.
    if let Some(result) = open.get_mut("Result").and_then(Value::as_object_mut) {
        result.remove("additionalProperties");
    }
    let strict: Map<String, Value> = open
        .iter()
        .map(|(name, definition)| {
            let whole = WHOLE.contains(&name.as_str());
            (name.clone(), if whole { opened(definition, key) } else { close(definition, key) })
        })
        .collect();
    let open: Map<String, Value> = open.iter().map(|(name, body)| (name.clone(), opened(body, key))).collect();
    json!({ key: strict, "open": open })
}

/// A schema whose references lead to open definitions.
fn opened(schema: &Value, key: &str) -> Value {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| match (name.as_str(), value.as_str()) {
                ("$ref", Some(target)) => (name.clone(), target.replace(&format!("#/{key}/"), "#/open/").into()),
                _ => (name.clone(), opened(value, key)),
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(elements) => elements.iter().map(|element| opened(element, key)).collect(),
        other => other.clone(),
    }
}

/// A schema whose objects have no members but those that it names, unless it speaks of others itself.
fn close(schema: &Value, key: &str) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut strict = Map::new();
    for (name, value) in members {
        let value = match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(member, schema)| {
                    let within = if member == "_meta" { opened(schema, key) } else { close(schema, key) };
                    (member.clone(), within)
                })
                .collect::<Map<_, _>>()
                .into(),
            // Each part knows its own members only: what all of them leave over is refused below.
            ("allOf", parts) => opened(parts, key),
            ("anyOf" | "oneOf", Value::Array(choices)) => choices.iter().map(|choice| close(choice, key)).collect(),
            ("items" | "additionalProperties", schema) => close(schema, key),
            (_, other) => other.clone(),
        };
        strict.insert(name.clone(), value);
    }
    if members.contains_key("allOf") {
        strict.insert("unevaluatedProperties".to_owned(), false.into());
    } else if members.contains_key("properties") && !members.contains_key("additionalProperties") {
        strict.insert("additionalProperties".to_owned(), false.into());
    }
    strict.into()
}
