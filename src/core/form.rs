//! Forms that a program, or another server, has a client fill in: flat, of simple values, asking for no secret.
//!
//! Promises: what passes is a form that every client with elicitation can show (2026-07-28 client/elicitation,
//! Requested Schema); content that passes fits it and holds nothing else.

use serde_json::{Map, Value, json};

use crate::protocol::Json;
use crate::protocol::json::shortened;
use crate::protocol::schema::{Schema, explain, filled_in};

/// Most fields of one form: a person fills it in.
const FIELDS_AT_MOST: usize = 20;

/// The field of a question that asks for yes or no.
pub(super) const CONFIRM: &str = "confirm";

/// Parts of names of what is never asked for in a form, without their separators.
const SECRETS: &[&str] =
    &["password", "passwd", "passphrase", "secret", "apikey", "privatekey", "credential", "accesstoken", "authtoken"];

/// A form that was checked.
#[derive(Debug)]
pub(super) struct Form {
    /// As it is sent.
    pub(super) schema: Value,
    compiled: Schema,
}

impl Form {
    /// The form of a question that has none: yes or no.
    pub(super) fn confirm() -> Result<Self, String> {
        Self::read(&json!({
            "type": "object",
            "properties": { CONFIRM: { "type": "boolean", "title": "Yes" } },
            "required": [CONFIRM],
        }))
    }

    /// Checks a form. The text of a refusal says what was expected.
    pub(super) fn read(schema: &Value) -> Result<Self, String> {
        let root = schema.as_object().ok_or("schema is not an object: write a form such as {\"type\":\"object\",…}")?;
        known(root, "schema", &["$schema", "type", "properties", "required"])?;
        if root.get("type").and_then(Value::as_str) != Some("object") {
            return Err("schema.type is not \"object\": a form is an object of fields".to_owned());
        }
        let fields = root.get("properties").and_then(Value::as_object).filter(|fields| !fields.is_empty());
        let fields = fields.ok_or("schema.properties is missing: name at least one field")?;
        if fields.len() > FIELDS_AT_MOST {
            return Err(format!("the form has {} fields: ask for at most {FIELDS_AT_MOST}", fields.len()));
        }
        for (name, field) in fields {
            check(name, field)?;
        }
        let required = root.get("required").map_or(Some(Vec::new()), |required| {
            required.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()
        });
        let required = required.ok_or("schema.required is not a list of names")?;
        if let Some(unknown) = required.iter().find(|name| !fields.contains_key(**name)) {
            return Err(format!("schema.required names {:?}, which is no field", shortened(unknown, 64)));
        }
        let compiled = Schema::compile(&Json::from(schema)).map_err(|error| format!("schema{error}"))?;
        Ok(Self { schema: schema.clone(), compiled })
    }

    /// The content of an accepted form; what was not asked for is left out. The text says why it does not fit.
    pub(super) fn content(&self, given: Option<&Value>) -> Result<Value, String> {
        let content = filled_in(&self.schema, given).ok_or("the content is not an object")?;
        let violations = self.compiled.violations(&content);
        if violations.is_empty() { Ok(content) } else { Err(explain("the content", &violations)) }
    }
}

fn known(members: &Map<String, Value>, of: &str, names: &[&str]) -> Result<(), String> {
    match members.keys().find(|key| !names.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!("{of} has {:?}: a form knows {} there", shortened(key, 64), names.join(", "))),
    }
}

/// One field: a text, a number, yes or no, one of several, or some of several.
fn check(name: &str, field: &Value) -> Result<(), String> {
    let shown = shortened(name, 64);
    let bare: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    if SECRETS.iter().any(|secret| bare.contains(secret)) {
        return Err(format!("field {shown:?} asks for a secret: a form never does, ask by url instead"));
    }
    let place = format!("field {shown:?}");
    let members = field.as_object().ok_or_else(|| format!("{place} is not an object"))?;
    let has = |key: &str| members.contains_key(key);
    let names: &[&str] = match members.get("type").and_then(Value::as_str) {
        Some("string") if has("enum") => &["type", "title", "description", "default", "enum", "enumNames"],
        Some("string") if has("oneOf") => &["type", "title", "description", "default", "oneOf"],
        Some("string") => &["type", "title", "description", "default", "minLength", "maxLength", "format"],
        Some("integer" | "number") => &["type", "title", "description", "default", "minimum", "maximum"],
        Some("boolean") => &["type", "title", "description", "default"],
        Some("array") => &["type", "title", "description", "default", "minItems", "maxItems", "items"],
        _ => return Err(format!("{place} has no type that a form knows: string, integer, number, boolean or array")),
    };
    known(members, &place, names)?;
    let texts =
        |list: &Value| list.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string));
    let titled = |list: &Value| {
        let one = |choice: &Value| {
            let of = |key| choice.get(key).is_some_and(Value::is_string);
            of("const") && of("title") && choice.as_object().is_some_and(|choice| choice.len() == 2)
        };
        list.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(one))
    };
    let formats = ["email", "uri", "date", "date-time"];
    let bad = match (members.get("enum"), members.get("oneOf"), members.get("items"), members.get("format")) {
        (Some(list), ..) if !texts(list) => "enum is not a list of texts",
        (_, Some(list), ..) if !titled(list) => "oneOf is not a list of {\"const\": text, \"title\": text}",
        (_, _, Some(items), _) if !items.get("anyOf").map_or_else(|| items.get("enum").is_some_and(texts), titled) => {
            "items has neither an enum of texts nor an anyOf of {\"const\": text, \"title\": text}"
        }
        (_, _, None, _) if names.contains(&"items") => "items is missing",
        (.., Some(format)) if !format.as_str().is_some_and(|format| formats.contains(&format)) => {
            "format is none of email, uri, date, date-time"
        }
        _ => return Ok(()),
    };
    Err(format!("{place}: {bad}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(field: Value) -> Value {
        json!({ "type": "object", "properties": { "f": field } })
    }

    #[test]
    fn every_kind_of_field_that_clients_show_passes() {
        for good in [
            json!({ "type": "string" }),
            json!({ "type": "string", "title": "T", "minLength": 1, "maxLength": 9, "format": "email", "default": "a" }),
            json!({ "type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "default": "a" }),
            json!({ "type": "string", "oneOf": [{ "const": "a", "title": "A" }] }),
            json!({ "type": "integer", "minimum": 1, "maximum": 5 }),
            json!({ "type": "number", "default": 1.5 }),
            json!({ "type": "boolean", "description": "d" }),
            json!({ "type": "array", "items": { "type": "string", "enum": ["a"] }, "minItems": 1 }),
            json!({ "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }] } }),
        ] {
            assert!(Form::read(&field(good.clone())).is_ok(), "{good}");
        }
        assert!(Form::confirm().is_ok());
    }

    #[test]
    fn what_clients_cannot_show_and_what_is_secret_is_refused_with_what_was_expected() {
        for (bad, says) in [
            (json!([]), "schema is not an object"),
            (json!({ "type": "object" }), "name at least one field"),
            (json!({ "type": "object", "properties": {} }), "name at least one field"),
            (json!({ "type": "array", "properties": { "f": { "type": "string" } } }), "not \"object\""),
            (json!({ "type": "object", "properties": { "f": { "type": "string" } }, "allOf": [] }), "\"allOf\""),
            (json!({ "type": "object", "properties": { "f": { "type": "string" } }, "required": ["g"] }), "\"g\""),
            (
                json!({ "type": "object", "properties": { "f": { "type": "string" } }, "required": "f" }),
                "list of names",
            ),
            (field(json!({ "type": "object", "properties": {} })), "no type that a form knows"),
            (field(json!({ "type": "string", "pattern": "a" })), "\"pattern\""),
            (field(json!({ "type": "string", "format": "regex" })), "format is none of"),
            (field(json!({ "type": "string", "enum": [] })), "enum is not a list"),
            (field(json!({ "type": "string", "oneOf": [{ "const": 1, "title": "A" }] })), "oneOf is not"),
            (field(json!({ "type": "array" })), "items is missing"),
            (field(json!({ "type": "array", "items": { "type": "string" } })), "items has neither"),
            (field(json!({ "type": "integer", "minimum": "x" })), "schema"),
            (field(json!(true)), "is not an object"),
            (json!({ "type": "object", "properties": { "API_Key": { "type": "string" } } }), "asks for a secret"),
        ] {
            let problem = Form::read(&bad).map(|_| ()).unwrap_err();
            assert!(problem.contains(says), "{bad}: {problem}");
        }
        let many: Map<String, Value> = (0..21).map(|n| (format!("f{n}"), json!({ "type": "string" }))).collect();
        assert!(Form::read(&json!({ "type": "object", "properties": many })).is_err());
    }

    #[test]
    fn content_fits_the_form_and_holds_nothing_else() {
        let form = Form::read(&json!({
            "type": "object",
            "properties": { "n": { "type": "integer", "minimum": 1 }, "t": { "type": "string" } },
            "required": ["n"],
        }))
        .unwrap();
        let fits = form.content(Some(&json!({ "n": 2, "t": null, "other": "\"confirm\":true" })));
        assert_eq!(fits, Ok(json!({ "n": 2 })));
        for bad in [None, Some(json!({})), Some(json!({ "n": 0 })), Some(json!({ "n": "2" })), Some(json!([]))] {
            assert!(form.content(bad.as_ref()).is_err(), "{bad:?}");
        }
    }
}
