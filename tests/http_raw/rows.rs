//! The HTTP decision table of the requirement sheet, row by row.

use serde_json::{Value, json};
use twodoor::protocol::{Limits, Offer, Revision};
use twodoor::transport::http::{LegacyMode, Options};

use crate::common::{self, MODERN, NEWEST_LEGACY};
use crate::wire::{Request, Response, Server};

const UNKNOWN: &str = "v999.0.0";

fn list() -> Request {
    Request::modern(1, "tools/list", &json!({}))
}

/// A request without a claim.
fn plain(method: &str) -> Request {
    Request::post(&common::legacy(&1.into(), method, &json!({})))
}

fn version(request: Request, version: &str) -> Request {
    request.header("MCP-Protocol-Version", version)
}

fn sid(request: Request, sid: &str) -> Request {
    request.header("Mcp-Session-Id", sid)
}

/// A request whose claim names this version.
fn claiming(revision: &str) -> Request {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    plain_with("tools/list", &json!({ "_meta": meta }))
}

fn plain_with(method: &str, params: &Value) -> Request {
    Request::post(&common::legacy(&1.into(), method, params)).header("Mcp-Method", method)
}

fn stateless() -> Server {
    Server::with(Limits::default(), Options { legacy: LegacyMode::Stateless, ..Options::default() })
}

#[track_caller]
fn refused(answer: &Response, status: u16, code: i64, id: Option<i64>) {
    assert_eq!(answer.verdict(), (status, code), "{answer:?}");
    let message = answer.json();
    assert_eq!(message.get("id").cloned(), id.map(Value::from), "{message}");
    assert_eq!(message["jsonrpc"], "2.0");
}

#[test]
fn h1_h2_what_is_no_message_is_400_without_an_id() {
    let server = Server::new();
    for body in ["", "{", "nul", "\u{feff}{}", "{\"jsonrpc\":\"2.0\"} x"] {
        refused(&server.ask(&Request::post(body)), 400, -32700, None);
    }
    for (body, id) in [
        ("5", None),
        ("{}", None),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"Method":"tools/list"}"#, Some(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#, Some(1)),
    ] {
        refused(&server.ask(&Request::post(body)), 400, -32600, id);
        refused(&server.ask(&version(Request::post(body), MODERN)), 400, -32600, id);
    }
}

#[test]
fn h3_h4_h6_arrays_are_refused_but_in_two_revisions() {
    let server = Server::new();
    let ping = common::legacy(&1.into(), "ping", &json!({}));
    let array = |elements: &[&str]| Request::post(&format!("[{}]", elements.join(",")));
    let claimed = common::modern(&1.into(), "tools/list", &json!({}));
    let opening = common::initialize(&1.into(), "2025-03-26");
    refused(&server.ask(&version(array(&[&ping]), MODERN)), 400, -32600, None);
    let old = server.session("2025-03-26");
    for header in [None, Some("2025-03-26"), Some("2025-11-25"), Some(MODERN), Some(UNKNOWN)] {
        for request in [array(&[&ping, &claimed]), array(&[&opening]), array(&[])] {
            for request in [request.clone(), sid(request.clone(), &old), sid(request, "unknown")] {
                let request = header.map_or(request.clone(), |h| version(request, h));
                refused(&server.ask(&request), 400, -32600, None);
            }
        }
    }
    for revision in ["2025-06-18", "2025-11-25"] {
        let session = server.session(revision);
        refused(&server.ask(&sid(array(&[&ping]), &session)), 400, -32600, None);
        refused(&server.ask(&version(sid(array(&[&ping]), &session), revision)), 400, -32600, None);
    }
    refused(&server.ask(&array(&[&ping])), 400, -32600, None);
    refused(&server.ask(&sid(array(&[&ping]), "unknown")), 404, -32600, None);
}

#[test]
fn h5_a_batch_in_a_session_of_2024_11_05_or_2025_03_26_gets_an_array() {
    let server = Server::new();
    let ping = |id: i64| common::legacy(&id.into(), "ping", &json!({}));
    let told = common::notification("notifications/initialized", &json!({}));
    for revision in ["2024-11-05", "2025-03-26"] {
        let session = server.session(revision);
        let body = format!("[{},{told},{}]", ping(1), ping(2));
        for header in [None, Some("2025-03-26")] {
            let request = sid(Request::post(&body), &session);
            let answer = server.ask(&header.map_or(request.clone(), |h| version(request, h)));
            assert_eq!(answer.status, 200, "{answer:?}");
            let ids: Vec<Value> = answer.json().as_array().unwrap().iter().map(|a| a["id"].clone()).collect();
            assert_eq!(ids, [1, 2]);
        }
        let answer = server.ask(&sid(Request::post(&format!("[{told}]")), &session));
        assert_eq!((answer.status, answer.body.len()), (202, 0));
    }
    let server = stateless();
    let answer = server.ask(&Request::post(&format!("[{},{}]", ping(1), ping(2))));
    assert_eq!((answer.status, answer.json().as_array().map(Vec::len)), (200, Some(2)));
    let many: Vec<String> = (0..65).map(ping).collect();
    refused(&server.ask(&Request::post(&format!("[{}]", many.join(",")))), 400, -32600, None);
}

#[test]
fn h7_a_complete_claim_is_served_and_no_session_matters_to_it() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    for request in [list(), sid(list(), &session), sid(list(), "unknown"), list().also("Last-Event-ID", "7")] {
        let answer = server.ask(&request);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["result"]["resultType"], "complete");
        assert!(answer.header("mcp-session-id").is_none());
    }
    let answer = server.ask(&Request::modern(1, "server/discover", &json!({})));
    let newest_first: Vec<&str> = Revision::ALL.into_iter().rev().map(Revision::name).collect();
    assert_eq!(answer.json()["result"]["supportedVersions"], json!(newest_first));
}

#[test]
fn h8_to_h12_a_claim_and_the_header_agree_before_anything_else() {
    let server = Server::new();
    let answer = server.ask(&version(claiming(UNKNOWN), UNKNOWN));
    refused(&answer, 400, -32022, Some(1));
    assert_eq!(answer.json()["error"]["data"]["requested"], UNKNOWN);
    assert_eq!(answer.json()["error"]["data"]["supported"].as_array().unwrap().len(), 5);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let answer = server.ask(&version(claiming(revision), revision));
        refused(&answer, 400, -32022, Some(1));
        assert_eq!(answer.json()["error"]["data"]["supported"], json!([MODERN]));
    }
    refused(&server.ask(&claiming(MODERN)), 400, -32020, Some(1));
    for header in [UNKNOWN, NEWEST_LEGACY, "", "2026-07-2", "2026-07-28, 2026-07-28"] {
        refused(&server.ask(&version(claiming(MODERN), header)), 400, -32020, Some(1));
    }
    refused(&server.ask(&version(claiming(UNKNOWN), MODERN)), 400, -32020, Some(1));
    refused(&server.ask(&list().also("MCP-Protocol-Version", MODERN)), 400, -32020, Some(1));
    let partial = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": MODERN } });
    for header in [None, Some(MODERN), Some(NEWEST_LEGACY), Some(UNKNOWN)] {
        let request = plain_with("tools/list", &partial);
        let answer = server.ask(&header.map_or(request.clone(), |h| version(request, h)));
        refused(&answer, 400, -32602, Some(1));
    }
}

#[test]
fn h13_h23_the_modern_header_or_discovery_without_a_claim_is_a_malformed_request() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    for method in ["tools/list", "server/discover", "ping", "no/such"] {
        refused(&server.ask(&version(plain(method), MODERN)), 400, -32602, Some(1));
        refused(&server.ask(&sid(version(plain(method), MODERN), &session)), 400, -32602, Some(1));
    }
    let answer = server.ask(&version(Request::post(&common::initialize(&1.into(), NEWEST_LEGACY)), MODERN));
    refused(&answer, 400, -32602, Some(1));
    assert!(answer.json()["error"]["data"]["supported"].is_array());
    refused(&server.ask(&plain("server/discover")), 400, -32602, Some(1));
}

#[test]
fn h14_h15_initialize_opens_a_session_once() {
    let server = Server::new();
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        (MODERN, "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        for header in [None, Some("2025-06-18")] {
            let request = Request::post(&common::initialize(&1.into(), asked));
            let answer = server.ask(&header.map_or(request.clone(), |h| version(request, h)));
            assert_eq!(answer.status, 200);
            assert_eq!(answer.json()["result"]["protocolVersion"], agreed);
            let id = answer.header("mcp-session-id").unwrap();
            assert!(id.len() >= 32 && id.bytes().all(|b| (0x21..=0x7e).contains(&b)), "{id}");
        }
    }
    let session = server.session(NEWEST_LEGACY);
    let again = Request::post(&common::initialize(&1.into(), NEWEST_LEGACY));
    refused(&server.ask(&sid(again.clone(), &session)), 400, -32600, Some(1));
    refused(&server.ask(&sid(again, "unknown")), 404, -32600, Some(1));
    let malformed = Request::post(&common::legacy(&1.into(), "initialize", &json!({ "protocolVersion": 1 })));
    let answer = server.ask(&malformed);
    assert_eq!(answer.json()["error"]["code"], -32602);
    assert!(answer.header("mcp-session-id").is_none());
}

#[test]
fn h16_an_unknown_version_without_a_claim_is_400_and_says_what_is_supported() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    for header in [UNKNOWN, "2025-99-99", "", "2025-11-25x"] {
        for request in [plain("tools/list"), sid(plain("tools/list"), &session)] {
            let answer = server.ask(&version(request, header));
            refused(&answer, 400, -32022, Some(1));
            assert_eq!(answer.json()["error"]["data"]["requested"], header);
            assert_eq!(answer.json()["error"]["data"]["supported"].as_array().unwrap().len(), 5);
        }
    }
}

#[test]
fn h17_h18_a_session_is_served_under_what_it_negotiated() {
    let server = Server::new();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = server.session(revision);
        for header in [None, Some(revision), Some("2025-03-26"), Some("2025-11-25"), Some("  2025-11-25  ")] {
            let request = sid(plain("tools/list"), &session);
            let answer = server.ask(&header.map_or(request.clone(), |h| version(request, h)));
            assert_eq!(answer.status, 200, "{revision} {header:?}: {answer:?}");
            let result = &answer.json()["result"];
            assert!(result["tools"].is_array() && result.get("resultType").is_none() && result.get("ttlMs").is_none());
        }
        let answer = server.ask(&sid(plain("no/such"), &session));
        assert_eq!(answer.verdict(), (200, -32601), "a legacy client takes 404 for a dead session");
    }
}

#[test]
fn h19_h20_h22_a_request_needs_a_live_session() {
    let server = Server::new();
    let ended = server.session(NEWEST_LEGACY);
    assert_eq!(server.ask(&sid(Request::delete(), &ended)).status, 204);
    let told = Request::post(&common::notification("notifications/initialized", &json!({})));
    let response = Request::post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    for id in [ended.as_str(), "unknown"] {
        for header in [None, Some("2025-06-18")] {
            for request in [plain("tools/list"), plain("ping"), told.clone(), response.clone()] {
                let request = sid(request, id);
                let answer = server.ask(&header.map_or(request.clone(), |h| version(request, h)));
                assert_eq!(answer.verdict(), (404, -32600), "{id} {header:?}: {answer:?}");
            }
        }
    }
    for header in [None, Some("2024-11-05"), Some("2025-06-18")] {
        for method in ["tools/list", "ping", "no/such"] {
            let request = plain(method);
            let answer = server.ask(&header.map_or(request.clone(), |h| version(request, h)));
            refused(&answer, 400, -32600, Some(1));
        }
    }
}

#[test]
fn h21_h22_without_sessions_the_header_names_the_revision() {
    let server = stateless();
    let answer = server.ask(&Request::post(&common::initialize(&1.into(), NEWEST_LEGACY)));
    assert_eq!((answer.status, answer.header("mcp-session-id")), (200, None));
    let call = common::legacy(&1.into(), "tools/call", &json!({ "name": "act", "arguments": { "text": "t" } }));
    for header in [None, Some("2024-11-05"), Some("2025-03-26"), Some("2025-11-25")] {
        let request = Request::post(&call);
        let answer = server.ask(&header.map_or(request.clone(), |h| version(request, h)));
        assert_eq!(answer.status, 200);
        assert_eq!(common::text_of(&answer.json()), "t");
        assert!(answer.json()["result"].get("resultType").is_none());
    }
    assert_eq!(server.ask(&plain("ping")).status, 200);
    assert_eq!(server.ask(&list()).json()["result"]["resultType"], "complete");
}

#[test]
fn h24_h25_notifications_and_responses_get_202_or_a_reason() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    for method in ["notifications/initialized", "notifications/cancelled", "notifications/of/the/future"] {
        let told = Request::post(&common::notification(method, &json!({})));
        let answer = server.ask(&sid(told.clone(), &session));
        assert_eq!((answer.status, answer.body.len()), (202, 0), "{method}");
        assert_eq!(server.ask(&told).status, 400, "without a session");
    }
    let response = Request::post(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#);
    assert_eq!(server.ask(&sid(response, &session)).status, 400, "it answers nothing of ours");
}

#[test]
fn h26_h27_a_modern_notification_is_taken_and_a_modern_response_is_not() {
    let server = Server::new();
    let told = |params: &Value| Request::post(&common::notification("notifications/cancelled", params));
    let claim = |revision: &str| {
        json!({ "_meta": {
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": {},
        }})
    };
    for request in [
        version(told(&json!({ "requestId": 1 })), MODERN),
        version(told(&claim(MODERN)), MODERN),
        version(told(&claim(MODERN)), MODERN).header("Mcp-Method", "notifications/cancelled"),
        sid(version(told(&claim(MODERN)), MODERN), "unknown"),
    ] {
        let answer = server.ask(&request);
        assert_eq!((answer.status, answer.body.len()), (202, 0), "{answer:?}");
    }
    for request in [
        version(told(&claim(MODERN)), NEWEST_LEGACY),
        told(&claim(MODERN)),
        version(told(&claim(MODERN)), MODERN).header("Mcp-Method", "notifications/other"),
        version(told(&json!({})), MODERN).header("Mcp-Method", "notifications/other"),
    ] {
        refused(&server.ask(&request), 400, -32020, None);
    }
    let response = version(Request::post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), MODERN);
    assert_eq!(server.ask(&response).verdict(), (400, -32600));
}

#[test]
fn h28_to_h33_get_and_delete_are_for_live_sessions() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    for request in [Request::get(), Request::delete()] {
        for request in [version(request.clone(), MODERN), sid(version(request, MODERN), &session)] {
            let answer = server.ask(&request);
            assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
        }
    }
    for header in [None, Some("2025-06-18")] {
        let with = |request: Request| header.map_or(request.clone(), |h| version(request, h));
        let answer = server.ask(&with(Request::get()));
        assert_eq!(answer.status, 405);
        assert!(answer.header("allow").unwrap().contains("POST"));
        assert_eq!(server.ask(&with(Request::delete())).status, 400);
        assert_eq!(server.ask(&with(sid(Request::delete(), "unknown"))).status, 404);
        assert_eq!(server.ask(&with(sid(Request::get(), "unknown"))).status, 404);
        for accept in ["application/json", "text/html", "text/event-stream;q=0"] {
            assert_eq!(server.ask(&with(sid(Request::get(), &session)).header("Accept", accept)).status, 406);
        }
        for id in ["7", "garbage", "-1"] {
            assert_eq!(server.ask(&with(sid(Request::get(), &session)).header("Last-Event-ID", id)).status, 400);
        }
    }
    assert_eq!(server.ask(&sid(version(Request::get(), UNKNOWN), &session)).status, 400);
    let answer = server.ask(&version(sid(Request::delete(), &session), NEWEST_LEGACY));
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    for request in [plain("ping"), Request::get(), Request::delete()] {
        assert_eq!(server.ask(&sid(request, &session)).status, 404);
    }
}

#[test]
fn a_modern_only_server_names_what_it_serves() {
    for legacy in [LegacyMode::Sessions, LegacyMode::Stateless] {
        let server = Server::offering(Offer::ModernOnly, Limits::default(), Options { legacy, ..Options::default() });
        let answer = server.ask(&Request::post(&common::initialize(&1.into(), NEWEST_LEGACY)));
        refused(&answer, 400, -32022, Some(1));
        assert_eq!(answer.json()["error"]["data"], json!({ "requested": NEWEST_LEGACY, "supported": [MODERN] }));
        assert_eq!(server.ask(&list()).status, 200);
        assert_eq!(server.ask(&plain("tools/list")).status, 400);
        assert_eq!(server.ask(&sid(plain("tools/list"), "unknown")).status, 400);
        let notification = Request::post(&common::notification("notifications/initialized", &json!({})));
        assert_eq!(server.ask(&notification).status, 400);
    }
}

#[test]
fn methods_of_the_other_era_do_not_exist() {
    let server = Server::new();
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"]
    {
        refused(&server.ask(&Request::modern(1, method, &json!({}))), 404, -32601, Some(1));
    }
}
