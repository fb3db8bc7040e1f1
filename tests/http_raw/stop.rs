//! A stop: what is in flight goes out, streams end, nothing new is taken, and it returns in time.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;
use twodoor::protocol::Limits;
use twodoor::transport::http::{LegacyMode, Options};

use crate::common::{self, NEWEST_LEGACY};
use crate::wire::{Client, Request, Server};

fn begin(server: &Server, request: &Request, text: &str) -> Client {
    let mut client = server.connect();
    client.send(&request.bytes(server));
    server.reports.began(text);
    client
}

fn hold(text: &str) -> serde_json::Value {
    json!({ "text": text, "hold": true })
}

#[test]
fn answers_in_flight_go_out_streams_end_and_nothing_new_is_taken() {
    let mut server = Server::with_limits(Limits { drain: Duration::from_secs(60), ..Limits::default() });
    let session = server.session(NEWEST_LEGACY);
    let mut listening = server.connect();
    listening.send(&Request::get().of(&session).bytes(&server));
    assert_eq!(listening.head().status, 200);
    let mut resting = server.connect();
    resting.send(&Request::modern(1, "tools/list", &json!({})).bytes(&server));
    assert_eq!(resting.response().status, 200);
    let mut modern = begin(&server, &Request::modern_act(1, &hold("modern")), "modern");
    let mut legacy = begin(&server, &Request::legacy_act(&session, 1, &hold("legacy")), "legacy");
    let told = json!({ "text": "told", "notices": 1, "hold": true });
    let mut telling = begin(&server, &Request::modern_act(2, &told), "told");
    assert_eq!(telling.head().status, 200);
    assert!(telling.event().is_some());

    server.begin_stop();
    assert!(listening.event().is_none(), "an orderly end");
    assert!(listening.is_closed());
    assert!(resting.is_closed());
    assert!(TcpStream::connect(server.address).is_err(), "the listener is closed");
    for text in ["modern", "legacy", "told"] {
        server.backend.release(text);
    }
    assert_eq!(common::text_of(&modern.response().json()), "modern");
    assert_eq!(common::text_of(&legacy.response().json()), "legacy");
    assert_eq!(common::text_of(&telling.event().unwrap()), "told");
    assert!(telling.event().is_none());
    for client in [&mut modern, &mut legacy, &mut telling] {
        assert!(client.is_closed());
    }
    server.wait_stopped();
}

#[test]
fn calls_that_do_not_end_in_the_drain_time_are_cancelled() {
    for legacy in [LegacyMode::Sessions, LegacyMode::Stateless] {
        let limits = Limits { drain: Duration::from_millis(100), ..Limits::default() };
        let mut server = Server::with(limits, Options { legacy, ..Options::default() });
        let mut clients = vec![begin(&server, &Request::modern_act(1, &hold("call")), "call")];
        clients.push(begin(
            &server,
            &Request::modern_act(1, &json!({ "text": "call", "notices": 1, "hold": true })),
            "call",
        ));
        let old = match legacy {
            LegacyMode::Sessions => Request::legacy_act(&server.session(NEWEST_LEGACY), 1, &hold("call")),
            _ => Request::post(&common::legacy(&1.into(), "tools/call", &common::act(&hold("call")))),
        };
        clients.push(begin(&server, &old, "call"));
        server.begin_stop();
        for _ in 0..3 {
            server.reports.gone("call");
        }
        server.wait_stopped();
        for client in &mut clients {
            let rest = String::from_utf8(client.rest()).unwrap();
            assert!(!rest.contains("result"), "{rest}");
        }
    }
}

#[test]
fn calls_whose_client_is_gone_are_cancelled_when_the_last_connection_has_ended() {
    for legacy in [LegacyMode::Sessions, LegacyMode::Stateless] {
        let limits = Limits { drain: Duration::from_secs(60), ..Limits::default() };
        let mut server = Server::with(limits, Options { legacy, ..Options::default() });
        let session = (legacy == LegacyMode::Sessions).then(|| server.session(NEWEST_LEGACY));
        for (id, notices) in [(1, 0), (2, 1)] {
            let arguments = json!({ "text": "call", "notices": notices, "hold": true });
            let request = match &session {
                Some(session) => Request::legacy_act(session, id, &arguments),
                None => Request::post(&common::legacy(&id.into(), "tools/call", &common::act(&arguments))),
            };
            drop(begin(&server, &request, "call"));
        }
        // By the time this one is known to be gone, the server has seen the others go.
        drop(begin(&server, &Request::modern_act(1, &hold("modern")), "modern"));
        server.reports.gone("modern");
        assert!(server.reports.so_far().is_empty(), "they go on");
        server.begin_stop();
        for _ in 0..2 {
            server.reports.gone("call");
        }
        server.wait_stopped();
    }
}

#[test]
fn a_stop_waits_neither_for_half_a_request_nor_for_a_client_that_does_not_read() {
    let mut server = Server::with_limits(Limits { drain: Duration::from_millis(100), ..Limits::default() });
    let mut half_head = server.connect();
    half_head.send(b"POST /mcp HTTP/1.1\r\n");
    let mut half_body = server.connect();
    let bytes = Request::modern(1, "tools/list", &json!({})).bytes(&server);
    half_body.send(&bytes[..bytes.len() - 1]);
    let mut stalled = server.connect();
    stalled.send(&Request::modern_act(1, &json!({ "text": "big", "size": 32 * 1024 * 1024 })).bytes(&server));
    server.reports.began("big");
    assert_eq!(server.ask(&Request::modern(1, "tools/list", &json!({}))).status, 200);
    server.begin_stop();
    server.wait_stopped();
    assert!(half_head.is_closed());
    let rest = String::from_utf8(half_body.rest()).unwrap();
    assert!(!rest.contains("result"), "{rest}");
    assert!(stalled.rest().len() < 32 * 1024 * 1024);
}

#[test]
fn an_idle_server_stops_at_once() {
    let mut server = Server::with_limits(Limits { drain: Duration::from_secs(60), ..Limits::default() });
    let session = server.session(NEWEST_LEGACY);
    assert_eq!(server.ask(&Request::legacy(&session, 1, "ping", &json!({}))).status, 200);
    server.begin_stop();
    server.wait_stopped();
}
