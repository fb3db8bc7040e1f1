//! Slow, stalled and greedy peers: rows B5, B6, B9, B10, B13 and D2 with short limits.

use std::time::{Duration, Instant};

use serde_json::json;
use twodoor::protocol::Limits;

use crate::common::{self, NEWEST_LEGACY, PATIENCE};
use crate::wire::{Client, Request, Server};

fn list() -> Request {
    Request::modern(1, "tools/list", &json!({}))
}

/// The head of a request, and its body.
fn parts(server: &Server, request: &Request) -> (Vec<u8>, Vec<u8>) {
    let bytes = request.bytes(server);
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    (bytes[..end].to_vec(), bytes[end..].to_vec())
}

/// A request whose body is this long.
fn long(length: usize) -> Request {
    let body = common::modern(&1.into(), "tools/list", &json!({}));
    let padded = format!("{body}{}", " ".repeat(length - body.len()));
    Request::post(&padded).header("MCP-Protocol-Version", common::MODERN).header("Mcp-Method", "tools/list")
}

/// A client whose body has arrived but for its last byte, and that byte.
fn with_room(server: &Server, length: usize) -> (Client, Vec<u8>) {
    let (head, mut body) = parts(server, &long(length));
    let last = body.split_off(length - 1);
    let sent = [head, body].concat();
    let began = Instant::now();
    let mut client = server.connect();
    client.send(&sent);
    // Twice, since two that arrive together may refuse each other.
    while (0..2).any(|_| server.ask(&long(length)).status != 503) || client.has_answer() {
        // What asks may itself have kept the room from it.
        if client.has_answer() {
            client = server.connect();
            client.send(&sent);
        }
        assert!(began.elapsed() < PATIENCE);
    }
    (client, last)
}

#[track_caller]
fn until(server: &Server, status: u16, request: &Request) {
    let began = Instant::now();
    loop {
        let answer = server.ask(request);
        if answer.status == status {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "still {}", answer.status);
    }
}

#[test]
fn a_head_that_does_not_arrive_in_time_ends_the_connection() {
    let server = Server::with_limits(Limits { header_time: Duration::from_millis(500), ..Limits::default() });
    let mut nothing = server.connect();
    let mut half = server.connect();
    half.send(b"POST /mcp HTTP/1.1\r\nHost: loc");
    assert!(nothing.is_closed());
    assert!(half.is_closed());
    // A second request on a kept connection has no more time than the first.
    let mut second = server.connect();
    second.send(&list().bytes(&server));
    assert_eq!(second.response().status, 200);
    second.send(b"POST /mcp HT");
    assert!(second.is_closed());
    // Nor one that came with the request before it, or while that was served.
    let mut behind = server.connect();
    behind.send(&[list().bytes(&server), b"POST /mcp HT".to_vec()].concat());
    assert_eq!(behind.response().status, 200);
    assert!(behind.is_closed());
    let mut streaming = server.connect();
    streaming.send(&Request::modern_act(1, &json!({ "text": "s", "notices": 1, "hold": true })).bytes(&server));
    assert_eq!(streaming.head().status, 200);
    streaming.send(b"POST /mcp HT");
    std::thread::sleep(Duration::from_millis(50));
    server.backend.release("s");
    while streaming.block().is_some() {}
    assert!(streaming.is_closed());
    assert_eq!(server.ask(&list()).status, 200);
}

#[test]
fn bytes_that_drip_do_not_win_time_for_a_head() {
    let server = Server::with_limits(Limits { header_time: Duration::from_millis(300), ..Limits::default() });
    let began = Instant::now();
    let mut client = server.connect();
    client.send(b"GET /healthz HTTP/1.1\r\nX: ");
    // The pace is the peer's; that it ends is ours.
    while client.try_send(b"y") {
        std::thread::sleep(Duration::from_millis(10));
        assert!(began.elapsed() < PATIENCE);
    }
    assert!(client.is_closed());
}

#[test]
fn a_kept_connection_may_rest_longer_than_a_head_may_take() {
    let limits = Limits { header_time: Duration::from_millis(500), ..Limits::default() };
    let server = Server::with_limits(limits);
    let mut resting = server.connect();
    resting.send(&list().bytes(&server));
    assert_eq!(resting.response().status, 200);
    // When one that began later is given up, the other has rested for longer than a head may take.
    let mut half = server.connect();
    half.send(b"POST");
    assert!(half.is_closed());
    resting.send(&list().bytes(&server));
    assert_eq!(resting.response().status, 200);
    let mut streaming = server.connect();
    streaming.send(&Request::modern_act(1, &json!({ "text": "s", "notices": 1, "hold": true })).bytes(&server));
    assert_eq!(streaming.head().status, 200);
    let mut half = server.connect();
    half.send(b"POST");
    assert!(half.is_closed());
    server.backend.release("s");
    assert!(streaming.event().is_some());
    assert_eq!(common::text_of(&streaming.event().unwrap()), "s");
}

#[test]
fn a_connection_that_rests_too_long_is_closed() {
    let server = Server::with_limits(Limits { socket_idle: Duration::from_millis(500), ..Limits::default() });
    let mut client = server.connect();
    for _ in 0..3 {
        client.send(&list().bytes(&server));
        assert_eq!(client.response().status, 200);
    }
    assert!(client.is_closed());
}

#[test]
fn five_hundred_half_heads_are_reaped_while_others_are_served() {
    let server = Server::with_limits(Limits { header_time: Duration::from_millis(500), ..Limits::default() });
    let mut halves: Vec<Client> = (0..500).map(|_| server.connect()).collect();
    for half in &mut halves {
        half.try_send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    }
    for _ in 0..20 {
        assert_eq!(server.ask(&list()).status, 200);
    }
    for half in &mut halves {
        assert!(half.is_closed());
    }
}

#[test]
fn a_body_that_does_not_arrive_in_time_is_408_and_its_room_is_given_back() {
    let limits = Limits { body_time: Duration::from_millis(500), bodies: 8 * 1024, ..Limits::default() };
    let server = Server::with_limits(limits);
    for sent in [0, 1, 3000] {
        let (head, body) = parts(&server, &long(6000));
        let mut client = server.connect();
        client.send(&head);
        client.send(&body[..sent]);
        assert_eq!(client.response().status, 408, "{sent} bytes sent");
        assert!(client.is_closed());
        assert_eq!(server.ask(&long(6000)).status, 200);
    }
    let mut continued = server.connect();
    let (head, _) = parts(&server, &long(6000).header("Expect", "100-continue"));
    continued.send(&head);
    assert_eq!(continued.response().status, 408);
}

#[test]
fn a_body_slower_than_its_least_rate_is_408_before_its_time_is_over() {
    let server = Server::with_limits(Limits { body_time: Duration::from_secs(600), ..Limits::default() });
    let (head, body) = parts(&server, &long(600_000));
    let mut client = server.connect();
    client.send(&head);
    client.send(&body[..10]);
    assert_eq!(client.response().status, 408);
}

#[test]
fn a_body_that_stops_half_way_gives_its_room_back_when_its_client_goes() {
    let server = Server::with_limits(Limits { bodies: 8 * 1024, ..Limits::default() });
    let (client, _) = with_room(&server, 6000);
    drop(client);
    until(&server, 200, &long(6000));
}

#[test]
fn bodies_that_are_announced_and_not_sent_take_no_room() {
    let server = Server::with_limits(Limits { bodies: 8 * 1024, ..Limits::default() });
    let mut announcing: Vec<Client> = (0..16).map(|_| server.connect()).collect();
    for client in &mut announcing {
        let (head, _) = parts(&server, &long(8000).header("Expect", "100-continue"));
        client.send(&head);
        assert_eq!(client.line_now(), "HTTP/1.1 100 Continue");
    }
    assert_eq!(server.ask(&long(8000)).status, 200);
}

#[test]
fn bodies_beyond_the_shared_room_are_503_and_the_room_is_given_back() {
    let server = Server::with_limits(Limits { bodies: 8 * 1024, ..Limits::default() });
    let (mut first, last) = with_room(&server, 6000);
    let refused = server.ask(&long(6000));
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    // Small ones find room; in pieces too, and those that grow too large do not.
    assert_eq!(server.ask(&list()).status, 200);
    let chunked = |length: usize| {
        let request = long(length).without("Content-Length").header("Transfer-Encoding", "chunked");
        let (head, body) = parts(&server, &request);
        let pieces = body.chunks(100).map(|c| format!("{:x}\r\n{}\r\n", c.len(), std::str::from_utf8(c).unwrap()));
        let bytes = [head, format!("{}0\r\n\r\n", pieces.collect::<String>()).into_bytes()].concat();
        let mut client = server.connect();
        client.send(&bytes);
        client.response().status
    };
    assert_eq!((chunked(1000), chunked(6000)), (200, 503));
    first.send(&last);
    assert_eq!(first.response().status, 200);
    assert_eq!(server.ask(&long(6000)).status, 200);
    for _ in 0..20 {
        assert_eq!((chunked(6000), server.ask(&long(7000)).status), (200, 200), "nothing leaks");
    }
}

#[test]
fn a_running_calls_body_keeps_its_room_and_gives_it_back_at_its_end() {
    let server = Server::with_limits(Limits { bodies: 8 * 1024, ..Limits::default() });
    for notices in [0, 1] {
        let arguments = json!({ "text": "big", "hold": true, "notices": notices, "pad": "x".repeat(6000) });
        let mut client = server.connect();
        client.send(&Request::modern_act(1, &arguments).bytes(&server));
        server.reports.began("big");
        if notices > 0 {
            assert_eq!(client.head().status, 200);
            assert!(client.event().is_some());
        }
        assert_eq!(server.ask(&long(6000)).status, 503, "its arguments are still in memory");
        server.backend.release("big");
        match notices {
            0 => assert_eq!(common::text_of(&client.response().json()), "big"),
            _ => assert_eq!(common::text_of(&client.event().unwrap()), "big"),
        }
        until(&server, 200, &long(6000));
    }
}

#[test]
fn a_client_that_does_not_read_is_given_up() {
    // One connection only: another is served when the first is given up.
    let limits = Limits { stalled_write: Duration::from_millis(300), sockets: 1, ..Limits::default() };
    let server = Server::with_limits(limits);
    for notices in [0, 1] {
        let size = 32 * 1024 * 1024;
        let mut stalled = server.connect();
        stalled
            .send(&Request::modern_act(1, &json!({ "text": "big", "size": size, "notices": notices })).bytes(&server));
        server.reports.began("big");
        assert_eq!(server.ask(&list().header("Connection", "close")).status, 200);
        assert!(stalled.rest().len() < size, "the rest was dropped");
    }
}

#[test]
fn a_slow_client_that_reads_gets_all() {
    let server = Server::with_limits(Limits { stalled_write: Duration::from_secs(10), ..Limits::default() });
    let size = 8 * 1024 * 1024;
    let answer = server.ask(&Request::modern_act(1, &json!({ "text": "big", "size": size })));
    assert_eq!(common::text_of(&answer.json()).len(), size);
}

#[test]
fn calls_beyond_the_limits_are_answered_with_what_to_do() {
    let limits = Limits { calls_per_connection: 2, calls: 3, ..Limits::default() };
    let server = Server::with_limits(limits);
    let session = server.session(NEWEST_LEGACY);
    let hold = |text: &str| json!({ "text": text, "hold": true });
    let begin = |request: &Request, text: &str| {
        let mut client = server.connect();
        client.send(&request.bytes(&server));
        server.reports.began(text);
        client
    };
    let mut running = vec![
        begin(&Request::legacy_act(&session, 1, &hold("a")), "a"),
        begin(&Request::legacy_act(&session, 2, &hold("b")), "b"),
    ];
    let third = server.ask(&Request::legacy_act(&session, 3, &hold("c")));
    assert_eq!((third.status, third.json()["result"]["isError"].clone()), (200, true.into()), "{third:?}");
    running.push(begin(&Request::modern_act(1, &hold("d")), "d"));
    let fourth = server.ask(&Request::modern_act(1, &hold("e")));
    assert_eq!((fourth.status, fourth.json()["result"]["isError"].clone()), (200, true.into()), "{fourth:?}");
    for (text, client) in ["a", "b", "d"].iter().zip(&mut running) {
        server.backend.release(text);
        assert_eq!(common::text_of(&client.response().json()), *text);
    }
    assert_eq!(server.ask(&Request::modern_act(1, &json!({ "text": "f" }))).status, 200);
}
