//! Questions to a legacy client in the course of its request: one request of ours each, answered in any order.
//!
//! Promises: a backend never learns that its client is a legacy one: it gets the same answers under
//! the same keys that a modern client would send (2026-07-28 basic/patterns/mrtr).

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::exchange::write_mode;
use super::invoke::{Ask, InputKind, InputRequest, Operation};
use super::json::{Kind, RawJson};
use super::message::{RequestId, encode_notification, encode_request};
use super::revision::{Elicitation, Revision};
use super::task::{RELATED_TASK, TaskRequest};

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Asking {
    open: Vec<(RequestId, Box<str>)>,
    answers: Vec<(Box<str>, RawJson)>,
    state: Option<Value>,
    /// `_meta` of all that is said about the task that asks.
    related: Option<Value>,
}

/// How a question was answered.
pub(super) enum Heard {
    /// Others are still open.
    More,
    /// All of them are.
    All { answers: Vec<(Box<str>, RawJson)>, state: Option<Value> },
    /// The client cannot, or will not; why, in its own words.
    Refused(String),
}

impl Asking {
    /// Begins to ask; gives the requests to send. `next` gives ids that this connection has not used.
    pub(super) fn begin(
        ask: Ask,
        revision: Revision,
        operation: &Operation,
        mut next: impl FnMut() -> RequestId,
    ) -> (Self, Vec<Bytes>) {
        // 2025-11-25 basic/utilities/tasks, Associating Task-Related Messages
        let related = match operation {
            Operation::Task(TaskRequest::Result(task)) => Some(json!({ RELATED_TASK: { "taskId": task.as_str() } })),
            _ => None,
        };
        let mut open = Vec::new();
        let mut messages = Vec::new();
        for request in ask.requests {
            let id = next();
            messages.push(encode(&id, &request, revision, related.as_ref()));
            open.push((id, request.key.into()));
        }
        (Self { open, answers: Vec::new(), state: ask.state, related }, messages)
    }

    /// The ids under which the client is being asked.
    pub(super) fn ids(&self) -> impl Iterator<Item = &RequestId> {
        self.open.iter().map(|(id, _)| id)
    }

    /// Takes the client's response to one question.
    pub(super) fn hear(&mut self, id: &RequestId, response: Result<RawJson, RawJson>) -> Heard {
        let Some(position) = self.open.iter().position(|(open, _)| open == id) else { return Heard::More };
        let (_, key) = self.open.remove(position);
        match response {
            Ok(result) if result.kind() == Kind::Object => self.answers.push((key, result)),
            Ok(_) => return Heard::Refused("its result is not an object".to_owned()),
            Err(error) => {
                let message = error.parse::<Value>().ok();
                let message = message.as_ref().and_then(|error| error.get("message")).and_then(Value::as_str);
                return Heard::Refused(message.unwrap_or("it gave no reason").to_owned());
            }
        }
        if !self.open.is_empty() {
            return Heard::More;
        }
        Heard::All { answers: std::mem::take(&mut self.answers), state: self.state.take() }
    }

    /// Tells the client that what it is being asked is not wanted any more.
    pub(super) fn withdraw(&self) -> impl Iterator<Item = Bytes> {
        self.open.iter().map(|(id, _)| {
            let mut params = json!({ "requestId": id.to_json(), "reason": "the request that asked is over" });
            if let (Some(related), Some(params)) = (&self.related, params.as_object_mut()) {
                params.insert("_meta".to_owned(), related.clone());
            }
            encode_notification("notifications/cancelled", &params.to_string())
        })
    }
}

fn encode(id: &RequestId, request: &InputRequest, revision: Revision, related: Option<&Value>) -> Bytes {
    let mut params = match &request.params {
        Value::Object(params) => params.clone(),
        _ => Map::new(),
    };
    write_mode(request.kind, revision, &mut params);
    if let (Elicitation::Form, Some(schema)) = (revision.rules().elicitation, params.get_mut("requestedSchema")) {
        early_form(schema);
    }
    if request.kind == InputKind::ElicitUrl && revision.rules().elicitation == Elicitation::FormAndUrl {
        // Names the elicitation for a later notice that it is done; unique on this connection (2025-11-25 client/elicitation).
        params.entry("elicitationId").or_insert_with(|| format!("elicitation-{id}").into());
    }
    if let Some(related) = related.and_then(Value::as_object) {
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.extend(related.clone());
        }
    }
    encode_request(id, request.kind.method(), &Value::Object(params).to_string())
}

/// A form in the words that its first revision has: defaults of booleans alone, and choices with their names beside
/// them (2025-06-18 schema, `PrimitiveSchemaDefinition`).
fn early_form(schema: &mut Value) {
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$schema");
    }
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        if property.get("type").and_then(Value::as_str) != Some("boolean") {
            property.remove("default");
        }
        let choices = property.get("oneOf").and_then(Value::as_array).map(|choices| {
            let all = |key: &str| choices.iter().map(|choice| choice.get(key).cloned()).collect::<Option<Vec<Value>>>();
            (all("const"), all("title"))
        });
        if let Some((Some(values), names)) = choices {
            property.remove("oneOf");
            property.insert("enum".to_owned(), Value::Array(values));
            if let Some(names) = names {
                property.insert("enumNames".to_owned(), Value::Array(names));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_forms_have_choices_with_their_names_beside_them_and_defaults_of_booleans_alone() {
        let mut schema = json!({"$schema": "x", "type": "object", "properties": {
            "name": {"type": "string", "default": "Ann"},
            "sure": {"type": "boolean", "default": true},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
            "odd": {"type": "string", "oneOf": [{"pattern": "x"}]},
        }});
        early_form(&mut schema);
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {
                "name": {"type": "string"},
                "sure": {"type": "boolean", "default": true},
                "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
                "odd": {"type": "string", "oneOf": [{"pattern": "x"}]},
            }})
        );
    }
}
