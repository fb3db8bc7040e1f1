//! Rust types as JSON Schema that every revision and every client can take.
//!
//! Promises: what comes out has no boolean sub-schema, no `format` that JSON Schema does not know
//! and no reference but that of a recursive type; it accepts what serde accepts, but for
//! arguments that nobody declared.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::protocol::json::Json;
use crate::protocol::schema::without_boolean_subschemas;

/// Formats that the drafts define. Rust's own, such as `uint32` and `double`, make strict validators refuse a schema.
const FORMATS: [&str; 12] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uuid",
    "regex",
];

/// Largest integer that every reader of JSON holds exactly.
const EXACT: f64 = 9_007_199_254_740_991.0;

/// The schema of a tool's arguments.
///
/// Arguments that nobody declared are refused: serde would drop them in silence, and a model that misspelt one would
/// never learn of it.
pub(super) fn of_input<T: JsonSchema>() -> Json {
    let mut schema = generated::<T>(SchemaSettings::draft2020_12().for_deserialize(), Fractions::LeaveOut);
    if let Some(root) = schema.as_object_mut() {
        declare_object(root);
        let composed = ["additionalProperties", "oneOf", "anyOf", "allOf", "$ref"];
        let is_object = root.get("type").is_some_and(|kind| kind == "object");
        if is_object && !composed.iter().any(|keyword| root.contains_key(*keyword)) {
            root.insert("additionalProperties".to_owned(), false.into());
        }
    }
    without_boolean_subschemas(&Json::from(&schema))
}

/// The schema of a structured result.
pub(super) fn of_output<T: JsonSchema>() -> Json {
    let mut schema = generated::<T>(SchemaSettings::draft2020_12().for_serialize(), Fractions::LeaveOut);
    if let Some(root) = schema.as_object_mut() {
        declare_object(root);
    }
    without_boolean_subschemas(&Json::from(&schema))
}

/// The schema of a form: a flat object whose properties have one plain type each (2026-07-28 client/elicitation,
/// Requested Schema). What may be left out is left out there, never null.
pub(super) fn of_form<T: JsonSchema>() -> Value {
    let mut schema = generated::<T>(SchemaSettings::draft2020_12().for_deserialize(), Fractions::Keep);
    if let Some(root) = schema.as_object_mut() {
        root.remove("additionalProperties");
        if root.get("properties").is_none() {
            root.insert("properties".to_owned(), json!({}));
        }
        for (_, property) in root.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            plain(property);
        }
    }
    schema
}

/// The arguments of a prompt: name, description and whether it must be there.
pub(super) fn of_prompt<T: JsonSchema>() -> Vec<(String, Option<String>, bool)> {
    let schema = generated::<T>(SchemaSettings::draft2020_12().for_deserialize(), Fractions::Keep);
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let argument = |(name, property): (String, Value)| {
        let description = property.get("description").and_then(Value::as_str).map(str::to_owned);
        let needed = required.iter().any(|one| one.as_str() == Some(&name));
        (name, description, needed)
    };
    properties.into_iter().map(argument).collect()
}

/// What becomes of fractions among the hints of a schema. Forms of JSON differ in how they write them, which matters
/// for what is digested alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fractions {
    Keep,
    LeaveOut,
}

/// One document without references but those of recursive types: some clients follow none.
fn generated<T: JsonSchema>(mut settings: SchemaSettings, fractions: Fractions) -> Value {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(root) = schema.as_object_mut() {
        // The name of a Rust type tells a model nothing.
        root.remove("title");
        if root.get("description").is_some_and(|text| text == "") {
            root.remove("description");
        }
    }
    portable(&mut schema, fractions);
    schema
}

/// Writes each schema in a document so that every reader takes it alike.
fn portable(schema: &mut Value, fractions: Fractions) {
    let Some(members) = schema.as_object_mut() else { return };
    let unknown = members.get("format").and_then(Value::as_str).filter(|format| !FORMATS.contains(format));
    if let Some(format) = unknown.map(str::to_owned) {
        members.remove("format");
        // What the format said to Rust alone, so that a number out of range is refused by the schema, in its words.
        for (keyword, bound) in bounds(&format) {
            members.entry(keyword).or_insert_with(|| bound.into());
        }
    }
    for hint in ["default", "examples"] {
        if fractions == Fractions::LeaveOut && members.get(hint).is_some_and(has_fraction) {
            members.remove(hint);
        }
    }
    for (keyword, value) in members.iter_mut() {
        match keyword.as_str() {
            "properties" | "patternProperties" | "$defs" | "dependentSchemas" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, schema)| portable(schema, fractions));
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                value.as_array_mut().into_iter().flatten().for_each(|schema| portable(schema, fractions));
            }
            "const" | "enum" | "default" | "examples" => whole(value),
            _ if value.is_object() => portable(value, fractions),
            _ => whole(value),
        }
    }
}

/// The range of an integer type, where it is within what every reader of JSON holds exactly.
fn bounds(format: &str) -> Vec<(&'static str, i64)> {
    let (least, most) = match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        _ => return Vec::new(),
    };
    vec![("minimum", least), ("maximum", most)]
}

/// Writes `1.0` as `1`, wherever it stands in a value.
fn whole(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().filter(|n| n.fract() == 0.0 && n.abs() <= EXACT);
            let exact = exact.and_then(|n| format!("{n}").parse::<i64>().ok());
            if let Some(exact) = exact {
                *value = exact.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(members) => members.values_mut().for_each(whole),
        _ => {}
    }
}

fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|n| n.fract() != 0.0 || n.abs() > EXACT),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(members) => members.values().any(has_fraction),
        _ => false,
    }
}

/// Says of a choice between objects, which is how serde writes a tagged enum, that it is an object.
fn declare_object(root: &mut Map<String, Value>) {
    let is_object = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "object");
    let choices = ["oneOf", "anyOf"].iter().find_map(|keyword| root.get(*keyword)).and_then(Value::as_array);
    let all = choices.is_some_and(|choices| !choices.is_empty() && choices.iter().all(is_object));
    if all && !root.contains_key("type") {
        root.insert("type".to_owned(), "object".into());
    }
}

/// A form's property: no null, and a choice as forms write it.
fn plain(property: &mut Value) {
    let Some(members) = property.as_object_mut() else { return };
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            members.remove("anyOf");
            members.extend(only);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    if let Some(Value::Array(choices)) = members.get("oneOf") {
        let choices: Vec<Value> = choices.iter().flat_map(titled).collect();
        members.insert("oneOf".to_owned(), Value::Array(choices));
        members.entry("type").or_insert_with(|| "string".into());
    }
    if let Some(items) = members.get_mut("items") {
        plain(items);
    }
}

/// The values of one choice, each with a title (2025-11-25 schema, `TitledSingleSelectEnumSchema`). Variants without a
/// comment come together, as an `enum`.
fn titled(choice: &Value) -> Vec<Value> {
    let title = choice.get("title").or_else(|| choice.get("description")).and_then(Value::as_str);
    let several = choice.get("enum").and_then(Value::as_array).into_iter().flatten();
    let values = choice.get("const").into_iter().chain(several).filter_map(Value::as_str);
    values.map(|value| json!({ "const": value, "title": title.unwrap_or(value) })).collect()
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::protocol::{Catalog, CatalogParts, ToolParts};

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Everything {
        /// A text.
        text: String,
        count: u64,
        small: Option<u8>,
        ratio: f64,
        any: Value,
        #[serde(default = "half")]
        half: f64,
        #[serde(default = "one")]
        one: f64,
        tree: Tree,
        list: Vec<Tree>,
        choice: Choice,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Ranges {
        small: i16,
        wide: u32,
        widest: u64,
    }

    #[test]
    fn an_integer_says_its_range() {
        let schema = of_input::<Ranges>();
        let bound = |name: &str, keyword: &str| schema.get("properties")?.get(name)?.get(keyword).map(Json::to_text);
        assert_eq!(bound("small", "minimum").as_deref(), Some("-32768"));
        assert_eq!(bound("wide", "maximum").as_deref(), Some("4294967295"));
        assert_eq!(bound("widest", "maximum"), None);
    }

    #[test]
    fn no_arguments_are_nothing_but_an_empty_object() {
        let schema = of_input::<super::super::NoArguments>().to_value();
        assert_eq!(schema, json!({"type": "object", "additionalProperties": false}));
    }

    fn half() -> f64 {
        0.5
    }

    fn one() -> f64 {
        1.0
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Tree {
        children: Vec<Tree>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[allow(dead_code, reason = "only its schema is looked at")]
    enum Choice {
        /// The first.
        First,
        Second,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    #[allow(dead_code, reason = "only its schema is looked at")]
    enum Tagged {
        One { a: u8 },
        Two { b: i64 },
    }

    fn publish(input_schema: Json) -> Result<Catalog, Vec<crate::protocol::CatalogError>> {
        let tool = ToolParts { input_schema, ..ToolParts::new("t") };
        Catalog::build(CatalogParts { tools: vec![tool], ..CatalogParts::new("n", "1.0.0") })
    }

    #[test]
    fn a_schema_of_any_type_of_arguments_can_be_published_to_every_revision() {
        for schema in [of_input::<Everything>(), of_input::<Tagged>(), of_input::<Tree>()] {
            let text = schema.to_text();
            assert!(publish(schema).is_ok(), "{text}");
            assert!(!text.contains("uint") && !text.contains("double") && !text.contains("$schema"), "{text}");
        }
        assert!(publish(of_input::<Vec<u8>>()).is_err(), "arguments are an object");
    }

    #[test]
    fn arguments_that_nobody_declared_are_refused_unless_the_type_takes_any() {
        let closed = |schema: &Json| schema.get("additionalProperties") == Some(&Json::Bool(false));
        assert!(closed(&of_input::<Tree>()));
        assert!(!closed(&of_input::<std::collections::BTreeMap<String, String>>()));
        assert!(!closed(&of_input::<Tagged>()));
    }

    #[test]
    fn a_default_is_kept_where_it_can_be_written_portably() {
        let schema = of_input::<Everything>().to_value();
        assert_eq!(schema.pointer("/properties/one/default"), Some(&json!(1)));
        assert_eq!(schema.pointer("/properties/half/default"), None);
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Form {
        name: String,
        age: Option<u8>,
        choice: Option<Choice>,
        #[serde(default = "half")]
        score: f64,
    }

    #[test]
    fn a_form_has_one_plain_type_a_property_and_no_null() {
        let form = of_form::<Form>();
        assert_eq!(form.pointer("/properties/age/type"), Some(&json!("integer")), "{form}");
        assert_eq!(form.pointer("/properties/choice/type"), Some(&json!("string")), "{form}");
        assert_eq!(form.pointer("/properties/score/default"), Some(&json!(0.5)), "{form}");
        assert_eq!(form.pointer("/required"), Some(&json!(["name"])), "{form}");
        assert!(!form.to_string().contains("null") && !form.to_string().contains("anyOf"), "{form}");
    }
}
