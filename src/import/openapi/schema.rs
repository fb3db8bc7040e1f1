//! Schemas of OpenAPI 3.0 and 3.1 as JSON Schema that a surface file takes.
//!
//! Promises: what comes out refers to nothing, is bounded in size and depth, and has whole numbers alone; what had to be
//! left out is told. Never follows a reference out of the document.

use super::document::Document;
use crate::import::text::{cut, one_line};
use crate::protocol::Json;
use crate::protocol::digest::not_portable;
use crate::protocol::json::shortened;
use crate::protocol::schema::Schema;

/// Most schemas in one tool, references written out.
const SCHEMAS: usize = 300;
/// Deepest nesting.
const DEPTH: usize = 8;
/// What a description inside a schema may take.
const DESCRIPTION_BYTES: usize = 300;
/// Largest number that every reader of JSON holds exactly.
const EXACT: f64 = 9_007_199_254_740_991.0;

/// Converts the schemas of one tool.
pub(super) struct Converter<'d> {
    document: &'d Document,
    left: usize,
    /// What was left out, each once.
    pub(super) notes: Vec<String>,
}

impl<'d> Converter<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        Self { document, left: SCHEMAS, notes: Vec::new() }
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) && self.notes.len() < 12 {
            self.notes.push(note);
        }
    }

    /// Converts a schema.
    pub(super) fn convert(&mut self, schema: &Json) -> Json {
        self.inner(schema, 0, &mut Vec::new())
    }

    fn inner(&mut self, schema: &Json, depth: usize, within: &mut Vec<String>) -> Json {
        let Json::Object(members) = schema else {
            return match schema {
                Json::Bool(false) => Json::Object(vec![("not".to_owned(), Json::Object(Vec::new()))]),
                _ => Json::Object(Vec::new()),
            };
        };
        if depth > DEPTH || self.left == 0 {
            self.note("a schema was cut where it is too deep or too large: anything is let through there");
            return Json::Object(Vec::new());
        }
        self.left -= 1;
        if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            return self.referred(reference, schema, depth, within);
        }
        let mut out: Vec<(String, Json)> = Vec::new();
        let hidden = self.read_only_properties(schema);
        for (key, value) in members {
            if let Some(value) = self.keyword(key, value, &hidden, depth, within) {
                out.push((key.clone(), value));
            }
        }
        exclusive(schema, &mut out);
        nullable(schema, &mut out);
        flatten(&mut out);
        if !out.iter().any(|(key, _)| key == "type") && out.iter().any(|(key, _)| key == "properties") {
            out.insert(0, ("type".to_owned(), Json::String("object".to_owned())));
        }
        Json::Object(out)
    }

    fn referred(&mut self, reference: &str, schema: &Json, depth: usize, within: &mut Vec<String>) -> Json {
        if within.iter().any(|known| known == reference) {
            let name = reference.rsplit('/').next().unwrap_or_default();
            self.note(format!(
                "{} refers to itself: it was cut there, where anything is let through",
                shortened(name, 60)
            ));
            return Json::Object(Vec::new());
        }
        let Some(target) = self.document.at(reference) else {
            self.note(format!(
                "the reference {} is not followed: anything is let through there",
                shortened(reference, 80)
            ));
            return Json::Object(Vec::new());
        };
        within.push(reference.to_owned());
        let mut converted = self.inner(target, depth + 1, within);
        within.pop();
        if let (Json::Object(members), Some(said)) = (&mut converted, schema.get("description").and_then(Json::as_str))
        {
            members.retain(|(key, _)| key != "description");
            members.push(("description".to_owned(), Json::String(cut(&one_line(said), DESCRIPTION_BYTES))));
        }
        converted
    }

    /// Properties that only the server sets.
    fn read_only_properties(&self, schema: &Json) -> Vec<String> {
        let properties = schema.get("properties").and_then(Json::as_object).unwrap_or_default();
        let hidden = properties.iter().filter(|(_, property)| {
            self.document.resolve(property).is_ok_and(|property| property.get("readOnly") == Some(&Json::Bool(true)))
        });
        hidden.map(|(name, _)| name.clone()).collect()
    }

    fn keyword(
        &mut self,
        key: &str,
        value: &Json,
        hidden: &[String],
        depth: usize,
        within: &mut Vec<String>,
    ) -> Option<Json> {
        match (key, value) {
            ("type", Json::String(kind)) if is_type(kind) => Some(value.clone()),
            ("type", Json::Array(kinds)) if kinds.iter().all(|kind| kind.as_str().is_some_and(is_type)) => {
                Some(value.clone())
            }
            ("description", Json::String(text)) => {
                let text = cut(&one_line(text), DESCRIPTION_BYTES);
                (!text.is_empty()).then_some(Json::String(text))
            }
            ("properties", Json::Object(properties)) => {
                let mut converted = Vec::new();
                for (name, property) in properties.iter().filter(|(name, _)| !hidden.contains(name)) {
                    converted.push((name.clone(), self.inner(property, depth + 1, within)));
                }
                Some(Json::Object(converted))
            }
            ("required", Json::Array(names)) => {
                let kept: Vec<Json> = names
                    .iter()
                    .filter(|name| name.as_str().is_some_and(|name| !hidden.iter().any(|hidden| hidden == name)))
                    .cloned()
                    .collect();
                (!kept.is_empty()).then_some(Json::Array(kept))
            }
            ("items" | "not", Json::Object(_)) => Some(self.inner(value, depth + 1, within)),
            ("additionalProperties", Json::Bool(_)) => Some(value.clone()),
            ("additionalProperties", Json::Object(_)) => Some(self.inner(value, depth + 1, within)),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Json::Array(branches)) => {
                let branches = branches.iter().map(|branch| self.inner(branch, depth + 1, within));
                Some(Json::Array(branches.collect()))
            }
            ("enum", Json::Array(values)) if !values.is_empty() && not_portable(value).is_empty() => {
                Some(value.clone())
            }
            ("const" | "default", _) if not_portable(value).is_empty() => Some(value.clone()),
            (
                "minimum" | "maximum" | "multipleOf" | "minLength" | "maxLength" | "minItems" | "maxItems"
                | "minProperties" | "maxProperties" | "exclusiveMinimum" | "exclusiveMaximum",
                Json::Number(text),
            ) => {
                let whole = whole(text);
                if whole.is_none() {
                    self.note(format!("a bound was left out: {key} {} is no whole number", shortened(text, 30)));
                }
                whole
            }
            ("uniqueItems" | "deprecated", Json::Bool(true)) => Some(value.clone()),
            ("format", Json::String(_)) => Some(value.clone()),
            ("pattern", Json::String(pattern)) => {
                let alone = Json::Object(vec![("pattern".to_owned(), value.clone())]);
                if Schema::compile(&alone).is_ok() {
                    return Some(value.clone());
                }
                self.note(format!("a pattern that cannot be checked here was left out: {}", shortened(pattern, 60)));
                None
            }
            (
                "if"
                | "then"
                | "else"
                | "patternProperties"
                | "propertyNames"
                | "dependentSchemas"
                | "dependentRequired"
                | "contains"
                | "unevaluatedProperties",
                _,
            ) => {
                self.note(format!("the keyword {key} was left out: its values are let through unchecked"));
                None
            }
            ("enum" | "const" | "default", _) => {
                self.note(format!("{key} was left out: it holds a number that is not whole"));
                None
            }
            _ => None,
        }
    }
}

fn is_type(kind: &str) -> bool {
    matches!(kind, "string" | "integer" | "number" | "boolean" | "array" | "object" | "null")
}

/// A number as an integer that every reader holds exactly.
fn whole(text: &str) -> Option<Json> {
    let value: f64 = text.parse().ok()?;
    (value.fract() == 0.0 && value.abs() <= EXACT).then(|| Json::Number(format!("{:.0}", value + 0.0).into()))
}

/// `exclusiveMinimum: true` of 3.0 makes the bound beside it one that is not reached.
fn exclusive(schema: &Json, out: &mut [(String, Json)]) {
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if schema.get(flag) == Some(&Json::Bool(true)) {
            for (key, _) in out.iter_mut().filter(|(key, _)| key == bound) {
                flag.clone_into(key);
            }
        }
    }
}

/// `nullable: true` of 3.0 is one type more.
fn nullable(schema: &Json, out: &mut [(String, Json)]) {
    if schema.get("nullable") != Some(&Json::Bool(true)) {
        return;
    }
    for (key, value) in out {
        match (key.as_str(), &mut *value) {
            ("type", Json::String(kind)) => {
                *value = Json::Array(vec![Json::String(std::mem::take(kind)), Json::String("null".to_owned())]);
            }
            ("enum", Json::Array(values)) if !values.contains(&Json::Null) => values.push(Json::Null),
            _ => {}
        }
    }
}

/// Parts that all hold are written as one where they are plain objects; one branch alone is what it is.
fn flatten(out: &mut Vec<(String, Json)>) {
    for key in ["allOf", "oneOf", "anyOf"] {
        let Some(at) = out.iter().position(|(name, _)| name == key) else { continue };
        let Some((_, Json::Array(branches))) = out.get(at) else { continue };
        let branches = branches.clone();
        let is_plain = |branch: &Json| {
            branch.as_object().is_some_and(|members| {
                members.iter().all(|(key, value)| match key.as_str() {
                    "properties" | "required" | "description" => true,
                    "type" => value.as_str() == Some("object"),
                    _ => false,
                })
            })
        };
        let outer_is_plain = out.iter().all(|(name, value)| {
            matches!(name.as_str(), "allOf" | "description" | "properties" | "required" | "default" | "deprecated")
                || (name == "type" && value.as_str() == Some("object"))
        });
        if !(branches.len() == 1 || (key == "allOf" && outer_is_plain && branches.iter().all(is_plain))) {
            continue;
        }
        out.remove(at);
        for branch in branches {
            let Json::Object(members) = branch else { continue };
            members.into_iter().for_each(|member| merge(out, member));
        }
    }
}

fn merge(out: &mut Vec<(String, Json)>, (key, value): (String, Json)) {
    match (out.iter_mut().find(|(known, _)| *known == key).map(|(_, known)| known), value) {
        (Some(Json::Object(known)), Json::Object(more)) if key == "properties" => {
            for (name, property) in more {
                match known.iter_mut().find(|(other, _)| *other == name) {
                    Some((_, other)) => *other = property,
                    None => known.push((name, property)),
                }
            }
        }
        (Some(Json::Array(known)), Json::Array(more)) if key == "required" => {
            for name in more {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
        (Some(_), _) => {}
        (None, value) => out.push((key, value)),
    }
}
