//! What is judged by the head alone, in tables.

use super::*;

const VERBS: &str = "GET, POST, DELETE";

/// The whole judgement, of somebody who is authorized.
fn judge(parts: &Parts, allowed: &Allowed, message: usize) -> Result<Passed, Refusal> {
    let passed = super::judge(parts, allowed)?;
    match passed {
        Passed::Entrance(Entrance::Post, _) => drop(judge_post(&parts.headers, message)?),
        Passed::Entrance(Entrance::SseMessage, _) => judge_sse_message(&parts.headers, message)?,
        _ => {}
    }
    Ok(passed)
}

fn place(suffix: &str, sse: bool) -> Place {
    Place { suffix: suffix.to_owned(), verbs: VERBS, sse }
}

fn allowed_at(places: Vec<Place>) -> Allowed {
    let address = SocketAddr::from(([127, 0, 0, 1], 7000));
    Allowed::on_loopback(address, &["mcp.example:443".to_owned()], &["http://localhost:6274".to_owned()], places)
}

fn allowed() -> Allowed {
    allowed_at(vec![place("", false)])
}

fn head(method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = hyper::Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn status(method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
    judge(&head(method, target, headers), &allowed(), 1000).map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
}

fn post(extra: &[(&str, &str)]) -> u16 {
    let mut headers = vec![("host", "localhost:7000"), ("content-type", "application/json")];
    headers.retain(|(name, _)| !extra.iter().any(|(n, _)| n == name));
    headers.extend(extra.iter().filter(|(_, v)| *v != "-").copied());
    status("POST", "/mcp", &headers)
}

#[test]
fn only_our_own_hosts_are_served() {
    for host in ["localhost:7000", "LOCALHOST:7000", "127.0.0.1:7000", "[::1]:7000", "mcp.example:443"] {
        assert_eq!(post(&[("host", host)]), 200, "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil",
        "localhost:80@evil",
        "0.0.0.0:7000",
        "[::]:7000",
        "127.1:7000",
        "2130706433:7000",
        "0x7f.1:7000",
        "127.0.0.2:7000",
        "localhost.:7000",
        "localhost:7001",
        "localhost",
        "localhost:07000",
    ] {
        assert_eq!(post(&[("host", host)]), 403, "{host}");
    }
    let long = "x".repeat(10_000);
    for host in ["", "local host:7000", "localhost:7000, evil", long.as_str(), "-"] {
        assert_eq!(post(&[("host", host)]), 400, "{host:.30}");
    }
    assert_eq!(status("POST", "/mcp", &[("host", "localhost:7000"), ("host", "localhost:7000")]), 400);
    assert_eq!(status("GET", "http://evil.example/mcp", &[("host", "localhost:7000")]), 400);
    assert_eq!(status("GET", "http://localhost:7000/mcp", &[("host", "localhost:7000")]), 200);
}

#[test]
fn a_listener_answers_at_the_address_that_it_is_bound_to() {
    for (bound, host, expected) in [
        ("127.0.0.2:7000", "127.0.0.2:7000", true),
        ("127.0.0.2:7000", "localhost:7000", true),
        ("127.0.0.2:7000", "127.0.0.3:7000", false),
        ("127.0.0.2:7000", "127.0.0.2", false),
        ("127.0.0.2:80", "127.0.0.2", true),
        ("127.0.0.2:80", "localhost", true),
        ("[::1]:7000", "[::1]:7000", true),
        ("0.0.0.0:7000", "0.0.0.0:7000", false),
        ("[::]:7000", "[::]:7000", false),
    ] {
        let allowed = Allowed::on_loopback(bound.parse().unwrap(), &[], &[], vec![place("", false)]);
        let judged = judge(&head("GET", "/healthz", &[("host", host)]), &allowed, 1000);
        assert_eq!(judged.is_ok(), expected, "{host} at {bound}");
    }
}

#[test]
fn a_forwarded_host_changes_nothing() {
    for name in ["x-forwarded-host", "forwarded", "x-original-url"] {
        assert_eq!(post(&[(name, "localhost:7000"), ("host", "evil.example")]), 403);
        assert_eq!(post(&[(name, "evil.example")]), 200);
    }
}

#[test]
fn an_origin_that_is_present_must_be_ours_or_named() {
    for origin in ["http://localhost:7000", "HTTP://LocalHost:7000", "http://[::1]:7000", "http://localhost:6274", "-"]
    {
        assert_eq!(post(&[("origin", origin)]), 200, "{origin}");
    }
    for origin in [
        "http://evil.example",
        "null",
        "",
        "file://",
        "chrome-extension://x",
        "http://localhost:7001",
        "https://localhost:7000",
        "http://localhost:7000.evil",
        "http://localhost:7000/",
        "http://localhost:7000/x",
        "http://a@localhost:7000",
        "http://localhost",
    ] {
        assert_eq!(post(&[("origin", origin)]), 403, "{origin}");
    }
    assert_eq!(post(&[("origin", "http://localhost:7000"), ("origin", "http://evil.example")]), 403);
    assert_eq!(post(&[("origin", "http://localhost:7000"), ("host", "evil.example")]), 403);
}

#[test]
fn a_page_of_another_site_is_refused_unless_its_origin_is_accepted() {
    let from = |site: &str, extra: &[(&str, &str)]| {
        let headers = [&[("host", "localhost:7000"), ("sec-fetch-site", site)], extra].concat();
        status("GET", "/healthz", &headers)
    };
    assert_eq!((from("same-origin", &[]), from("none", &[])), (200, 200));
    for site in ["cross-site", "same-site", "", "none, cross-site"] {
        assert_eq!(from(site, &[]), 403, "{site}");
        assert_eq!(from(site, &[("origin", "http://localhost:6274")]), 200, "{site}");
    }
}

#[test]
fn the_paths_of_the_older_transport_are_there_only_where_it_is_served() {
    let host = ("host", "localhost:7000");
    let json = ("content-type", "application/json");
    let foreign = ("origin", "http://evil.example");
    let table = [
        ("GET", "/sse", &[host][..], 200),
        ("GET", "/sse?x", &[host], 200),
        ("GET", "/sse/", &[host], 404),
        ("POST", "/sse", &[host, json], 405),
        ("GET", "/sse/message", &[host], 405),
        ("DELETE", "/sse/message", &[host], 405),
        ("POST", "/sse/message?session=x", &[host, json, ("accept", "text/html")], 200),
        ("POST", "/sse/message", &[host, ("content-type", "text/plain")], 415),
        ("POST", "/sse/message", &[host, json, ("content-length", "1001")], 413),
        ("POST", "/sse/message", &[host, json, foreign], 403),
        ("GET", "/sse", &[host, foreign], 403),
        ("GET", "/sse", &[("host", "evil.example")], 403),
    ];
    for (method, target, headers, expected) in table {
        let judged = judge(&head(method, target, headers), &allowed_at(vec![place("", true)]), 1000);
        assert_eq!(judged.map_or_else(|r| r.status.as_u16(), |_| 200), expected, "{method} {target} {headers:?}");
    }
    assert_eq!(status("GET", "/sse", &[host]), 404);
    assert_eq!(status("POST", "/sse/message?session=x", &[host, json]), 404);
    let preflight = [host, ("origin", "http://localhost:6274")];
    let judged = judge(&head("OPTIONS", "/sse", &preflight), &allowed_at(vec![place("", true)]), 1000);
    assert_eq!(judged, Ok(Passed::Preflight("GET")));
}

#[test]
fn the_guard_comes_before_path_and_verb() {
    for (method, target) in [("GET", "/healthz"), ("GET", "/"), ("PUT", "/mcp"), ("DELETE", "/mcp"), ("GET", "/mcp")] {
        assert_eq!(status(method, target, &[("host", "evil.example")]), 403);
        assert_eq!(status(method, target, &[("host", "localhost:7000"), ("origin", "null")]), 403);
    }
}

#[test]
fn paths_are_exact_and_queries_are_ignored() {
    let at = |target: &str| status("GET", target, &[("host", "localhost:7000")]);
    assert_eq!((at("/mcp"), at("/mcp?x=1"), at("/healthz")), (200, 200, 200));
    for target in ["/", "/mcp/", "/mcp/..", "//mcp", "/MCP", "/mcp%2f", "/health", "/metrics"] {
        assert_eq!(at(target), 404, "{target}");
    }
}

#[test]
fn each_surface_is_found_at_its_own_paths_and_nowhere_near_them() {
    let allowed =
        allowed_at(vec![place("", true), place("/ops", true), place("/ops@1", false), place("/message", true)]);
    let found =
        |method: &str, target: &str| match super::judge(&head(method, target, &[("host", "localhost:7000")]), &allowed)
        {
            Ok(Passed::Entrance(entrance, at)) => Ok((entrance, at)),
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err((refusal.status.as_u16(), refusal.allow)),
        };
    for (method, target, expected) in [
        ("POST", "/mcp", (Entrance::Post, 0)),
        ("POST", "/mcp/ops", (Entrance::Post, 1)),
        ("GET", "/mcp/ops?x=/mcp/ops@1", (Entrance::Get, 1)),
        ("DELETE", "/mcp/ops@1", (Entrance::Delete, 2)),
        ("GET", "/sse", (Entrance::SseStream, 0)),
        ("GET", "/sse/ops", (Entrance::SseStream, 1)),
        ("POST", "/sse/ops/message", (Entrance::SseMessage, 1)),
        ("POST", "/sse/message", (Entrance::SseMessage, 0)),
        ("GET", "/sse/message", (Entrance::SseStream, 3)),
        ("POST", "/sse/message/message", (Entrance::SseMessage, 3)),
    ] {
        assert_eq!(found(method, target), Ok(expected), "{method} {target}");
    }
    for target in [
        "/mcp/",
        "/mcp/op",
        "/mcp/opss",
        "/mcp/Ops",
        "/mcp/ops/",
        "/mcp/ops@",
        "/mcp/ops@2",
        "/mcp/ops%401",
        "/mcp/./ops",
        "/mcp//ops",
        "/mcp/ops/message",
        "/ops",
        "/mcpops",
        "/sse/ops@1",
        "/sse/ops@1/message",
        "/message",
    ] {
        assert_eq!(found("POST", target), Err((404, None)), "{target}");
    }
    assert_eq!(found("DELETE", "/sse/message"), Err((405, Some("GET, POST"))));
    assert_eq!(found("POST", "/sse/ops"), Err((405, Some("GET"))));
}

#[test]
fn other_verbs_are_refused_with_what_is_allowed() {
    for verb in ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW"] {
        let refusal = judge(&head(verb, "/mcp", &[("host", "localhost:7000")]), &allowed(), 1000).unwrap_err();
        assert_eq!((refusal.status.as_u16(), refusal.allow), (405, Some(VERBS)), "{verb}");
    }
    let preflight = [("host", "localhost:7000"), ("origin", "http://localhost:6274")];
    assert_eq!(judge(&head("OPTIONS", "/mcp", &preflight), &allowed(), 1000), Ok(Passed::Preflight(VERBS)));
    let own = [("host", "localhost:7000"), ("origin", "http://localhost:7000")];
    assert_eq!(status("OPTIONS", "/mcp", &own), 405);
}

#[test]
fn a_post_needs_json_an_acceptable_answer_and_a_size_within_the_limit() {
    for bad in [
        "-",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonp",
        "application/json-evil",
        "application/json, text/plain",
        "application/json; charset=utf-16",
    ] {
        assert_eq!(post(&[("content-type", bad)]), 415, "{bad}");
    }
    for good in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json;charset=\"UTF-8\"",
        "application/json; x=y",
    ] {
        assert_eq!(post(&[("content-type", good)]), 200, "{good}");
    }
    assert_eq!(post(&[("content-encoding", "gzip")]), 415);
    assert_eq!(post(&[("accept", "text/html")]), 406);
    assert_eq!(post(&[("expect", "200-maybe")]), 417);
    for (length, expected) in [("999", 200), ("1000", 200), ("1001", 413), ("10737418240", 413)] {
        assert_eq!(post(&[("content-length", length)]), expected, "{length}");
    }
}

#[test]
fn the_document_of_how_to_be_authorized_is_open_to_every_origin_of_our_hosts() {
    let allowed = allowed().with_metadata(vec![("/.well-known/x".to_owned(), 0)]);
    let evil = [("host", "localhost:7000"), ("origin", "http://evil.example"), ("sec-fetch-site", "cross-site")];
    let judged = |method: &str, headers: &[(&str, &str)]| {
        super::judge(&head(method, "/.well-known/x", headers), &allowed).map_err(|refusal| refusal.status.as_u16())
    };
    assert_eq!(judged("GET", &evil), Ok(Passed::Metadata(0)));
    assert_eq!(judged("OPTIONS", &evil), Ok(Passed::MetadataPreflight));
    assert_eq!(judged("POST", &evil), Err(405));
    assert_eq!(judged("GET", &[("host", "evil.example")]), Err(403));
    assert_eq!(status("GET", "/.well-known/x", &evil[..1]), 404, "there is none where nobody is authorized");
}
