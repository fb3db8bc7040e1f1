//! The comparison against tables of changes, floods, and the canonical text.

use proptest::prelude::*;

use super::*;
use crate::protocol::json::JsonLimits;

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap()
}

/// Each change as `class pointer`.
fn changes(old: &str, new: &str) -> Vec<String> {
    let list = |text: &str| match json(text) {
        Json::Array(tools) => tools,
        tool => vec![tool],
    };
    let compared = compare(&list(old), &list(new));
    let shown = |change: &Change| format!("{} {}{}", change.class.name(), change.tool, change.pointer);
    compared.changes().iter().map(shown).collect()
}

fn of_members(old: &str, new: &str) -> Vec<String> {
    changes(&format!("{{\"name\":\"t\"{old}}}"), &format!("{{\"name\":\"t\"{new}}}"))
}

/// The classes of one change of an input schema and of an output schema.
fn of_schemas(old: &str, new: &str) -> (String, String) {
    let of = |key: &str| {
        let found = of_members(&format!(",\"{key}\":{old}"), &format!(",\"{key}\":{new}"));
        let class = |change: &String| change.split(' ').next().unwrap().to_owned();
        found.iter().map(class).collect::<Vec<_>>().join("+")
    };
    (of("inputSchema"), of("outputSchema"))
}

#[test]
fn a_change_of_a_tool_has_its_class_and_its_place() {
    for (old, new, expected) in [
        (r#","description":"a""#, r#","description":"b""#, &["wording t/description"][..]),
        ("", r#","title":"b""#, &["wording t/title"]),
        (r#","_meta":{"a":1}"#, r#","_meta":{"a":2}"#, &["hints t/_meta"]),
        ("", r#","icons":[{"src":"x"}]"#, &["hints t/icons"]),
        ("", r#","outputSchema":{}"#, &["additive t/outputSchema"]),
        (r#","outputSchema":{}"#, "", &["breaking t/outputSchema"]),
        (r#","inputSchema":{}"#, "", &["breaking t/inputSchema"]),
        ("", r#","later":1"#, &["breaking t/later"]),
        ("", r#","execution":{"taskSupport":"optional"}"#, &["additive t/execution"]),
        ("", r#","execution":{"taskSupport":"forbidden"}"#, &["hints t/execution"]),
        (
            r#","execution":{"taskSupport":"optional"}"#,
            r#","execution":{"taskSupport":"required"}"#,
            &["breaking t/execution"],
        ),
        (r#","inputSchema":{"a":1,"b":2}"#, r#","inputSchema":{"b":2,"a":1}"#, &[]),
        (r#","x":1.0"#, r#","x":1"#, &["breaking t/x"]),
    ] {
        assert_eq!(of_members(old, new), expected, "{old} -> {new}");
    }
}

#[test]
fn hints_that_a_client_may_rely_on_break_and_others_do_not() {
    let of = |old: &str, new: &str| of_members(&format!(",\"annotations\":{old}"), &format!(",\"annotations\":{new}"));
    let (read, write) = (r#"{"readOnlyHint":true}"#, r#"{"readOnlyHint":false}"#);
    assert_eq!(of(read, write), ["breaking t/annotations/readOnlyHint"]);
    assert_eq!(of(read, "{}"), ["breaking t/annotations/readOnlyHint"]);
    assert_eq!(of(write, read), ["hints t/annotations/readOnlyHint"]);
    assert_eq!(of("{}", write), ["hints t/annotations/readOnlyHint"]);
    let (harms, spares) = (r#"{"destructiveHint":true}"#, r#"{"destructiveHint":false}"#);
    assert_eq!(of(spares, harms), ["breaking t/annotations/destructiveHint"]);
    assert_eq!(of(spares, "{}"), ["breaking t/annotations/destructiveHint"]);
    assert_eq!(of(harms, spares), ["hints t/annotations/destructiveHint"]);
    assert_eq!(of("{}", harms), ["hints t/annotations/destructiveHint"]);
    // Of a tool that only reads it says nothing.
    let reads = r#"{"readOnlyHint":true,"destructiveHint":true}"#;
    assert_eq!(of(r#"{"readOnlyHint":true,"destructiveHint":false}"#, reads), ["hints t/annotations/destructiveHint"]);
    assert_eq!(of(r#"{"title":"a"}"#, r#"{"title":"b"}"#), ["wording t/annotations/title"]);
    assert_eq!(of(r#"{"idempotentHint":true}"#, "{}"), ["hints t/annotations/idempotentHint"]);
    assert_eq!(of("{}", "7"), ["breaking t/annotations"]);
    assert_eq!(of_members("", r#","annotations":{}"#), ["hints t/annotations"]);
}

#[test]
fn a_schema_that_takes_less_breaks_callers_and_one_that_gives_more_breaks_readers() {
    let (breaking, additive) = ("breaking", "additive");
    for (old, new, input, output) in [
        (r#"{"type":"integer"}"#, r#"{"type":"number"}"#, additive, breaking),
        (r#"{"type":"string"}"#, r#"{"type":["string","null"]}"#, additive, breaking),
        ("{}", r#"{"type":"string"}"#, breaking, additive),
        (r#"{"type":"string"}"#, r#"{"type":"integer"}"#, breaking, breaking),
        (r#"{"type":["string","null"]}"#, r#"{"type":["null","string"]}"#, "order", "order"),
        (r#"{"enum":[1,2]}"#, r#"{"enum":[1,2,3]}"#, additive, breaking),
        (r#"{"enum":[1,2]}"#, r#"{"enum":[1]}"#, breaking, additive),
        (r#"{"enum":[1,2]}"#, r#"{"enum":[1,3]}"#, breaking, breaking),
        (r#"{"enum":[1,2]}"#, r#"{"enum":[2,1]}"#, "order", "order"),
        (r#"{"minimum":1}"#, r#"{"minimum":2}"#, breaking, additive),
        (r#"{"minimum":1}"#, "{}", additive, breaking),
        (r#"{"minimum":1}"#, r#"{"minimum":1.0}"#, "hints", "hints"),
        (r#"{"maximum":9007199254740992}"#, r#"{"maximum":9007199254740993}"#, additive, breaking),
        (r#"{"maxLength":5}"#, r#"{"maxLength":4}"#, breaking, additive),
        ("{}", r#"{"maxItems":4}"#, breaking, additive),
        ("{}", r#"{"minLength":0}"#, "hints", "hints"),
        (r#"{"minLength":"x"}"#, r#"{"minLength":0}"#, breaking, breaking),
        ("{}", r#"{"pattern":"a"}"#, breaking, additive),
        (r#"{"pattern":"a"}"#, "{}", additive, breaking),
        (r#"{"pattern":"a"}"#, r#"{"pattern":"b"}"#, breaking, breaking),
        (r#"{"const":1}"#, r#"{"const":2}"#, breaking, breaking),
        ("{}", r#"{"uniqueItems":true}"#, breaking, additive),
        ("{}", r#"{"uniqueItems":false}"#, "hints", "hints"),
        ("{}", r#"{"additionalProperties":false}"#, breaking, additive),
        (r#"{"additionalProperties":false}"#, "{}", additive, breaking),
        ("{}", r#"{"additionalProperties":true}"#, "hints", "hints"),
        (r#"{"additionalProperties":true}"#, r#"{"additionalProperties":{}}"#, "hints", "hints"),
        (r#"{"items":{"type":"string"}}"#, r#"{"items":{"type":"string","maxLength":1}}"#, breaking, additive),
        (r#"{"items":false}"#, r#"{"items":{}}"#, additive, breaking),
        ("{}", r#"{"properties":{"a":{}}}"#, additive, additive),
        ("{}", r#"{"properties":{}}"#, "hints", "hints"),
        ("{}", r#"{"required":["a"],"properties":{"a":{}}}"#, breaking, additive),
        (r#"{"properties":{"a":{}}}"#, "{}", breaking, breaking),
        (r#"{"properties":{"a":{}}}"#, r#"{"properties":{"b":{}}}"#, "breaking+additive", "breaking+additive"),
        (r#"{"properties":{"a":{}}}"#, r#"{"properties":{"a":{}},"required":["a"]}"#, breaking, additive),
        (r#"{"properties":{"a":{}},"required":["a"]}"#, r#"{"properties":{"a":{}}}"#, additive, breaking),
        (r#"{"required":["a","b"]}"#, r#"{"required":["b","a"]}"#, "order", "order"),
        (r#"{"required":["a","b"]}"#, r#"{"required":["b","c"]}"#, "breaking+additive", "additive+breaking"),
        ("{}", r#"{"default":1}"#, additive, "hints"),
        (r#"{"default":1}"#, r#"{"default":2}"#, breaking, "hints"),
        ("{}", r#"{"x-mcp-header":"A"}"#, "hints", "hints"),
        ("{}", r#"{"deprecated":true}"#, "hints", "hints"),
        ("{}", r#"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"#, "hints", "hints"),
        ("{}", r#"{"$schema":"http://json-schema.org/draft-07/schema#"}"#, breaking, breaking),
    ] {
        assert_eq!(of_schemas(old, new), (input.to_owned(), output.to_owned()), "{old} -> {new}");
    }
}

#[test]
fn what_is_not_looked_into_breaks_unless_its_words_alone_differ() {
    for (old, new, expected) in [
        (
            r#"{"anyOf":[{},{"type":"string"}]}"#,
            r#"{"anyOf":[{"type":"string"}]}"#,
            &["breaking t/inputSchema/anyOf"][..],
        ),
        (r##"{"$ref":"#/a"}"##, r##"{"$ref":"#/b"}"##, &["breaking t/inputSchema/$ref"]),
        ("{}", r#"{"not":{}}"#, &["breaking t/inputSchema/not"]),
        (
            r#"{"anyOf":[{"description":"a"},{"properties":{"title":{"title":"x"}}}]}"#,
            r#"{"anyOf":[{"description":"b"},{"properties":{"title":{"title":"y"}}}]}"#,
            &["wording t/inputSchema/anyOf/0/description", "wording t/inputSchema/anyOf/1/properties/title/title"],
        ),
        (
            r#"{"properties":{"a/b":{"items":{"description":"a"}}}}"#,
            r#"{"properties":{"a/b":{"items":{"description":"b"}}}}"#,
            &["wording t/inputSchema/properties/a~1b/items/description"],
        ),
        ("{}", r#"{"$defs":{"a":{}}}"#, &["hints t/inputSchema/$defs/a"]),
        ("{}", r#"{"$defs":{"a":{"$anchor":"x"}}}"#, &["breaking t/inputSchema/$defs/a"]),
        (r#"{"$defs":{"a":{}}}"#, r#"{"$defs":{"a":{"type":"null"}}}"#, &["breaking t/inputSchema/$defs/a"]),
        (
            r#"{"$defs":{"a":{"title":"x"}}}"#,
            r#"{"$defs":{"a":{"title":"y"}}}"#,
            &["wording t/inputSchema/$defs/a/title"],
        ),
        ("true", "false", &["breaking t/inputSchema"]),
        ("7", "{}", &["breaking t/inputSchema"]),
        (r#"{"properties":7}"#, "{}", &["breaking t/inputSchema/properties"]),
        (r#"{"type":"thing"}"#, r#"{"type":"string"}"#, &["breaking t/inputSchema/type"]),
    ] {
        let found = of_members(&format!(",\"inputSchema\":{old}"), &format!(",\"inputSchema\":{new}"));
        assert_eq!(found, expected, "{old} -> {new}");
    }
}

#[test]
fn tools_come_go_change_their_names_and_their_order() {
    for (old, new, expected) in [
        (r#"[{"name":"a"}]"#, r#"[{"name":"a"},{"name":"b","x":1}]"#, &["additive b"][..]),
        (r#"[{"name":"a","x":1},{"name":"b"}]"#, r#"[{"name":"b"}]"#, &["breaking a"]),
        (r#"[{"name":"a","x":1}]"#, r#"[{"name":"b","x":1}]"#, &["breaking a/name"]),
        (r#"[{"name":"a","x":1}]"#, r#"[{"name":"b","x":2}]"#, &["breaking a", "additive b"]),
        (r#"[{"name":"a"},{"name":"b","x":1}]"#, r#"[{"name":"b","x":1},{"name":"a"}]"#, &["order "]),
        (r#"[{"name":"a"},{"name":"a","x":1}]"#, r#"[{"name":"a"},{"name":"a","x":2}]"#, &["breaking a/x"]),
        (r#"[{"x":1}]"#, r#"[{"x":2}]"#, &["breaking (tool 1 has no name)/x"]),
        ("[7]", "[8]", &["breaking (tool 1 has no name)"]),
        ("[]", "[]", &[]),
    ] {
        assert_eq!(changes(old, new), expected, "{old} -> {new}");
    }
}

#[test]
fn all_together_are_what_the_gravest_is() {
    let bump = |old: &str, new: &str| match (json(old), json(new)) {
        (Json::Array(old), Json::Array(new)) => compare(&old, &new).bump(),
        _ => None,
    };
    let a = r#"[{"name":"a","description":"x"}]"#;
    assert_eq!(bump(a, a), None);
    assert_eq!(bump(a, &a.replace('x', "y")), Some(Bump::Patch));
    assert_eq!(bump(a, r#"[{"name":"a","description":"y"},{"name":"b"}]"#), Some(Bump::Minor));
    assert_eq!(bump(a, r#"[{"name":"b","description":"y"}]"#), Some(Bump::Major));
}

#[test]
fn values_are_shortened_so_that_the_difference_is_seen() {
    let tool = |end: &str| json(&format!(r#"{{"name":"t","description":"{}{end}"}}"#, "x".repeat(500)));
    let compared = compare(&[tool("old\\u001b")], &[tool("new")]);
    let change = &compared.changes()[0];
    assert_eq!(change.old.as_deref(), Some(format!("…{}old\\u001b\"", "x".repeat(30)).as_str()));
    assert_eq!(change.new.as_deref(), Some(format!("…{}new\"", "x".repeat(30)).as_str()));
}

#[test]
fn a_flood_of_changes_is_cut_and_counted_and_its_class_is_kept() {
    let tools =
        |x: u32| (0..20_000).map(|n| json(&format!(r#"{{"name":"t{n}","description":"{x}"}}"#))).collect::<Vec<_>>();
    let (mut old, new) = (tools(1), tools(2));
    old.push(json(r#"{"name":"last","x":1}"#));
    let compared = compare(&old, &new);
    assert_eq!((compared.changes().len(), compared.dropped()), (10_000, 10_001));
    assert_eq!((compared.count(Class::Wording), compared.class()), (20_000, Some(Class::Breaking)));
}

#[test]
fn long_names_and_deep_schemas_cost_no_more_than_their_size() {
    let long = "k".repeat(1_000_000);
    let tool = |x: u32| {
        let many: Vec<String> = (0..9_000).map(|n| format!(r#""p{n}":{{"maxLength":{x}}}"#)).collect();
        let inner = (0..20).fold(format!(r#"{{"properties":{{{}}}}}"#, many.join(",")), |inner, _| {
            format!(r#"{{"properties":{{"a":{inner}}}}}"#)
        });
        json(&format!(r#"{{"name":"t","inputSchema":{{"properties":{{"{long}":{inner}}}}}}}"#))
    };
    let compared = compare(&[tool(1)], &[tool(2)]);
    assert_eq!(compared.count(Class::Additive), 9_000);
    assert!(compared.changes().iter().all(|change| change.pointer.chars().count() <= POINTER_CHARACTERS + 1));
}

/// Texts that are schemas, nearly schemas, or nothing of the sort.
fn schemas() -> impl Strategy<Value = Json> {
    let word = prop::sample::select(vec![
        "type",
        "title",
        "description",
        "enum",
        "minimum",
        "maxLength",
        "properties",
        "required",
        "items",
        "anyOf",
        "not",
        "$defs",
        "additionalProperties",
        "default",
        "uniqueItems",
        "a",
        "b",
        "string",
        "x-mcp-header",
        "$schema",
        "patternProperties",
    ]);
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        prop::sample::select(vec!["0", "-0", "1", "1.0", "10e-1", "9007199254740993"])
            .prop_map(|n| Json::Number(n.into())),
        word.clone().prop_map(|text| Json::String(text.to_owned())),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let members = prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Json::Array),
            members.prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn a_change_is_found_if_and_only_if_the_canonical_texts_differ(
        schemas in prop::collection::vec(schemas(), 2..4),
        keys in prop::sample::subsequence(vec!["inputSchema", "outputSchema", "annotations", "execution", "_meta", "k"], 0..4),
    ) {
        let tool = |at: usize| {
            let members = keys.iter().enumerate().map(|(n, key)| ((*key).to_owned(), schemas[(n + at) % schemas.len()].clone()));
            Json::Object(std::iter::once(("name".to_owned(), Json::String("t".to_owned()))).chain(members).collect())
        };
        let (old, new) = (tool(0), tool(1));
        let same = sorted_keys(&old) == sorted_keys(&new);
        let compared = compare(std::slice::from_ref(&old), std::slice::from_ref(&new));
        prop_assert_eq!(compared.is_none(), same, "{} {} {:?}", old.to_text(), new.to_text(), compared);
    }
}
