//! The digests of one definition: as a contract, by its words, by its shape, and as a gateway pins it.
//!
//! Promises: each is SHA-256 over RFC 8785 of an object that names its own format, so that a formula never
//! changes silently; the gateway's form is the gateway's. What a tool does not declare is absent, never
//! filled in. `docs/digest.md` says every byte; `tests/digest/` has the vectors. Used by the command line.

use std::collections::HashSet;

use super::{Digest, Foreign, of_bytes, of_foreign, rfc8785};
use crate::protocol::content::{object, text};
use crate::protocol::json::Json;
use crate::protocol::schema::{self, Nested};

/// Keywords of a schema that are there to be read by people and models, and constrain nothing.
pub const WORDING: [&str; 4] = ["title", "description", "examples", "$comment"];

/// The digests of one tool; `None` where a number overflows, so that there is no canonical text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfTool {
    /// What callers rely on: `twodoor/tool/1`.
    pub tool: Option<Digest>,
    /// Every text that a model sees: `twodoor/wording/1`.
    pub wording: Option<Digest>,
    /// The rest of it, values of annotations included: `twodoor/shape/1`.
    pub shape: Option<Digest>,
    /// Name, description and schemas, as MCP Hangar pins them (SEP-1766); `None` too for a tool that it refuses.
    pub gateway: Option<Digest>,
    /// The whole definition as delivered.
    pub definition: Foreign,
}

/// Computes all of them.
pub fn of_tool(tool: &Json) -> OfTool {
    let member = |key: &'static str| (key, tool.get(key).cloned());
    let contract = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"].map(member);
    let hints = |title: bool| {
        let Json::Object(hints) = tool.get("annotations")? else {
            return tool.get("annotations").filter(|_| !title).cloned();
        };
        let hints: Vec<_> = hints.iter().filter(|(key, _)| (key == "title") == title).cloned().collect();
        (!title || !hints.is_empty()).then_some(Json::Object(hints))
    };
    let words_of = |key: &'static str| (key, tool.get(key).map(words).filter(|words| !is_empty(words)));
    let words = [
        member("title"),
        member("description"),
        words_of("inputSchema"),
        words_of("outputSchema"),
        ("annotations", hints(true)),
    ];
    let shape = [
        member("name"),
        ("inputSchema", tool.get("inputSchema").map(shape)),
        ("outputSchema", tool.get("outputSchema").map(shape)),
        ("annotations", hints(false)),
    ];
    OfTool {
        tool: formatted("twodoor/tool/1", contract),
        wording: formatted("twodoor/wording/1", words),
        shape: formatted("twodoor/shape/1", shape),
        gateway: of_gateway(tool),
        definition: of_foreign(tool),
    }
}

/// The digest of a surface as a whole, in which the order of its tools does not count: `twodoor/surface/1`.
///
/// `None` if a tool has no name, or not one of its own.
pub fn of_surface(name: &str, version: &str, instructions: Option<&str>, tools: &[Json]) -> Option<Digest> {
    let mut seen = HashSet::new();
    let mut digests = Vec::new();
    for tool in tools {
        let name = tool.get("name")?.as_str()?;
        seen.insert(name).then_some(())?;
        digests.push((name.to_owned(), text(&of_tool(tool).tool?.to_string())));
    }
    let members = [
        ("name", Some(text(name))),
        ("version", Some(text(version))),
        ("instructions", instructions.map(text)),
        ("tools", Some(Json::Object(digests))),
    ];
    formatted("twodoor/surface/1", members)
}

fn formatted<'k>(format: &str, members: impl IntoIterator<Item = (&'k str, Option<Json>)>) -> Option<Digest> {
    let value = object(std::iter::once(("format", Some(text(format)))).chain(members));
    rfc8785(&value).map(|text| of_bytes(text.as_bytes()))
}

fn of_gateway(tool: &Json) -> Option<Digest> {
    let member = |key: &'static str| (key, tool.get(key).filter(|value| !is_empty(value)).cloned());
    tool.get("name")?.as_str().filter(|name| !name.is_empty())?;
    let pinned = object(["name", "description", "inputSchema", "outputSchema"].map(member));
    rfc8785(&pinned).map(|text| of_bytes(text.as_bytes()))
}

/// Which half of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Words,
    Shape,
}

/// A schema without what is there to be read.
pub fn shape(schema: &Json) -> Json {
    half(schema, Half::Shape)
}

/// What of a schema is there to be read, each text where it stands; schemas without any are left out where they have a
/// name, and are `{}` where they have a place in a list. A property that is called `title` is no text.
pub fn words(schema: &Json) -> Json {
    half(schema, Half::Words)
}

fn half(schema: &Json, which: Half) -> Json {
    let Json::Object(members) = schema else {
        return if which == Half::Shape { schema.clone() } else { Json::Object(Vec::new()) };
    };
    let filled = |value: &Json| which == Half::Shape || !is_empty(value);
    let part = |(keyword, value): &(String, Json)| {
        let kept = match schema::nested(keyword, value) {
            _ if WORDING.contains(&keyword.as_str()) => {
                return (which == Half::Words).then(|| (keyword.clone(), value.clone()));
            }
            Nested::Named(members) => {
                let members = members.iter().map(|(name, schema)| (name.clone(), half(schema, which)));
                Json::Object(members.filter(|(_, schema)| filled(schema)).collect())
            }
            Nested::Listed(items) => {
                let items: Vec<Json> = items.iter().map(|schema| half(schema, which)).collect();
                if items.iter().any(filled) { Json::Array(items) } else { Json::Array(Vec::new()) }
            }
            Nested::One(schema, _) => half(schema, which),
            Nested::Nothing if which == Half::Shape => value.clone(),
            Nested::Nothing => return None,
        };
        filled(&kept).then(|| (keyword.clone(), kept))
    };
    Json::Object(members.iter().filter_map(part).collect())
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        Json::Bool(_) | Json::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::json::JsonLimits;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap()
    }

    const TOOL: &str = r#"{"name":"t","description":"D","inputSchema":{"type":"object","title":"T",
        "properties":{"title":{"type":"string","description":"P"},"description":{"enum":["description"]}}},
        "annotations":{"title":"A","readOnlyHint":true},"_meta":{"k":1},"icons":[]}"#;

    #[test]
    fn words_are_found_by_their_place_and_not_by_their_name() {
        let tool = json(TOOL);
        let found = r#"{"title":"T","properties":{"title":{"description":"P"}}}"#;
        assert_eq!(words(tool.get("inputSchema").unwrap()).to_text(), found);
        let left =
            r#"{"type":"object","properties":{"title":{"type":"string"},"description":{"enum":["description"]}}}"#;
        assert_eq!(shape(tool.get("inputSchema").unwrap()).to_text(), left);
    }

    #[test]
    fn each_digest_changes_with_what_it_is_of_and_with_nothing_else() {
        let before = of_tool(&json(TOOL));
        let changed = |from: &str, to: &str| {
            let after = of_tool(&json(&TOOL.replace(from, to)));
            [after.tool != before.tool, after.wording != before.wording, after.shape != before.shape]
                .into_iter()
                .chain([after.gateway != before.gateway, after.definition != before.definition])
                .collect::<Vec<bool>>()
        };
        for (from, to, expected) in [
            ("\"D\"", "\"E\"", [true, true, false, true, true]),
            ("\"P\"", "\"Q\"", [true, true, false, true, true]),
            ("\"A\"", "\"B\"", [true, true, false, false, true]),
            ("readOnlyHint\":true", "readOnlyHint\":false", [true, false, true, false, true]),
            ("[\"description\"]", "[\"x\"]", [true, false, true, true, true]),
            ("\"k\":1", "\"k\":2", [false, false, false, false, true]),
            ("\"icons\":[]", "\"execution\":{}", [false, false, false, false, true]),
            (",\"_meta\"", ",\"outputSchema\":{},\"_meta\"", [true, false, true, false, true]),
            (",\"_meta\"", ",\"title\":null,\"_meta\"", [true, true, false, false, true]),
        ] {
            assert_eq!(changed(from, to), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn words_in_lists_keep_their_place_and_what_has_none_leaves_no_trace() {
        let schema =
            json(r#"{"anyOf":[{"type":"null"},{"title":"x"}],"allOf":[{}],"items":{"type":"string"},"not":true}"#);
        assert_eq!(words(&schema).to_text(), r#"{"anyOf":[{},{"title":"x"}]}"#);
        assert_eq!(
            shape(&schema).to_text(),
            r#"{"anyOf":[{"type":"null"},{}],"allOf":[{}],"items":{"type":"string"},"not":true}"#
        );
        assert_eq!(words(&json("true")).to_text(), "{}");
    }

    #[test]
    fn a_surface_has_one_digest_whatever_the_order_of_its_tools() {
        let tools = [json(r#"{"name":"a"}"#), json(r#"{"name":"b"}"#)];
        let turned = [tools[1].clone(), tools[0].clone()];
        let of = |version, instructions, tools: &[Json]| of_surface("s", version, instructions, tools);
        let digest = of("1.0.0", None, &tools);
        assert!(digest.is_some());
        assert_eq!(of("1.0.0", None, &turned), digest);
        assert_ne!(of("1.0.1", None, &tools), digest);
        assert_ne!(of("1.0.0", Some(""), &tools), digest);
        assert_eq!(of("1.0.0", None, &[tools[0].clone(), tools[0].clone()]), None);
        assert_eq!(of("1.0.0", None, &[json("{}")]), None);
    }
}
