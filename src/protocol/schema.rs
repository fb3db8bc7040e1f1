//! JSON Schema: checked when a catalog is published, compiled once, never fetching anything.
//!
//! Promises: 2020-12 and draft-07 only; references stay inside the document; size, nesting and
//! the number of subschemas are bounded; patterns run in linear time (2026-07-28 basic, JSON
//! Schema Usage). No input makes a check fetch, loop or backtrack.

mod plain;

use std::collections::HashMap;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use self::plain::Plain;
use super::digest::escape_pointer;
use super::invoke::Arguments;
use super::json::{Json, shortened};
use super::limits::{SCHEMA_BYTES, SCHEMA_DEPTH, SCHEMA_EXPANDED, SCHEMA_SUBSCHEMAS, VIOLATIONS_LISTED};

const DIALECT_2020_12: &str = "https://json-schema.org/draft/2020-12/schema";
const DIALECT_07: &str = "http://json-schema.org/draft-07/schema";

/// Most characters of one violation's text.
const VIOLATION_CHARACTERS: usize = 300;

/// Most pairs of a value's node and a subschema that one check may come to: what is beyond cannot be checked in time.
const PAIRS_CHECKED: usize = 50_000_000;

/// Most such pairs for which every violation is gathered. Beyond it the first alone is named: gathering keeps a record
/// for each branch of each alternative.
const PAIRS_EXPLAINED: usize = 50_000;

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    /// How many subschemas there are, each counted as often as references reach it.
    weight: usize,
    /// What it comes to, if that is simple.
    plain: Option<Plain>,
}

/// Why a schema cannot be published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: {remedy}")]
pub struct SchemaError {
    /// JSON pointer into the schema.
    pub pointer: String,
    /// Short name of the rule.
    pub rule: &'static str,
    /// What is wrong.
    pub problem: String,
    /// How to mend it.
    pub remedy: String,
}

/// One way in which a value does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer into the value.
    pub pointer: String,
    /// What is wrong there.
    pub problem: String,
}

impl Schema {
    /// Checks and compiles a schema.
    pub fn compile(schema: &Json) -> Result<Self, SchemaError> {
        let error = |pointer: String, rule, problem: String, remedy: &str| {
            Err(SchemaError { pointer, rule, problem, remedy: remedy.to_owned() })
        };
        if schema.as_object().is_none() {
            return error(String::new(), "schema-object", "a schema is an object".to_owned(), "write it as a mapping");
        }
        let size = schema.to_text().len();
        if size > SCHEMA_BYTES {
            let problem = format!("the schema is {size} bytes long");
            return error(String::new(), "schema-size", problem, &format!("keep it below {SCHEMA_BYTES} bytes"));
        }
        let mut draft = Draft::Draft202012;
        let mut count = 0usize;
        let mut problem = None;
        visit(schema, "", 0, &mut |pointer, depth, place, subschema| {
            count += 1;
            if depth > SCHEMA_DEPTH {
                problem.get_or_insert((
                    pointer.to_owned(),
                    "schema-depth",
                    format!("nested deeper than {SCHEMA_DEPTH}"),
                    "flatten it",
                ));
                return false;
            }
            if let Some(dialect) = subschema.get("$schema") {
                let dialect = dialect.as_str().unwrap_or_default().trim_end_matches('#');
                let known = place == Place::Root && matches!(dialect, DIALECT_2020_12 | DIALECT_07);
                if !known {
                    let text = format!("the dialect {:?} is not served here", shortened(dialect, 80));
                    problem.get_or_insert((
                        format!("{pointer}/$schema"),
                        "schema-dialect",
                        text,
                        "leave $schema out, which means 2020-12, or name 2020-12 or draft-07 at the root",
                    ));
                }
                if dialect == DIALECT_07 {
                    draft = Draft::Draft7;
                }
            }
            for keyword in ["$ref", "$dynamicRef"] {
                if let Some(target) = subschema.get(keyword).and_then(Json::as_str).filter(|t| !t.starts_with('#')) {
                    let text = format!("{keyword} {:?} leaves the document", shortened(target, 80));
                    problem.get_or_insert((
                        format!("{pointer}/{keyword}"),
                        "schema-ref",
                        text,
                        "move what it names into $defs and refer to it with #/$defs/…",
                    ));
                }
            }
            true
        });
        if let Some((pointer, rule, text, remedy)) = problem {
            return error(pointer, rule, text, remedy);
        }
        if count > SCHEMA_SUBSCHEMAS {
            let text = format!("{count} subschemas");
            return error(String::new(), "schema-count", text, &format!("keep it to {SCHEMA_SUBSCHEMAS}"));
        }
        let weight = weight(schema, schema, &mut HashMap::new());
        if weight > SCHEMA_EXPANDED {
            let text = "its references multiply it beyond what can be checked".to_owned();
            return error(
                String::new(),
                "schema-count",
                text,
                &format!("keep it to {SCHEMA_EXPANDED} subschemas, each reference followed"),
            );
        }
        let options = jsonschema::options().offline().with_draft(draft).with_pattern_options(PatternOptions::regex());
        let mut value = schema.to_value();
        // Without `properties` the validator says of a surplus argument neither its name nor what is wrong with it.
        if let (Some(false), Some(root)) =
            (value.get("additionalProperties").and_then(Value::as_bool), value.as_object_mut())
        {
            root.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
        match options.build(&value) {
            Ok(validator) => Ok(Self { validator, weight, plain: Plain::read(schema) }),
            Err(refused) => {
                let text = shortened(&refused.to_string(), VIOLATION_CHARACTERS);
                error(
                    refused.instance_path().to_string(),
                    "schema-valid",
                    text,
                    "correct the schema; patterns have neither look-around nor back-references",
                )
            }
        }
    }

    /// Where the arguments of a call do not fit, as [`Schema::violations`] has it.
    pub fn refusals(&self, arguments: &Arguments) -> Vec<Violation> {
        if self.plain.as_ref().is_some_and(|plain| plain.fits(arguments)) {
            return Vec::new();
        }
        // What cannot be read cannot be judged, so it does not fit.
        let unread = |_| vec![Violation { pointer: String::new(), problem: "cannot be read as JSON".to_owned() }];
        arguments.text().parse().map_or_else(unread, |value| self.violations(&value))
    }

    /// Where a value does not fit: the first ten violations, or the first alone of a large value.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let pairs = nodes(value).saturating_mul(self.weight);
        if pairs > PAIRS_CHECKED {
            let problem = "too large to be checked against this schema: send less at once".to_owned();
            return vec![Violation { pointer: String::new(), problem }];
        }
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        let violation = |error: jsonschema::ValidationError<'_>| Violation {
            pointer: error.instance_path().to_string(),
            problem: shortened(&error.to_string(), VIOLATION_CHARACTERS),
        };
        if pairs > PAIRS_EXPLAINED {
            return self.validator.validate(value).err().into_iter().map(violation).collect();
        }
        self.validator.iter_errors(value).take(VIOLATIONS_LISTED).map(violation).collect()
    }
}

/// How many values there are in a value.
fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        _ => 1,
    }
}

/// How many subschemas a schema comes to if each reference is followed; one that leads back to itself counts once.
fn weight(schema: &Json, root: &Json, known: &mut HashMap<String, Option<usize>>) -> usize {
    let mut weight = 0usize;
    let mut targets = Vec::new();
    visit(schema, "", 0, &mut |_, _, _, subschema| {
        weight = weight.saturating_add(1);
        let references = ["$ref", "$dynamicRef"].into_iter().filter_map(|keyword| subschema.get(keyword)?.as_str());
        targets.extend(references.map(str::to_owned));
        true
    });
    for target in targets {
        let below = match known.get(&target) {
            Some(known) => known.unwrap_or(1),
            None => {
                known.insert(target.clone(), None);
                let below = resolve(root, &target).map_or(1, |schema| self::weight(schema, root, known));
                known.insert(target, Some(below));
                below
            }
        };
        weight = weight.saturating_add(below);
    }
    weight
}

/// The schema that a reference within the document names: by pointer, or by anchor.
fn resolve<'s>(root: &'s Json, target: &str) -> Option<&'s Json> {
    let target = target.strip_prefix('#')?;
    if target.is_empty() {
        return Some(root);
    }
    let Some(pointer) = target.strip_prefix('/') else {
        let mut found = None;
        visit(root, "", 0, &mut |_, _, _, subschema| {
            let named =
                ["$anchor", "$dynamicAnchor"].iter().any(|k| subschema.get(k).and_then(Json::as_str) == Some(target));
            if named {
                found.get_or_insert(subschema);
            }
            true
        });
        return found;
    };
    pointer.split('/').try_fold(root, |at, step| match at {
        Json::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => at.get(&step.replace("~1", "/").replace("~0", "~")),
    })
}

/// What a person filled into a form of this schema: without what was not asked for, and without what was left empty,
/// which some clients send as null. `None` if the content is no object; absent content is a form that was left empty.
pub fn filled_in(schema: &Value, content: Option<&Value>) -> Option<Value> {
    let empty = serde_json::Map::new();
    let content = content.map_or(Some(&empty), Value::as_object)?;
    let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let filled = content.iter().filter(|(name, value)| fields.contains_key(*name) && !value.is_null());
    Some(Value::Object(filled.map(|(name, value)| (name.clone(), value.clone())).collect()))
}

/// The violations as text for a model; `whole` names the value.
pub fn explain(whole: &str, violations: &[Violation]) -> String {
    let lines = violations.iter().map(|Violation { pointer, problem }| {
        let place = if pointer.is_empty() { whole } else { pointer };
        format!("- {place}: {problem}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// How a schema is reached from the one above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The root.
    Root,
    /// Under `properties`.
    Property,
    /// Where `true` and `false` are customary: `additionalProperties` and its like.
    Customary,
    /// Anywhere else.
    Other,
}

/// Visits a schema and every schema inside it; the callback says whether to go deeper.
pub fn visit<'s>(
    schema: &'s Json,
    pointer: &str,
    depth: usize,
    on: &mut dyn FnMut(&str, usize, Place, &'s Json) -> bool,
) {
    visit_at(schema, pointer, depth, Place::Root, on);
}

fn visit_at<'s>(
    schema: &'s Json,
    pointer: &str,
    depth: usize,
    place: Place,
    on: &mut dyn FnMut(&str, usize, Place, &'s Json) -> bool,
) {
    if !on(pointer, depth, place, schema) {
        return;
    }
    for (keyword, value) in schema.as_object().unwrap_or_default() {
        let below = format!("{pointer}/{}", escape_pointer(keyword));
        match nested(keyword, value) {
            Nested::Named(members) => {
                let place = if keyword == "properties" { Place::Property } else { Place::Other };
                for (name, schema) in members {
                    visit_at(schema, &format!("{below}/{}", escape_pointer(name)), depth + 1, place, on);
                }
            }
            Nested::Listed(items) => {
                for (index, schema) in items.iter().enumerate() {
                    visit_at(schema, &format!("{below}/{index}"), depth + 1, Place::Other, on);
                }
            }
            Nested::One(schema, place) => visit_at(schema, &below, depth + 1, place, on),
            Nested::Nothing => {}
        }
    }
}

/// The schemas in the value of a keyword.
#[derive(Debug, Clone, Copy)]
pub(super) enum Nested<'s> {
    /// By name.
    Named(&'s [(String, Json)]),
    /// In a list.
    Listed(&'s [Json]),
    /// The value itself.
    One(&'s Json, Place),
    /// None.
    Nothing,
}

/// Where schemas stand in the value of a keyword.
pub(super) fn nested<'s>(keyword: &str, value: &'s Json) -> Nested<'s> {
    match (keyword, value) {
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies",
            Json::Object(members),
        ) => Nested::Named(members),
        ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Json::Array(items)) => Nested::Listed(items),
        ("additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" | "additionalItems", schema) => {
            Nested::One(schema, Place::Customary)
        }
        ("items" | "contains" | "not" | "if" | "then" | "else" | "propertyNames" | "contentSchema", schema) => {
            Nested::One(schema, Place::Other)
        }
        _ => Nested::Nothing,
    }
}

/// Pointers of the schemas that are only `true` or `false` where strict clients expect an object.
pub fn boolean_subschemas(schema: &Json) -> Vec<String> {
    let mut found = Vec::new();
    visit(schema, "", 0, &mut |pointer, _, place, schema| {
        if matches!(schema, Json::Bool(_)) && place != Place::Customary {
            found.push(pointer.to_owned());
        }
        true
    });
    found
}

/// The same schema with `true` written `{}` and `false` written `{"not":{}}` where [`boolean_subschemas`] finds them.
pub fn without_boolean_subschemas(schema: &Json) -> Json {
    rewrite(schema, "", &boolean_subschemas(schema))
}

fn rewrite(value: &Json, pointer: &str, found: &[String]) -> Json {
    match value {
        Json::Bool(true) if found.iter().any(|f| f == pointer) => Json::Object(Vec::new()),
        Json::Bool(false) if found.iter().any(|f| f == pointer) => {
            Json::Object(vec![("not".to_owned(), Json::Object(Vec::new()))])
        }
        Json::Array(items) => Json::Array(
            items.iter().enumerate().map(|(i, item)| rewrite(item, &format!("{pointer}/{i}"), found)).collect(),
        ),
        Json::Object(members) => {
            let rewritten = members.iter().map(|(key, value)| {
                (key.clone(), rewrite(value, &format!("{pointer}/{}", escape_pointer(key)), found))
            });
            Json::Object(rewritten.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::json::JsonLimits;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap()
    }

    #[test]
    fn what_leaves_the_document_or_names_another_dialect_is_refused_at_its_place() {
        let table = [
            (r#"{"properties":{"a":{"$ref":"http://127.0.0.1:1/x"}}}"#, "/properties/a/$ref", "schema-ref"),
            (r#"{"$defs":{"d":{"$dynamicRef":"other.json#m"}}}"#, "/$defs/d/$dynamicRef", "schema-ref"),
            (r#"{"$schema":"https://json-schema.org/draft/2019-09/schema"}"#, "/$schema", "schema-dialect"),
            (
                r#"{"properties":{"a":{"$schema":"http://json-schema.org/draft-07/schema#"}}}"#,
                "/properties/a/$schema",
                "schema-dialect",
            ),
            (r#"{"type":"objekt"}"#, "/type", "schema-valid"),
            (r##"{"$ref":"#/$defs/none"}"##, "", "schema-valid"),
            (r#"{"pattern":"(a+)+\\1"}"#, "", "schema-valid"),
            ("[]", "", "schema-object"),
        ];
        for (text, pointer, rule) in table {
            let error = Schema::compile(&json(text)).expect_err(text);
            assert_eq!(error.rule, rule, "{text}: {error}");
            if !pointer.is_empty() {
                assert_eq!(error.pointer, pointer, "{text}");
            }
        }
    }

    #[test]
    fn a_reference_to_the_network_is_refused_and_nothing_is_fetched() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        port.set_nonblocking(true).unwrap();
        let schema = format!(r#"{{"properties":{{"a":{{"$ref":"http://{}/s.json"}}}}}}"#, port.local_addr().unwrap());
        assert!(Schema::compile(&json(&schema)).is_err());
        assert!(port.accept().is_err(), "the port was contacted");
    }

    #[test]
    fn size_depth_and_count_are_refused_above_their_limits() {
        let deep = |n: usize| json(&format!("{}{{}}{}", r#"{"not":"#.repeat(n), "}".repeat(n)));
        assert!(Schema::compile(&deep(60)).is_ok());
        let nest = |n: usize| (0..n).fold(Json::Object(vec![]), |inner, _| Json::Object(vec![("not".into(), inner)]));
        assert!(Schema::compile(&nest(SCHEMA_DEPTH)).is_ok());
        assert_eq!(Schema::compile(&nest(SCHEMA_DEPTH + 1)).unwrap_err().rule, "schema-depth");
        let many = |n: usize| Json::Object(vec![("anyOf".into(), Json::Array(vec![Json::Object(vec![]); n]))]);
        assert!(Schema::compile(&many(SCHEMA_SUBSCHEMAS - 1)).is_ok());
        assert_eq!(Schema::compile(&many(SCHEMA_SUBSCHEMAS)).unwrap_err().rule, "schema-count");
        let long = Json::Object(vec![("description".into(), Json::String("x".repeat(SCHEMA_BYTES)))]);
        assert_eq!(Schema::compile(&long).unwrap_err().rule, "schema-size");
    }

    #[test]
    fn at_most_ten_violations_are_named_each_with_its_place() {
        let schema = Schema::compile(&json(r#"{"type":"object","required":["a"],"properties":{"n":{"type":"integer"},"l":{"items":{"type":"string"}}},"additionalProperties":false}"#)).unwrap();
        assert!(schema.violations(&serde_json::json!({"a": 1})).iter().any(|v| v.problem.contains("'a'")));
        let violations = schema.violations(&serde_json::json!({"n": "1"}));
        let text = explain("the arguments", &violations);
        assert!(text.contains("/n: ") && text.contains("\"a\""), "{text}");
        let many: Vec<u8> = vec![0; 40];
        assert_eq!(schema.violations(&serde_json::json!({"l": many})).len(), VIOLATIONS_LISTED);
    }

    #[test]
    fn references_that_multiply_a_schema_are_refused_and_recursion_is_not() {
        let chain = |length: usize| {
            let link = |n: usize| {
                format!(r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##, n + 1)
            };
            let links: Vec<String> = (0..length).map(link).collect();
            json(&format!(
                r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d{length}":{{"type":"integer"}}}}}}"##,
                links.join(",")
            ))
        };
        assert!(Schema::compile(&chain(6)).is_ok());
        assert_eq!(Schema::compile(&chain(26)).unwrap_err().rule, "schema-count");
        let tree = r##"{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"},"up":{"$ref":"#a"}},"$defs":{"x":{"$anchor":"a"}}}"##;
        assert!(Schema::compile(&json(tree)).is_ok());
    }

    #[test]
    fn a_large_value_that_does_not_fit_is_explained_by_its_first_violation_and_a_vast_one_by_its_size() {
        let branches: Vec<String> = (0..3000).map(|n| format!(r#"{{"const":{n}}}"#)).collect();
        let schema = Schema::compile(&json(&format!(r#"{{"items":{{"anyOf":[{}]}}}}"#, branches.join(",")))).unwrap();
        assert_eq!(schema.violations(&serde_json::json!(vec![-1; 4000])).len(), 1);
        assert!(schema.violations(&serde_json::json!(vec![7; 4000])).is_empty());
        let vast = schema.violations(&serde_json::json!(vec![7; 40_000]));
        assert!(vast[0].problem.contains("too large"), "{vast:?}");
        let small = Schema::compile(&json(r#"{"items":{"type":"integer"}}"#)).unwrap();
        assert_eq!(small.violations(&serde_json::json!(vec!["x"; 100])).len(), VIOLATIONS_LISTED);
    }

    #[test]
    fn boolean_subschemas_are_found_but_for_the_customary_places() {
        let schema =
            json(r#"{"properties":{"a":true,"b":{"items":false}},"additionalProperties":false,"anyOf":[true]}"#);
        assert_eq!(boolean_subschemas(&schema), ["/properties/a", "/properties/b/items", "/anyOf/0"]);
        let text = without_boolean_subschemas(&schema).to_text();
        assert_eq!(
            text,
            r#"{"properties":{"a":{},"b":{"items":{"not":{}}}},"additionalProperties":false,"anyOf":[{}]}"#
        );
    }
}
