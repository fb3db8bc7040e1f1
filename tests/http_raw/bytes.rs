//! Bytes that no HTTP client sends: rows B1 to B4, B7 to B9, B12 and B16.

use serde_json::{Value, json};

use crate::common::{self, Report};
use crate::wire::{Client, Request, Server};

/// A modern call as a body, and the head of a request for it without its framing headers.
fn call(server: &Server) -> (String, String) {
    let body = common::modern(&1.into(), "tools/call", &common::act(&json!({ "text": "ran" })));
    let whole = Request::modern_act(1, &json!({ "text": "ran" })).without("Content-Length").bytes(server);
    let head = String::from_utf8(whole).unwrap().split("\r\n\r\n").next().unwrap().to_owned();
    (head, body)
}

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

/// Sends bytes; expects 400 and the end of the connection, with nothing after the answer.
#[track_caller]
fn refused(server: &Server, bytes: &[u8]) {
    let mut client = server.connect();
    client.send(bytes);
    let shown = String::from_utf8_lossy(bytes.get(..200.min(bytes.len())).unwrap());
    assert_eq!(client.response().status, 400, "{shown}");
    assert!(client.is_closed(), "{shown}");
    assert_eq!(server.reports.so_far(), [], "{shown}");
}

/// The same behind a request that is served, in one packet and in two.
#[track_caller]
fn refused_behind(server: &Server, bytes: &[u8]) {
    let good = Request::modern(9, "tools/list", &json!({})).bytes(server);
    let mut together = server.connect();
    together.send(&[&good, bytes].concat());
    let mut apart = server.connect();
    apart.send(&good);
    apart.send(bytes);
    for mut client in [together, apart] {
        assert_eq!(client.response().status, 200);
        assert_eq!(client.response().status, 400);
        assert!(client.is_closed());
        assert_eq!(server.reports.so_far(), []);
    }
}

#[test]
fn a_body_has_one_unambiguous_length() {
    let server = Server::new();
    let (head, body) = call(&server);
    let length = body.len();
    let both = chunked(&body);
    for framing in [
        format!("Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n{both}", both.len()),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {}\r\n\r\n{both}", both.len()),
        format!("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n{both}"),
        format!("Transfer-Encoding: chunked, identity\r\n\r\n{both}"),
        format!("Transfer-Encoding: gzip, chunked\r\n\r\n{both}"),
        format!("Transfer-Encoding: xchunked\r\n\r\n{both}"),
        format!("Transfer-Encoding : chunked\r\n\r\n{both}"),
        format!("Content-Length: {length}\r\nContent-Length: {length}\r\n\r\n{body}"),
        format!("Content-Length: {length}\r\nContent-Length: 5\r\n\r\n{body}"),
        format!("Content-Length: {length}, {length}\r\n\r\n{body}"),
        format!("Content-Length: +{length}\r\n\r\n{body}"),
        format!("Content-Length: 0x{length:x}\r\n\r\n{body}"),
        format!("Content-Length: -1\r\n\r\n{body}"),
        format!("Content-Length: {length}.0\r\n\r\n{body}"),
        format!("Content-Length: 99999999999999999999999\r\n\r\n{body}"),
        format!("Content-Length:\r\n\r\n{body}"),
    ] {
        refused(&server, format!("{head}\r\n{framing}").as_bytes());
        refused_behind(&server, format!("{head}\r\n{framing}").as_bytes());
    }
    let mut client = server.connect();
    client.send(format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\n{both}").as_bytes());
    assert_eq!(common::text_of(&client.response().json()), "ran");
    assert!(client.is_closed(), "where the body ends is not known to all");
}

#[test]
fn requests_in_one_packet_are_answered_in_turn() {
    let server = Server::new();
    let get = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.host());
    let act = |text: &str| Request::modern_act(1, &json!({ "text": text })).bytes(&server);
    let mut client = server.connect();
    client.send(&[get.as_bytes(), &act("a"), b"\r\n", &act("b"), get.as_bytes()].concat());
    assert_eq!(client.response().status, 200);
    assert_eq!(common::text_of(&client.response().json()), "a");
    assert_eq!(common::text_of(&client.response().json()), "b");
    assert_eq!(client.response().status, 200);
    client.send(&act("c"));
    assert_eq!(common::text_of(&client.response().json()), "c");
}

#[test]
fn a_chunk_is_framed_exactly() {
    let server = Server::new();
    let (head, body) = call(&server);
    let size = body.len();
    for chunks in [
        format!("{}\r\n{body}\r\n0\r\n\r\n", "f".repeat(20)),
        format!("{size:x};{}\r\n{body}\r\n0\r\n\r\n", "x".repeat(1024 * 1024)),
        format!("{size:x}\r\n{body}0\r\n\r\n"),
        format!("{size:x}\n{body}\n0\n\n"),
        format!("0x{size:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("-{size:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("{:x}\r\n{body}\r\n0\r\n\r\n", size + 3),
        format!("{size:x}\r\n{body}\r\nzz\r\n\r\n"),
        format!("\r\n{size:x}\r\n{body}\r\n0\r\n\r\n"),
    ] {
        let mut client = server.connect();
        client.try_send(format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}").as_bytes());
        // A chunk that is announced and not there may be waited for.
        client.finish_sending();
        let rest = String::from_utf8(client.rest()).unwrap();
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400 "), "{chunks:.60}: {rest}");
        assert_eq!(server.reports.so_far(), [], "{chunks:.60}");
    }
    assert_alive(&server);
}

#[test]
fn nothing_after_an_error_is_answered() {
    let server = Server::new();
    let (head, body) = call(&server);
    let good = String::from_utf8(Request::modern_act(2, &json!({ "text": "second" })).bytes(&server)).unwrap();
    let length = body.len();
    for first in [
        format!("{head}\r\nContent-Length: {length}\r\nTransfer-Encoding: chunked\r\n\r\n{}", chunked(&body)),
        format!("{head}\r\nContent-Length: x\r\n\r\n"),
        format!("{head}\r\nbad header\r\n\r\n"),
        format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        format!("POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: {length}\r\n\r\n{body}"),
        format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: text/plain\r\n\r\n", server.host()),
    ] {
        let mut client = server.connect();
        client.send(format!("{first}{good}").as_bytes());
        let rest = String::from_utf8(client.rest()).unwrap();
        assert!(rest.matches("HTTP/1.1 ").count() <= 1, "{first}: {rest}");
        assert!(!rest.contains("second"), "{first}: {rest}");
        assert_eq!(server.reports.so_far(), [], "{first}");
    }
}

#[test]
fn heads_are_bounded_and_strict() {
    let server = Server::new();
    let host = server.host();
    let get = |headers: &str| format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
    let many = |count: usize| (0..count).map(|n| format!("X-{n}: y\r\n")).collect::<String>();
    // The Host is one of them.
    for (name, bytes, expected) in [
        ("64 headers", get(&many(63)), 200),
        ("65 headers", get(&many(64)), 431),
        ("one header of 15 KiB", get(&format!("X: {}\r\n", "y".repeat(15 * 1024))), 200),
        ("16 KiB and more", get(&format!("X: {}\r\n", "y".repeat(16 * 1024 + 1))), 431),
        ("16 KiB in many", get(&format!("X-A: {0}\r\nX-B: {0}\r\n", "y".repeat(8 * 1024))), 431),
        ("no colon", get("no colon here\r\n"), 400),
        ("no name", get(": y\r\n"), 400),
        ("a space before the colon", get("X : y\r\n"), 400),
        ("a folded line", get("X: y\r\n z\r\n"), 400),
        ("NUL", get("X: a\0b\r\n"), 400),
        ("a control character", get("X: a\u{1}b\r\n"), 400),
        ("a bare CR", get("X: a\rY: b\r\n"), 400),
        ("a bare LF", get("X: a\nY: b\r\n"), 400),
        ("bare LFs alone", format!("GET /healthz HTTP/1.1\nHost: {host}\n\n"), 400),
        ("no version", format!("GET /healthz\r\nHost: {host}\r\n\r\n"), 400),
        ("another version", format!("GET /healthz HTTP/1.2\r\nHost: {host}\r\n\r\n"), 400),
        ("a long target", format!("GET /{} HTTP/1.1\r\nHost: {host}\r\n\r\n", "x".repeat(15 * 1024)), 404),
    ] {
        let mut client = server.connect();
        client.send(bytes.as_bytes());
        assert_eq!(client.response().status, expected, "{name}");
    }
    assert_alive(&server);
}

#[test]
fn a_body_over_the_limit_is_refused_at_once() {
    let limits = twodoor::protocol::Limits { message: 1000, ..Default::default() };
    let server = Server::with_limits(limits);
    let pad = |length: usize| {
        let body = common::modern(&1.into(), "tools/list", &json!({}));
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    let post = |length: usize| {
        Request::post(&pad(length)).header("MCP-Protocol-Version", common::MODERN).header("Mcp-Method", "tools/list")
    };
    for length in [999, 1000] {
        assert_eq!(server.ask(&post(length)).status, 200, "{length}");
    }
    assert_eq!(server.ask(&post(1001)).status, 413);
    // Nothing of the body is sent: whoever waited for it would not answer.
    let huge = Request::post("").header("Content-Length", "10737418240");
    let mut client = server.connect();
    client.send(&huge.bytes(&server));
    assert_eq!(client.response().status, 413);
    assert!(client.is_closed());

    let head =
        String::from_utf8(post(999).without("Content-Length").header("Transfer-Encoding", "chunked").bytes(&server));
    let head = head.unwrap().split("\r\n\r\n").next().unwrap().to_owned();
    let in_pieces = |length: usize| {
        let body = pad(length);
        let pieces: String = body
            .as_bytes()
            .chunks(100)
            .map(|c| format!("{:x}\r\n{}\r\n", c.len(), std::str::from_utf8(c).unwrap()))
            .collect();
        format!("{head}\r\n\r\n{pieces}")
    };
    let mut client = server.connect();
    client.send(format!("{}0\r\n\r\n", in_pieces(1000)).as_bytes());
    assert_eq!(client.response().status, 200);
    let mut client = server.connect();
    // The last chunk never comes.
    client.send(in_pieces(1001).as_bytes());
    assert_eq!(client.response().status, 413);
    assert!(client.is_closed());
}

#[test]
fn a_client_that_sends_its_whole_body_first_still_reads_why_it_was_refused() {
    let server = Server::with_limits(twodoor::protocol::Limits { message: 1000, ..Default::default() });
    for _ in 0..5 {
        let mut client = server.connect();
        client.send(&Request::post(&" ".repeat(16 * 1024 * 1024)).bytes(&server));
        assert_eq!(client.response().status, 413);
    }
}

#[test]
fn only_continue_can_be_expected_and_the_guard_comes_first() {
    let server = Server::new();
    let expecting = |request: Request, what: &str| request.header("Expect", what).bytes(&server);
    let act = || Request::modern_act(1, &json!({ "text": "ran" }));
    let mut client = server.connect();
    client.send(&expecting(act(), "200-maybe"));
    assert_eq!(client.response().status, 417);

    let (head, body) = call(&server);
    let head = format!("{head}\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut client = server.connect();
    client.send(head.replace(&server.host(), "evil.example").as_bytes());
    let rest = String::from_utf8(client.rest()).unwrap();
    assert!(rest.starts_with("HTTP/1.1 403 "), "no interim answer: {rest}");

    let mut client = server.connect();
    client.send(head.as_bytes());
    assert_eq!(client.line_now(), "HTTP/1.1 100 Continue");
    client.send(body.as_bytes());
    assert_eq!(common::text_of(&client.response().json()), "ran");
}

#[test]
fn other_protocols_are_refused_or_closed() {
    let server = Server::new();
    let tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03random-random-random-random-rand\x00\x00\x00\r\n\r\n";
    let random: Vec<u8> = (0..1024u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    for bytes in [
        &tls[..],
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        &random,
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
    ] {
        let mut client = server.connect();
        client.try_send(bytes);
        client.finish_sending();
        let rest = String::from_utf8(client.rest()).unwrap();
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400 "), "{rest}");
    }
    assert_alive(&server);
}

#[test]
fn a_head_may_come_in_any_pieces() {
    let server = Server::new();
    let bytes = Request::modern_act(7, &json!({ "text": "pieces" })).bytes(&server);
    let mut client = server.connect();
    for byte in &bytes {
        client.send(std::slice::from_ref(byte));
    }
    assert_eq!(client.response().json()["id"], 7);
    // Two requests in one write are answered in their order.
    let two: Vec<u8> = (1..=2).flat_map(|n| Request::modern_act(n, &json!({ "text": "t" })).bytes(&server)).collect();
    client.send(&two);
    assert_eq!((client.response().json()["id"].clone(), client.response().json()["id"].clone()), (1.into(), 2.into()));
}

fn assert_alive(server: &Server) {
    let mut client: Client = server.connect();
    client.send(&Request::modern_act(9, &json!({ "text": "alive" })).bytes(server));
    assert_eq!(client.response().json()["id"], Value::from(9));
    assert_eq!(server.reports.so_far(), [Report::Began("alive".to_owned())]);
}
