//! Who is answered, where, and in what kind: rows H1 to H26, H34 and H35 over a socket.

use serde_json::{Value, json};
use twodoor::protocol::{Limits, Offer};
use twodoor::transport::http::{LegacyMode, Options};

use crate::common::Report;
use crate::wire::{Request, Server};

const NAMED: &str = "http://localhost:6274";

fn act() -> Request {
    Request::modern_act(1, &json!({ "text": "ran" }))
}

fn with_named_origin() -> Server {
    let options = Options { allow_origins: vec![NAMED.to_owned()], ..Options::default() };
    Server::with(Limits::default(), options)
}

#[test]
fn a_foreign_host_is_refused_on_every_way_in_before_a_body_is_read() {
    let server = Server::new();
    let port = server.address.port();
    let hosts = [
        "evil.example".to_owned(),
        "localhost.evil.example".to_owned(),
        "127.0.0.1.evil.example".to_owned(),
        "127.0.0.1@evil".to_owned(),
        "localhost:80@evil".to_owned(),
        format!("0.0.0.0:{port}"),
        format!("[::]:{port}"),
        format!("127.1:{port}"),
        format!("2130706433:{port}"),
        format!("0x7f.1:{port}"),
        format!("127.0.0.2:{port}"),
        format!("localhost.:{port}"),
        format!("localhost:{}", port ^ 1),
        "localhost".to_owned(),
    ];
    for host in &hosts {
        // The body is announced and never sent: whoever waited for it would not answer.
        let mut post = Request::post("").header("Content-Length", "100").header("Host", host);
        for forwarded in ["X-Forwarded-Host", "X-Original-URL"] {
            post = post.header(forwarded, &server.host());
        }
        assert_eq!(server.ask(&post).status, 403, "POST {host}");
        for request in [Request::get(), Request::delete(), Request::new("GET", "/healthz"), Request::new("GET", "/")] {
            assert_eq!(server.ask(&request.header("Host", host)).status, 403, "{host}");
        }
    }
    assert!(server.reports.so_far().is_empty());
}

#[test]
fn our_own_hosts_are_served_in_any_case() {
    let server = Server::new();
    let port = server.address.port();
    for host in [format!("localhost:{port}"), format!("LOCALHOST:{port}"), format!("[::1]:{port}"), server.host()] {
        assert_eq!(server.ask(&act().header("Host", &host)).status, 200, "{host}");
    }
    for name in ["X-Forwarded-Host", "Forwarded", "X-Original-URL"] {
        assert_eq!(server.ask(&act().header(name, "evil.example")).status, 200, "{name}");
    }
}

#[test]
fn a_request_has_exactly_one_plain_host() {
    let server = Server::new();
    let host = server.host();
    let bad = [
        "GET /healthz HTTP/1.1\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.0\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nHost:\r\n\r\n".to_owned(),
        format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n"),
        "GET /healthz HTTP/1.1\r\nHost: local host\r\n\r\n".to_owned(),
        format!("GET /healthz HTTP/1.1\r\nHost: {host}\0\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", "x".repeat(10 * 1024)),
        format!("GET http://evil.example/healthz HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    ];
    for bytes in bad {
        let mut client = server.connect();
        client.send(bytes.as_bytes());
        assert_eq!(client.response().status, 400, "{bytes:.80}");
    }
    let mut client = server.connect();
    client.send(format!("GET http://{host}/healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    assert_eq!(client.response().status, 200);
}

#[test]
fn an_origin_that_is_neither_ours_nor_named_is_refused_on_every_verb() {
    let server = with_named_origin();
    let port = server.address.port();
    let foreign = [
        "http://evil.example".to_owned(),
        "null".to_owned(),
        String::new(),
        "file://".to_owned(),
        "chrome-extension://x".to_owned(),
        format!("http://localhost:{}", port ^ 1),
        format!("http://localhost:{port}.evil"),
        format!("http://localhost:{port}/"),
        format!("http://localhost:{port}/x"),
        format!("http://a@localhost:{port}"),
        format!("https://localhost:{port}"),
        format!("{NAMED}/"),
    ];
    for origin in &foreign {
        let requests = [
            act(),
            Request::get(),
            Request::delete(),
            Request::new("OPTIONS", "/mcp"),
            Request::new("GET", "/healthz"),
        ];
        for request in requests {
            let answer = server.ask(&request.header("Origin", origin));
            assert_eq!(answer.status, 403, "{origin}");
            assert!(answer.header("access-control-allow-origin").is_none(), "{origin}");
        }
    }
    let two = act().header("Origin", NAMED).also("Origin", "http://evil.example");
    assert_eq!(server.ask(&two).status, 403);
    assert_eq!(server.ask(&act().header("Origin", NAMED).header("Host", "evil.example")).status, 403);
    assert!(server.reports.so_far().is_empty());
    for origin in
        [format!("http://localhost:{port}"), format!("HTTP://LocalHost:{port}"), "HTTP://LOCALHOST:6274".into()]
    {
        assert_eq!(server.ask(&act().header("Origin", &origin)).status, 200, "{origin}");
    }
    assert_eq!(server.ask(&act()).status, 200);
}

#[test]
fn a_browsers_cross_site_get_is_refused_at_every_path() {
    let server = Server::new();
    for target in ["/mcp", "/healthz", "/", "/sse", "/metrics"] {
        for site in ["cross-site", "same-site"] {
            let status = server.ask(&Request::new("GET", target).header("Sec-Fetch-Site", site)).status;
            assert!(matches!(status, 403 | 405), "{target} {site}: {status}");
        }
    }
    for site in ["same-origin", "none"] {
        assert_eq!(server.ask(&Request::new("GET", "/healthz").header("Sec-Fetch-Site", site)).status, 200);
    }
    let named = with_named_origin();
    let cross = act().header("Sec-Fetch-Site", "cross-site");
    assert_eq!(named.ask(&cross.clone().header("Origin", NAMED)).status, 200, "that origin was named");
    assert_eq!(named.ask(&cross).status, 403);
}

#[test]
fn cross_origin_headers_go_to_named_origins_alone() {
    let server = with_named_origin();
    let preflight = Request::new("OPTIONS", "/mcp")
        .header("Origin", NAMED)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "content-type, mcp-param-region, x-evil");
    let answer = server.ask(&preflight);
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(answer.header("access-control-allow-origin"), Some(NAMED));
    let methods = answer.header("access-control-allow-methods").unwrap();
    assert!(["GET", "POST", "DELETE"].iter().all(|verb| methods.contains(verb)), "{methods}");
    let headers = answer.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
    for name in [
        "content-type",
        "accept",
        "authorization",
        "mcp-protocol-version",
        "mcp-session-id",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-param-region",
    ] {
        assert!(headers.contains(name), "{name} in {headers}");
    }
    assert!(!headers.contains("x-evil"));

    let answer = server.ask(&act().header("Origin", NAMED));
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some(NAMED)));
    let exposed = answer.header("access-control-expose-headers").unwrap().to_ascii_lowercase();
    assert!(exposed.contains("mcp-session-id") && exposed.contains("www-authenticate"), "{exposed}");
    assert_eq!(answer.header("vary").map(str::to_ascii_lowercase).as_deref(), Some("origin"));

    let own = format!("http://{}", server.host());
    for request in [act(), act().header("Origin", &own), Request::new("OPTIONS", "/mcp").header("Origin", &own)] {
        let answer = server.ask(&request);
        assert!(
            !answer.headers.iter().any(|(n, _)| n.to_ascii_lowercase().starts_with("access-control-")),
            "{answer:?}"
        );
    }
    let plain = Server::new();
    let answer = plain.ask(&Request::new("OPTIONS", "/mcp"));
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (405, None));
}

#[test]
fn a_body_is_json_in_utf_8_and_not_compressed() {
    let server = Server::new();
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "application/json-evil",
        "application/json, text/plain",
        "application/json; charset=utf-16",
        "",
    ] {
        assert_eq!(server.ask(&act().header("Content-Type", kind)).status, 415, "{kind}");
    }
    assert_eq!(server.ask(&act().without("Content-Type")).status, 415);
    assert_eq!(server.ask(&act().also("Content-Type", "text/plain")).status, 415);
    assert_eq!(server.ask(&act().header("Content-Encoding", "gzip")).status, 415);
    assert_eq!(server.ask(&act().header("Content-Encoding", "br, gzip")).status, 415);
    assert!(server.reports.so_far().is_empty());
    for kind in ["application/json; charset=utf-8", "APPLICATION/JSON", "application/json;charset=\"UTF-8\""] {
        assert_eq!(server.ask(&act().header("Content-Type", kind)).status, 200, "{kind}");
    }
}

#[test]
fn the_answers_kind_is_one_that_is_accepted() {
    let server = Server::new();
    let ask = |accept: Option<&str>, notices: u64| {
        let request = Request::modern_act(1, &json!({ "text": "t", "notices": notices }));
        let request = match accept {
            Some(accept) => request.header("Accept", accept),
            None => request.without("Accept"),
        };
        let answer = server.ask(&request);
        (answer.status, answer.header("content-type").map(str::to_owned))
    };
    let json = || (200, Some("application/json".to_owned()));
    let events = || (200, Some("text/event-stream".to_owned()));
    for both in [None, Some("*/*"), Some("application/json, text/event-stream"), Some("application/*;q=0.5, text/*")] {
        assert_eq!(ask(both, 0), json(), "{both:?}");
        assert_eq!(ask(both, 1), events(), "{both:?}");
    }
    for one in ["application/json", "text/event-stream;q=0, */*", "APPLICATION/JSON;q=0.1, text/html"] {
        assert_eq!(ask(Some(one), 1), json(), "{one}");
    }
    for one in ["text/event-stream", "application/json;q=0, */*;q=0.1"] {
        assert_eq!(ask(Some(one), 0), events(), "{one}");
    }
    let long = "text/html,".repeat(1000);
    for neither in ["text/html", "application/jsonp, text/event-streams", "*/*;q=0", "", &long] {
        assert_eq!(ask(Some(neither), 0).0, 406, "{neither:.40}");
    }
}

#[test]
fn nothing_is_upgraded_traced_or_tunnelled() {
    let server = Server::new();
    let websocket = Request::new("GET", "/mcp").header("Upgrade", "websocket").header("Connection", "Upgrade");
    let answer = server.ask(&websocket.header("Sec-WebSocket-Key", "x").header("Sec-WebSocket-Version", "13"));
    assert!((400..500).contains(&answer.status), "{answer:?}");
    let h2c =
        act().header("Upgrade", "h2c").header("Connection", "Upgrade, HTTP2-Settings").header("HTTP2-Settings", "");
    assert_eq!(server.ask(&h2c).status, 400);
    assert_eq!(server.ask(&Request::new("TRACE", "/mcp")).status, 405);
    let mut client = server.connect();
    client.send(format!("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", server.host()).as_bytes());
    let answer = client.response();
    assert!((400..500).contains(&answer.status), "{answer:?}");
    assert!(client.is_closed());
    assert!(server.reports.so_far().is_empty());
}

#[test]
fn only_the_exact_path_is_served_and_nothing_says_what_this_is() {
    let server = Server::new();
    for target in
        ["/", "/mcp/", "/mcp/..", "//mcp", "/MCP", "/mcp%2f", "/%6dcp", "/health", "/metrics", "/sse", "/messages"]
    {
        assert_eq!(server.ask(&act().with_target(target)).status, 404, "POST {target}");
        let answer = server.ask(&Request::new("GET", target));
        assert_eq!(answer.status, 404, "GET {target}");
        for word in ["wire", "1.0.0", "act", "twodoor", env!("CARGO_PKG_VERSION")] {
            assert!(!answer.text().contains(word), "{}", answer.text());
        }
    }
    assert!(server.reports.so_far().is_empty());
    assert_eq!(server.ask(&act().with_target("/mcp?x=1")).status, 200);
    let health = server.ask(&Request::new("GET", "/healthz"));
    assert_eq!((health.status, health.text()), (200, "\"ok\""));
    assert!(health.header("server").is_none());
}

#[test]
fn other_verbs_get_405_with_what_is_allowed() {
    let server = Server::new();
    for verb in ["PUT", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let answer = server.ask(&Request::new(verb, "/mcp"));
        assert_eq!(answer.status, 405, "{verb}");
        let mut allowed: Vec<&str> = answer.header("allow").unwrap().split(", ").collect();
        allowed.sort_unstable();
        assert_eq!(allowed, ["DELETE", "GET", "POST"], "{verb}");
    }
    for (name, offer, legacy) in [
        ("modern only", Offer::ModernOnly, LegacyMode::Sessions),
        ("modern only", Offer::ModernOnly, LegacyMode::Stateless),
        ("stateless", Offer::Both, LegacyMode::Stateless),
    ] {
        let server = Server::offering(offer, Limits::default(), Options { legacy, ..Options::default() });
        for request in [Request::get(), Request::delete(), Request::new("PUT", "/mcp")] {
            let answer = server.ask(&request);
            assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{name}");
        }
    }
}

#[test]
fn a_head_request_gets_no_body_and_leaves_the_connection_whole() {
    let server = Server::new();
    let mut client = server.connect();
    for (target, status) in [("/healthz", 200), ("/mcp", 405), ("/nothing", 404)] {
        client.send(&Request::new("HEAD", target).bytes(&server));
        assert_eq!(client.head().status, status, "{target}");
    }
    client.send(&act().bytes(&server));
    let answer = client.response();
    assert_eq!(answer.json()["id"], Value::from(1));
    assert_eq!(server.reports.so_far(), [Report::Began("ran".to_owned())]);
}
