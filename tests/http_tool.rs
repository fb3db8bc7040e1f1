//! HTTP requests as tools, against a listener on loopback that records what it is sent.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail by panicking")]

mod folder;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use folder::{Folder, load};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use twodoor::core::Router;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{
    Arguments, Caller, Catalog, ClientCapabilities, Content, Invocation, Invoke as _, Notice, Operation, Outcome,
    Principal, RawJson, Revision,
};

struct Peer;

impl Caller for Peer {
    fn notify(&self, _: Notice) {}
    fn is_gone(&self) -> bool {
        false
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// The requests that a listener was sent, whole.
type Log = Arc<Mutex<Vec<String>>>;

/// A listener that answers every request with this.
async fn listener(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> (u16, Log) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let log = Log::default();
    let kept = Arc::clone(&log);
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
            tokio::spawn(async move {
                let mut read = Vec::new();
                let mut buffer = vec![0; 64 * 1024];
                loop {
                    while !is_whole(&read) {
                        match stream.read(&mut buffer).await {
                            Ok(0) | Err(_) => return,
                            Ok(count) => read.extend_from_slice(&buffer[..count]),
                        }
                    }
                    let request = String::from_utf8(std::mem::take(&mut read)).unwrap();
                    let said = answer(&request);
                    kept.lock().unwrap().push(request);
                    if stream.write_all(&said).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (port, log)
}

fn is_whole(read: &[u8]) -> bool {
    let text = String::from_utf8_lossy(read);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    out.extend_from_slice(body);
    out
}

struct Served {
    router: Router,
    catalog: Arc<Catalog>,
    _folder: Folder,
}

/// A surface with one tool, `ask`.
fn served(name: &str, tool: &str) -> Served {
    let folder = Folder::new(&format!("http-{name}"));
    let yaml =
        format!("surface: s\nversion: 1.0.0\ntools:\n  ask:\n    description: Asks.\n    reversible: true\n{tool}");
    let loaded = load(&folder.file("surface.yaml", yaml));
    Served { router: Router::of(&loaded), catalog: Arc::new(Catalog::build(loaded.parts).unwrap()), _folder: folder }
}

impl Served {
    async fn ask(&self, arguments: &str) -> (bool, Content) {
        let raw = RawJson::new(Bytes::copy_from_slice(arguments.as_bytes()), &JsonLimits::default()).unwrap();
        let invocation = Invocation {
            operation: Operation::Call {
                tool: self.catalog.tool("ask").unwrap().name.clone(),
                arguments: Arguments::new(raw).unwrap(),
                task: None,
            },
            catalog: Arc::clone(&self.catalog),
            answers: Vec::new(),
            state: None,
            principal: Principal::LOCAL,
            revision: Revision::MODERN,
            client: ClientCapabilities::default(),
        };
        match self.router.invoke(Arc::new(invocation), Arc::new(Peer)).await {
            Outcome::Complete(content) => (true, content),
            Outcome::Failed(content) => (false, content),
            other => panic!("{other:?}"),
        }
    }
}

const ARGS: &str = "    args: { a: { type: string, required: true }, n: { type: number } }\n";

#[tokio::test]
async fn a_request_is_what_was_declared_with_the_values_in_their_places_and_nothing_more() {
    let (port, log) =
        listener(|_| response("200 OK", "content-type: application/json\r\n", br#"{"b":1.50,"a":[]}"#)).await;
    let http = format!(
        "    output: json\n    http:\n      post: \"http://127.0.0.1:{port}/v1/{{a}}/x?k=v\"\n      query: {{ q: \"{{a}}\", n: \"{{n}}\" }}\n      \
         headers: {{ X-Of: \"the {{a}}\" }}\n      json: {{ name: \"{{a}}\", count: \"{{n}}\", all: \"{{*}}\" }}\n      allow_private: true\n"
    );
    let served = served("whole", &format!("{ARGS}{http}"));
    let (done, content) = served.ask(r#"{"a":"b c/d","n":2.50}"#).await;
    assert!(done, "{}", content.plain_text());
    assert_eq!(content.structured, Some(serde_json::json!({ "b": 1.5, "a": [] })));
    let (done, _) = served.ask(r#"{"a":"x"}"#).await;
    assert!(done);
    let log = log.lock().unwrap();
    let (head, body) = log[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/b%20c%2Fd/x?k=v&q=b%20c%2Fd&n=2.5 HTTP/1.1\r\n"), "{head}");
    assert_eq!(body, r#"{"name":"b c/d","count":2.50,"all":{"a":"b c/d","n":2.50}}"#);
    let names: Vec<&str> = head.lines().skip(1).map(|line| line.split(':').next().unwrap()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        ["accept", "content-length", "content-type", "host", "user-agent", "x-of"],
        "nothing of a caller's"
    );
    assert!(log[1].starts_with("POST /v1/x/x?k=v&q=x HTTP/1.1"), "{}", log[1]);
    assert!(log[1].ends_with(r#"{"name":"x","all":{"a":"x"}}"#), "{}", log[1]);
}

#[tokio::test]
async fn what_leads_elsewhere_is_refused_and_nothing_is_sent() {
    let (port, log) = listener(|_| response("200 OK", "", b"ok")).await;
    let http = format!(
        "    http: {{ get: \"http://127.0.0.1:{port}/v1/{{a}}\", headers: {{ X-A: \"{{a}}\" }}, allow_private: true, query: {{ n: \"{{n}}\" }} }}\n"
    );
    let served = served("elsewhere", &format!("{ARGS}{http}"));
    for bad in [r#""..""#, r#"".""#, r#""""#, r#""a\r\nX-B: c""#, r#""é""#] {
        let (done, content) = served.ask(&format!("{{\"a\":{bad}}}")).await;
        assert!(!done && content.plain_text().starts_with("argument \"a\""), "{bad}: {}", content.plain_text());
    }
    assert!(log.lock().unwrap().is_empty());
}

async fn answered(name: &str, more: &str, answer: Vec<u8>) -> (bool, String) {
    let (port, _) = listener(move |_| answer.clone()).await;
    let http = format!("    {more}\n    http: {{ get: \"http://127.0.0.1:{port}/\", allow_private: true }}\n");
    let (done, content) = served(name, &http).ask("{}").await;
    (done, content.plain_text())
}

#[tokio::test]
async fn a_redirect_is_not_followed_wherever_it_leads() {
    let (elsewhere, log) = listener(|_| response("200 OK", "", b"secret")).await;
    for (number, status) in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"].iter().enumerate() {
        let location = format!("location: http://127.0.0.1:{elsewhere}/x?token=t\r\n");
        let (done, text) =
            answered(&format!("redirect-{number}"), "timeout: 10s", response(status, &location, b"")).await;
        assert!(!done && text.contains("a redirect to http://127.0.0.1,") && !text.contains("token"), "{text}");
    }
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_bad_answer_is_a_failed_result_that_says_why() {
    for (name, more, answer, why) in [
        (
            "status",
            "cap: 100",
            response("503 Busy", "", b"later\x1b[2J"),
            "HTTP 503 Service Unavailable; what it said:\nlater[2J",
        ),
        ("gzip", "cap: 100", response("200 OK", "content-encoding: gzip\r\n", b"\x1f\x8b"), "compressed"),
        (
            "binary",
            "cap: 100",
            response("200 OK", "content-type: image/png\r\n", b"\xff\xfe"),
            "image/png, which is no text",
        ),
        ("json", "output: json", response("200 OK", "", b"{\"a\":1,\"a\":2}"), "duplicate key"),
        ("nothing", "cap: 100", b"SSH-2.0-OpenSSH\r\n\r\n".to_vec(), "did not answer"),
        (
            "head",
            "cap: 100",
            [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &[b'y'; 200_000], b"\r\n\r\n"].concat(),
            "did not answer",
        ),
        (
            "short",
            "cap: 100",
            b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\nconnection: close\r\n\r\nx".to_vec(),
            "did not answer within",
        ),
    ] {
        let more = format!("{more}\n    timeout: 3s");
        let (done, text) = answered(name, &more, answer).await;
        assert!(!done && text.contains(why), "{name}: {text}");
    }
}

#[tokio::test]
async fn a_credential_that_is_sent_back_in_another_form_is_not_passed_on() {
    let secret = std::env::var("PATH").unwrap();
    let (port, log) = listener(|request| {
        let sent = request.lines().find_map(|line| line.strip_prefix("x-key: ")).unwrap();
        let encoded: String = sent.bytes().map(|byte| format!("{byte:02x}")).collect();
        let body = serde_json::json!({ sent: [sent, encoded], "ok": true });
        response("200 OK", "content-type: application/json\r\n", body.to_string().as_bytes())
    })
    .await;
    let http = format!(
        "    output: json\n    http: {{ get: \"http://127.0.0.1:{port}/\", headers: {{ X-Key: \"${{PATH}}\" }}, allow_private: true }}\n"
    );
    let (done, content) = served("credential", &http).ask("{}").await;
    assert!(done, "{}", content.plain_text());
    assert!(log.lock().unwrap()[0].contains(&secret), "it was sent");
    let cleaned = serde_json::json!({ "[redacted]": ["[redacted]", "[redacted]"], "ok": true });
    assert_eq!(content.structured, Some(cleaned));
}

#[tokio::test]
async fn a_long_answer_is_cut_with_a_hint_and_an_endless_one_is_not_read_to_its_end() {
    let (done, text) = answered("long", "cap: 1000", response("200 OK", "", &[b'x'; 5000])).await;
    assert!(
        done && text.ends_with("[cut: 1000 of 5000 bytes shown; ask takes no argument that narrows it]\n"),
        "{text}"
    );
    let mut endless = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
    endless.resize(6 * 1024 * 1024, b'x');
    let (done, text) = answered("endless", "cap: 1000", endless).await;
    assert!(done && text.contains("[cut: 1000 of more than 4194304 bytes shown"), "{text}");
}

#[tokio::test]
async fn a_private_address_is_refused_where_it_is_not_declared() {
    let (port, log) = listener(|_| response("200 OK", "", b"ok")).await;
    for (number, host) in ["2130706433", "0x7f.1", "127.1"].iter().enumerate() {
        let http = format!("    http: {{ get: \"http://{host}:{port}/\" }}\n");
        let (done, content) = served(&format!("private-{number}"), &http).ask("{}").await;
        assert!(!done && content.plain_text().contains("cannot be reached"), "{}", content.plain_text());
    }
    assert!(log.lock().unwrap().is_empty());
}
