//! Streams that a client lost and resumes: HTL-11, HTL-16, HTL-18, HTL-19, rows S8 and S15.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use twodoor::protocol::Limits;

use crate::common::{self, NEWEST_LEGACY, PATIENCE};
use crate::wire::{Client, Event, Request, Server, event, message, stream};

fn resume(server: &Server, session: &str, id: &str) -> Client {
    stream(server, &Request::get().of(session).header("Last-Event-ID", id))
}

fn refused(server: &Server, session: &str, id: &str) -> u16 {
    server.ask(&Request::get().of(session).header("Last-Event-ID", id)).status
}

/// A call that tells two notices and holds; its stream and the events so far.
fn holding(server: &Server, session: &str, id: i32, text: &str) -> (Client, Vec<Event>) {
    let arguments = json!({ "text": text, "notices": 2, "hold": true, "later": 1 });
    let mut client = stream(server, &Request::legacy_act(session, id, &arguments));
    server.reports.began(text);
    let mut events = Vec::new();
    while events.last().is_none_or(|event: &Event| event.1.is_empty() || message(event)["params"]["progress"] != 2) {
        events.push(event(&mut client).unwrap());
    }
    (client, events)
}

/// What comes up to the end of a stream.
fn rest(client: &mut Client) -> Vec<Event> {
    std::iter::from_fn(|| event(client)).collect()
}

#[test]
fn a_lost_stream_is_resumed_after_any_event_and_ends_with_its_answer() {
    let server = Server::new();
    for (revision, primed) in
        [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", false), (NEWEST_LEGACY, true)]
    {
        let session = server.session(revision);
        let (lost, before) = holding(&server, &session, 1, revision);
        assert_eq!(before.len(), if primed { 3 } else { 2 }, "{before:?}");
        assert_eq!(before[0].1.is_empty(), primed);
        drop(lost);
        for (index, (id, _)) in before.iter().enumerate() {
            let mut resumed = resume(&server, &session, id);
            for expected in &before[index + 1..] {
                assert_eq!(event(&mut resumed).as_ref(), Some(expected));
            }
        }
        let mut resumed = resume(&server, &session, &before[0].0);
        server.backend.release(revision);
        let after = rest(&mut resumed);
        assert_eq!(after[..before.len() - 1], before[1..]);
        assert_eq!(message(&after[before.len() - 1])["params"]["progress"], 3);
        let answer = message(after.last().unwrap());
        assert_eq!((&answer["id"], common::text_of(&answer)), (&json!(1), revision));
        let mut ids: Vec<&String> = before.iter().chain(&after[before.len() - 1..]).map(|(id, _)| id).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "each event has its own id");
        // The answer may be lost on its way too.
        assert_eq!(rest(&mut resume(&server, &session, &before[0].0)), after);
    }
}

#[test]
fn an_answer_to_a_client_that_is_gone_waits_for_it() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let (lost, before) = holding(&server, &session, 1, "call");
    drop(lost);
    server.backend.release("call");
    // Its id is free again once it was answered.
    let again = Request::legacy_act(&session, 1, &json!({ "text": "again" }));
    let began = Instant::now();
    while server.ask(&again).code() != 0 {
        assert!(began.elapsed() < PATIENCE);
    }
    let after = rest(&mut resume(&server, &session, &before.last().unwrap().0));
    assert_eq!(after.len(), 2);
    assert_eq!(common::text_of(&message(&after[1])), "call");
}

#[test]
fn resuming_a_stream_that_is_still_read_ends_the_older_reader() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let (mut old, before) = holding(&server, &session, 1, "call");
    let mut new = resume(&server, &session, &before.last().unwrap().0);
    assert_eq!(event(&mut old), None, "an orderly end");
    let mut newest = resume(&server, &session, &before.last().unwrap().0);
    assert_eq!(event(&mut new), None);
    server.backend.release("call");
    assert_eq!(common::text_of(&message(rest(&mut newest).last().unwrap())), "call");

    let mut listening = stream(&server, &Request::get().of(&session));
    let (id, data) = event(&mut listening).unwrap();
    assert_eq!(data, "");
    assert_eq!(server.ask(&Request::get().of(&session)).status, 409);
    let again = resume(&server, &session, &id);
    assert_eq!(event(&mut listening), None);
    assert_eq!(server.ask(&Request::get().of(&session)).status, 409, "it is read by the other now");
    drop(again);
}

#[test]
fn only_what_follows_on_the_same_stream_of_the_same_session_is_replayed() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let other = server.session(NEWEST_LEGACY);
    let (_first, one) = holding(&server, &session, 1, "one");
    let (_second, two) = holding(&server, &session, 2, "two");
    let (_third, foreign) = holding(&server, &other, 1, "foreign");
    let mut resumed = resume(&server, &session, &one[0].0);
    assert_eq!(event(&mut resumed).as_ref(), Some(&one[1]));
    assert_eq!(event(&mut resumed).as_ref(), Some(&one[2]));
    for text in ["two", "one", "foreign"] {
        server.backend.release(text);
    }
    let after = rest(&mut resumed);
    assert_eq!((after.len(), common::text_of(&message(&after[1]))), (2, "one"));
    let all = [&one[..], &two, &foreign].concat();
    assert!(after.iter().all(|event| !all.contains(event)));

    let sent = &two[0].0;
    let future = sent.replace("-0", "-9");
    let negative = sent.replace("-0", "--1");
    let large = sent.replace("-0", "-18446744073709551616");
    for id in [&foreign[0].0, &future, &negative, &large, "1", "garbage", &"x".repeat(8000)] {
        assert_eq!(refused(&server, &session, id), 400, "{id:.60}");
    }
    let twice = Request::get().of(&session).header("Last-Event-ID", sent).also("Last-Event-ID", sent);
    assert_eq!(server.ask(&twice).status, 400);
    assert_eq!(refused(&server, &"0".repeat(32), sent), 404);
    assert_eq!(server.ask(&Request::get().header("Last-Event-ID", sent)).status, 405);
    assert_eq!(server.ask(&Request::delete().of(&session)).status, 204);
    assert_eq!(refused(&server, &session, sent), 404);
}

#[test]
fn what_is_kept_is_bounded_and_what_is_forgotten_is_refused() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    let (lost, before) = holding(&server, &session, 1, "first");
    drop(lost);
    // Each of these streams has three events that are kept, its answer among them.
    for n in 0..86 {
        let arguments = json!({ "text": "more", "notices": 2 });
        let answer = server.ask(&Request::legacy_act(&session, 100 + n, &arguments));
        assert_eq!(answer.events().len(), 3);
        server.reports.began("more");
    }
    assert_eq!(refused(&server, &session, &before[0].0), 400);
    let mut resumed = resume(&server, &session, &before[2].0);
    server.backend.release("first");
    assert_eq!(common::text_of(&message(rest(&mut resumed).last().unwrap())), "first", "nothing after it is missing");

    let server = Server::with_limits(Limits { replay: 0, ..Limits::default() });
    let session = server.session(NEWEST_LEGACY);
    let (lost, before) = holding(&server, &session, 1, "call");
    drop(lost);
    assert_eq!(refused(&server, &session, &before[0].0), 400);
    let big = json!({ "text": "big", "notices": 1, "size": 2 * 1024 * 1024 });
    let answer = server.ask(&Request::legacy_act(&session, 2, &big));
    assert_eq!(common::text_of(&answer.events()[1]).len(), 2 * 1024 * 1024, "who is there hears it all the same");
}

#[test]
fn the_end_of_a_session_and_a_stop_end_resumed_streams_in_order() {
    let mut server = Server::with_limits(Limits { drain: Duration::from_secs(60), ..Limits::default() });
    let (session, other) = (server.session(NEWEST_LEGACY), server.session(NEWEST_LEGACY));
    let (lost, before) = holding(&server, &session, 1, "call");
    drop(lost);
    let mut resumed = resume(&server, &session, &before[2].0);
    assert_eq!(server.ask(&Request::delete().of(&session)).status, 204);
    server.reports.gone("call");
    assert_eq!(event(&mut resumed), None);

    let (lost, before) = holding(&server, &other, 1, "last");
    drop(lost);
    let mut resumed = resume(&server, &other, &before[2].0);
    server.begin_stop();
    server.backend.release("last");
    assert_eq!(common::text_of(&message(rest(&mut resumed).last().unwrap())), "last");
    server.wait_stopped();
}

#[test]
fn a_client_that_loses_its_stream_at_any_point_hears_everything_once() {
    let server = Server::new();
    let session = server.session(NEWEST_LEGACY);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (server, session) = (&server, &session);
            scope.spawn(move || {
                for round in 0..12 {
                    let text = format!("{n} {round}");
                    let arguments = json!({ "text": text, "notices": 2, "hold": true, "later": 2 });
                    let mut client = stream(server, &Request::legacy_act(session, text.as_str(), &arguments));
                    let mut heard = vec![event(&mut client).unwrap()];
                    // The call ends before the client is lost, after it, or when it has come back.
                    let releases = round % 3;
                    if releases == 0 {
                        server.backend.release(&text);
                    }
                    for _ in 0..round % 5 % 3 {
                        heard.push(event(&mut client).unwrap());
                    }
                    drop(client);
                    if releases == 1 {
                        server.backend.release(&text);
                    }
                    let mut client = resume(server, session, &heard.last().unwrap().0);
                    if releases == 2 {
                        server.backend.release(&text);
                    }
                    heard.extend(rest(&mut client));
                    let messages: Vec<Value> = heard[1..].iter().map(message).collect();
                    let progress: Vec<u64> = messages.iter().filter_map(|m| m["params"]["progress"].as_u64()).collect();
                    assert_eq!((heard[0].1.as_str(), &progress[..]), ("", &[1, 2, 3, 4][..]), "{heard:?}");
                    assert_eq!((messages.len(), common::text_of(&messages[4])), (5, text.as_str()));
                }
            });
        }
    });
}
