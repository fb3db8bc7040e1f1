//! Several surfaces in one process, versions that stay as they were, and how strictly each is held to its lock.

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

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use common::{MODERN, NEWEST_LEGACY, PATIENCE, initialize, legacy, modern, notification, text_of};
use running::{Running, lines};
use serde_json::{Value, json};

/// A surface with one tool, whose description and answer is `word`.
fn surface(name: &str, version: &str, word: &str) -> String {
    format!(
        "surface: {name}\nversion: {version}\ntools:\n  say:\n    description: Says {word}.\n    read_only: true\n    \
         run: [printf, {word}]\n"
    )
}

struct Folder(tempfile::TempDir);

impl Folder {
    /// With `ops.yaml`, version 1.0.0, that says `one`.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("ops.yaml", &surface("ops", "1.0.0", "one"));
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let all = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = running::twodoor(self.0.path(), arguments);
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command that ends by itself: its code, and what it said.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let (code, said) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {said}");
        said
    }

    /// What a server says that does not start.
    #[track_caller]
    fn refused(&self, arguments: &[&str], code: i32) -> String {
        let (found, said) = self.run(&[&["serve", "--http", "127.0.0.1:0"], arguments].concat());
        assert_eq!(found, code, "{arguments:?}: {said}");
        said
    }

    fn lock(&self, name: &str) {
        self.done(&["lock", "--unbumped", name]);
    }

    fn digest(&self, name: &str) -> String {
        self.done(&["digest", name]).split_whitespace().next().unwrap().to_owned()
    }
}

/// A server over HTTP.
struct Served {
    running: Running,
    address: String,
    /// What it said before it listened.
    opening: Vec<String>,
}

impl Served {
    fn start(folder: &Folder, arguments: &[&str]) -> Self {
        let running = Running::start(folder.0.path(), &[&["--http", "127.0.0.1:0"], arguments].concat());
        let (opening, line) = running.hears("listening on http://");
        Self { running, address: running::address(&line), opening }
    }

    #[track_caller]
    fn hears(&self, text: &str) -> (Vec<String>, String) {
        self.running.hears(text)
    }

    fn hang_up(&self) {
        self.running.hang_up();
    }

    /// Sends a request and leaves its answer to be read.
    fn open(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> BufReader<TcpStream> {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "{verb} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        socket.write_all(request.as_bytes()).unwrap();
        BufReader::new(socket)
    }

    fn send(&self, verb: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let accept = if verb == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
        let mut stream =
            self.open(verb, path, &[headers, &[("Accept", accept), ("Connection", "close")]].concat(), body);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Answer { head: head.to_owned(), body: body.to_owned() }
    }

    fn legacy(&self, path: &str, session: Option<&str>, body: &str) -> Answer {
        let session: Vec<_> = session.map(|session| ("Mcp-Session-Id", session)).into_iter().collect();
        self.send("POST", path, &session, body)
    }

    /// Opens a session of the newest legacy revision.
    #[track_caller]
    fn session(&self, path: &str) -> String {
        let opened = self.legacy(path, None, &initialize(&json!(0), NEWEST_LEGACY));
        let session = opened.header("mcp-session-id").to_owned();
        let ready = notification("notifications/initialized", &json!({}));
        assert_eq!(self.legacy(path, Some(&session), &ready).status(), 202);
        session
    }

    fn modern(&self, path: &str, method: &str, params: &Value, headers: &[(&str, &str)]) -> Answer {
        let own = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
        self.send("POST", path, &[&own, headers].concat(), &modern(&json!(1), method, params))
    }

    /// What the tool says to a modern client.
    #[track_caller]
    fn word(&self, path: &str) -> String {
        let answer = self.modern(path, "tools/call", &json!({ "name": "say" }), &[("Mcp-Name", "say")]);
        text_of(&answer.json()).to_owned()
    }

    /// The digest that a client is told of.
    #[track_caller]
    fn digest(&self, path: &str) -> String {
        let answer = self.modern(path, "server/discover", &json!({}), &[]).json();
        let all = answer["result"]["_meta"].as_object().unwrap_or_else(|| panic!("{answer}"));
        let digest = all.values().find_map(|value| value.as_str().filter(|text| text.starts_with("sha256:")));
        digest.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// A stream of a modern client that wants to hear of changed tools, once it is acknowledged.
    fn listen(&self, path: &str) -> Events {
        let method = "subscriptions/listen";
        let body = modern(&json!("l"), method, &json!({ "notifications": { "toolsListChanged": true } }));
        let headers = [
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", method),
        ];
        let mut events = Events(self.open("POST", path, &headers, &body));
        assert_eq!(events.next()["method"], "notifications/subscriptions/acknowledged");
        events
    }

    /// The stream of a legacy session.
    fn stream(&self, path: &str, session: &str) -> Events {
        let headers = [("Accept", "text/event-stream"), ("Mcp-Session-Id", session)];
        let mut events = Events(self.open("GET", path, &headers, ""));
        assert!(events.line().starts_with("HTTP/1.1 200"));
        events
    }
}

#[derive(Debug)]
struct Answer {
    head: String,
    body: String,
}

impl Answer {
    fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[track_caller]
    fn header(&self, name: &str) -> &str {
        let found = self.head.lines().find_map(|line| line.split_once(": ").filter(|(n, _)| *n == name));
        found.unwrap_or_else(|| panic!("no {name}: {self:?}")).1
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

struct Events(BufReader<TcpStream>);

impl Events {
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.0.read_line(&mut line).expect("a line in time"), 0, "the stream ended");
        line
    }

    fn next(&mut self) -> Value {
        loop {
            if let Some(message) = self.line().strip_prefix("data: {") {
                return serde_json::from_str(&format!("{{{message}")).unwrap();
            }
        }
    }
}

const CHANGED: &str = "notifications/tools/list_changed";

/// A folder whose `ops.yaml` was frozen at 1.0.0 and is at 2.0.0 now.
fn frozen() -> Folder {
    let folder = Folder::new();
    folder.done(&["freeze", "ops.yaml"]);
    folder.write("ops.yaml", &surface("ops", "2.0.0", "two"));
    folder
}

#[test]
fn each_surface_is_at_its_own_path_and_the_first_at_the_short_one_too_in_both_eras() {
    let folder = frozen();
    folder.write("b.yaml", &surface("other", "1.0.0", "three"));
    let served = Served::start(&folder, &["ops.yaml", "b.yaml"]);
    let table = [("/mcp", "two"), ("/mcp/ops", "two"), ("/mcp/ops@1", "one"), ("/mcp/other", "three")];
    for (path, word) in table {
        assert_eq!(served.word(path), word, "{path}");
        let session = served.session(path);
        let called = served.legacy(path, Some(&session), &legacy(&json!(1), "tools/call", &json!({ "name": "say" })));
        assert_eq!(text_of(&called.json()), word, "{path}");
    }
    for path in
        ["/mcp/", "/mcp/op", "/mcp/Ops", "/mcp/ops@", "/mcp/ops@2", "/mcp/ops%401", "/mcp/ops/", "/mcp/b", "/ops"]
    {
        let answer = served.modern(path, "tools/list", &json!({}), &[]);
        assert_eq!(answer.status(), 404, "{path}");
        assert!(!answer.body.contains("ops") && !answer.body.contains("other"), "{answer:?}");
    }
    assert_eq!(served.send("GET", "/healthz", &[], "").body, "\"ok\"");
    let [ops, old, other] = served.opening.as_slice() else { panic!("{:#?}", served.opening) };
    assert!(ops.starts_with("ops 2.0.0, 1 tool, sha256:") && ops.ends_with(", at /mcp and /mcp/ops"), "{ops}");
    assert!(old.starts_with("ops@1 1.0.0, 1 tool, sha256:") && old.ends_with(", at /mcp/ops@1"), "{old}");
    assert!(other.starts_with("other 1.0.0, 1 tool, sha256:") && other.ends_with(", at /mcp/other"), "{other}");
}

#[test]
fn a_session_is_unknown_on_every_surface_but_its_own() {
    let folder = frozen();
    let served = Served::start(&folder, &["ops.yaml"]);
    let session = served.session("/mcp/ops");
    let ping = legacy(&json!(1), "ping", &json!({}));
    let with = [("Mcp-Session-Id", session.as_str())];
    for verb in ["POST", "GET", "DELETE"] {
        let body = if verb == "POST" { ping.as_str() } else { "" };
        let strange = served.send(verb, "/mcp/ops@1", &with, body);
        let unknown = served.send(verb, "/mcp/ops@1", &[("Mcp-Session-Id", "0123456789abcdef")], body);
        assert_eq!((strange.status(), &strange.body), (404, &unknown.body), "{verb}");
    }
    // It lives on, under both paths of its surface.
    for path in ["/mcp/ops", "/mcp"] {
        assert_eq!(served.legacy(path, Some(&session), &ping).status(), 200, "{path}");
    }
    assert_eq!(served.send("DELETE", "/mcp", &with, "").status(), 204);
    assert_eq!(served.legacy("/mcp/ops", Some(&session), &ping).status(), 404);
}

#[test]
fn a_stream_of_the_older_transport_says_where_its_own_surface_takes_messages() {
    let folder = frozen();
    let served = Served::start(&folder, &["ops.yaml", "--sse"]);
    let open = |path: &str| {
        let mut events = Events(served.open("GET", path, &[("Accept", "text/event-stream")], ""));
        let endpoint = loop {
            if let Some(endpoint) = events.line().strip_prefix("data: ") {
                break endpoint.trim().to_owned();
            }
        };
        (events, endpoint)
    };
    for (path, word) in [("/sse", "two"), ("/sse/ops", "two"), ("/sse/ops@1", "one")] {
        let (mut events, endpoint) = open(path);
        assert!(endpoint.starts_with(&format!("{path}/message?session=")), "{endpoint}");
        for (body, id) in
            [(initialize(&json!(1), "2024-11-05"), 1), (legacy(&json!(2), "tools/call", &json!({ "name": "say" })), 2)]
        {
            assert_eq!(served.send("POST", &endpoint, &[], &body).status(), 202);
            let answer = events.next();
            assert_eq!(answer["id"], id);
            assert!(id == 1 || text_of(&answer) == word, "{answer}");
        }
        // The token of one surface opens nothing of another.
        let token = endpoint.split_once('?').unwrap().1;
        let other = if path == "/sse/ops@1" { "/sse/ops" } else { "/sse/ops@1" };
        let strange =
            served.send("POST", &format!("{other}/message?{token}"), &[], &initialize(&json!(3), "2024-11-05"));
        assert_eq!(strange.status(), 404);
    }
}

#[test]
fn a_changed_word_is_refused_until_it_is_locked_then_told_and_the_frozen_version_answers_as_before() {
    let folder = Folder::new();
    folder.lock("ops.yaml");
    folder.done(&["freeze", "ops.yaml"]);
    let before = folder.digest("ops@1.yaml");
    folder.write("ops.yaml", &surface("ops", "1.0.1", "two"));
    for arguments in [&["ops.yaml"][..], &["ops.yaml", "--locked"]] {
        let said = folder.refused(arguments, 3);
        assert!(said.contains("error[lock-differs]: the tools of ops.yaml have the digest"), "{said}");
    }
    folder.write("ops.yaml", &surface("ops", "1.0.0", "one"));

    let served = Served::start(&folder, &["ops.yaml", "--locked"]);
    let (live, old) = (served.session("/mcp/ops"), served.session("/mcp/ops@1"));
    let (mut live, mut old) = (served.stream("/mcp/ops", &live), served.stream("/mcp/ops@1", &old));
    let (mut listening, mut listening_to_old) = (served.listen("/mcp"), served.listen("/mcp/ops@1"));
    folder.write("ops.yaml", &surface("ops", "1.0.1", "two"));
    served.hears("refused: ops 1.0.0");
    assert_eq!(served.word("/mcp/ops"), "one");
    folder.lock("ops.yaml");
    served.hears("published: ops 1.0.1");
    assert_eq!((&live.next()["method"], &listening.next()["method"]), (&json!(CHANGED), &json!(CHANGED)));
    assert_eq!(served.word("/mcp/ops"), "two");
    assert_eq!((served.word("/mcp/ops@1"), served.digest("/mcp/ops@1")), ("one".to_owned(), before.clone()));
    assert_eq!(folder.digest("ops@1.yaml"), before);
    assert_ne!(served.digest("/mcp/ops"), before);

    // Whoever listens to the frozen version hears nothing of it: what comes first is that the server stops.
    served.running.signal("-TERM");
    let last = listening_to_old.next();
    assert_eq!(last["id"], "l", "{last}");
    let mut rest = String::new();
    old.0.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains(CHANGED), "{rest}");
}

#[test]
fn a_frozen_surface_needs_its_lock_and_what_the_lock_allows() {
    let folder = frozen();
    let good = (folder.read("ops@1.yaml"), folder.read("ops@1.lock"));
    let unlike = surface("ops", "1.0.0", "three");
    type Change<'a> = (&'a str, &'a dyn Fn());
    let changes: [Change<'_>; 4] = [
        ("lock-missing", &|| std::fs::remove_file(folder.path("ops@1.lock")).unwrap()),
        ("lock-differs", &|| folder.write("ops@1.yaml", &unlike)),
        ("lock-version", &|| folder.write("ops@1.lock", "")),
        ("frozen-name", &|| {
            folder.write("ops@1.yaml", &surface("else", "1.0.0", "one"));
            folder.lock("ops@1.yaml");
        }),
    ];
    for (rule, change) in changes {
        change();
        for arguments in [&["ops.yaml"][..], &["ops.yaml", "--unlocked"], &["ops@1.yaml"], &["ops.yaml", "ops@1.yaml"]]
        {
            let said = folder.refused(arguments, 3);
            assert!(said.contains(&format!("error[{rule}]")), "{rule} {arguments:?}: {said}");
        }
        let served = Served::start(&folder, &["ops.yaml", "--no-frozen"]);
        assert_eq!(served.modern("/mcp/ops@1", "tools/list", &json!({}), &[]).status(), 404);
        folder.write("ops@1.yaml", &good.0);
        folder.write("ops@1.lock", &good.1);
    }
}

#[test]
fn while_it_is_served_a_frozen_surface_stays_whatever_becomes_of_its_files() {
    let folder = frozen();
    let served = Served::start(&folder, &["ops.yaml"]);
    let text = folder.read("ops@1.yaml");
    // Its lock would allow another command.
    folder.write("ops@1.yaml", &text.replace("printf, one", "printf, other"));
    served.hears("error[frozen-changed]");
    served.hears("refused: ops@1 1.0.0");
    assert_eq!(served.word("/mcp/ops@1"), "one");
    folder.write("ops@1.yaml", &surface("ops", "1.0.1", "other"));
    folder.lock("ops@1.yaml");
    served.hears("refused: ops@1 1.0.0");
    served.hang_up();
    served.hears("refused: ops@1 1.0.0");
    std::fs::remove_file(folder.path("ops@1.lock")).unwrap();
    served.hears("error[lock-missing]");
    assert_eq!((served.word("/mcp/ops@1"), served.word("/mcp/ops")), ("one".to_owned(), "two".to_owned()));
}

#[test]
fn a_hang_up_reads_every_surface_and_a_bad_one_holds_no_other_up() {
    let folder = frozen();
    folder.write("b.yaml", &surface("other", "1.0.0", "three"));
    let served = Served::start(&folder, &["ops.yaml", "b.yaml", "--no-watch"]);
    folder.write("ops.yaml", "surface: [");
    folder.write("b.yaml", &surface("other", "1.1.0", "four"));
    served.hang_up();
    let mut expected = vec!["refused: ops 2.0.0", "unchanged: ops@1 1.0.0", "published: other 1.1.0"];
    while !expected.is_empty() {
        let line = served.running.said.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {expected:?}"));
        expected.retain(|begin| !line.starts_with(begin));
    }
    assert_eq!((served.word("/mcp"), served.word("/mcp/other")), ("two".to_owned(), "four".to_owned()));
}

#[test]
fn how_strictly_a_surface_is_held_to_its_lock_is_said_at_the_start() {
    let folder = Folder::new();
    assert!(folder.refused(&["ops.yaml", "--locked"], 3).contains("error[lock-missing]"));
    drop(Served::start(&folder, &["ops.yaml", "--unlocked"]));
    folder.lock("ops.yaml");
    let served = Served::start(&folder, &["ops.yaml", "--locked"]);
    assert!(served.opening.iter().all(|line| !line.contains("UNLOCKED")), "{:?}", served.opening);
    drop(served);
    folder.write("ops.yaml", &surface("ops", "1.0.0", "two"));
    folder.refused(&["ops.yaml", "--locked"], 3);
    let served = Served::start(&folder, &["ops.yaml", "--unlocked"]);
    assert_eq!(served.word("/mcp"), "two");
    let opening = served.opening.join("\n");
    assert!(
        opening.contains("WARN") && opening.contains("ops.yaml is served although ops.lock does not allow it"),
        "{opening}"
    );
    assert!(opening.contains("UNLOCKED"), "{opening}");
    assert!(folder.refused(&["ops.yaml", "--locked", "--unlocked"], 2).contains("cannot be used with"));
}

#[test]
fn two_surfaces_of_one_name_are_refused_and_both_files_named() {
    let folder = Folder::new();
    folder.write("b.yaml", &surface("ops", "1.0.0", "two"));
    let said = folder.refused(&["ops.yaml", "b.yaml"], 3);
    assert!(said.contains("ops.yaml and b.yaml are both named ops"), "{said}");
    let said = folder.refused(&["ops.yaml", "./ops.yaml"], 3);
    assert!(said.contains("ops.yaml and ./ops.yaml are both named ops"), "{said}");
    folder.write("b.yaml", &surface("..", "1.0.0", "two"));
    let said = folder.refused(&["ops.yaml", "b.yaml"], 3);
    assert!(said.contains("cannot stand in a path"), "{said}");
    // Alone it needs no path of its own.
    let served = Served::start(&folder, &["b.yaml"]);
    assert_eq!(served.word("/mcp"), "two");
    assert_eq!(served.modern("/mcp/..", "tools/list", &json!({}), &[]).status(), 404);
}

#[test]
fn the_problems_of_all_files_are_shown_at_once() {
    let folder = Folder::new();
    folder.write("a.yaml", "surface: a\n");
    folder.write("b.yaml", "tools: 1\n");
    let said = folder.refused(&["a.yaml", "ops.yaml", "b.yaml", "gone.yaml"], 3);
    for name in ["a.yaml", "b.yaml", "gone.yaml"] {
        assert!(said.contains(name), "{name}: {said}");
    }
    assert!(!said.contains("ops.yaml"), "{said}");
}

#[test]
fn labels_with_odd_characters_are_refused() {
    let folder = Folder::new();
    for odd in ["", "a b", "1/2", "../x", "1@2", "ä", "1%2f", &"x".repeat(65)] {
        let (code, said) = folder.run(&["freeze", "ops.yaml", "--as", odd]);
        assert_eq!(code, 2, "{odd}: {said}");
    }
    assert_eq!(folder.names(), ["ops.yaml"]);
    for odd in ["ops@.yaml", "ops@a b.yaml", "ops@1@2.yaml", "ops@ä.yaml"] {
        folder.write(odd, &surface("ops", "1.0.0", "one"));
        let said = folder.refused(&["ops.yaml"], 3);
        assert!(said.contains("error[frozen-label]") && said.contains(odd), "{said}");
        drop(Served::start(&folder, &["ops.yaml", "--no-frozen"]));
        std::fs::remove_file(folder.path(odd)).unwrap();
    }
}

#[test]
fn a_surface_is_frozen_byte_for_byte_with_its_lock() {
    let folder = Folder::new();
    let text = format!("\u{feff}# a note\r\n{}", surface("ops", "0.3.1", "one"));
    folder.write("ops.yaml", &text);
    let said = folder.done(&["freeze", "ops.yaml"]);
    assert!(said.contains("ops@0.3.yaml") && said.contains("/mcp/ops@0.3"), "{said}");
    assert_eq!(folder.names(), ["ops.yaml", "ops@0.3.lock", "ops@0.3.yaml"]);
    assert_eq!(folder.read("ops@0.3.yaml"), text);
    // Again is nothing new.
    folder.done(&["freeze", "ops.yaml"]);
    let served = Served::start(&folder, &["ops.yaml"]);
    assert_eq!(served.digest("/mcp/ops@0.3"), folder.digest("ops.yaml"));
    drop(served);

    // Another list is another version.
    folder.write("ops.yaml", &surface("ops", "0.3.2", "two"));
    let (code, said) = folder.run(&["freeze", "ops.yaml"]);
    assert_eq!(code, 1, "{said}");
    let digest = folder.digest("ops@0.3.yaml");
    for part in [
        &format!(
            "the label 0.3 is taken: ops@0.3.yaml holds ops 0.3.1, 1 tool, {digest}, from which this differs by 1 wording"
        ),
        "ops.yaml is now ops 0.3.2, 1 tool, sha256:",
        "`twodoor freeze ops.yaml --as 0.3.2`; or, if no client uses ops@0.3 any more, remove ops@0.3.yaml and ops@0.3.lock",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(folder.read("ops@0.3.yaml"), text);
    // So it is if only the lock is left of it.
    std::fs::remove_file(folder.path("ops@0.3.yaml")).unwrap();
    assert_eq!(folder.run(&["freeze", "ops.yaml"]).0, 1);
    let said: Value = serde_json::from_str(&folder.done(&["freeze", "ops.yaml", "--as", "0.3.2", "--json"])).unwrap();
    assert_eq!((&said["file"], &said["path"]), (&json!("ops@0.3.2.yaml"), &json!("/mcp/ops@0.3.2")));
    assert_eq!(said["digest"], folder.digest("ops@0.3.2.yaml"));
    // The same tools with another command take its place.
    folder.write("ops.yaml", &surface("ops", "0.3.3", "two").replace("printf, two", "printf, mended"));
    folder.done(&["freeze", "ops.yaml", "--as", "0.3.2"]);
    assert_eq!(folder.read("ops@0.3.2.yaml"), folder.read("ops.yaml"));
}

#[test]
fn what_cannot_be_served_cannot_be_frozen() {
    let folder = Folder::new();
    folder.lock("ops.yaml");
    folder.write("ops.yaml", &surface("ops", "1.0.0", "two"));
    let (code, said) = folder.run(&["freeze", "ops.yaml"]);
    assert!(code == 3 && said.contains("error[lock-differs]"), "{code}: {said}");
    folder.write("ops.yaml", "surface: ops\n");
    assert_eq!(folder.run(&["freeze", "ops.yaml"]).0, 3);
    assert_eq!(folder.run(&["freeze", "gone.yaml"]).0, 3);
    assert_eq!(folder.names(), ["ops.lock", "ops.yaml"]);

    folder.write("ops.yaml", &surface("ops", "1.0.0", "one"));
    folder.done(&["freeze", "ops.yaml"]);
    let (code, said) = folder.run(&["freeze", "ops@1.yaml"]);
    assert!(code == 2 && said.contains("frozen already"), "{code}: {said}");
}

#[cfg(unix)]
#[test]
fn a_frozen_copy_is_as_private_as_its_original_and_nothing_is_left_where_nothing_can_be_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    std::fs::set_permissions(folder.path("ops.yaml"), std::fs::Permissions::from_mode(0o600)).unwrap();
    folder.done(&["freeze", "ops.yaml"]);
    for name in ["ops@1.yaml", "ops@1.lock"] {
        assert_eq!(std::fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    // The name of the copy is taken by what no file can replace.
    std::fs::create_dir(folder.path("ops@x.yaml")).unwrap();
    let (code, said) = folder.run(&["freeze", "ops.yaml", "--as", "x"]);
    assert_eq!(code, 1, "{said}");
    std::fs::create_dir(folder.path("ops@y.lock")).unwrap();
    assert_eq!(folder.run(&["freeze", "ops.yaml", "--as", "y"]).0, 1);
    assert_eq!(folder.names(), ["ops.yaml", "ops@1.lock", "ops@1.yaml", "ops@x.yaml", "ops@y.lock"]);
}

#[test]
fn a_frozen_file_is_called_checked_and_digested_like_any_other() {
    let folder = frozen();
    assert_eq!(folder.done(&["call", "say", "--surface", "ops@1.yaml"]).trim(), "one");
    assert!(folder.done(&["check", "ops@1.yaml"]).starts_with("ok: ops@1.yaml: ops@1 1.0.0"));
    assert_ne!(folder.digest("ops@1.yaml"), folder.digest("ops.yaml"));
    // Named alone it is the first surface.
    let served = Served::start(&folder, &["ops@1.yaml"]);
    assert_eq!((served.word("/mcp"), served.word("/mcp/ops@1")), ("one".to_owned(), "one".to_owned()));
    assert_eq!(served.modern("/mcp/ops", "tools/list", &json!({}), &[]).status(), 404);
    drop(served);
    // Named beside its base it is served once.
    let served = Served::start(&folder, &["./ops@1.yaml", "ops.yaml"]);
    assert_eq!((served.word("/mcp"), served.word("/mcp/ops")), ("one".to_owned(), "two".to_owned()));
    assert_eq!(served.opening.len(), 2, "{:?}", served.opening);
}

#[test]
fn over_stdio_the_first_surface_is_served() {
    let folder = frozen();
    folder.write("b.yaml", &surface("other", "1.0.0", "three"));
    let mut child = folder.command(&["serve", "ops.yaml", "b.yaml"]).stdin(Stdio::piped()).spawn().unwrap();
    let told = lines(child.stdout.take().unwrap());
    let call = modern(&json!(1), "tools/call", &json!({ "name": "say" }));
    writeln!(child.stdin.as_mut().unwrap(), "{call}").unwrap();
    let answer: Value = serde_json::from_str(&told.recv_timeout(PATIENCE).unwrap()).unwrap();
    assert_eq!(text_of(&answer), "two");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the others are reached with --http") && !said.contains("at /mcp"), "{said}");
}

#[test]
fn twenty_surfaces_are_served_at_once_and_one_that_changes_changes_no_other() {
    let folder = Folder::new();
    let names: Vec<String> = (0..20).map(|index| format!("s{index}.yaml")).collect();
    for (index, name) in names.iter().enumerate() {
        folder.write(name, &surface(&format!("s{index}"), "1.0.0", &format!("w{index}")));
    }
    let served = Served::start(&folder, &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(served.opening.len(), 20);
    let others: Vec<_> = (0..20).filter(|index| *index != 7).collect();
    let before: Vec<_> = others.iter().map(|index| served.digest(&format!("/mcp/s{index}"))).collect();
    let mut listening = served.listen("/mcp/s7");
    folder.write("s7.yaml", &surface("s7", "1.1.0", "changed"));
    assert_eq!(listening.next()["method"], CHANGED);
    assert_eq!(served.word("/mcp/s7"), "changed");
    for (index, before) in others.iter().zip(&before) {
        assert_eq!(served.word(&format!("/mcp/s{index}")), format!("w{index}"));
        assert_eq!(served.digest(&format!("/mcp/s{index}")), *before);
    }
    let many: Vec<String> = (0..101).map(|index| format!("many@{index}.yaml")).collect();
    many.iter().for_each(|name| folder.write(name, ""));
    folder.write("many.yaml", &surface("many", "1.0.0", "one"));
    assert!(folder.refused(&["many.yaml"], 3).contains("102 surfaces"));
}

#[test]
fn what_is_served_is_said_as_one_json_object_for_each_surface() {
    let folder = frozen();
    let arguments = ["serve", "--http", "127.0.0.1:0", "--json", "--sse", "ops.yaml"];
    let mut child = folder.command(&arguments).spawn().unwrap();
    let said = lines(child.stderr.take().unwrap());
    let [live, old] = [(); 2].map(|()| serde_json::from_str::<Value>(&said.recv_timeout(PATIENCE).unwrap()).unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((&live["surface"], &live["version"]), (&json!("ops"), &json!("2.0.0")));
    assert_eq!((&live["paths"], &live["label"]), (&json!(["/mcp", "/mcp/ops"]), &Value::Null));
    assert!(live["url"].as_str().unwrap().ends_with("/mcp") && live["sse"].as_str().unwrap().ends_with("/sse"));
    assert_eq!((&old["surface"], &old["version"], &old["label"]), (&json!("ops"), &json!("1.0.0"), &json!("1")));
    assert_eq!(old["paths"], json!(["/mcp/ops@1"]));
    assert!(
        old["url"].as_str().unwrap().ends_with("/mcp/ops@1") && old["sse"].as_str().unwrap().ends_with("/sse/ops@1")
    );
    assert_eq!(old["digest"], folder.digest("ops@1.yaml"));
}

#[test]
fn with_tokens_each_path_is_a_resource_of_its_own_and_the_scopes_are_those_of_its_surface() {
    let folder = Folder::new();
    folder.done(&["freeze", "ops.yaml"]);
    let scoped = surface("ops", "2.0.0", "two").replace("read_only: true", "read_only: true\n    scopes: [write]");
    folder.write("ops.yaml", &scoped);
    let made = folder.done(&["token", "alice"]);
    let (token, line) = made.split_once('\n').unwrap();
    folder.write("callers.yaml", &format!("tokens:\n{line}"));
    let served = Served::start(&folder, &["ops.yaml", "--auth", "callers.yaml"]);
    let known = "/.well-known/oauth-protected-resource";
    for path in ["/mcp", "/mcp/ops", "/mcp/ops@1"] {
        let resource = format!("http://{}{path}", served.address);
        assert_eq!(served.send("GET", &format!("{known}{path}"), &[], "").json()["resource"], resource);
        let challenge = served.modern(path, "tools/list", &json!({}), &[]);
        assert_eq!(challenge.status(), 401);
        let metadata = format!("resource_metadata=\"http://{}{known}{path}\"", served.address);
        assert!(challenge.header("www-authenticate").contains(&metadata), "{challenge:?}");
    }
    assert_eq!(served.send("GET", known, &[], "").json()["resource"], format!("http://{}/mcp", served.address));
    assert_eq!(served.send("GET", &format!("{known}/mcp/op"), &[], "").status(), 404);
    let bearer = format!("Bearer {token}");
    let called = |path: &str| {
        let headers = [("Mcp-Name", "say"), ("Authorization", bearer.as_str())];
        served.modern(path, "tools/call", &json!({ "name": "say" }), &headers)
    };
    assert_eq!(called("/mcp/ops@1").status(), 200);
    let refused = called("/mcp/ops");
    assert!(refused.status() == 403 && refused.header("www-authenticate").contains("scope=\"write\""), "{refused:?}");
    drop(served);

    // Behind a proxy each is beneath what the first one is called there.
    folder.write("callers.yaml", &format!("resource: https://mcp.example.org/x\ntokens:\n{line}"));
    let served = Served::start(&folder, &["ops.yaml", "--auth", "callers.yaml"]);
    for path in [format!("{known}/x/ops@1"), format!("{known}/mcp/ops@1")] {
        assert_eq!(served.send("GET", &path, &[], "").json()["resource"], "https://mcp.example.org/x/ops@1", "{path}");
    }
}

#[test]
fn each_surface_keeps_its_tasks_in_a_folder_of_its_own() {
    let folder = Folder::new();
    let with_task =
        |name: &str, version: &str| surface(name, version, "one").replace("read_only: true", "task: optional");
    folder.write("ops.yaml", &with_task("ops", "1.0.0"));
    folder.done(&["freeze", "ops.yaml"]);
    let served = Served::start(&folder, &["ops.yaml", "--state", "kept"]);
    let session = served.session("/mcp/ops");
    let call = legacy(&json!(1), "tools/call", &json!({ "name": "say", "arguments": {}, "task": {} }));
    let task = served.legacy("/mcp/ops", Some(&session), &call).json()["result"]["task"]["taskId"].clone();
    let get = legacy(&json!(2), "tasks/get", &json!({ "taskId": task }));
    let old = served.session("/mcp/ops@1");
    assert_eq!(served.legacy("/mcp/ops", Some(&session), &get).json()["result"]["taskId"], task);
    assert_eq!(served.legacy("/mcp/ops@1", Some(&old), &get).json()["error"]["code"], -32602);
    drop(served);
    assert!(folder.path("kept").is_dir() && folder.path("kept.ops@1").is_dir(), "{:?}", folder.names());
    drop(Served::start(&folder, &["ops.yaml"]));
    for name in ["ops", "ops@1"] {
        assert!(folder.path("state/twodoor").join(name).is_dir(), "{name}");
    }
}

#[test]
fn what_one_surface_sealed_another_does_not_open() {
    let folder = Folder::new();
    let many: String = (0..501).map(|n| format!("  t{n}:\n    description: T.\n    run: [pwd]\n")).collect();
    folder.write("ops.yaml", &format!("surface: ops\nversion: 1.0.0\ntools:\n{many}"));
    folder.done(&["freeze", "ops.yaml"]);
    let served = Served::start(&folder, &["ops.yaml"]);
    let cursor = served.modern("/mcp/ops", "tools/list", &json!({}), &[]).json()["result"]["nextCursor"].clone();
    assert!(cursor.is_string());
    let next = |path: &str| served.modern(path, "tools/list", &json!({ "cursor": cursor }), &[]).json();
    assert_eq!(next("/mcp")["result"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(next("/mcp/ops@1")["error"]["code"], -32602);
}

#[test]
fn only_beside_a_surface_file_are_its_frozen_versions_looked_for() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("inner")).unwrap();
    folder.write("inner/ops@9.yaml", &surface("ops", "9.0.0", "nine"));
    let served = Served::start(&folder, &["ops.yaml"]);
    assert_eq!(served.opening.len(), 1);
}
