//! What a server asks and tells a legacy client on its own account: H25, HTL-09, HTL-11, HTL-16, MOD-22.

use std::time::Instant;

use serde_json::{Value, json};
use twodoor::protocol::Changed;

use crate::common::{self, NEWEST_LEGACY, PATIENCE};
use crate::wire::{Client, Request, Server, event, message, stream};

/// A session of a client that can be asked.
fn session(server: &Server, revision: &str) -> String {
    let client = json!({ "name": "raw", "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": { "elicitation": {} }, "clientInfo": client });
    let answer = server.ask(&Request::post(&common::legacy(&0.into(), "initialize", &params)));
    answer.header("mcp-session-id").expect("a session id").to_owned()
}

fn asking(session: &str, id: i32, text: &str) -> Request {
    Request::legacy_act(session, id, &json!({ "text": text, "ask": true }))
}

/// The next message of a stream.
#[track_caller]
fn next(client: &mut Client) -> Value {
    loop {
        let event = event(client).unwrap();
        if !event.1.is_empty() {
            return message(&event);
        }
    }
}

#[track_caller]
fn question(client: &mut Client, text: &str) -> Value {
    let asked = next(client);
    assert_eq!((&asked["method"], &asked["params"]["message"]), (&json!("elicitation/create"), &json!(text)));
    asked["id"].clone()
}

fn respond(server: &Server, session: &str, id: &Value) -> u16 {
    let body = json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } }).to_string();
    let answer = server.ask(&Request::post(&body).of(session));
    assert!(answer.status != 202 || answer.body.is_empty());
    answer.status
}

fn is_answer(answer: &Value, id: i32) {
    assert_eq!((&answer["id"], common::text_of(answer)), (&json!(id), r#"{"action":"decline"}"#));
}

#[test]
fn a_question_comes_on_the_stream_of_its_call_and_its_response_is_taken_once() {
    let server = Server::new();
    for revision in ["2025-06-18", NEWEST_LEGACY] {
        let (session, other) = (session(&server, revision), session(&server, revision));
        let mut alone = stream(&server, &Request::get().of(&session));
        let mut calls = [1, 2].map(|id| stream(&server, &asking(&session, id, "who?")));
        let ids = calls.each_mut().map(|call| question(call, "who?"));
        assert_ne!(ids[0], ids[1]);
        assert_eq!(respond(&server, &other, &ids[0]), 400, "the other session asked nothing");
        for wrong in [json!(99), json!("1"), json!(1.5)] {
            assert_eq!(respond(&server, &session, &wrong), 400, "{wrong}");
        }
        for (call, (id, asked)) in calls.iter_mut().zip([1, 2].into_iter().zip(&ids)) {
            assert_eq!(respond(&server, &session, asked), 202);
            is_answer(&next(call), id);
            assert!(event(call).is_none());
            assert_eq!(respond(&server, &session, asked), 400, "it was answered");
        }
        server.hub.published(Changed { tools: true, ..Changed::default() });
        assert_eq!(next(&mut alone)["method"], "notifications/tools/list_changed", "and nothing before it");
    }
}

#[test]
fn a_question_for_a_client_that_takes_only_json_waits_for_the_sessions_own_stream() {
    let server = Server::new();
    let session = session(&server, NEWEST_LEGACY);
    let mut call = server.connect();
    call.send(&asking(&session, 1, "early").header("Accept", "application/json").bytes(&server));
    server.reports.began("early");
    let mut alone = stream(&server, &Request::get().of(&session));
    let asked = question(&mut alone, "early");
    assert_eq!(respond(&server, &session, &asked), 202);
    is_answer(&call.response().json(), 1);
    server.reports.began("early");
    call.send(&asking(&session, 2, "late").header("Accept", "application/json").bytes(&server));
    let asked = question(&mut alone, "late");
    let cancel = common::notification("notifications/cancelled", &json!({ "requestId": 2 }));
    assert_eq!(server.ask(&Request::post(&cancel).of(&session)).status, 202);
    let withdrawn = next(&mut alone);
    assert_eq!((&withdrawn["method"], &withdrawn["params"]["requestId"]), (&json!("notifications/cancelled"), &asked));
    assert_eq!(call.response().status, 202, "nothing answers it any more");
    assert_eq!(respond(&server, &session, &asked), 400);
}

#[test]
fn a_question_reaches_a_client_that_lost_its_call_by_either_stream() {
    let server = Server::new();
    let session = session(&server, NEWEST_LEGACY);
    let arguments = json!({ "text": "lost", "notices": 1, "hold": true, "ask": true });
    let mut lost = stream(&server, &Request::legacy_act(&session, 1, &arguments));
    server.reports.began("lost");
    let (first, _) = event(&mut lost).unwrap();
    assert_eq!(next(&mut lost)["params"]["progress"], 1);
    drop(lost);
    server.backend.release("lost");
    // Whether or not the server knows by now that its client is gone.
    let mut resumed = stream(&server, &Request::get().of(&session).header("Last-Event-ID", &first));
    assert_eq!(next(&mut resumed)["params"]["progress"], 1);
    let asked = question(&mut resumed, "lost");
    drop(resumed);
    server.backend.release("lost");
    assert_eq!(respond(&server, &session, &asked), 202);
    let mut resumed = stream(&server, &Request::get().of(&session).header("Last-Event-ID", &first));
    while let Some(event) = event(&mut resumed) {
        let message = message(&event);
        if message.get("result").is_some() {
            is_answer(&message, 1);
        }
    }

    // One that never had a stream, and so has nothing to resume.
    let mut gone = server.connect();
    gone.send(&Request::legacy_act(&session, 2, &json!({ "text": "gone", "hold": true, "ask": true })).bytes(&server));
    server.reports.began("lost");
    server.reports.began("gone");
    drop(gone);
    // By the time this one is known to be gone, the server has seen the other go.
    let mut modern = server.connect();
    modern.send(&Request::modern_act(1, &json!({ "text": "modern", "hold": true })).bytes(&server));
    server.reports.began("modern");
    drop(modern);
    server.reports.gone("modern");
    let mut alone = stream(&server, &Request::get().of(&session));
    server.backend.release("gone");
    let asked = question(&mut alone, "gone");
    server.backend.release("gone");
    assert_eq!(respond(&server, &session, &asked), 202);
    let began = Instant::now();
    while server.ask(&Request::legacy_act(&session, 2, &json!({ "text": "again" }))).code() != 0 {
        assert!(began.elapsed() < PATIENCE);
    }
}

#[test]
fn a_stream_is_closed_before_its_answer_only_where_the_revision_has_it() {
    let server = Server::new();
    let arguments = json!({ "text": "slow", "detach": true, "hold": true, "later": 1 });
    let session = session(&server, NEWEST_LEGACY);
    let mut call = stream(&server, &Request::legacy_act(&session, 1, &arguments));
    server.reports.began("slow");
    let priming = call.block().unwrap();
    assert!(priming.starts_with("id: ") && priming.ends_with("\ndata: \n\n"), "{priming}");
    let last = call.block().unwrap();
    let lines: Vec<&str> = last.trim_end_matches('\n').split('\n').collect();
    assert_eq!(lines[1..], ["retry: 500", "data: "], "{last}");
    assert!(call.block().is_none(), "an orderly end");
    let id = lines[0].strip_prefix("id: ").unwrap();
    let mut resumed = stream(&server, &Request::get().of(&session).header("Last-Event-ID", id));
    server.backend.release("slow");
    assert_eq!(next(&mut resumed)["params"]["progress"], 1);
    assert_eq!(common::text_of(&next(&mut resumed)), "slow");
    assert!(event(&mut resumed).is_none());

    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let session = server.session(revision);
        let mut call = stream(
            &server,
            &Request::legacy_act(&session, 1, &json!({ "text": "old", "notices": 1, "detach": true, "hold": true })),
        );
        server.reports.began("old");
        assert!(!event(&mut call).unwrap().1.is_empty());
        server.backend.release("old");
        assert_eq!(common::text_of(&next(&mut call)), "old", "{revision}");
    }
    // Nor where a client takes only JSON, and could not come back.
    let mut json_only = server.connect();
    json_only.send(&Request::legacy_act(&session, 2, &arguments).header("Accept", "application/json").bytes(&server));
    server.reports.began("slow");
    server.backend.release("slow");
    assert_eq!(common::text_of(&json_only.response().json()), "slow");
}

#[test]
fn an_announcement_is_told_once_a_session_and_waits_for_its_stream() {
    let server = Server::new();
    let (early, late) = (server.session(NEWEST_LEGACY), server.session(NEWEST_LEGACY));
    for session in [&early, &late] {
        let initialized = common::notification("notifications/initialized", &json!({}));
        assert_eq!(server.ask(&Request::post(&initialized).of(session)).status, 202);
    }
    let mut listening = stream(&server, &Request::get().of(&early));
    let mut call =
        stream(&server, &Request::legacy_act(&early, 1, &json!({ "text": "call", "notices": 1, "hold": true })));
    assert_eq!(next(&mut call)["params"]["progress"], 1);
    server.hub.published(Changed { tools: true, prompts: true, ..Changed::default() });
    let mut waiting = stream(&server, &Request::get().of(&late));
    for client in [&mut listening, &mut waiting] {
        assert_eq!(next(client)["method"], "notifications/tools/list_changed");
    }
    server.backend.release("call");
    assert_eq!(common::text_of(&next(&mut call)), "call", "it is no news about this request");
}
