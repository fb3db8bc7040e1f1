//! Lists of servers, as they come and as they should not.

use std::path::Path;

use serde_json::{Value, json};
use twodoor::client::{Listing, Opening, Server};
use twodoor::import::upstream::{self, Reached, Upstream};
use twodoor::import::{ImportError, Imported};
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{Json, Revision, digest};

use super::check;

fn import(tools: &Value, reached: Reached) -> Result<Imported, ImportError> {
    import_as(tools, reached, None, &|_| true)
}

fn import_as(
    tools: &Value,
    reached: Reached,
    name: Option<&str>,
    chosen: &dyn Fn(&str) -> bool,
) -> Result<Imported, ImportError> {
    let text = tools.to_string();
    let list = Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap();
    let Json::Array(parsed) = list.clone() else { panic!("no list") };
    let listing = Listing {
        text,
        tools: parsed,
        digest: digest::of_foreign(&list),
        pages: 1,
        published: Vec::new(),
        ttl_ms: None,
        remarks: Vec::new(),
    };
    let opening = Opening {
        revision: *Revision::ALL.first().unwrap(),
        server: Some(Server { name: "@scope/notes-server".to_owned(), version: "1.0\u{202e}".to_owned() }),
        instructions: Some("Be kind.\u{200b}".to_owned()),
        has_tools: true,
        published: Vec::new(),
        remarks: Vec::new(),
    };
    upstream::surface(&Upstream { reached, opening: &opening, listing: &listing, name }, chosen, Path::new("/"))
}

fn program() -> Reached {
    Reached::Program(vec!["true".to_owned(), "{x}".to_owned()])
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "Does it.", "inputSchema": { "type": "object" } })
}

#[test]
fn a_list_becomes_a_pinned_upstream_and_its_tools() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": { "path": { "$ref": "#/$defs/path" } },
        "$defs": { "path": { "type": "string", "description": "Where." } },
    });
    let hints =
        json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false });
    let tools = json!([
        { "name": "read-note", "title": "Read", "description": "Reads a note.", "inputSchema": schema, "annotations": hints,
          "outputSchema": { "type": "object", "properties": { "text": { "type": "string" } } } },
        { "name": "delete.note", "inputSchema": { "type": "object" }, "annotations": { "destructiveHint": true, "readOnlyHint": true } },
    ]);
    let imported = import(&tools, program()).unwrap();
    check(&imported.text);
    let digest = digest::of_foreign(&Json::parse(tools.to_string().as_bytes(), &JsonLimits::default()).unwrap());
    for line in [
        "surface: notes",
        &format!("digest: \"{}\"", digest.rfc8785.unwrap()),
        "run: [\"true\", \"{{x}}\"]",
        "  read_note:",
        "upstream: notes/read-note",
        "read_only: true",
        "idempotent: true",
        "open_world: false",
        "outputSchema: { properties: { text: { type: string } }, type: object }",
        "  delete_note:",
        "upstream: notes/delete.note",
        "reversible: false",
        "# decide: the server says nothing of it; write what it does, for models.",
    ] {
        assert!(imported.text.contains(line), "{line}\n{}", imported.text);
    }
    assert!(!imported.text.contains("draft-07") && imported.text.contains("#/$defs/path"), "{}", imported.text);
    assert!(!imported.text.contains(['\u{202e}', '\u{200b}']));
}

#[test]
fn what_the_rules_refuse_is_switched_off_and_the_rest_stays() {
    let tools = json!([
        tool("good"),
        { "name": "remote", "inputSchema": { "type": "object", "properties": { "a": { "$ref": "http://h/x" } } } },
        { "name": "fraction", "inputSchema": { "type": "object", "properties": { "a": { "type": "number", "minimum": 0.5 } } } },
        { "name": "list", "inputSchema": { "type": "array" } },
        { "name": "look", "inputSchema": { "type": "object", "properties": { "a": { "pattern": "(?=x)" } } } },
        { "name": "dialect", "inputSchema": { "$schema": "http://json-schema.org/draft-04/schema#", "type": "object" } },
        { "name": "odd key", "inputSchema": { "type": "object", "properties": { "a b": {} } } },
        { "name": "hidden", "inputSchema": { "type": "object", "properties": { "a\u{202e}": {} } } },
        { "name": "none\u{200b}", "inputSchema": { "type": "object" } },
        { "name": "output", "inputSchema": { "type": "object" }, "outputSchema": { "$ref": "http://h/x" } },
        { "name": "Good", "inputSchema": { "type": "object" } },
        { "name": "whole", "inputSchema": true },
    ]);
    let imported = import(&tools, program()).unwrap();
    check(&imported.text);
    let withheld: Vec<&str> = imported.withheld.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["remote", "fraction", "list", "look", "dialect", "odd_key", "hidden", "whole"] {
        assert!(withheld.contains(&name), "{name}: {withheld:?}\n{}", imported.text);
    }
    assert!(imported.withheld.iter().all(|(_, why)| !why.is_empty()));
    assert!(imported.text.contains("\n  good:\n") && imported.text.contains("\n  Good_2:\n"), "{}", imported.text);
    assert!(imported.text.contains("Its outputSchema is left out"), "{}", imported.text);
}

#[test]
fn texts_that_are_too_long_or_hide_something_are_cut_and_named() {
    let tools = json!([
        { "name": "long", "description": "word ".repeat(2000), "inputSchema": { "type": "object" } },
        { "name": "sly", "description": "Reads.\u{e0041}\u{e0042}", "inputSchema": { "type": "object", "description": "a\u{202e}b" } },
    ]);
    let imported = import(&tools, program()).unwrap();
    assert!(!check(&imported.text).contains(&"long-text".to_owned()));
    assert!(
        imported.text.contains("its description was cut") && imported.text.contains("that nobody sees were taken out")
    );
}

#[test]
fn tools_are_chosen_and_the_upstream_is_named() {
    let tools = json!([tool("read_a"), tool("read_b"), tool("write_a")]);
    let url = Reached::Url("http://127.0.0.1:8484/mcp".to_owned());
    let imported = import_as(&tools, url, Some("Mine"), &|name| name.starts_with("read")).unwrap();
    check(&imported.text);
    assert_eq!(imported.tools, 2);
    assert!(
        imported.text.contains("surface: mine") && imported.text.contains("allow_private: true"),
        "{}",
        imported.text
    );
    assert!(matches!(import_as(&tools, program(), None, &|_| false), Err(ImportError::Nothing { .. })));
}
