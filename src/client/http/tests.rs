//! Answers over HTTP, good and bad, from a scripted listener on loopback.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use super::super::Hear;
use super::super::fake::{Asked, answer as answered, hasty, json_answer, listener, response};
use super::super::peer::{Peer, Target};
use super::*;

async fn peer(
    script: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static,
    options: &Options,
) -> (Peer, Arc<Mutex<Vec<Asked>>>) {
    let (target, log) = listener(script).await;
    (Peer::connect(&target, options).await.unwrap(), log)
}

async fn ask(peer: &Peer, method: &str) -> Result<RawJson, Problem> {
    let within = Duration::from_secs(20);
    peer.request(&Ask { method, params: Vec::new(), headers: Vec::new() }, within).await
}

async fn one(script: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Result<RawJson, Problem> {
    ask(&peer(script, &Options::default()).await.0, "x").await
}

fn stream(events: &str) -> Vec<u8> {
    response("200 OK", "content-type: Text/Event-Stream\r\n", events)
}

#[test]
fn urls_of_http_alone_are_taken_and_their_queries_are_not_shown() {
    let shown = |url: &str| HttpTarget::new(url, &[]).map(|target| target.shown());
    assert_eq!(shown("http://[::1]:8080/mcp?token=x").unwrap(), "http://[::1]:8080/mcp");
    assert_eq!(shown("http://localhost").unwrap(), "http://localhost/");
    assert_eq!(shown("https://localhost:443/mcp").unwrap(), "https://localhost/mcp");
    for (url, why) in [
        ("ftp://localhost/", "expected https://"),
        ("localhost:8080", "expected https://"),
        ("http://", "expected https://"),
        ("http://user:pw@localhost/", "user name"),
    ] {
        let problem = shown(url).unwrap_err().to_string();
        assert!(problem.contains(why), "{url}: {problem}");
    }
    assert!(HttpTarget::new("http://localhost", &[("a b".to_owned(), String::new())]).is_err());
    assert!(HttpTarget::new("http://localhost", &[("a".to_owned(), "b\r\nc: d".to_owned())]).is_err());
}

#[tokio::test]
async fn an_answer_comes_as_json_and_the_connection_is_used_again() {
    let (peer, log) = peer(|asked| json_answer(asked, r#"{"n":1.50}"#), &Options::default()).await;
    for _ in 0..3 {
        assert_eq!(ask(&peer, "x").await.unwrap().as_str(), r#"{"n":1.50}"#);
    }
    let log = log.lock().unwrap();
    assert!(log[0].head.starts_with("POST /mcp?key=secret HTTP/1.1"), "{}", log[0].head);
    assert_eq!(log[0].header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(log[0].header("content-type"), Some("application/json"));
    assert!(log[0].header("host").unwrap().starts_with("127.0.0.1:"));
}

#[tokio::test]
async fn an_answer_comes_as_an_event_after_comments_priming_events_and_notifications() {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(4);
    let hear = Some(Hear::new(move |told| sender.try_send(told).unwrap()));
    let options = Options { hear, ..Options::default() };
    let script = |asked: &Asked| {
        let text = answered(&asked.body, "{}").replace(",\"id\"", ",\r\ndata: \"id\"");
        let other = json!({ "jsonrpc": "2.0", "id": 99, "result": {} });
        stream(&format!(
            ": ping\r\n\r\nid: 1\r\ndata:\r\n\r\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}}\r\n\r\n\
             data: {other}\r\n\r\nevent: message\r\ndata: {text}\r\n\r\n"
        ))
    };
    let (peer, _) = peer(script, &options).await;
    assert_eq!(ask(&peer, "x").await.unwrap().as_str(), "{}");
    assert_eq!(&*receiver.recv().await.unwrap().method, "notifications/progress");
}

#[tokio::test]
async fn what_the_server_asks_on_a_stream_is_answered_by_a_post_of_its_own() {
    let script = |asked: &Asked| match asked.body.get("method") {
        Some(_) => stream(&format!(
            "data: {}\n\ndata: {}\n\n",
            json!({ "jsonrpc": "2.0", "id": "r", "method": "ping" }),
            answered(&asked.body, "{}")
        )),
        None => response("202 Accepted", "", ""),
    };
    let (peer, log) = peer(script, &Options::default()).await;
    assert!(ask(&peer, "x").await.is_ok());
    assert_eq!(log.lock().unwrap()[1].body, json!({ "jsonrpc": "2.0", "id": "r", "result": {} }));
}

#[tokio::test]
async fn a_stream_that_ends_early_or_grows_too_long_is_said_to() {
    let problem = one(|_| stream(": nothing\n\n")).await.unwrap_err();
    assert_eq!(problem.to_string(), "no answer to x: the connection ended: the event stream ended before the answer");
    let small = Options { answer_bytes: 100, ..Options::default() };
    let (peer, _) = peer(|_| stream(&format!("data: {}\n\n", "x".repeat(200))), &small).await;
    assert!(matches!(ask(&peer, "x").await, Err(Problem::TooLong { limit: 100, .. })));
}

#[tokio::test]
async fn a_long_body_is_not_read_whether_its_length_is_declared_or_not() {
    let small = Options { answer_bytes: 100, ..Options::default() };
    let json = "content-type: application/json\r\n";
    let (declared, _) = peer(move |_| response("200 OK", json, &"x".repeat(200)), &small).await;
    assert!(matches!(ask(&declared, "x").await, Err(Problem::TooLong { limit: 100, .. })));
    let chunks = format!("HTTP/1.1 200 OK\r\n{json}transfer-encoding: chunked\r\n\r\nc8\r\n{}\r\n", "x".repeat(200));
    let (chunked, _) = peer(move |_| chunks.clone().into_bytes(), &small).await;
    assert!(matches!(ask(&chunked, "x").await, Err(Problem::TooLong { limit: 100, .. })));
}

#[tokio::test]
async fn a_status_without_an_answer_is_told_with_the_beginning_of_its_body() {
    for status in ["400 Bad Request", "500 Internal Server Error", "404 Not Found"] {
        let problem = one(move |_| response(status, "content-type: text/html\r\n", "<h1>\u{1b}[2Jno</h1>")).await;
        let number = status.split(' ').next().unwrap();
        let text = format!("x was answered with HTTP status {number}: <h1>\\u{{1b}}[2Jno</h1>");
        assert_eq!(problem.unwrap_err().to_string(), text);
    }
    let wanted = one(|_| response("401 Unauthorized", "www-authenticate: Bearer scope=\"a\"\r\n", "")).await;
    assert!(wanted.unwrap_err().to_string().ends_with("401: Bearer scope=\"a\""));
}

#[tokio::test]
async fn an_error_status_with_a_json_rpc_error_is_that_error() {
    let error = |asked: &Asked| {
        let body = json!({"jsonrpc":"2.0","id":asked.body["id"],"error":{"code":-32601,"message":"m"}}).to_string();
        response("404 Not Found", "content-type: application/json\r\n", &body)
    };
    assert!(matches!(one(error).await, Err(Problem::Refused { code: -32601, .. })));
}

#[tokio::test]
async fn bodies_that_are_no_answer_are_told_apart() {
    let json = "content-type: application/json\r\n";
    let not_json = one(move |_| response("200 OK", json, "<html>")).await.unwrap_err();
    assert!(matches!(not_json, Problem::NotStrict { .. }), "{not_json}");
    let twice = one(move |asked| response("200 OK", json, &answered(&asked.body, r#"{"a":1,"a":2}"#))).await;
    assert!(matches!(twice, Err(Problem::NotStrict { .. })));
    let html = one(|_| response("200 OK", "content-type: text/html\r\n", "hi")).await.unwrap_err();
    assert_eq!(html.to_string(), "x was answered with text/html: expected application/json or text/event-stream");
    let other = one(move |_| response("200 OK", json, &answered(&json!({"id": 99}), "{}"))).await.unwrap_err();
    assert!(other.to_string().contains("holds no answer to this request"), "{other}");
    let nothing = one(|_| response("202 Accepted", "", "")).await.unwrap_err();
    assert!(nothing.to_string().contains("HTTP status 202 without content"), "{nothing}");
}

#[tokio::test]
async fn a_redirect_is_named_and_not_followed() {
    let (peer, log) =
        peer(|_| response("307 Temporary Redirect", "location: http://127.0.0.1:9/x\r\n", ""), &Options::default())
            .await;
    let problem = ask(&peer, "x").await.unwrap_err();
    assert!(problem.to_string().starts_with("x is redirected to http://127.0.0.1:9/x:"), "{problem}");
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn the_session_of_a_handshake_goes_with_what_follows_and_ends_with_the_door() {
    let script = |asked: &Asked| match asked.body["method"].as_str() {
        Some("initialize") => response(
            "200 OK",
            "content-type: application/json\r\nMcp-Session-Id: s-1\r\n",
            &answered(&asked.body, "{}"),
        ),
        Some("gone") => response("404 Not Found", "", ""),
        Some(_) => json_answer(asked, "{}"),
        None => response("204 No Content", "", ""),
    };
    let (peer, log) = peer(script, &Options::default()).await;
    ask(&peer, "initialize").await.unwrap();
    ask(&peer, "x").await.unwrap();
    assert!(matches!(ask(&peer, "gone").await, Err(Problem::SessionGone)));
    peer.close(vec![("mcp-protocol-version".to_owned(), "r".to_owned())]).await;
    let log = log.lock().unwrap();
    let sessions: Vec<_> = log.iter().map(|asked| (asked.verb(), asked.header("mcp-session-id"))).collect();
    assert_eq!(sessions, [("POST", None), ("POST", Some("s-1")), ("POST", Some("s-1")), ("DELETE", Some("s-1"))]);
    assert_eq!(log[3].header("mcp-protocol-version"), Some("r"));
}

#[tokio::test]
async fn a_session_id_that_is_not_visible_ascii_is_refused() {
    let script = |asked: &Asked| {
        let headers = "content-type: application/json\r\nmcp-session-id: a b\r\n";
        response("200 OK", headers, &answered(&asked.body, "{}"))
    };
    let (peer, _) = peer(script, &Options::default()).await;
    assert!(matches!(ask(&peer, "initialize").await, Err(Problem::Shape { .. })));
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_replaced_before_anything_is_sent() {
    let script = |asked: &Asked| {
        response("200 OK", "content-type: application/json\r\nconnection: close\r\n", &answered(&asked.body, "{}"))
    };
    let (peer, log) = peer(script, &Options::default()).await;
    for _ in 0..3 {
        ask(&peer, "x").await.unwrap();
    }
    assert_eq!(log.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn silence_and_a_closed_port_end_in_time() {
    let held = Arc::new(Notify::new());
    let target = {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let held = held.clone();
        tokio::spawn(async move {
            let _open = listener.accept().await;
            held.notified().await;
        });
        Target::Http(HttpTarget::new(&url, &[]).unwrap())
    };
    let silent = Peer::connect(&target, &hasty()).await.unwrap();
    let ask_it = Ask { method: "x", params: Vec::new(), headers: Vec::new() };
    assert!(matches!(silent.request(&ask_it, hasty().answer).await, Err(Problem::Time { .. })));
    held.notify_one();

    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let closed = Target::Http(HttpTarget::new(&format!("http://127.0.0.1:{port}/"), &[]).unwrap());
    let closed = Peer::connect(&closed, &hasty()).await.unwrap();
    let problem = ask(&closed, "x").await.unwrap_err();
    assert!(matches!(problem, Problem::Connect { .. }));
    assert!(
        problem.in_full().starts_with(&format!("cannot connect to http://127.0.0.1:{port}/: ")),
        "{}",
        problem.in_full()
    );
}
