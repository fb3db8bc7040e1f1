//! Schemas of flat arguments, which most tools have: told to fit without building a tree of the arguments.
//!
//! Promises: what is said to fit does fit; whatever is not certain is left to the validator.

use std::collections::HashMap;

use crate::protocol::invoke::Arguments;
use crate::protocol::json::{Json, Kind, RawJson};

/// Keywords that say nothing about which values fit.
const ANNOTATIONS: [&str; 9] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "x-mcp-header"];

/// See the module.
#[derive(Debug)]
pub(super) struct Plain {
    properties: HashMap<Box<str>, Option<Type>>,
    required: Vec<Box<str>>,
    /// Whether an argument that is not declared fits.
    open: bool,
}

/// A property that is described by its type alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Integer,
    Number,
    Boolean,
    Null,
    Object,
    Array,
}

impl Plain {
    /// Reads a schema; `None` if its root says anything that is not known here.
    pub(super) fn read(schema: &Json) -> Option<Self> {
        let mut plain = Self { properties: HashMap::new(), required: Vec::new(), open: true };
        let mut is_object = false;
        for (keyword, value) in schema.as_object()? {
            match (keyword.as_str(), value) {
                ("type", Json::String(name)) if name == "object" => is_object = true,
                ("$schema", Json::String(_)) => {}
                ("properties", Json::Object(properties)) => {
                    let typed = properties.iter().map(|(name, property)| (name.as_str().into(), Type::of(property)));
                    plain.properties = typed.collect();
                }
                ("required", Json::Array(names)) => {
                    let names = names.iter().map(|name| name.as_str().map(Into::into));
                    plain.required = names.collect::<Option<_>>()?;
                }
                ("additionalProperties", Json::Bool(open)) => plain.open = *open,
                (annotation, _) if ANNOTATIONS.contains(&annotation) => {}
                _ => return None,
            }
        }
        is_object.then_some(plain)
    }

    /// Whether arguments are certain to fit.
    pub(super) fn fits(&self, arguments: &Arguments) -> bool {
        self.required.iter().all(|name| arguments.get(name).is_some())
            && arguments.iter().all(|(name, value)| match self.properties.get(name) {
                Some(Some(declared)) => declared.fits(value),
                Some(None) => false,
                None => self.open,
            })
    }
}

impl Type {
    /// The type of a property that says nothing else.
    fn of(property: &Json) -> Option<Self> {
        let mut found = None;
        for (keyword, value) in property.as_object()? {
            match (keyword.as_str(), value.as_str()) {
                ("type", Some(name)) => found = Some(Self::named(name)?),
                (annotation, _) if ANNOTATIONS.contains(&annotation) => {}
                _ => return None,
            }
        }
        found
    }

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::Text,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "null" => Self::Null,
            "object" => Self::Object,
            "array" => Self::Array,
            _ => return None,
        })
    }

    fn fits(self, value: &RawJson) -> bool {
        match (self, value.kind()) {
            // 1.0 and 1e3 are integers too, which the validator knows.
            (Self::Integer, Kind::Number) => value.as_bytes().iter().all(|b| b.is_ascii_digit() || *b == b'-'),
            (Self::Text, Kind::String)
            | (Self::Number, Kind::Number)
            | (Self::Boolean, Kind::Bool)
            | (Self::Null, Kind::Null)
            | (Self::Object, Kind::Object)
            | (Self::Array, Kind::Array) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Schema;
    use super::*;

    #[test]
    fn what_is_said_to_fit_fits_by_the_validator_too() {
        let schemas = [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {"type": "string", "description": "x"}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "boolean"}}, "required": ["b"]}),
            json!({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "array"}}}),
            json!({"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "string", "minLength": 2}}}),
            json!({"type": "object", "properties": {"a": {"enum": [1]}}, "minProperties": 1}),
            json!({"properties": {"a": {"type": ["string", "null"]}}}),
            json!({"type": "object", "properties": {"a": true, "b": false}}),
            json!({"type": "object", "patternProperties": {"^a": {"type": "null"}}}),
            json!({"type": "object", "$ref": "#/$defs/x", "$defs": {"x": {"required": ["z"]}}}),
        ];
        let values =
            [json!(1), json!(1.5), json!(-3), json!(true), json!(null), json!("x"), json!("xx"), json!([1]), json!({})];
        let mut certain = 0;
        for schema in &schemas {
            let compiled = Schema::compile(&Json::from(schema)).unwrap();
            for a in values.iter().map(Some).chain([None]) {
                for b in values.iter().map(Some).chain([None]) {
                    let members =
                        [("a", a), ("b", b)].into_iter().filter_map(|(k, v)| Some((k.to_owned(), v?.clone())));
                    let value = Value::Object(members.collect());
                    let arguments = Arguments::new(RawJson::encode(&value)).unwrap();
                    if Plain::read(&Json::from(schema)).is_some_and(|plain| plain.fits(&arguments)) {
                        certain += 1;
                        assert!(compiled.violations(&value).is_empty(), "{schema} {value}");
                    }
                    assert_eq!(compiled.refusals(&arguments), compiled.violations(&value), "{schema} {value}");
                }
            }
        }
        assert!(certain > 100, "{certain}");
    }

    #[test]
    fn a_schema_that_says_more_than_types_is_left_to_the_validator() {
        for schema in [
            json!({"type": "object", "minProperties": 1}),
            json!({"properties": {}}),
            json!({"type": ["object"]}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "not": {}}),
        ] {
            assert!(Plain::read(&Json::from(&schema)).is_none(), "{schema}");
        }
    }
}
