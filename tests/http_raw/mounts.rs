//! What several surfaces on one listener share, and what keeps them from being served.

use std::time::Instant;

use serde_json::json;
use twodoor::protocol::{Limits, Offer};
use twodoor::transport::http::{self, Mount, Options};
use twodoor::transport::{Hub, ServeError};

use crate::common::{self, NEWEST_LEGACY, PATIENCE};
use crate::wire::{Request, Server};

/// A server of two surfaces with one backend.
fn two(limits: Limits, options: Options) -> Server {
    Server::several(Offer::Both, limits, options, |first| {
        vec![Mount { name: Some("b".to_owned()), engine: first.clone().with_hub(Hub::new()) }]
    })
}

fn initialize(path: &str) -> Request {
    Request::post(&common::initialize(&0.into(), NEWEST_LEGACY)).with_target(path)
}

#[test]
fn sessions_of_all_surfaces_and_transports_take_the_same_places() {
    let server = two(Limits { sessions: 2, ..Limits::default() }, Options { sse: true, ..Options::default() });
    let first = server.ask(&initialize("/mcp"));
    let second = server.ask(&initialize("/mcp/b"));
    assert_eq!((first.status, second.status), (200, 200));
    for path in ["/mcp", "/mcp/b"] {
        assert_eq!(server.ask(&initialize(path)).status, 503, "{path}");
    }
    let stream = Request::new("GET", "/sse/b").header("Accept", "text/event-stream");
    assert_eq!(server.ask(&stream).status, 503);
    let sid = second.header("mcp-session-id").unwrap();
    assert_eq!(server.ask(&Request::delete().of(sid)).status, 404);
    assert_eq!(server.ask(&Request::delete().of(sid).with_target("/mcp/b")).status, 204);
    assert_eq!(server.ask(&initialize("/mcp")).status, 200);
}

#[test]
fn an_event_of_one_surface_cannot_be_resumed_on_another() {
    let server = two(Limits::default(), Options::default());
    let ids = ["/mcp", "/mcp/b"].map(|path| {
        let opened = server.ask(&initialize(path));
        opened.header("mcp-session-id").unwrap().to_owned()
    });
    let resume = |path: &str, sid: &str, event: &str| {
        server.ask(&Request::get().of(sid).with_target(path).header("Last-Event-ID", event)).status
    };
    let mut stream = server.connect();
    stream.send(&Request::get().of(&ids[0]).bytes(&server));
    assert_eq!(stream.head().status, 200);
    // The first event of a stream is empty and has an id (2025-11-25 basic/transports, Sending Messages to the Server).
    let block = stream.block().unwrap();
    let event = block.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    assert_eq!(resume("/mcp/b", &ids[0], event), 404);
    assert_eq!(resume("/mcp/b", &ids[1], event), 400);
}

#[test]
fn a_stop_ends_the_streams_and_calls_of_every_surface() {
    let mut server = two(Limits::default(), Options::default());
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut streams = ["/mcp", "/mcp/b"].map(|path| {
        let mut client = server.connect();
        client.send(&Request::modern("l", "subscriptions/listen", &listen).with_target(path).bytes(&server));
        assert_eq!(client.head().status, 200);
        assert_eq!(client.event().unwrap()["method"], "notifications/subscriptions/acknowledged");
        client
    });
    let mut call = server.connect();
    let held = Request::modern_act(1, &json!({ "text": "held", "hold": true })).with_target("/mcp/b");
    call.send(&held.bytes(&server));
    server.reports.began("held");
    server.begin_stop();
    for stream in &mut streams {
        assert_eq!(stream.event().unwrap()["id"], "l");
    }
    server.backend.release("held");
    assert_eq!(common::text_of(&call.response().json()), "held");
    server.wait_stopped();
}

#[test]
fn calls_of_engines_that_stand_beside_one_another_are_counted_together() {
    let server = Server::several(Offer::Both, Limits { calls: 1, ..Limits::default() }, Options::default(), |first| {
        let (other, ..) = common::engine(Limits { calls: 1000, ..Limits::default() }, Offer::Both);
        vec![Mount { name: Some("b".to_owned()), engine: other.beside(first) }]
    });
    let mut held = server.connect();
    held.send(&Request::modern_act(1, &json!({ "text": "held", "hold": true })).bytes(&server));
    server.reports.began("held");
    let other = || server.ask(&Request::modern_act(1, &json!({ "text": "other" })).with_target("/mcp/b")).json();
    let refused = other();
    assert!(common::text_of(&refused).contains("limit of 1 calls in flight"), "{refused}");
    server.backend.release("held");
    assert_eq!(common::text_of(&held.response().json()), "held");
    // Its place is free a moment after its answer is.
    let latest = Instant::now() + PATIENCE;
    while common::text_of(&other()) != "other" {
        assert!(Instant::now() < latest, "the place of a call that ended is not free");
    }
}

#[test]
fn names_that_lead_nowhere_or_to_two_surfaces_are_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mount = |name: Option<&str>| {
        let (engine, ..) = common::engine(Limits::default(), Offer::Both);
        Mount { name: name.map(str::to_owned), engine }
    };
    let serve = |first: Option<&str>, others: &[Option<&str>]| {
        let listener = runtime.block_on(http::listen("127.0.0.1:0".parse().unwrap())).unwrap();
        let others = others.iter().map(|name| mount(*name)).collect();
        // One that would be served stops at once.
        runtime.block_on(http::serve_all(mount(first), others, listener, Options::default(), std::future::ready(())))
    };
    let long = "x".repeat(130);
    for bad in ["", ".", "..", "a/b", "a b", "a%20", "ä", "a?", "a#", &long] {
        assert!(matches!(serve(Some(bad), &[]), Err(ServeError::Path { .. })), "{bad}");
        assert!(matches!(serve(None, &[Some(bad)]), Err(ServeError::Path { .. })), "{bad}");
    }
    assert!(matches!(serve(Some("a"), &[Some("b"), Some("a")]), Err(ServeError::Path { name }) if name == "a"));
    assert!(matches!(serve(Some("a"), &[None]), Err(ServeError::Path { .. })));
    assert!(serve(Some("a"), &[Some("a@1"), Some("A"), Some("message"), Some("...")]).is_ok());
    assert!(serve(None, &[]).is_ok());
}
