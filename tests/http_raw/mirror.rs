//! Headers that mirror the body: rows H29 to H33 of the security sheet over a socket.

use serde_json::json;

use crate::common::Report;
use crate::wire::{Request, Server};

fn act() -> Request {
    Request::modern_act(1, &json!({ "text": "ran" }))
}

fn mirrored(arguments: &serde_json::Value) -> Request {
    Request::modern(1, "tools/call", &json!({ "name": "mirrored", "arguments": arguments }))
}

#[test]
fn the_method_and_the_name_must_be_there_once_and_agree() {
    let server = Server::new();
    for (name, request) in [
        ("no method", act().without("Mcp-Method")),
        ("no name", act().without("Mcp-Name")),
        ("another method", act().header("Mcp-Method", "tools/list")),
        ("another case", act().header("Mcp-Method", "TOOLS/CALL")),
        ("another name", act().header("Mcp-Name", "mirrored")),
        ("another case of the name", act().header("Mcp-Name", "Act")),
        ("two methods", act().also("Mcp-Method", "tools/call")),
        ("two names", act().also("Mcp-Name", "act")),
        ("empty", act().header("Mcp-Name", "")),
    ] {
        assert_eq!(server.ask(&request).verdict(), (400, -32020), "{name}");
    }
    assert!(server.reports.so_far().is_empty());
    for request in [
        act().header("mcp-method", "tools/call").header("MCP-NAME", "act"),
        act().header("Mcp-Name", "  act\t"),
        act().header("Mcp-Name", "=?base64?YWN0?="),
        act().header("MCP-Protocol-Version", " 2026-07-28 "),
    ] {
        assert_eq!(server.ask(&request).status, 200);
    }
}

#[test]
fn a_name_in_base64_is_exact() {
    let server = Server::new();
    for value in [
        "=?base64?YWN0=?=",
        "=?base64?/w==?=",
        "=?BASE64?YWN0?=",
        "=?base64?YWN0",
        "=?base64?bWlycm9yZWQ=?=",
        "caf\u{e9}",
    ] {
        assert_eq!(server.ask(&act().header("Mcp-Name", value)).verdict(), (400, -32020), "{value}");
    }
    assert!(server.reports.so_far().is_empty());
}

#[test]
fn mirrored_arguments_are_compared_by_their_type() {
    let server = Server::new();
    let with = |request: Request, headers: &[(&str, &str)]| headers.iter().fold(request, |r, (n, v)| r.header(n, v));
    for (arguments, headers, good) in [
        (json!({}), &[][..], true),
        // Null needs no header; that it does not fit the schema is the tool's answer.
        (json!({ "region": null }), &[], true),
        (json!({ "region": "eu" }), &[("Mcp-Param-Region", "eu")], true),
        (json!({ "region": "eu" }), &[("mcp-param-region", " eu ")], true),
        (json!({ "region": "世界" }), &[("Mcp-Param-Region", "=?base64?5LiW55WM?=")], true),
        (json!({ "count": 42 }), &[("Mcp-Param-Count", "42.0")], true),
        (json!({ "region": "eu" }), &[], false),
        (json!({ "region": "eu" }), &[("Mcp-Param-Region", "EU")], false),
        (json!({ "region": null }), &[("Mcp-Param-Region", "eu")], false),
        (json!({}), &[("Mcp-Param-Region", "eu")], false),
        (json!({ "count": 42 }), &[("Mcp-Param-Count", "43")], false),
        (json!({ "count": 42 }), &[("Mcp-Param-Count", "0x2a")], false),
    ] {
        let answer = server.ask(&with(mirrored(&arguments), headers));
        let expected = if good { (200, 0) } else { (400, -32020) };
        assert_eq!(answer.verdict(), expected, "{arguments} {headers:?}: {answer:?}");
    }
    let twice = mirrored(&json!({ "region": "eu" })).header("Mcp-Param-Region", "eu").also("Mcp-Param-Region", "eu");
    assert_eq!(server.ask(&twice).verdict(), (400, -32020));
    // Beyond 2^53 a header cannot be compared; it is refused, whichever way.
    let wide = mirrored(&json!({ "count": 9_007_199_254_740_993_i64 })).header("Mcp-Param-Count", "9007199254740993");
    assert_ne!(server.ask(&wide).code(), 0);
    let began = server.reports.so_far();
    assert_eq!(began, vec![Report::Began(String::new()); 5]);
}

#[test]
fn a_legacy_request_mirrors_nothing() {
    let server = Server::new();
    let session = server.session("2025-11-25");
    let request = Request::legacy_act(&session, 1, &json!({ "text": "t" }))
        .header("Mcp-Method", "other")
        .header("Mcp-Name", "other")
        .header("Mcp-Param-Region", "x");
    assert_eq!(server.ask(&request).status, 200);
}
