//! Legacy sessions: rows S1 to S10, S14 and S15, and what HTL says of streams and endings.

use std::time::{Duration, Instant};

use serde_json::json;
use twodoor::protocol::Limits;

use crate::common::{self, NEWEST_LEGACY, PATIENCE, Report};
use crate::wire::{Client, Request, Server};

/// Asks until the answer has this status: for what another thread of the server is about to do.
#[track_caller]
fn until(server: &Server, status: u16, request: &Request) {
    let began = Instant::now();
    loop {
        let mut client = server.connect();
        client.send(&request.bytes(server));
        let answer = client.head().status;
        if answer == status {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "still {answer}");
    }
}

fn open(server: &Server, request: &Request) -> Client {
    let mut client = server.connect();
    client.send(&request.bytes(server));
    client
}

fn stream(server: &Server, session: &str) -> Client {
    let mut client = open(server, &Request::get().of(session));
    let head = client.head();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(head.header("cache-control"), Some("no-cache"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    client
}

fn hold(text: &str) -> serde_json::Value {
    json!({ "text": text, "hold": true })
}

#[test]
fn a_hundred_clients_with_the_same_id_get_their_own_answers() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    std::thread::scope(|scope| {
        for n in 0..100 {
            let (server, session) = (&server, &session);
            scope.spawn(move || {
                let mut client = server.connect();
                for round in 0..5 {
                    let text = format!("client {n} round {round}");
                    client.send(&Request::modern_act(0, &json!({ "text": text, "notices": round % 2 })).bytes(server));
                    let answer = client.response();
                    let message = match round % 2 {
                        0 => answer.json(),
                        _ => answer.events().pop().unwrap(),
                    };
                    assert_eq!((message["id"].clone(), common::text_of(&message)), (0.into(), text.as_str()));
                    // The same session for all, each with its own id.
                    let id = format!("{n}-{round}");
                    client.send(&Request::legacy_act(session, id.as_str(), &json!({ "text": text })).bytes(server));
                    let message = client.response().json();
                    assert_eq!((message["id"].clone(), common::text_of(&message)), (id.into(), text.as_str()));
                }
            });
        }
    });
}

#[test]
fn a_second_request_with_the_id_of_one_in_flight_is_refused_and_the_first_answers() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let mut first = open(&server, &Request::legacy_act(&session, 5, &hold("first")));
    server.reports.began("first");
    let answer = server.ask(&Request::legacy_act(&session, 5, &json!({ "text": "second" })));
    assert_eq!((answer.code(), answer.json()["id"].clone()), (-32600, 5.into()));
    let other_kind = server.ask(&Request::legacy_act(&session, "5", &json!({ "text": "text id" })));
    assert_eq!(common::text_of(&other_kind.json()), "text id");
    server.backend.release("first");
    assert_eq!(common::text_of(&first.response().json()), "first");
    let again = server.ask(&Request::legacy_act(&session, 5, &json!({ "text": "again" })));
    assert_eq!(common::text_of(&again.json()), "again");
}

#[test]
fn a_session_has_one_stream_and_its_place_is_free_when_the_client_is_gone() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let first = stream(&server, &session);
    let second = server.ask(&Request::get().of(&session));
    assert_eq!(second.status, 409);
    let another = server.session(NEWEST_LEGACY);
    drop(stream(&server, &another));
    assert_eq!(server.ask(&Request::get().of(&session)).status, 409, "the first lives");
    drop(first);
    until(&server, 200, &Request::get().of(&session));
}

#[test]
fn delete_ends_a_session_its_calls_and_its_streams() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let other = server.session(NEWEST_LEGACY);
    let mut listening = stream(&server, &session);
    let mut waiting = open(&server, &Request::legacy_act(&session, 1, &hold("call")));
    server.reports.began("call");
    let mut telling =
        open(&server, &Request::legacy_act(&session, 2, &json!({ "text": "told", "notices": 1, "hold": true })));
    server.reports.began("told");
    assert_eq!(telling.head().status, 200);
    assert_eq!(telling.event().unwrap()["method"], "notifications/progress");
    let mut kept = open(&server, &Request::legacy_act(&other, 1, &hold("kept")));
    server.reports.began("kept");

    assert_eq!(server.ask(&Request::delete().of(&session)).status, 204);
    let mut gone = [server.reports.next(), server.reports.next()];
    gone.sort_by_key(|report| format!("{report:?}"));
    assert_eq!(gone, [Report::Gone("call".to_owned()), Report::Gone("told".to_owned())]);
    assert!(listening.event().is_none(), "an orderly end");
    assert!(telling.event().is_none(), "an orderly end without an answer");
    let answer = waiting.response();
    assert!(!answer.text().contains("result"), "{answer:?}");
    for request in
        [Request::legacy(&session, 3, "ping", &json!({})), Request::get().of(&session), Request::delete().of(&session)]
    {
        assert_eq!(server.ask(&request).status, 404);
    }
    server.backend.release("kept");
    assert_eq!(common::text_of(&kept.response().json()), "kept");
}

#[test]
fn a_stranger_learns_nothing_of_a_session() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let unknown = "0".repeat(session.len());
    let mut near = session.clone();
    let last = near.pop();
    near.push(if last == Some('0') { '1' } else { '0' });
    for request in [
        |s: &str| Request::legacy(s, 1, "ping", &json!({})),
        |s: &str| Request::get().of(s),
        |s: &str| Request::delete().of(s),
    ] {
        let answers = [unknown.as_str(), &near, "x"].map(|id| server.ask(&request(id)));
        for answer in &answers {
            assert_eq!((answer.status, &answer.body), (404, &answers[0].body));
        }
    }
    assert_eq!(server.ask(&Request::legacy(&session, 1, "ping", &json!({}))).status, 200);
}

#[test]
fn a_malformed_session_id_is_400() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let long = "x".repeat(10 * 1024);
    for id in ["", "a b", "a\tb", "caf\u{e9}", &long] {
        for request in [Request::legacy(id, 1, "ping", &json!({})), Request::get().of(id), Request::delete().of(id)] {
            assert_eq!(server.ask(&request).status, 400, "{id:.20}");
        }
    }
    for request in
        [Request::legacy(&session, 1, "ping", &json!({})), Request::get().of(&session), Request::delete().of(&session)]
    {
        assert_eq!(server.ask(&request.also("Mcp-Session-Id", &session)).status, 400);
    }
    assert_eq!(server.ask(&Request::legacy(&session, 1, "ping", &json!({}))).status, 200);
}

#[test]
fn session_ids_are_different_and_of_128_bits() {
    let server = Server::new();
    let ids: std::collections::HashSet<String> = (0..200).map(|_| server.session(NEWEST_LEGACY)).collect();
    assert_eq!(ids.len(), 200);
    assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())));
}

#[test]
fn a_thousand_sessions_are_held_and_one_more_is_503() {
    let server = Server::with_limits(Limits { sessions: 1000, ..Limits::default() });
    let mut client = server.connect();
    let opening = Request::post(&common::initialize(&1.into(), NEWEST_LEGACY)).bytes(&server);
    let mut last = String::new();
    for _ in 0..1000 {
        client.send(&opening);
        let answer = client.response();
        assert_eq!(answer.status, 200);
        last = answer.header("mcp-session-id").unwrap().to_owned();
    }
    client.send(&opening);
    let answer = client.response();
    assert_eq!((answer.status, answer.header("mcp-session-id")), (503, None));
    assert!(answer.header("retry-after").is_some());
    assert_eq!(answer.json()["id"], 1);
    client.send(&Request::legacy(&last, 1, "ping", &json!({})).bytes(&server));
    assert_eq!(client.response().status, 200, "those that are open are served");
    assert_eq!(server.ask(&Request::modern(1, "tools/list", &json!({}))).status, 200);
    client.send(&Request::delete().of(&last).bytes(&server));
    assert_eq!(client.response().status, 204);
    client.send(&opening);
    assert_eq!(client.response().status, 200);
}

#[test]
fn a_session_that_nobody_uses_expires_and_one_in_use_does_not() {
    let limits = Limits { sessions: 3, session_idle: Duration::from_secs(1), ..Limits::default() };
    let server = Server::with_limits(limits);
    let unused = server.session(NEWEST_LEGACY);
    let (listened, calling) = (server.session(NEWEST_LEGACY), server.session(NEWEST_LEGACY));
    let mut listening = stream(&server, &listened);
    let mut call = open(&server, &Request::legacy_act(&calling, 1, &hold("long")));
    server.reports.began("long");
    // There is room again only when one has expired.
    until(&server, 200, &Request::post(&common::initialize(&1.into(), NEWEST_LEGACY)));
    assert_eq!(server.ask(&Request::legacy(&unused, 1, "ping", &json!({}))).status, 404);
    for session in [&listened, &calling] {
        assert_eq!(server.ask(&Request::legacy(session, 2, "ping", &json!({}))).status, 200);
    }
    server.backend.release("long");
    assert_eq!(common::text_of(&call.response().json()), "long");
    assert_eq!(server.ask(&Request::delete().of(&listened)).status, 204);
    assert!(listening.event().is_none());
}

#[test]
fn a_legacy_call_goes_on_when_its_client_is_gone_and_a_modern_one_is_cancelled() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let waiting = open(&server, &Request::legacy_act(&session, 5, &hold("legacy")));
    server.reports.began("legacy");
    drop(waiting);
    let mut streaming =
        open(&server, &Request::legacy_act(&session, 6, &json!({ "text": "stream", "notices": 1, "hold": true })));
    server.reports.began("stream");
    assert_eq!(streaming.head().status, 200);
    drop(streaming);
    // By the time these are known to be gone, the server has seen the others go.
    for arguments in [hold("modern"), json!({ "text": "modern", "notices": 1, "hold": true })] {
        let client = open(&server, &Request::modern_act(1, &arguments));
        server.reports.began("modern");
        drop(client);
        server.reports.gone("modern");
    }
    for (id, text) in [(5, "legacy"), (6, "stream")] {
        let answer = server.ask(&Request::legacy_act(&session, id, &json!({ "text": "same id" })));
        assert_eq!(answer.code(), -32600, "it still runs: {answer:?}");
        server.backend.release(text);
        let ended = Request::legacy_act(&session, id, &json!({ "text": "ended" }));
        let began = Instant::now();
        while server.ask(&ended).code() != 0 {
            assert!(began.elapsed() < PATIENCE);
        }
    }
    let gone = |report: &Report| matches!(report, Report::Gone(_));
    assert!(!server.reports.so_far().iter().any(gone));
}

#[test]
fn a_modern_client_that_goes_is_seen_whatever_it_sent_behind_its_request() {
    let server = Server::with_limits(Limits { keep_alive: Duration::from_millis(100), ..Limits::default() });
    let another = Request::modern(2, "tools/list", &json!({})).bytes(&server);
    for notices in [0, 1] {
        for behind in [&b"\r\n"[..], b"x", &another] {
            let call = Request::modern_act(1, &json!({ "text": "call", "notices": notices, "hold": true }));
            let mut client = server.connect();
            client.send(&[&call.bytes(&server), behind].concat());
            server.reports.began("call");
            if notices > 0 {
                assert_eq!(client.head().status, 200);
                assert!(client.event().is_some());
            }
            drop(client);
            server.reports.gone("call");
        }
    }
}

#[test]
fn a_legacy_call_is_cancelled_by_its_notification_alone() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let other = server.session(NEWEST_LEGACY);
    let mut call = open(&server, &Request::legacy_act(&session, 7, &hold("call")));
    server.reports.began("call");
    let cancel = |id: &serde_json::Value| {
        Request::post(&common::notification("notifications/cancelled", &json!({ "requestId": id })))
    };
    for wrong in [cancel(&"7".into()).of(&session), cancel(&8.into()).of(&session), cancel(&7.into()).of(&other)] {
        assert_eq!(server.ask(&wrong).status, 202);
    }
    assert!(server.reports.so_far().is_empty());
    assert_eq!(server.ask(&cancel(&7.into()).of(&session)).status, 202);
    server.reports.gone("call");
    let answer = call.response();
    assert!(!answer.text().contains("result"), "no answer after a cancellation: {answer:?}");
    assert_eq!(server.ask(&Request::legacy_act(&session, 7, &json!({ "text": "again" }))).code(), 0);
}
