//! The questions that the official suite does not ask, over HTTP: what the specification says to each.
//!
//! Most are asked of the binary. Four are about resources, logs and tools that ask, which no command can be: they are
//! asked of the small world of the transcripts, through the same transport.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "blessing and reports belong to the program that plays transcripts")]
mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use support::play::play;
use support::transcript::{Legacy, Transcript, Way};

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";
const PREFIX: &str = "io.modelcontextprotocol";
const PATIENCE: Duration = Duration::from_secs(20);

/// Headers by name and value.
type Headers<'h> = &'h [(&'h str, &'h str)];

/// The binary, serving HTTP.
struct Binary {
    child: Child,
    address: String,
}

impl Binary {
    fn serve() -> Self {
        let surface = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/surface.yaml");
        let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
        command.arg("serve").arg(surface).args(["--http", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening on http://") {
            line.clear();
            assert_ne!(told.read_line(&mut line).unwrap(), 0, "it never listened");
        }
        // Whatever it says later must find a reader.
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        Self { child, address }
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The status, and the error's code if it is one; an error without an id says so.
    fn brief(&self) -> String {
        let value: Value = serde_json::from_str(&self.body).unwrap_or_default();
        assert_ne!(value.get("id"), Some(&Value::Null), "an id is never null: {self:?}");
        let what = match (value["error"]["code"].as_i64(), &value["result"]) {
            (Some(code), _) if value.get("id").is_none() => format!(" {code} noid"),
            (Some(code), _) => format!(" {code}"),
            (None, result) if result["isError"] == true => " isError".to_owned(),
            (None, result) if result.is_object() => " result".to_owned(),
            _ if value.is_array() => " array".to_owned(),
            _ if self.body.is_empty() => String::new(),
            _ => " text".to_owned(),
        };
        format!("{}{what}", self.status)
    }
}

/// One request, on a socket of its own. A header without a value is left out.
fn send(binary: &Binary, verb: &str, headers: Headers<'_>, body: &str) -> Answer {
    let mut all = vec![
        ("Host", binary.address.as_str()),
        ("Connection", "close"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    for header in headers {
        all.retain(|(name, _)| !name.eq_ignore_ascii_case(header.0));
        all.push(*header);
    }
    let length = body.len().to_string();
    if verb == "POST" {
        all.push(("Content-Length", &length));
    }
    let lines: String =
        all.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut socket = TcpStream::connect(&binary.address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // A server that refuses a long body by its head alone may close before it has all of it.
    let _ = socket.write_all(format!("{verb} /mcp HTTP/1.1\r\n{lines}\r\n{body}").as_bytes());
    let mut text = Vec::new();
    let ended = socket.read_to_end(&mut text);
    let text = String::from_utf8(text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {text:?}: {ended:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn claim(revision: &str) -> Value {
    json!({ format!("{PREFIX}/protocolVersion"): revision, format!("{PREFIX}/clientCapabilities"): {} })
}

fn claimed(method: &str, mut params: Value) -> Value {
    params["_meta"] = claim(MODERN);
    request(1, method, params)
}

fn initialize(binary: &Binary, revision: &str) -> Answer {
    let client = json!({ "name": "gap", "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
    send(binary, "POST", &[], &request(1, "initialize", params).to_string())
}

/// Asks within a legacy session; `headers` are added, or replace those of a well-behaved client.
fn legacy(binary: &Binary, headers: Headers<'_>, body: &str) -> Answer {
    let opened = initialize(binary, LEGACY);
    let sid = opened.head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session");
    let own = [("MCP-Protocol-Version", LEGACY), ("Mcp-Session-Id", sid)];
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send(binary, "POST", &own, &ready.to_string()).brief(), "202");
    send(binary, "POST", &[&own, headers].concat(), body)
}

/// Asks as a modern client does, its headers those of the body.
fn modern(binary: &Binary, headers: Headers<'_>, body: &Value) -> Answer {
    let method = body["method"].as_str().unwrap_or("tools/list");
    let name = body["params"]["name"].as_str().unwrap_or_default();
    let own = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method), ("Mcp-Name", name)];
    send(binary, "POST", &[&own, headers].concat(), &body.to_string())
}

#[test]
fn a_handshake_agrees_on_a_revision_that_is_served() {
    let binary = Binary::serve();
    for (wanted, agreed) in [("1999-01-01", LEGACY), (MODERN, LEGACY), ("2024-11-05", "2024-11-05")] {
        let answer = initialize(&binary, wanted);
        assert_eq!((answer.status, &answer.json()["result"]["protocolVersion"]), (200, &json!(agreed)), "{wanted}");
    }
}

#[test]
fn a_session_answers_the_questions_of_legacy_clients() {
    let binary = Binary::serve();
    let ping = request(1, "ping", json!({})).to_string();
    let pings = format!("[{ping},{}]", request(2, "ping", json!({})));
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 99 } });
    let table: [(&str, Headers, String, &str); 12] = [
        ("a parse error", &[], "{".to_owned(), "400 -32700 noid"),
        // Arrays ended with 2025-06-18.
        ("two pings in an array", &[], pings, "400 -32600 noid"),
        ("a notification", &[], cancelled.to_string(), "202"),
        ("an unknown method", &[], request(1, "no/such", json!({})).to_string(), "200 -32601"),
        ("an unknown tool", &[], request(1, "tools/call", json!({ "name": "nope" })).to_string(), "200 -32602"),
        ("a bad cursor", &[], request(1, "tools/list", json!({ "cursor": "!!" })).to_string(), "200 -32602"),
        ("JSON alone", &[("Accept", "application/json")], ping.clone(), "200 result"),
        ("text/plain", &[("Content-Type", "text/plain")], ping.clone(), "415 -32600 noid"),
        ("no session", &[("Mcp-Session-Id", "")], ping.clone(), "400 -32600"),
        ("an unknown session", &[("Mcp-Session-Id", "nope")], ping.clone(), "404 -32600"),
        ("an unknown version", &[("MCP-Protocol-Version", "1999-01-01")], ping, "400 -32022"),
        // The binary of this surface has no resources, so there is no such method.
        ("a resource", &[], request(1, "resources/read", json!({ "uri": "test://nope" })).to_string(), "200 -32601"),
    ];
    for (what, headers, body, expected) in table {
        assert_eq!(legacy(&binary, headers, &body).brief(), expected, "{what}");
    }
}

#[test]
fn discovery_lists_every_revision() {
    let binary = Binary::serve();
    let answer = modern(&binary, &[], &claimed("server/discover", json!({}))).json();
    let all = json!([MODERN, LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"]);
    assert_eq!(answer["result"]["supportedVersions"], all);
}

#[test]
fn the_questions_of_modern_clients_are_answered_without_a_session() {
    let binary = Binary::serve();
    let list = || claimed("tools/list", json!({}));
    let with = |key: &str, value: Value| {
        let mut list = list();
        list[key] = value;
        list
    };
    let mut other = list();
    other["params"]["_meta"] = claim(LEGACY);
    let notification = {
        let params = json!({ "requestId": 9, "_meta": claim(MODERN) });
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
    };
    let long = claimed("tools/call", json!({ "name": "echo", "arguments": { "text": "a".repeat(8 << 20) } }));
    let evil = [("Origin", "http://evil.example.com")];
    let table: [(&str, Headers, Value, &str); 14] = [
        ("an array", &[], json!([list(), list()]), "400 -32600 noid"),
        ("a null id", &[], with("id", Value::Null), "400 -32600 noid"),
        ("another version of JSON-RPC", &[], with("jsonrpc", "1.0".into()), "400 -32600"),
        ("an unknown tool", &[], claimed("tools/call", json!({ "name": "nope", "arguments": {} })), "200 -32602"),
        ("a bad cursor", &[], claimed("tools/list", json!({ "cursor": "!!" })), "200 -32602"),
        ("no version header", &[("MCP-Protocol-Version", "")], list(), "400 -32020"),
        ("a legacy revision", &[("MCP-Protocol-Version", LEGACY)], other, "400 -32022"),
        ("a notification", &[], notification, "202"),
        ("JSON alone", &[("Accept", "application/json")], list(), "200 result"),
        ("text/plain", &[("Content-Type", "text/plain")], list(), "415 -32600 noid"),
        ("a session id", &[("Mcp-Session-Id", "x")], list(), "200 result"),
        ("a foreign origin", &evil, list(), "403 -32600 noid"),
        ("more than 8 MiB", &[], long, "413 -32600 noid"),
        ("nothing else", &[], list(), "200 result"),
    ];
    for (what, headers, body, expected) in table {
        let answer = modern(&binary, headers, &body);
        assert_eq!(answer.brief(), expected, "{what}");
        assert!(!answer.head.contains("mcp-session-id"), "{what}: {}", answer.head);
    }
    let broken = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")];
    assert_eq!(send(&binary, "POST", &broken, "{").brief(), "400 -32700 noid");
    for verb in ["GET", "DELETE"] {
        let answer = send(&binary, verb, &[("MCP-Protocol-Version", MODERN)], "");
        assert_eq!(answer.status, 405, "{verb}");
        assert!(answer.head.contains("\r\nallow: post"), "{verb}: {}", answer.head);
    }
}

/// Plays a transcript over HTTP against the small world.
fn holds(text: &str) {
    let text = format!("Inline.\nrows: 9.1\nspec: none\nworld: whole\nways: http\n{text}");
    let transcript = Transcript::read(Path::new("gap/inline.txt"), &text).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let played = play(&transcript, Way::Http, Legacy::Sessions, runtime.handle());
    assert!(played.is_ok(), "{}", played.unwrap_err());
}

#[test]
fn an_unknown_resource_has_the_code_of_its_revision() {
    let asked = r#"> {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"test://nope""#;
    let error = r#""message":"$any","data":{"uri":"test://nope"}}}"#;
    holds(&format!(
        "session: {LEGACY}\n\n{asked}}}}}\n< {{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{{\"code\":-32002,{error}"
    ));
    holds(&format!(
        "\n{asked},\"_meta\":{{$claim}}}}}}\n< {{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{{\"code\":-32602,{error}"
    ));
}

#[test]
fn a_tool_that_asks_fails_for_the_model_of_a_legacy_client_that_cannot_be_asked() {
    holds(concat!(
        "session: 2025-11-25 {}\n\n",
        r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#,
        "\n",
        r#"< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"$text:*elicitation*"}],"isError":true}}"#,
    ));
}

#[test]
fn a_request_that_names_the_least_level_hears_every_log_message_before_its_answer() {
    let head = r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk","_meta":{$claim,"$io/logLevel":"debug"}}}"#;
    let logs = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"].map(|level| {
        let logger = if level == "info" { "" } else { r#","logger":"talk""# };
        format!("< {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"{level}\",\"data\":\"$any\"{logger}}}}}")
    });
    let answer = r#"< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":"$any","_meta":"$any"}}"#;
    holds(&format!("\n{head}\n{}\n{answer}", logs.join("\n")));
}

#[test]
fn a_subscription_to_a_resource_is_acknowledged_with_its_uri() {
    holds(concat!(
        "\n",
        r#"> {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["notes:today"]},"_meta":{$claim}}}"#,
        "\n",
        r#"< {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["notes:today"]},"_meta":{"$io/subscriptionId":1}}}"#,
    ));
}
