//! A surface that changes while the binary serves it: what clients hear, and what stays in force.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may fail by panicking"
)]

mod common;
#[path = "support/running.rs"]
mod running;

use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use common::{MODERN, NEWEST_LEGACY, PATIENCE, initialize, legacy, modern, notification, text_of};
use running::{Running, lines, twodoor};
use serde_json::{Value, json};

const CHANGED: &str = "notifications/tools/list_changed";

/// A surface whose tool `say` says `word`, and whose tool `hold` does so once `gate` is opened, after it opened `began`.
fn surface(version: &str, word: &str) -> String {
    format!(
        "surface: shell\nversion: {version}\ntools:\n  say:\n    description: Says {word}.\n    read_only: true\n    \
         run: [printf, {word}]\n  hold:\n    description: Says {word} later.\n    \
         run: [sh, -c, \"echo > began; cat gate; printf {word}\"]\n"
    )
}

struct Served {
    running: Running,
    told: Receiver<String>,
    folder: PathBuf,
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("surface.yaml"), surface("1.0.0", "one")).unwrap();
    folder
}

impl Served {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut running = Running::start(folder, arguments);
        let told = lines(running.child.stdout.take().unwrap());
        let served = Self { running, told, folder: folder.to_owned() };
        served.hears("shell 1.0.0, 2 tools, sha256:");
        served
    }

    /// Waits until standard error says this, and gives that line back.
    #[track_caller]
    fn hears(&self, text: &str) -> String {
        self.running.hears(text).1
    }

    fn send(&mut self, message: &str) {
        writeln!(self.running.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn next(&self) -> Value {
        let line = self.told.recv_timeout(PATIENCE).expect("a message in time");
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a request and gives what came before its answer, and that.
    fn ask(&mut self, message: &str) -> (Vec<Value>, Value) {
        self.send(message);
        let id = serde_json::from_str::<Value>(message).unwrap()["id"].clone();
        let mut before = Vec::new();
        loop {
            match self.next() {
                answer if answer["id"] == id && answer.get("method").is_none() => return (before, answer),
                other => before.push(other),
            }
        }
    }

    /// What a call of `say` says, to a modern client.
    fn word(&mut self) -> String {
        let (_, answer) = self.ask(&modern(&json!("word"), "tools/call", &json!({ "name": "say" })));
        text_of(&answer).to_owned()
    }

    fn open_legacy_session(&mut self) {
        self.ask(&initialize(&json!("open"), NEWEST_LEGACY));
        self.send(&notification("notifications/initialized", &json!({})));
    }

    /// What was told up to now.
    fn told_so_far(&mut self) -> Vec<Value> {
        self.ask(&legacy(&json!("ping"), "ping", &json!({}))).0
    }

    fn write(&self, text: &str) {
        std::fs::write(self.folder.join("surface.yaml"), text).unwrap();
    }

    fn replace(&self, text: &str) {
        std::fs::write(self.folder.join("surface.tmp"), text).unwrap();
        std::fs::rename(self.folder.join("surface.tmp"), self.folder.join("surface.yaml")).unwrap();
    }

    fn hang_up(&self) {
        self.running.hang_up();
    }
}

fn listen(id: &str) -> String {
    modern(&json!(id), "subscriptions/listen", &json!({ "notifications": { "toolsListChanged": true } }))
}

fn subscription(message: &Value) -> &Value {
    &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
}

#[test]
fn over_stdio_a_legacy_session_and_a_modern_listener_each_hear_that_the_tools_changed() {
    let folder = folder();
    let mut served = Served::start(folder.path(), &[]);
    served.open_legacy_session();
    served.send(&listen("l"));
    assert_eq!(served.next()["method"], "notifications/subscriptions/acknowledged");
    served.replace(&surface("1.1.0", "two"));
    let mut told = [served.next(), served.next()];
    told.sort_by_key(|message| subscription(message).is_string());
    assert!(told.iter().all(|message| message["method"] == CHANGED && message.get("id").is_none()), "{told:?}");
    assert!(told[0].get("params").is_none_or(|params| params.get("_meta").is_none()), "{told:?}");
    assert_eq!(subscription(&told[1]), "l");
    for request in [modern(&json!(7), "tools/list", &json!({})), legacy(&json!(8), "tools/list", &json!({}))] {
        let (before, list) = served.ask(&request);
        assert!(before.is_empty(), "{before:?}");
        assert_eq!(list["result"]["tools"][0]["description"], "Says two.");
    }
    let line = served.hears("published: shell 1.1.0, 2 tools, sha256:");
    assert!(line.ends_with(": other tools"), "{line}");
}

#[test]
fn a_burst_of_saves_tells_once_and_a_save_that_changes_no_list_tells_nothing() {
    let folder = folder();
    let mut served = Served::start(folder.path(), &[]);
    served.open_legacy_session();
    let two = surface("1.0.0", "two");
    for _ in 0..50 {
        served.write(&two);
        served.replace(&two);
    }
    served.hears("published: ");
    served.hang_up();
    served.hears("unchanged: shell 1.0.0");
    let told = served.told_so_far();
    assert_eq!(told.iter().map(|m| &m["method"]).collect::<Vec<_>>(), [CHANGED]);

    served.write(&format!("# a note\n{}", two.replace("printf, two", "printf, three")));
    let line = served.hears("published: ");
    assert!(line.ends_with(": the lists are the same"), "{line}");
    assert_eq!(served.told_so_far(), [Value::Null; 0]);
    assert_eq!(served.word(), "three");
}

#[test]
fn a_call_in_flight_ends_on_the_surface_it_began_with() {
    let folder = folder();
    let fifo = |name: &str| {
        assert!(Command::new("mkfifo").arg(folder.path().join(name)).status().unwrap().success());
        folder.path().join(name)
    };
    let (began, gate) = (fifo("began"), fifo("gate"));
    let mut served = Served::start(folder.path(), &[]);
    served.send(&modern(&json!("held"), "tools/call", &json!({ "name": "hold" })));
    std::fs::read(began).unwrap();
    let without = surface("2.0.0", "two").split("  hold:").next().unwrap().to_owned();
    served.write(&without);
    served.hears("published: shell 2.0.0, 1 tool, ");
    assert_eq!(served.word(), "two");
    std::fs::write(gate, "").unwrap();
    let answer = served.next();
    assert_eq!((&answer["id"], text_of(&answer)), (&json!("held"), "one"));
}

#[test]
fn a_bad_file_changes_nothing_and_is_shown_once() {
    let folder = folder();
    let mut served = Served::start(folder.path(), &[]);
    served.open_legacy_session();
    let path = folder.path().join("surface.yaml");
    let bad = surface("1.1.0", "two").replace("read_only", "read_onyl");
    served.write(&bad);
    served.hears("error[unknown-key]: a tool has no key \"read_onyl\"");
    served.hears("refused: shell 1.0.0, 2 tools, sha256:");
    assert_eq!(served.word(), "one");
    // The same text again says nothing: what is said next is of the next content.
    served.replace(&bad);
    served.hang_up();
    served.hears("refused: ");
    std::fs::remove_file(&path).unwrap();
    served.hears("error[file-unreadable]");
    served.hears("refused: ");
    served.write("surface: shell\nversion: 1.0.0\ntools:\n  say:\n    run: [pri");
    served.hears("error[");
    served.hears("refused: ");
    assert_eq!(served.word(), "one");
    served.write(&surface("1.0.0", "one"));
    served.hears("unchanged: shell 1.0.0");
    assert_eq!(served.told_so_far(), [Value::Null; 0]);
    served.write(&surface("1.1.0", "two"));
    served.hears("published: shell 1.1.0");
    assert_eq!(served.word(), "two");
}

#[test]
fn a_folder_that_is_replaced_is_read_anew() {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("surface.yaml"), surface("1.0.0", "one")).unwrap();
    let mut served = Served::start(outer.path(), &["inner/surface.yaml"]);
    for (round, word) in ["two", "three"].into_iter().enumerate() {
        std::fs::create_dir(outer.path().join("next")).unwrap();
        std::fs::write(outer.path().join("next/surface.yaml"), surface("1.0.0", word)).unwrap();
        std::fs::rename(&inner, outer.path().join(format!("old{round}"))).unwrap();
        std::fs::rename(outer.path().join("next"), &inner).unwrap();
        served.hears("published: ");
        assert_eq!(served.word(), word);
    }
}

#[test]
fn a_lock_lets_only_its_own_tools_be_served() {
    let folder = folder();
    let lock = || assert!(twodoor(folder.path(), &["lock"]).output().unwrap().status.success());
    lock();
    let mut served = Served::start(folder.path(), &[]);
    served.open_legacy_session();
    served.write(&surface("1.1.0", "two"));
    served.hears("error[lock-differs]");
    served.hears("twodoor lock surface.yaml");
    served.hears("refused: shell 1.0.0");
    assert_eq!(served.word(), "one");
    assert_eq!(served.told_so_far(), [Value::Null; 0]);

    let refused = twodoor(folder.path(), &["serve"]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(said.contains("lock-differs") && said.contains("surface.lock:5:9"), "{said}");

    lock();
    served.hears("published: shell 1.1.0");
    assert_eq!(served.told_so_far()[0]["method"], CHANGED);
    std::fs::write(folder.path().join("surface.lock"), "digest: none\n").unwrap();
    served.hears("error[missing-key]");
    served.hears("refused: shell 1.1.0");
    std::fs::remove_file(folder.path().join("surface.lock")).unwrap();
    served.hears("unchanged: shell 1.1.0");
}

#[test]
fn a_server_that_does_not_watch_reads_again_on_a_hang_up_alone() {
    let folder = folder();
    let watching = Served::start(folder.path(), &[]);
    let mut blind = Served::start(folder.path(), &["--no-watch"]);
    watching.write(&surface("1.1.0", "two"));
    watching.hears("published: shell 1.1.0");
    assert_eq!(blind.word(), "one");
    blind.hang_up();
    let line = blind.running.said.recv_timeout(PATIENCE).unwrap();
    assert!(line.starts_with("published: shell 1.1.0"), "{line}");
    assert_eq!(blind.word(), "two");
}

#[test]
fn what_comes_of_a_reload_is_said_as_json_to_a_program() {
    let folder = folder();
    let mut child = twodoor(folder.path(), &["serve", "--json"]).spawn().unwrap();
    let said = lines(child.stderr.take().unwrap());
    let next = || serde_json::from_str::<Value>(&said.recv_timeout(PATIENCE).unwrap()).unwrap();
    let first = next();
    let write = |text: &str| {
        std::fs::write(folder.path().join("surface.tmp"), text).unwrap();
        std::fs::rename(folder.path().join("surface.tmp"), folder.path().join("surface.yaml")).unwrap();
    };
    write(&surface("1.1.0", "two"));
    let published = next();
    assert_eq!(published["reload"], "published");
    assert_eq!((&published["version"], &published["changed"]), (&json!("1.1.0"), &json!(["tools"])));
    assert_ne!(published["digest"], first["digest"]);
    write("tools: {}\n");
    let refused = next();
    assert_eq!((&refused["reload"], &refused["version"]), (&json!("refused"), &json!("1.1.0")));
    assert_eq!(refused["problems"][0]["rule"], "missing-key");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// One HTTP request on a socket of its own; its `data:` lines and its head come as they arrive.
struct Http(Receiver<String>);

impl Http {
    fn send(address: &str, verb: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut socket = TcpStream::connect(address).unwrap();
        let mut head = format!("{verb} /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        socket.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        Self(lines(socket))
    }

    fn modern(address: &str, method: &str, body: &str) -> Self {
        let headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", method),
        ];
        Self::send(address, "POST", &headers, body)
    }

    fn legacy(address: &str, session: Option<&str>, body: &str) -> Self {
        let mut headers = vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
        headers.push(("Connection", "close"));
        Self::send(address, "POST", &headers, body)
    }

    fn line(&self, begins: &str) -> String {
        // A stream is kept alive by comments, so the wait is for the line, not for any.
        let latest = Instant::now() + PATIENCE;
        loop {
            let left = latest.saturating_duration_since(Instant::now());
            let line = self.0.recv_timeout(left).unwrap_or_else(|error| panic!("{begins:?} never came: {error}"));
            if line.to_ascii_lowercase().starts_with(begins) {
                return line[begins.len()..].trim().to_owned();
            }
        }
    }

    fn event(&self) -> Value {
        serde_json::from_str(&format!("{{{}", self.line("data: {"))).unwrap()
    }
}

impl Served {
    fn address(&self) -> String {
        running::address(&self.hears("listening on http://"))
    }
}

#[test]
fn over_http_each_modern_listener_hears_its_own_copy_after_it_was_acknowledged() {
    let folder = folder();
    let served = Served::start(folder.path(), &["--http", "127.0.0.1:0"]);
    let address = served.address();
    let streams = ["a", "b"].map(|id| (id, Http::modern(&address, "subscriptions/listen", &listen(id))));
    for (id, stream) in &streams {
        let acknowledged = stream.event();
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(subscription(&acknowledged), *id);
    }
    served.write(&surface("1.1.0", "two"));
    for (id, stream) in &streams {
        let told = stream.event();
        assert_eq!((&told["method"], subscription(&told)), (&json!(CHANGED), &json!(id)));
    }
}

#[test]
fn over_http_a_legacy_session_hears_on_its_stream_that_the_tools_changed() {
    let folder = folder();
    let served = Served::start(folder.path(), &["--http", "127.0.0.1:0"]);
    let address = served.address();
    let opened = Http::legacy(&address, None, &initialize(&json!(1), NEWEST_LEGACY));
    let session = opened.line("mcp-session-id: ");
    let ready = notification("notifications/initialized", &json!({}));
    assert_eq!(Http::legacy(&address, Some(&session), &ready).line("http/1.1 "), "202 Accepted");
    let headers = [("Accept", "text/event-stream"), ("Mcp-Session-Id", &*session)];
    let stream = Http::send(&address, "GET", &headers, "");
    assert_eq!(stream.line("http/1.1 "), "200 OK");
    served.write(&surface("1.1.0", "two"));
    let told = stream.event();
    assert_eq!(told["method"], CHANGED);
    assert!(subscription(&told).is_null(), "{told}");
}
