//! HTTP+SSE: SSE-01 to SSE-05, HTC-02, and rows S1, S10, S11, S14 for it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use twodoor::protocol::{Limits, Offer};
use twodoor::transport::http::Options;

use crate::common::{self, NEWEST_LEGACY, PATIENCE, Report};
use crate::wire::{Client, Request, Server};

fn serving(limits: Limits) -> Server {
    Server::with(limits, Options { sse: true, ..Options::default() })
}

fn get() -> Request {
    Request::new("GET", "/sse").header("Accept", "text/event-stream")
}

/// An open stream, and where its messages go.
struct Lane {
    client: Client,
    target: String,
}

impl Lane {
    fn open(server: &Server) -> Self {
        let mut client = server.connect();
        client.send(&get().bytes(server));
        let head = client.head();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!(head.header("cache-control"), Some("no-cache"));
        let first = client.block().unwrap();
        let target = first.strip_prefix("event: endpoint\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        Self { client, target: target.unwrap_or_else(|| panic!("{first:?}")).to_owned() }
    }

    fn post(&self, body: &str) -> Request {
        Request::post(body).without("Accept").with_target(&self.target)
    }

    /// Sends a message that is accepted.
    #[track_caller]
    fn say(&self, server: &Server, body: &str) {
        let answer = server.ask(&self.post(body));
        assert_eq!((answer.status, answer.text()), (202, ""));
    }

    fn call(&self, server: &Server, id: impl Into<Value>, arguments: &Value) {
        self.say(server, &common::legacy(&id.into(), "tools/call", &common::act(arguments)));
    }

    /// What the server says next.
    #[track_caller]
    fn hear(&mut self) -> Value {
        self.client.event().unwrap()
    }

    fn initialize(&mut self, server: &Server, revision: &str) {
        self.say(server, &common::initialize(&0.into(), revision));
        assert_eq!(self.hear()["result"]["protocolVersion"], revision);
    }

    fn opened(server: &Server) -> Self {
        let mut lane = Self::open(server);
        lane.initialize(server, NEWEST_LEGACY);
        lane
    }
}

fn hold(text: &str) -> Value {
    json!({ "text": text, "hold": true })
}

#[test]
fn all_that_the_server_says_goes_by_the_stream_in_every_legacy_revision() {
    let server = serving(Limits::default());
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", NEWEST_LEGACY] {
        let mut lane = Lane::open(&server);
        lane.initialize(&server, revision);
        lane.say(&server, &common::notification("notifications/initialized", &json!({})));
        lane.call(&server, 1, &json!({ "text": revision, "notices": 1 }));
        let progress = lane.client.block().unwrap();
        let data = progress.strip_prefix("event: message\ndata: ").expect("no id: nothing is resumed here");
        assert_eq!(serde_json::from_str::<Value>(data).unwrap()["method"], "notifications/progress");
        let answer = lane.hear();
        assert_eq!((&answer["id"], common::text_of(&answer)), (&json!(1), revision));
        let version =
            lane.post(&common::legacy(&2.into(), "ping", &json!({}))).header("MCP-Protocol-Version", revision);
        assert_eq!(server.ask(&version).status, 202);
        assert_eq!(lane.hear(), json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
    }
}

#[test]
fn the_endpoint_is_a_path_with_a_token_of_128_bits_whatever_the_host_says() {
    let options = Options { sse: true, allow_hosts: vec!["proxy.example".to_owned()], ..Options::default() };
    let server = Server::with(Limits::default(), options);
    let mut seen = std::collections::HashSet::new();
    for host in [server.host(), "proxy.example".to_owned()] {
        let mut client = server.connect();
        client.send(&get().header("Host", &host).bytes(&server));
        assert_eq!(client.head().status, 200);
        let first = client.block().unwrap();
        let token = first.strip_prefix("event: endpoint\ndata: /sse/message?session=").unwrap().trim_end().to_owned();
        assert!(token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{token}");
        assert!(seen.insert(token));
    }
}

#[test]
fn an_unknown_token_is_404_and_tells_nothing() {
    let server = serving(Limits::default());
    let lane = Lane::opened(&server);
    let session = server.session(NEWEST_LEGACY);
    let token = lane.target.split_once('=').unwrap().1;
    let mut near = token.to_owned();
    let last = near.pop();
    near.push(if last == Some('0') { '1' } else { '0' });
    let ping = common::legacy(&1.into(), "ping", &json!({}));
    let mut bodies = Vec::new();
    for query in
        ["", "?", "?session=", &format!("?session={near}"), &format!("?session={session}"), &format!("?x={token}")]
    {
        let answer = server.ask(&Request::post(&ping).with_target(&format!("/sse/message{query}")));
        assert_eq!(answer.status, 404, "{query}");
        bodies.push(answer.body);
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_eq!(server.ask(&Request::post(&ping).of(token)).status, 404, "nor is it a session of the other transport");
    let target = lane.target.clone();
    lane.say(&server, &ping);
    drop(lane);
    let began = Instant::now();
    while server.ask(&Request::post(&ping).with_target(&target)).status != 404 {
        assert!(began.elapsed() < PATIENCE);
    }
}

#[test]
fn a_body_that_is_no_message_is_400_and_is_told_by_the_stream_where_its_id_is_known() {
    let server = serving(Limits::default());
    let mut lane = Lane::opened(&server);
    for (body, code) in [("{", -32700), ("3", -32600), (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600)] {
        let answer = server.ask(&lane.post(body));
        assert_eq!(answer.verdict(), (400, code));
        assert!(answer.json().get("id").is_none());
    }
    let answer = server.ask(&lane.post(r#"{"jsonrpc":"2.0","id":7,"method":5}"#));
    assert_eq!(answer.verdict(), (400, -32600));
    assert_eq!(lane.hear(), answer.json());
    lane.say(&server, &common::legacy(&8.into(), "no/such", &json!({})));
    assert_eq!(common::code_of(&lane.hear()), -32601, "an error about a message is no error of its POST");
}

#[test]
fn the_later_era_is_refused() {
    let server = serving(Limits::default());
    let mut lane = Lane::opened(&server);
    let answer = server.ask(&lane.post(&common::modern(&3.into(), "tools/list", &json!({}))));
    assert_eq!(answer.verdict(), (400, -32600));
    assert_eq!(lane.hear()["id"], 3);
    let params = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    assert_eq!(server.ask(&lane.post(&common::notification("notifications/cancelled", &params))).status, 400);
    let ping = lane.post(&common::legacy(&1.into(), "ping", &json!({})));
    for version in ["2026-07-28", "1999-01-01", ""] {
        assert_eq!(server.ask(&ping.clone().header("MCP-Protocol-Version", version)).status, 400, "{version}");
        assert_eq!(server.ask(&get().header("MCP-Protocol-Version", version)).status, 400, "{version}");
    }
    assert_eq!(server.ask(&ping).status, 202);
    assert_eq!(lane.hear()["id"], 1);
}

#[test]
fn the_end_of_the_stream_cancels_its_calls_and_no_others() {
    let server = serving(Limits { sessions: 2, ..Limits::default() });
    let lane = Lane::opened(&server);
    let mut other = Lane::opened(&server);
    lane.call(&server, 1, &hold("gone"));
    server.reports.began("gone");
    other.call(&server, 1, &hold("kept"));
    server.reports.began("kept");
    assert_eq!(server.ask(&get()).status, 503);
    drop(lane);
    server.reports.gone("gone");
    server.backend.release("kept");
    let answer = other.hear();
    assert_eq!((&answer["id"], common::text_of(&answer)), (&json!(1), "kept"));
    let began = Instant::now();
    loop {
        let mut client = server.connect();
        client.send(&get().bytes(&server));
        if client.head().status == 200 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "its place is free again");
    }
}

#[test]
fn both_transports_count_against_one_limit() {
    let server = serving(Limits { sessions: 2, ..Limits::default() });
    let session = server.session(NEWEST_LEGACY);
    let _lane = Lane::opened(&server);
    let opening = Request::post(&common::initialize(&1.into(), NEWEST_LEGACY));
    for request in [&get(), &opening] {
        let answer = server.ask(request);
        assert_eq!((answer.status, answer.header("retry-after").is_some()), (503, true));
    }
    assert_eq!(server.ask(&Request::delete().of(&session)).status, 204);
    Lane::opened(&server);
}

#[test]
fn a_call_is_cancelled_by_its_notification_and_is_not_answered() {
    let server = serving(Limits::default());
    let mut lane = Lane::opened(&server);
    lane.call(&server, 5, &hold("call"));
    server.reports.began("call");
    lane.say(&server, &common::notification("notifications/cancelled", &json!({ "requestId": 5 })));
    server.reports.gone("call");
    lane.say(&server, &common::legacy(&5.into(), "ping", &json!({})));
    assert_eq!(lane.hear(), json!({ "jsonrpc": "2.0", "id": 5, "result": {} }));
}

#[test]
fn streams_with_the_same_ids_hear_their_own_answers() {
    let server = serving(Limits::default());
    std::thread::scope(|scope| {
        for n in 0..20 {
            let server = &server;
            scope.spawn(move || {
                let mut lane = Lane::opened(server);
                for round in 0..5 {
                    let text = format!("{n} {round}");
                    lane.call(server, 0, &json!({ "text": text }));
                    let answer = lane.hear();
                    assert_eq!((&answer["id"], common::text_of(&answer)), (&json!(0), text.as_str()));
                }
            });
        }
    });
}

#[test]
fn a_silent_stream_is_kept_alive_by_comments() {
    let server = serving(Limits { keep_alive: Duration::from_millis(50), ..Limits::default() });
    let mut lane = Lane::open(&server);
    for _ in 0..3 {
        assert!(lane.client.block().unwrap().starts_with(':'));
    }
    lane.initialize(&server, NEWEST_LEGACY);
}

#[test]
fn the_guard_stands_before_both_paths() {
    let server = serving(Limits::default());
    let mut lane = Lane::opened(&server);
    let ping = lane.post(&common::legacy(&1.into(), "ping", &json!({})));
    for request in [&get(), &ping] {
        let of = |name: &str, value: &str| server.ask(&request.clone().header(name, value)).status;
        assert_eq!(of("Origin", "http://evil.example"), 403);
        assert_eq!(of("Origin", "null"), 403);
        assert_eq!(of("Host", "evil.example"), 403);
        assert_eq!(of("Sec-Fetch-Site", "cross-site"), 403);
    }
    assert_eq!(server.ask(&ping.clone().header("Origin", &format!("http://{}", server.host()))).status, 202);
    assert_eq!(lane.hear()["id"], 1);
    assert_eq!(server.ask(&ping.clone().header("Content-Type", "text/plain")).status, 415);
    assert_eq!(server.ask(&get().header("Accept", "application/json")).status, 406);
    let wrong = server.ask(&Request::new("POST", "/sse").header("Content-Length", "0"));
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET")));
    let wrong = server.ask(&Request::new("GET", &lane.target));
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
    assert_eq!(server.ask(&Request::get()).status, 405, "the endpoint itself opens no such stream");
}

#[test]
fn nothing_is_at_its_paths_unless_it_is_asked_for_and_legacy_clients_are_served() {
    let modern = Options { sse: true, ..Options::default() };
    for server in [Server::new(), Server::offering(Offer::ModernOnly, Limits::default(), modern)] {
        assert_eq!(server.ask(&get()).status, 404);
        let message = Request::post("{}").with_target("/sse/message?session=x");
        assert_eq!(server.ask(&message).status, 404);
    }
}

#[test]
fn a_peer_that_does_not_read_is_not_served_for_ever() {
    let server = serving(Limits::default());
    let lane = Lane::opened(&server);
    let mut client = server.connect();
    let arguments = json!({ "text": "big", "size": 1024 * 1024 });
    let call = lane.post(&common::legacy(&1.into(), "tools/call", &common::act(&arguments))).bytes(&server);
    let served = (0..200).take_while(|_| {
        client.send(&call);
        client.response().status == 202
    });
    let served = served.count();
    assert!((1..200).contains(&served), "{served}");
    assert_eq!(server.ask(&Request::modern(1, "tools/list", &json!({}))).status, 200);
}

#[test]
fn rubbish_without_end_ends_the_stream() {
    let server = serving(Limits::default());
    let mut lane = Lane::opened(&server);
    let bytes = lane.post(r#"{"jsonrpc":"2.0","id":7,"method":5}"#).bytes(&server);
    let mut client = server.connect();
    for _ in 0..1000 {
        client.send(&bytes);
        assert_eq!(client.response().status, 400);
    }
    while lane.client.event().is_some() {}
    Lane::opened(&server);
}

#[test]
fn a_stop_lets_the_calls_of_a_stream_end_and_then_the_stream() {
    let mut server = serving(Limits { drain: Duration::from_secs(60), ..Limits::default() });
    let mut idle = Lane::opened(&server);
    let mut lane = Lane::opened(&server);
    lane.call(&server, 1, &hold("call"));
    server.reports.began("call");
    server.begin_stop();
    assert!(idle.client.event().is_none(), "an orderly end");
    server.backend.release("call");
    assert_eq!(common::text_of(&lane.hear()), "call");
    assert!(lane.client.event().is_none());
    server.wait_stopped();

    let mut server = serving(Limits { drain: Duration::from_millis(100), ..Limits::default() });
    let mut lane = Lane::opened(&server);
    lane.call(&server, 1, &hold("long"));
    server.reports.began("long");
    server.begin_stop();
    assert_eq!(server.reports.next(), Report::Gone("long".to_owned()));
    server.wait_stopped();
    let rest = String::from_utf8(lane.client.rest()).unwrap();
    assert!(!rest.contains("result"), "{rest}");
}
