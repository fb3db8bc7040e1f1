//! Callers with tokens: rows S5 and S12, and what AUTH says of challenges, metadata and scopes.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use twodoor::embed;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::{CacheScope, Limits, Principal, digest};
use twodoor::transport::http::auth::{Auth, Authorize, Authorized, KnownToken, KnownTokens, Rejected};
use twodoor::transport::http::{self, LegacyMode, Options};
use twodoor::transport::{ServeError, http::listen};

use crate::common::{self, NEWEST_LEGACY};
use crate::wire::{self, Client, Request, Response, Server};

const ALICE: &str = "alice-token-0123456789";
const BOB: &str = "bob-token-0123456789";
/// Has one scope of the two that `mirrored` takes.
const LOW: &str = "low-token-0123456789";
const NAMED: &str = "http://localhost:6274";
const EVIL: &str = "http://evil.example";

fn auth() -> Auth {
    let token = |text: &str, scopes: &[&str]| KnownToken {
        principal: Principal::named(format!("whoever has {text}")),
        sha256: digest::of_bytes(text.as_bytes()),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    };
    let tokens = vec![token(ALICE, &["write", "use"]), token(BOB, &["use", "write"]), token(LOW, &["use"])];
    Auth {
        authorize: Arc::new(KnownTokens::new(tokens)),
        resource: None,
        authorization_servers: vec!["https://auth.example".to_owned()],
        scopes_supported: vec!["use".to_owned()],
    }
}

fn options() -> Options {
    Options { sse: true, allow_origins: vec![NAMED.to_owned()], auth: Some(auth()), ..Options::default() }
}

fn server() -> Server {
    Server::with(Limits::default(), options())
}

fn with(token: &str, request: &Request) -> Request {
    request.clone().header("Authorization", &format!("Bearer {token}"))
}

fn session(server: &Server, token: &str, revision: &str) -> String {
    let answer = server.ask(&with(token, &Request::post(&common::initialize(&0.into(), revision))));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("mcp-session-id").expect("a session id").to_owned()
}

fn ping(id: u64) -> String {
    common::legacy(&id.into(), "ping", &json!({}))
}

fn modern_mirrored() -> Request {
    Request::modern(1, "tools/call", &json!({ "name": "mirrored", "arguments": {} }))
}

/// One request of every sort, the session being a live one.
fn everything(sid: &str) -> Vec<Request> {
    let call = common::legacy(&3.into(), "tools/call", &json!({ "name": "act", "arguments": {} }));
    vec![
        Request::modern(1, "server/discover", &json!({})),
        Request::modern(1, "tools/list", &json!({})),
        Request::modern_act(1, &json!({ "text": "x" })),
        modern_mirrored(),
        Request::post(&common::initialize(&0.into(), NEWEST_LEGACY)),
        Request::legacy_act(sid, 1, &json!({ "text": "x" })),
        Request::post(&call),
        Request::post(&common::notification("notifications/initialized", &json!({}))).of(sid),
        Request::post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).of(sid),
        Request::post(&format!("[{},{call}]", ping(1))).of(sid),
        Request::post("{").of(sid),
        Request::post("x").without("Content-Type"),
        Request::post("x").header("Accept", "text/html"),
        Request::post("").header("Content-Length", "99999999999"),
        Request::get(),
        Request::get().of(sid),
        Request::get().of(sid).header("Last-Event-ID", "0-0-0"),
        Request::get().header("MCP-Protocol-Version", "2026-07-28"),
        Request::delete(),
        Request::delete().of(sid),
        Request::get().with_target("/sse"),
        Request::post(&ping(1)).with_target("/sse/message?session=x"),
    ]
}

/// What a client is told that has not the right token; without `error` if it sent none.
fn challenge(server: &Server, error: Option<(&str, &str)>, scopes: &str) -> String {
    let error = error.map(|(error, text)| format!("error=\"{error}\", error_description=\"{text}\", "));
    let url = format!("http://{}/.well-known/oauth-protected-resource/mcp", server.host());
    format!("Bearer {}resource_metadata=\"{url}\", scope=\"{scopes}\"", error.unwrap_or_default())
}

/// No JSON-RPC error, of no era.
#[track_caller]
fn assert_plain(answer: &Response, error: &str) {
    let body = answer.json();
    assert_eq!(body["error"], error, "{body}");
    assert!(body.get("jsonrpc").is_none() && body.get("code").is_none(), "{body}");
}

#[test]
fn without_a_good_token_every_verb_of_every_era_is_told_where_to_get_one() {
    let server = server();
    let sid = session(&server, ALICE, NEWEST_LEGACY);
    let invalid = |text| Some(("invalid_token", text));
    for request in everything(&sid) {
        for (credentials, error) in [
            (None, None),
            (Some("Basic YWxpY2U6eA=="), None),
            (Some("Bearer"), None),
            (Some("alice-token-0123456789"), None),
            (Some("Bearer wrong"), invalid("the token is not valid here")),
            (Some("BEARER alice-token-012345678"), invalid("the token is not valid here")),
            (Some("Bearer alice-token-0123456789, Bearer x"), invalid("the token is malformed")),
        ] {
            let sent = match credentials {
                Some(credentials) => request.clone().header("Authorization", credentials),
                None => request.clone(),
            };
            let answer = server.ask(&sent);
            let told = challenge(&server, error, "use");
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(&*told)), "{credentials:?}");
            assert_plain(&answer, error.map_or("unauthorized", |(error, _)| error));
            assert!(!answer.text().contains("alice"), "{answer:?}");
        }
    }
    assert_eq!(server.reports.so_far(), []);
    assert_eq!(server.ask(&with(ALICE, &Request::post(&ping(1)).of(&sid))).status, 200, "the session lives");
}

#[test]
fn a_token_is_taken_whatever_the_case_of_its_scheme() {
    let server = server();
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR "] {
        let request = Request::modern(1, "tools/list", &json!({}));
        let answer = server.ask(&request.header("Authorization", &format!("{scheme} {ALICE}")));
        assert_eq!((answer.status, &answer.json()["result"]["cacheScope"]), (200, &json!("private")));
    }
    let batch = format!("[{}]", ping(1));
    let sid = session(&server, ALICE, "2025-03-26");
    assert_eq!(server.ask(&with(ALICE, &Request::post(&batch).header("Mcp-Session-Id", &sid))).status, 200);
}

#[test]
fn a_token_in_the_query_is_never_taken_and_two_credentials_are_one_too_many() {
    let server = server();
    for request in everything("none") {
        for query in [format!("access_token={ALICE}"), format!("x=y&access_token={ALICE}")] {
            let target = format!("/mcp?{query}");
            let answer = server.ask(&request.clone().with_target(&target));
            let told = challenge(&server, None, "use");
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(&*told)));
            assert_eq!(server.ask(&with(ALICE, &request).with_target(&target)).status, 400);
        }
        for other in [ALICE, BOB] {
            let twice = with(ALICE, &request).also("Authorization", &format!("Bearer {other}"));
            let answer = server.ask(&twice);
            assert_eq!(answer.status, 400);
            assert_plain(&answer, "invalid_request");
        }
    }
}

#[test]
fn host_origin_path_and_verb_are_judged_first_and_some_answers_are_for_everybody() {
    let server = server();
    let discover = Request::modern(1, "server/discover", &json!({}));
    assert_eq!(server.ask(&discover.clone().header("Host", "evil.example")).status, 403);
    assert_eq!(server.ask(&discover.clone().header("Origin", EVIL)).status, 403);
    assert_eq!(server.ask(&Request::new("PUT", "/mcp")).status, 405);
    assert_eq!(server.ask(&Request::new("GET", "/nothing")).status, 404);
    assert_eq!(server.ask(&Request::new("GET", "/healthz")).status, 200);
    let preflight = server.ask(&Request::new("OPTIONS", "/mcp").header("Origin", NAMED));
    assert_eq!(preflight.status, 204);
    assert!(preflight.header("access-control-allow-headers").unwrap().contains("Authorization"));
    let refused = server.ask(&discover.header("Origin", NAMED));
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (401, Some(NAMED)));
    assert!(refused.header("access-control-expose-headers").unwrap().contains("WWW-Authenticate"));
}

#[test]
fn another_callers_session_is_none_by_any_verb_and_stays_as_it_is() {
    let server = server();
    let sid = session(&server, ALICE, NEWEST_LEGACY);
    // A stream of Alice's that could be resumed.
    let call = Request::legacy_act(&sid, 7, &json!({ "text": "held", "notices": 1, "hold": true }));
    let mut client = wire::stream(&server, &with(ALICE, &call));
    server.reports.began("held");
    let (event, _) = wire::event(&mut client).unwrap();
    drop(client);
    let resume = Request::get().of(&sid).header("Last-Event-ID", &event);
    let batch = session(&server, ALICE, "2025-03-26");
    for request in [
        Request::legacy_act(&sid, 1, &json!({ "text": "x" })),
        Request::post(&ping(1)).of(&sid),
        Request::post(&common::notification("notifications/cancelled", &json!({ "requestId": 7 }))).of(&sid),
        Request::post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).of(&sid),
        Request::post(&format!("[{}]", ping(1))).header("Mcp-Session-Id", &batch),
        Request::get().of(&sid),
        resume.clone(),
        Request::delete().of(&sid),
        Request::delete().of(&batch),
    ] {
        assert_eq!(server.ask(&with(BOB, &request)).status, 404);
        assert_eq!(server.ask(&request).status, 401);
    }
    assert_eq!(server.reports.so_far(), [], "nothing of hers was cancelled");
    let mut resumed = wire::stream(&server, &with(ALICE, &resume));
    server.backend.release("held");
    while wire::message(&wire::event(&mut resumed).unwrap())["id"] != 7 {}
    assert_eq!(server.ask(&with(ALICE, &Request::delete().of(&batch))).status, 204);
    assert_eq!(server.ask(&with(ALICE, &Request::delete().of(&sid))).status, 204);
}

#[test]
fn another_callers_stream_of_the_older_transport_takes_no_message() {
    let server = server();
    let mut stream = server.connect();
    stream.send(&with(ALICE, &Request::get().with_target("/sse")).bytes(&server));
    assert_eq!(stream.head().status, 200);
    let endpoint = stream.block().unwrap();
    let target = endpoint.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let post = |body: &str| Request::post(body).with_target(&target);
    assert_eq!(server.ask(&with(BOB, &post(&ping(1)))).status, 404);
    assert_eq!(server.ask(&post(&ping(1))).status, 401);
    let initialize = common::initialize(&0.into(), "2024-11-05");
    assert_eq!(server.ask(&with(ALICE, &post(&initialize))).status, 202);
    assert_eq!(stream.event().unwrap()["id"], 0);
    // Each message on its own: the token that opened the stream says nothing of this one.
    let call = common::legacy(&1.into(), "tools/call", &json!({ "name": "mirrored", "arguments": {} }));
    assert_eq!(server.ask(&with(BOB, &post(&call))).status, 404);
    assert_eq!(server.reports.so_far(), []);
    assert_eq!(server.ask(&with(ALICE, &post(&call))).status, 202);
    assert_eq!(stream.event().unwrap()["id"], 1);
    server.reports.began("");

    let mut lacking = server.connect();
    lacking.send(&with(LOW, &Request::get().with_target("/sse")).bytes(&server));
    assert_eq!(lacking.head().status, 200);
    let endpoint = lacking.block().unwrap();
    let target = endpoint.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let answer = server.ask(&with(LOW, &Request::post(&call).with_target(&target)));
    let told = challenge(&server, Some(("insufficient_scope", "the token lacks a scope")), "use write");
    assert_eq!((answer.status, answer.header("www-authenticate")), (403, Some(&*told)));
    assert_eq!(server.reports.so_far(), []);
}

#[test]
fn a_question_that_one_caller_was_asked_is_answered_by_no_other() {
    let server = server();
    let ask = |extra: &Value| {
        let mut params = common::act(&json!({ "text": "who", "ask": true, "keep": true }));
        for (key, value) in extra.as_object().unwrap() {
            params[key] = value.clone();
        }
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = common::MODERN.into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": { "form": {} } });
        Request::post(&common::legacy(&1.into(), "tools/call", &params))
            .header("MCP-Protocol-Version", common::MODERN)
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", "act")
    };
    let asked = server.ask(&with(ALICE, &ask(&json!({})))).json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let state = asked["result"]["requestState"].clone();
    assert!(state.is_string(), "{asked}");
    let answer =
        json!({ "requestState": state, "inputResponses": { "answer": { "action": "accept", "content": {} } } });
    server.reports.began("who");
    assert_eq!(server.ask(&with(BOB, &ask(&answer))).code(), -32602);
    assert_eq!(server.reports.so_far(), []);
    assert_eq!(server.ask(&with(ALICE, &ask(&answer))).json()["result"]["resultType"], "complete");
}

#[test]
fn a_call_whose_scopes_are_lacking_is_refused_in_every_era_before_it_runs() {
    let server = server();
    let stateless = Server::with(Limits::default(), Options { legacy: LegacyMode::Stateless, ..options() });
    let sid = session(&server, LOW, NEWEST_LEGACY);
    let old = session(&server, LOW, "2025-03-26");
    let call = |id: u64| common::legacy(&id.into(), "tools/call", &json!({ "name": "mirrored", "arguments": {} }));
    let act = common::legacy(&2.into(), "tools/call", &common::act(&json!({ "text": "beside" })));
    let batch = format!("[{act},{}]", call(3));
    for (server, request) in [
        (&server, modern_mirrored()),
        (&server, Request::post(&call(1)).of(&sid)),
        (&server, Request::post(&call(1)).of(&sid).header("Accept", "text/event-stream")),
        (&server, Request::post(&batch).header("Mcp-Session-Id", &old)),
        (&stateless, Request::post(&call(1))),
        (&stateless, Request::post(&batch)),
    ] {
        let answer = server.ask(&with(LOW, &request));
        let told = challenge(server, Some(("insufficient_scope", "the token lacks a scope")), "use write");
        assert_eq!((answer.status, answer.header("www-authenticate")), (403, Some(&*told)), "{answer:?}");
        assert_plain(&answer, "insufficient_scope");
        assert_eq!(server.reports.so_far(), [], "nothing ran");
    }
    // What takes no scope is served, and lists are whole.
    assert_eq!(server.ask(&with(LOW, &Request::modern_act(1, &json!({ "text": "x" })))).status, 200);
    let list = |token: &str| server.ask(&with(token, &Request::modern(1, "tools/list", &json!({})))).json();
    assert_eq!(list(LOW), list(ALICE));
    assert!(!list(LOW).to_string().contains("\"write\""), "scopes are not published");
    server.reports.began("x");
    // Who has all of them calls it; each request counts for itself.
    assert_eq!(server.ask(&with(ALICE, &modern_mirrored())).status, 200);
    let alices = session(&server, ALICE, NEWEST_LEGACY);
    assert_eq!(server.ask(&with(ALICE, &Request::post(&call(1)).of(&alices))).status, 200);
}

#[test]
fn nobody_is_asked_for_scopes_where_nobody_is_authorized() {
    let server = Server::new();
    assert_eq!(server.ask(&modern_mirrored()).status, 200);
    assert_eq!(server.ask(&with("x", &modern_mirrored())).status, 200);
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        assert_eq!(server.ask(&Request::new("GET", path)).status, 404);
    }
}

#[test]
fn the_metadata_is_for_everyone_at_both_places() {
    let server = server();
    let expected = json!({
        "resource": format!("http://{}/mcp", server.host()),
        "authorization_servers": ["https://auth.example"],
        "scopes_supported": ["use"],
        "bearer_methods_supported": ["header"],
    });
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        for origin in [EVIL, NAMED, "null"] {
            let answer = server.ask(&Request::new("GET", path).header("Origin", origin));
            assert_eq!((answer.status, answer.json()), (200, expected.clone()));
            let named = if origin == NAMED { NAMED } else { "*" };
            assert_eq!(answer.header("access-control-allow-origin"), Some(named));
            let preflight = server.ask(&Request::new("OPTIONS", path).header("Origin", origin));
            assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (204, Some(named)));
            assert!(preflight.header("access-control-allow-headers").unwrap().contains("MCP-Protocol-Version"));
        }
        assert_eq!(server.ask(&Request::new("GET", path).header("Host", "evil.example")).status, 403);
        assert_eq!(server.ask(&Request::new("DELETE", path)).status, 405);
    }
    assert_eq!(server.ask(&Request::new("GET", "/.well-known/oauth-protected-resource/sse")).status, 404);
}

#[test]
fn a_resource_behind_a_proxy_is_named_as_its_clients_have_it() {
    let auth = Auth {
        resource: Some("HTTPS://Tools.Example/team/mcp".to_owned()),
        authorization_servers: Vec::new(),
        scopes_supported: Vec::new(),
        ..auth()
    };
    let server = Server::with(Limits::default(), Options { auth: Some(auth), ..Options::default() });
    let answer = server.ask(&Request::get());
    let url = "https://tools.example/.well-known/oauth-protected-resource/team/mcp";
    assert_eq!(answer.header("www-authenticate"), Some(&*format!("Bearer resource_metadata=\"{url}\"")));
    let metadata = server.ask(&Request::new("GET", "/.well-known/oauth-protected-resource/team/mcp")).json();
    let expected = json!({ "resource": "https://tools.example/team/mcp", "bearer_methods_supported": ["header"] });
    assert_eq!(metadata, expected);
}

/// Cannot ask whoever knows.
struct Cut;

impl Authorize for Cut {
    fn authorize<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Authorized, Rejected>> {
        Box::pin(std::future::ready(Err(Rejected::Unavailable)))
    }
}

#[test]
fn a_token_that_cannot_be_judged_now_is_to_be_sent_again() {
    let auth = Auth { authorize: Arc::new(Cut), ..auth() };
    let server = Server::with(Limits::default(), Options { auth: Some(auth), ..Options::default() });
    let answer = server.ask(&with(ALICE, &Request::modern(1, "server/discover", &json!({}))));
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    assert!(answer.header("www-authenticate").is_none(), "the client must not throw its token away");
}

#[test]
fn what_one_caller_sees_is_cached_for_no_other() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let public = |auth: Option<Auth>| {
        let server = embed::Server::new("s", "1.0.0").cache(Duration::from_secs(60), CacheScope::Public);
        server.http(Options { auth, ..Options::default() }).ready().unwrap()
    };
    let open = || runtime.block_on(listen("127.0.0.1:0".parse().unwrap())).unwrap();
    for (auth, scope) in [(None, "public"), (Some(auth()), "private")] {
        let (ready, listener) = (public(auth), open());
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { ready.serve_listener(listener).await });
        let body = common::modern(&1.into(), "server/discover", &json!({}));
        let length = body.len();
        let mut client = Client::new(address);
        client.send(
            format!(
                "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {ALICE}\r\nContent-Type: application/json\r\n\
                 Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                 Mcp-Method: server/discover\r\nContent-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        assert_eq!(client.response().json()["result"]["cacheScope"], scope);
    }
    // An engine of somebody's own says what it likes, so it is not served at all.
    let options = Options { auth: Some(auth()), ..Options::default() };
    let served = runtime.block_on(http::serve(public(None).engine(), open(), options, std::future::pending()));
    assert!(matches!(served, Err(ServeError::SharedCache)));
    let options = Options { auth: Some(Auth { resource: Some("/mcp".to_owned()), ..auth() }), ..Options::default() };
    let served = runtime.block_on(http::serve(public(Some(auth())).engine(), open(), options, std::future::pending()));
    assert!(matches!(served, Err(ServeError::Resource { .. })));
}

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn no_token_is_logged_whether_it_is_good_or_not() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone());
    subscriber.try_init().unwrap();
    let server = server();
    let sid = session(&server, ALICE, NEWEST_LEGACY);
    for token in [ALICE, "bad-token-0123456789"] {
        for request in [Request::legacy_act(&sid, 1, &json!({ "text": "x" })), modern_mirrored()] {
            let answer = server.ask(&with(token, &request));
            assert_eq!(answer.status, if token == ALICE { 200 } else { 401 });
            server.ask(&request.with_target(&format!("/mcp?access_token={token}")));
        }
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("a request is not authorized"), "{text}");
    assert!(!text.contains("token-0123456789"), "{text}");
}
