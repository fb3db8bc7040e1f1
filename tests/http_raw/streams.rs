//! JSON or an event stream, and what comes on it.

use std::time::Duration;

use serde_json::{Value, json};
use twodoor::protocol::Limits;

use crate::common::{self, NEWEST_LEGACY, Report};
use crate::wire::{Request, Server};

/// The same call in both eras.
fn both(server: &Server, arguments: &Value) -> [Request; 2] {
    let session = server.session(NEWEST_LEGACY);
    [Request::modern_act(3, arguments), Request::legacy_act(&session, 3, arguments)]
}

fn is_progress(message: &Value, progress: u64) {
    assert_eq!(message["method"], "notifications/progress", "{message}");
    assert_eq!(message["params"]["progressToken"], "p");
    assert_eq!(message["params"]["progress"], progress);
    assert!(message.get("id").is_none());
}

#[test]
fn an_answer_without_notices_is_one_json_object() {
    let server = Server::new();
    for request in both(&server, &json!({ "text": "plain" })) {
        let answer = server.ask(&request);
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-length"), Some(answer.body.len().to_string().as_str()));
        assert_eq!((answer.json()["id"].clone(), common::text_of(&answer.json())), (3.into(), "plain"));
        assert!(answer.header("mcp-session-id").is_none());
    }
}

#[test]
fn a_notice_opens_a_stream_that_the_answer_ends() {
    let server = Server::new();
    for request in both(&server, &json!({ "text": "told", "notices": 2, "hold": true, "later": 1 })) {
        let mut client = server.connect();
        client.send(&request.bytes(&server));
        server.reports.began("told");
        let head = client.head();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!((head.header("cache-control"), head.header("x-accel-buffering")), (Some("no-cache"), Some("no")));
        is_progress(&client.event().unwrap(), 1);
        is_progress(&client.event().unwrap(), 2);
        server.backend.release("told");
        is_progress(&client.event().unwrap(), 3);
        let answer = client.event().unwrap();
        assert_eq!((answer["id"].clone(), common::text_of(&answer)), (3.into(), "told"));
        assert!(client.event().is_none());
        // The connection is whole.
        client.send(&Request::modern(4, "tools/list", &json!({})).bytes(&server));
        assert_eq!(client.response().json()["id"], 4);
    }
}

#[test]
fn an_event_is_a_message_event_of_one_line_with_an_id_in_a_session_alone() {
    let server = Server::new();
    for (request, in_session) in
        both(&server, &json!({ "text": "a\nb\r\nc\u{2028}d", "notices": 1 })).iter().zip([false, true])
    {
        let answer = server.ask(request);
        let mut events: Vec<&str> = answer.text().split_terminator("\n\n").filter(|e| !e.starts_with(':')).collect();
        if in_session {
            let mut priming = events.remove(0).split('\n');
            assert!(priming.next().unwrap().starts_with("id: "));
            assert_eq!((priming.next(), priming.next()), (Some("data: "), None));
        }
        for event in events {
            let mut lines = event.split('\n');
            assert!(!in_session || lines.next().unwrap().starts_with("id: "), "{event}");
            assert_eq!(lines.next(), Some("event: message"), "{event}");
            assert!(lines.next().unwrap().starts_with("data: {"), "{event}");
            assert_eq!(lines.next(), None);
        }
        assert_eq!(common::text_of(&answer.events()[1]), "a\nb\r\nc\u{2028}d");
    }
}

#[test]
fn a_client_that_takes_only_json_does_without_notices() {
    let server = Server::new();
    for request in both(&server, &json!({ "text": "json", "notices": 5, "hold": true, "later": 5 })) {
        let mut client = server.connect();
        client.send(&request.header("Accept", "application/json").bytes(&server));
        server.reports.began("json");
        server.backend.release("json");
        assert_eq!(common::text_of(&client.response().json()), "json");
    }
}

#[test]
fn a_client_that_takes_only_events_gets_a_stream_of_one() {
    let server = Server::new();
    for request in both(&server, &json!({ "text": "one" })) {
        let answer = server.ask(&request.header("Accept", "text/event-stream"));
        let events = answer.events();
        assert_eq!((answer.status, events.len(), common::text_of(&events[0])), (200, 1, "one"));
    }
}

#[test]
fn a_request_without_a_token_hears_no_progress() {
    let server = Server::new();
    let params = json!({ "name": "act", "arguments": { "text": "quiet", "notices": 3 } });
    assert_eq!(common::text_of(&server.ask(&Request::modern(1, "tools/call", &params)).json()), "quiet");
}

#[test]
fn a_flood_of_notices_is_thinned_and_keeps_the_newest() {
    let server = Server::new();
    let answer = server.ask(&Request::modern_act(1, &json!({ "text": "flood", "notices": 10_000 })));
    let mut events = answer.events();
    assert_eq!(common::text_of(&events.pop().unwrap()), "flood");
    let told: Vec<u64> = events.iter().map(|e| e["params"]["progress"].as_u64().unwrap()).collect();
    assert!(told.windows(2).all(|w| w[0] < w[1]), "{told:?}");
    // Ten at once, ten a second while the test machine works through them, and the last.
    assert!(told.len() < 1000, "{}", told.len());
    assert_eq!(told.last(), Some(&10_000));
}

#[test]
fn notices_of_one_call_go_to_its_own_stream() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let requests = [
        Request::legacy_act(&session, 1, &json!({ "text": "a", "notices": 1, "hold": true })),
        Request::legacy_act(&session, 2, &json!({ "text": "b", "hold": true })),
        Request::modern_act(1, &json!({ "text": "c", "hold": true })),
    ];
    let mut clients = requests.map(|request| {
        let mut client = server.connect();
        client.send(&request.bytes(&server));
        let Report::Began(_) = server.reports.next() else { panic!("a call began") };
        client
    });
    assert_eq!(clients[0].head().status, 200);
    is_progress(&clients[0].event().unwrap(), 1);
    for text in ["c", "b", "a"] {
        server.backend.release(text);
    }
    assert_eq!(common::text_of(&clients[0].event().unwrap()), "a");
    assert_eq!(common::text_of(&clients[1].response().json()), "b");
    assert_eq!(common::text_of(&clients[2].response().json()), "c");
}

#[test]
fn a_silent_stream_is_kept_alive_by_comments() {
    let server = Server::with_limits(Limits { keep_alive: Duration::from_millis(50), ..Limits::default() });
    let session = server.session(NEWEST_LEGACY);
    let mut listening = server.connect();
    listening.send(&Request::get().of(&session).bytes(&server));
    let mut calling = server.connect();
    calling.send(&Request::modern_act(1, &json!({ "text": "slow", "notices": 1, "hold": true })).bytes(&server));
    assert_eq!(calling.head().status, 200);
    is_progress(&calling.event().unwrap(), 1);
    assert_eq!(listening.head().status, 200);
    assert!(listening.block().unwrap().starts_with("id: "), "the first event of a stream of this revision");
    for client in [&mut listening, &mut calling] {
        for _ in 0..3 {
            assert!(client.block().unwrap().starts_with(':'));
        }
    }
    server.backend.release("slow");
    assert_eq!(common::text_of(&calling.event().unwrap()), "slow");
    assert!(calling.event().is_none());
}

#[test]
fn a_call_over_its_deadline_is_stopped_and_answered_as_a_failed_result() {
    let server = Server::new();
    let params = json!({ "name": "hasty", "arguments": { "text": "late", "hold": true } });
    let session = server.session(NEWEST_LEGACY);
    for request in [Request::modern(1, "tools/call", &params), Request::legacy(&session, 1, "tools/call", &params)] {
        let answer = server.ask(&request);
        assert_eq!((answer.status, answer.json()["result"]["isError"].clone()), (200, true.into()));
        server.reports.began("late");
        server.reports.gone("late");
    }
}

#[test]
fn a_panic_ends_its_call_alone_and_tells_an_incident_number() {
    let server = Server::new();
    let mut other = server.connect();
    other.send(&Request::modern_act(1, &json!({ "text": "other", "hold": true })).bytes(&server));
    server.reports.began("other");
    for request in both(&server, &json!({ "text": "p", "panic": true })) {
        let answer = server.ask(&request);
        assert_eq!(answer.verdict(), (200, -32603));
        assert!(!answer.text().contains("secret"), "{}", answer.text());
    }
    server.backend.release("other");
    assert_eq!(common::text_of(&other.response().json()), "other");
}
