//! The command line as people and programs use it: exit codes, JSON, streams, signals.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may fail by panicking"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use serde_json::{Value, json};

const SURFACE: &str = r#"
surface: shell
version: 1.0.0
tools:
  say:
    description: Says a text.
    read_only: true
    args: { text: { type: string, as: data, required: true }, times: { type: integer, default: 1 } }
    run: [printf, "%s", "{text}", "{times}"]
  fail:
    description: Fails.
    run: [sh, -c, "echo broken >&2; exit 3"]
  odd:
    description: Prints what it did not promise.
    run: [printf, "%s", '{{"n":"x"}}']
    output: json
    outputSchema: { type: object, properties: { n: { type: integer } } }
  all:
    description: Shows all arguments.
    inputSchema: { type: object, properties: { count: { type: integer, default: 20 } } }
    stdin: "{*}"
    run: [cat]
  wait:
    description: Waits.
    run: [sleep, "600"]
resources:
  motd: { text: Hello }
  gone: { run: [sh, -c, exit 4], missing_codes: [4] }
  bytes: { file: bytes.bin }
prompts:
  greet:
    args: { who: { required: true }, tone: { enum: [kind, strict], default: kind } }
    messages: [{ text: "Greet {who}, {tone}." }, { role: assistant, resource: "shell:///motd" }]
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("surface.yaml"), SURFACE).unwrap();
    std::fs::write(folder.path().join("bytes.bin"), [0, 1, 255]).unwrap();
    folder
}

fn twodoor(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let folder = folder();
    let Output { status, stdout, stderr } = twodoor(folder.path(), arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn json_of(arguments: &[&str]) -> Value {
    let (_, stdout, stderr) = run(arguments);
    serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {stdout}{stderr}"))
}

#[test]
fn wrong_usage_ends_with_2_a_refused_surface_with_3_a_failed_tool_with_1() {
    for (arguments, code, said) in [
        (&["frobnicate"][..], 2, "frobnicate"),
        (&["serve", "--http", "0.0.0.0:1"], 2, "does not speak TLS"),
        (&["serve", "--http", "nonsense"], 2, "HOST:PORT"),
        (&["serve", "--sse"], 2, "--http"),
        (&["serve", "--http", "127.0.0.1:0", "--sse", "--legacy", "off"], 2, "--legacy sessions"),
        (&["serve", "--auth", "callers.yaml"], 2, "--http"),
        (&["serve", "--http", "127.0.0.1:0", "--auth", "missing.yaml"], 3, "twodoor token"),
        (&["serve", "--http", "127.0.0.1:0", "--auth", "surface.yaml"], 3, "a file of callers"),
        (&["serve", "--http", "0.0.0.0:1", "--auth", "surface.yaml"], 2, "does not speak TLS"),
        (&["token", "no name"], 2, "A-Z a-z 0-9"),
        (&["token", "--scope", "a b"], 2, "visible ASCII"),
        (&["check", "missing.yaml"], 3, ""),
        (&["serve", "missing.yaml"], 3, "missing.yaml"),
        (&["call", "missing", "-s", "missing.yaml"], 3, "missing.yaml"),
        (&["digest", "missing.yaml"], 3, "missing.yaml"),
        (&["digest", "--list", "missing.json"], 2, "missing.json"),
        (&["digest", "--list", "surface.yaml"], 2, "surface.yaml"),
        (&["digest", "surface.yaml", "--list", "-"], 2, "cannot be used with"),
        (&["digest", "--list", "-"], 2, "standard input"),
        (&["serve", "--session-idle", "0s"], 2, "from 1s to 24h"),
        (&["serve", "--session-idle", "2d"], 2, "from 1s to 24h"),
        (&["serve", "--session-idle", "99999999999999999999s"], 2, "from 1s to 24h"),
        (&["call", "sya", "text=x"], 2, "did you mean say?"),
        (&["call", "say", "txet=x"], 2, "did you mean text?"),
        (&["call", "say", "text"], 2, "key=value"),
        (&["call", "say", "text=a", "text=b"], 2, "twice"),
        (&["call", "say"], 2, "text"),
        (&["call", "say", "text=a", "times=many"], 2, "integer"),
        (&["call", "say", "text=a", "times={\"a\":1,\"a\":2}"], 2, "duplicate key \"a\""),
        (&["call", "say", "--args", "{"], 2, "--args"),
        (&["call", "say", "--args", "[]"], 2, "object"),
        (&["call", "say", "--args", "{\"text\":\"a\",\"text\":\"b\"}"], 2, "duplicate"),
        (&["call", "fail"], 1, "broken"),
        (&["call", "odd"], 1, "outputSchema:\n- /n: "),
        (&["read", "shell:///motdd"], 2, "did you mean shell:///motd?"),
        (&["read", "shell:///gone"], 1, "nothing to read"),
        (&["read", "shell:///motd", "-s", "missing.yaml"], 3, "missing.yaml"),
        (&["prompt", "gret", "who=x"], 2, "did you mean greet?"),
        (&["prompt", "greet"], 2, "greet needs who"),
        (&["prompt", "greet", "who"], 2, "key=value"),
        (&["prompt", "greet", "whom=x"], 2, "did you mean who?"),
        (&["prompt", "greet", "who=a", "who=b"], 2, "twice"),
        (&["prompt", "greet", "who=a", "tone=rude"], 1, "rude"),
        (&["probe", "no-such-program-anywhere"], 2, "no-such-program-anywhere"),
        (&["probe", "https://127.0.0.1:1/mcp", "--verbose"], 2, "behind the URL"),
        (&["probe", "http://127.0.0.1:1/mcp", "--verbose"], 2, "behind the URL"),
        (&["probe", "localhost:8484/mcp"], 2, "did you mean http://localhost:8484/mcp?"),
        (&["completions", "tcsh"], 2, "tcsh"),
    ] {
        let (found, stdout, stderr) = run(arguments);
        assert_eq!(found, Some(code), "{arguments:?}\n{stdout}{stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_call_prints_what_the_tool_said_and_a_dry_run_what_it_would_run() {
    let (code, stdout, _) = run(&["call", "say", "text=-n $(id)"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "-n $(id)1\n"));
    let (code, stdout, _) = run(&["call", "say", "--args", r#"{"text": "a", "times": 2}"#]);
    assert_eq!((code, stdout.as_str()), (Some(0), "a2\n"));
    let shown = json_of(&["call", "say", "text=a b", "--dry-run", "--json"]);
    let argv = shown["argv"].as_array().unwrap();
    assert!(argv[0].as_str().unwrap().ends_with("/printf"));
    assert_eq!(argv[1..], ["%s", "a b", "1"]);
    assert!(shown["env"].as_array().unwrap().contains(&json!("PATH")));
    let (code, stdout, _) =
        run(&["call", "all", "--args", r#"{"wide": 123456789012345678901234567890, "-x": [1.50]}"#]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "{\"wide\":123456789012345678901234567890,\"-x\":[1.50],\"count\":20}\n")
    );
    assert_eq!(json_of(&["call", "fail", "--json"])["isError"], true);
    assert_eq!(json_of(&["call", "say", "text=x", "--json"])["text"], "x1");
}

#[test]
fn a_resource_and_a_prompt_are_shown_as_a_client_receives_them() {
    assert_eq!(run(&["read", "shell:///motd"]), (Some(0), "Hello\n".to_owned(), String::new()));
    let read = json_of(&["read", "shell:///motd", "--json"]);
    assert_eq!(read, json!({ "contents": [{ "uri": "shell:///motd", "mimeType": "text/plain", "text": "Hello" }] }));
    let folder = folder();
    let bytes = twodoor(folder.path(), &["read", "shell:///bytes"]).output().unwrap().stdout;
    assert_eq!(bytes, [0, 1, 255]);
    let (code, said, _) = run(&["prompt", "greet", "who={tone}"]);
    let expected = "user:\nGreet {tone}, kind.\n\nassistant:\n[shell:///motd]\nHello\n";
    assert_eq!((code, said.as_str()), (Some(0), expected));
    let said = json_of(&["prompt", "greet", "who=you", "tone=strict", "--json"]);
    assert_eq!(
        said["messages"][0],
        json!({ "role": "user", "content": { "type": "text", "text": "Greet you, strict." } })
    );
    assert_eq!(said["messages"][1]["content"]["resource"]["text"], "Hello");
}

#[test]
fn a_skill_is_counted_and_its_files_are_read_like_resources() {
    let folder = tempfile::tempdir().unwrap();
    let surface = "surface: s\nversion: 1.0.0\nskills:\n  refunds: { folder: skills/refunds }\n";
    std::fs::write(folder.path().join("surface.yaml"), surface).unwrap();
    std::fs::create_dir_all(folder.path().join("skills/refunds")).unwrap();
    let text = "---\nname: refunds\ndescription: d\n---\nRefund it.\n";
    std::fs::write(folder.path().join("skills/refunds/SKILL.md"), text).unwrap();
    let said = |arguments: &[&str]| {
        let output = twodoor(folder.path(), arguments).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert_eq!(said(&["check"]), "ok: surface.yaml: s 1.0.0, 1 skill\n");
    assert_eq!(said(&["read", "skill://refunds/SKILL.md"]), text);
    assert!(said(&["read", "skill://refund/SKILL.md"]).contains("did you mean skill://refunds/SKILL.md?"));
}

#[test]
fn content_of_every_kind_is_shown_and_what_no_client_would_get_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let surface = r#"
surface: s
version: 1.0.0
tools:
  picture:
    description: A picture.
    run: [printf, "%s", '{{"content":[{{"type":"text","text":"seen"}},{{"type":"image","data":"AQI=","mimeType":"image/png"}}]}}']
    output: content
  bare:
    description: Promises data and returns none.
    run: [printf, "%s", '{{"content":[]}}']
    output: content
    outputSchema: { type: object }
"#;
    std::fs::write(folder.path().join("surface.yaml"), surface).unwrap();
    let called = |tool: &str| {
        let output = twodoor(folder.path(), &["call", tool]).output().unwrap();
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    assert_eq!(called("picture"), (Some(0), "seen\n[image/png, 2 bytes]\n".to_owned()));
    let (code, said) = called("bare");
    assert!(code == Some(1) && said.contains("no structured content"), "{said}");
}

#[test]
fn a_missing_file_is_named_without_an_arrow_and_one_tool_is_not_tools() {
    let folder = tempfile::tempdir().unwrap();
    let check = || twodoor(folder.path(), &["check"]).output().unwrap().stdout;
    let missing = String::from_utf8(check()).unwrap();
    assert!(missing.contains("there is no surface.yaml here") && missing.contains("--surface FILE"), "{missing}");
    assert!(!missing.contains("-->"), "{missing}");
    let one = "surface: s\nversion: 1.0.0\ntools:\n  t: { description: x, run: [ls] }\n";
    std::fs::write(folder.path().join("surface.yaml"), one).unwrap();
    assert_eq!(String::from_utf8(check()).unwrap(), "ok: surface.yaml: s 1.0.0, 1 tool\n");
}

#[test]
fn a_check_as_json_has_each_problem_with_its_place() {
    let folder = folder();
    let bad = SURFACE.replace("read_only", "read_onyl").replace("version: 1.0.0", "version: one");
    std::fs::write(folder.path().join("bad.yaml"), bad).unwrap();
    let output = twodoor(folder.path(), &["check", "surface.yaml", "bad.yaml", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let problems: Value = serde_json::from_slice(&output.stdout).unwrap();
    let errors: Vec<&Value> = problems.as_array().unwrap().iter().filter(|p| p["severity"] == "error").collect();
    let rules: Vec<&str> = errors.iter().map(|p| p["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["version", "unknown-key"]);
    assert_eq!((errors[1]["line"].as_u64(), errors[1]["suggestion"].as_str()), (Some(7), Some("read_only")));
}

#[test]
fn the_digest_printed_is_the_digest_served() {
    let printed = json_of(&["digest", "--json"]);
    let folder = folder();
    let output = twodoor(folder.path(), &["probe", "--json", env!("CARGO_BIN_EXE_twodoor"), "serve"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &report["verdict"]), (Some(0), &json!("same")));
    for door in ["modern", "legacy"] {
        assert_eq!(report[door]["digest"]["sortedKeys"], printed["digest"], "{door}");
        assert_eq!(report[door]["published"][0]["holds"], true, "{door}");
    }
    let names: Vec<&str> = printed["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["say", "fail", "odd", "all", "wait"]);
    assert!(printed["tools"][0]["digest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(printed["revisions"].as_object().unwrap().len(), 5);
}

#[test]
fn the_digest_of_a_received_list_is_told_for_each_canonical_form_where_they_differ() {
    let folder = folder();
    let digest = |list: &str| {
        let mut child = twodoor(folder.path(), &["digest", "--list", "-"]);
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(list.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    // SHA-256 of `[{"description":"é","name":"t"}]`, as any tool computes it.
    let known = "sha256:fc71552bf6cc80b92a5ea2797ba48e3ef75aa6a8d10a116e1faf40e38c851021\n";
    assert_eq!(digest(r#"[{"name":"t","description":"\u00e9"}]"#), known);
    assert_eq!(digest(r#"{"tools":[ {"description" : "é","name":"t"} ],"ttlMs":0}"#), known);
    let wide = digest(r#"[{"name":"t","_meta":{"n":1e16}}]"#);
    let forms: Vec<_> = wide.lines().map(|line| line.split_once("  ").unwrap()).collect();
    assert_eq!((forms[0].1, forms[1].1), ("sorted keys", "RFC 8785"));
    assert_ne!(forms[0].0, forms[1].0);
}

#[test]
fn a_probe_takes_its_option_behind_a_url_and_shows_why_a_server_died() {
    let report = json_of(&["probe", "http://127.0.0.1:1/mcp", "--json"]);
    assert_eq!(report["verdict"], "no-door");
    let report = json_of(&["probe", "--json", "--", "sh", "-c", "echo no config >&2; exit 7"]);
    for door in ["modern", "legacy"] {
        let problem = report[door]["problem"].as_str().unwrap();
        assert!(problem.contains("code 7") && problem.ends_with("no config"), "{problem}");
    }
}

#[test]
fn completions_exist_for_every_shell_and_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, stdout, _) = run(&["completions", shell]);
        assert_eq!(code, Some(0));
        for command in [
            "serve",
            "check",
            "call",
            "digest",
            "diff",
            "lock",
            "freeze",
            "verify",
            "probe",
            "token",
            "approvals",
            "completions",
        ] {
            assert!(stdout.contains(command), "{shell} {command}");
        }
    }
}

struct Served {
    child: Child,
    stderr: BufReader<ChildStderr>,
    _folder: tempfile::TempDir,
}

impl Served {
    fn start(arguments: &[&str]) -> Self {
        Self::start_in(folder(), arguments)
    }

    fn start_in(folder: tempfile::TempDir, arguments: &[&str]) -> Self {
        let mut command = twodoor(folder.path(), arguments);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr, _folder: folder }
    }

    fn address(&mut self) -> String {
        let mut line = String::new();
        while !line.contains("listening on http://") {
            line.clear();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "it never listened");
        }
        line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned()
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn signal(&self, name: &str) {
        assert!(
            Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap().success()
        );
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    fn healthy(address: &str) -> bool {
        let Ok(mut socket) = std::net::TcpStream::connect(address) else { return false };
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        socket.write_all(request.as_bytes()).is_ok()
            && socket.read_to_string(&mut answer).is_ok()
            && answer.starts_with("HTTP/1.1 200")
    }
}

fn call(id: u64, tool: &str) -> Value {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "_meta": meta } })
}

#[test]
fn the_end_of_input_ends_a_server_only_if_it_serves_stdio() {
    let mut http = Served::start(&["serve", "--http", "127.0.0.1:0"]);
    let address = http.address();
    drop(http.child.stdin.take());
    assert!(Served::healthy(&address));
    http.signal("TERM");
    assert_eq!(http.code(), Some(0));

    let mut both = Served::start(&["serve", "--http", "127.0.0.1:0", "--stdio"]);
    let address = both.address();
    assert!(Served::healthy(&address));
    drop(both.child.stdin.take());
    assert_eq!(both.code(), Some(0));
    assert!(!Served::healthy(&address));
}

#[test]
fn a_server_says_what_it_serves_as_one_json_object() {
    let mut served = Served::start(&["serve", "--http", "127.0.0.1:0", "--json"]);
    let mut line = String::new();
    served.stderr.read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&said["surface"], &said["tools"]), (&json!("shell"), &json!(5)));
    assert!(said["digest"].as_str().unwrap().starts_with("sha256:"));
    let address = said["url"].as_str().unwrap().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    assert!(Served::healthy(address));
    assert_eq!(said["sse"], Value::Null);
}

#[test]
fn the_transport_before_streamable_http_is_served_where_it_is_asked_for() {
    let mut served = Served::start(&["serve", "--http", "127.0.0.1:0", "--sse", "--json"]);
    let mut line = String::new();
    served.stderr.read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let address = said["sse"].as_str().unwrap().strip_prefix("http://").unwrap().strip_suffix("/sse").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET /sse HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut event = lines.skip_while(|line| line != "event: endpoint");
    assert_eq!(event.next().as_deref(), Some("event: endpoint"));
    assert!(event.next().unwrap().starts_with("data: /sse/message?session="));
}

/// The status and the challenge of a call over HTTP.
fn call_over_http(address: &str, tool: &str, token: Option<&str>) -> (String, String) {
    let body = call(1, tool).to_string();
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n{token}Connection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let challenge = answer.lines().find_map(|line| line.strip_prefix("www-authenticate: ")).unwrap_or_default();
    (answer.split(' ').nth(1).unwrap().to_owned(), challenge.to_owned())
}

#[test]
fn a_token_that_was_made_is_taken_for_its_scopes_where_its_line_stands() {
    let (code, made, _) = run(&["token", "alice", "--scope", "read", "--scope", "files:list"]);
    assert_eq!(code, Some(0));
    let (token, line) = made.split_once('\n').unwrap();
    let (_, other, _) = run(&["token", "alice"]);
    let stranger = other.lines().next().unwrap();
    assert_ne!(token, stranger);
    assert!(!line.contains(token));
    let folder = folder();
    let tool =
        |name: &str, scopes: &str| format!("  {name}: {{ description: A tool., run: [pwd], scopes: {scopes} }}\n");
    let tools = [tool("open", "[files:list, read]"), tool("closed", "[read, write]")].concat();
    let surface = format!("surface: s\nversion: 1.0.0\ntools:\n{tools}");
    std::fs::write(folder.path().join("surface.yaml"), surface).unwrap();
    let callers = format!("authorization_servers: []\ntokens:\n{line}");
    std::fs::write(folder.path().join("callers.yaml"), callers).unwrap();
    let mut served = Served::start_in(folder, &["serve", "--http", "127.0.0.1:0", "--stdio", "--auth", "callers.yaml"]);
    let address = served.address();
    let metadata = format!("resource_metadata=\"http://{address}/.well-known/oauth-protected-resource/mcp\"");
    let of = |tool, token| call_over_http(&address, tool, token);
    assert_eq!(of("open", Some(token)), ("200".to_owned(), String::new()));
    assert_eq!(of("open", None), ("401".to_owned(), format!("Bearer {metadata}")));
    let (status, challenge) = of("open", Some(stranger));
    assert!(status == "401" && challenge.starts_with("Bearer error=\"invalid_token\""), "{challenge}");
    let (status, challenge) = of("closed", Some(token));
    assert!(status == "403" && challenge.contains("scope=\"read write\""), "{challenge}");
    // Whoever started it needs no token.
    served.say(&call(1, "closed"));
    let mut line = String::new();
    BufReader::new(served.child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert!(answer["result"]["content"].is_array() && answer["result"]["isError"] != true, "{answer}");
}

/// What a session answers to a caller; a new session of it where none is named.
fn ask_in_session(address: &str, token: &str, session: Option<&str>, method: &str, params: &Value) -> (Value, String) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let session = session.map(|session| format!("Mcp-Session-Id: {session}\r\n")).unwrap_or_default();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Authorization: Bearer {token}\r\n{session}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap_or_default();
    (serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}")), session.to_owned())
}

#[test]
fn a_task_of_one_caller_is_listed_to_it_alone_and_unknown_to_others() {
    let made = ["alice", "bob"].map(|name| run(&["token", name]).1);
    let [(alice, a), (bob, b)] = made.each_ref().map(|made| made.split_once('\n').unwrap());
    let folder = folder();
    let surface = "surface: s\nversion: 1.0.0\ntools:\n  t: { description: T., run: [pwd], task: optional }\n";
    std::fs::write(folder.path().join("surface.yaml"), surface).unwrap();
    std::fs::write(folder.path().join("callers.yaml"), format!("tokens:\n{a}{b}")).unwrap();
    let options = ["serve", "--http", "127.0.0.1:0", "--auth", "callers.yaml", "--state", "state"];
    let mut served = Served::start_in(folder, &options);
    let address = served.address();
    let client = json!({ "name": "x", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let [hers, his] = [alice, bob].map(|token| {
        let (opened, session) = ask_in_session(&address, token, None, "initialize", &hello);
        assert!(opened["result"]["capabilities"]["tasks"]["list"].is_object(), "{opened}");
        session
    });
    let ask = |token: &str, session: &str, method: &str, params: Value| {
        ask_in_session(&address, token, Some(session), method, &params).0
    };
    let call = json!({ "name": "t", "arguments": {}, "task": {} });
    let task = ask(alice, &hers, "tools/call", call)["result"]["task"]["taskId"].clone();
    let listed = |token, session| ask(token, session, "tasks/list", json!({}))["result"]["tasks"].clone();
    assert_eq!(listed(alice, &hers)[0]["taskId"], task);
    assert_eq!(listed(bob, &his), json!([]));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = ask(bob, &his, method, json!({ "taskId": task }));
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    assert_eq!(ask(alice, &hers, "tasks/get", json!({ "taskId": task }))["result"]["taskId"], task);
}

#[test]
fn both_flags_serve_both() {
    let mut both = Served::start(&["serve", "--http", "127.0.0.1:0", "--stdio"]);
    assert!(Served::healthy(&both.address()));
    both.say(&call(1, "fail"));
    let mut line = String::new();
    BufReader::new(both.child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(true)));
}

/// What `ps` lists of processes, by number.
fn listed(selection: &[&str]) -> Vec<String> {
    let listed = Command::new("ps").args(["-o", "pid="]).args(selection).output().unwrap();
    String::from_utf8(listed.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

/// The children of a process, once there are any.
fn children(of: &Served) -> Vec<String> {
    loop {
        let running = listed(&["--ppid", &of.child.id().to_string()]);
        if !running.is_empty() {
            return running;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_stop_leaves_no_program_behind() {
    let commands = [(&["serve"][..], 0), (&["call", "wait"][..], 1), (&["probe", "--", "sleep", "600"][..], 2)];
    let each = commands.iter().flat_map(|command| ["TERM", "INT", "HUP"].map(|signal| (command, signal)));
    // To a server a hang-up says that its surface is to be read again.
    let each = each.filter(|((arguments, _), signal)| *arguments != ["serve"] || *signal != "HUP");
    // Stopped all at once: a server gives its calls time.
    let stopping: Vec<_> = each
        .map(|((arguments, code), signal)| {
            let mut started = Served::start(arguments);
            if *arguments == ["serve"] {
                started.say(&call(1, "wait"));
            }
            let running = children(&started);
            started.signal(signal);
            (arguments, signal, code, started, running)
        })
        .collect();
    for (arguments, signal, code, mut started, running) in stopping {
        assert_eq!(started.code(), Some(*code), "{arguments:?} {signal}");
        assert_eq!(listed(&["-p", &running.join(",")]), [""; 0], "{arguments:?} {signal}");
    }
}

#[test]
fn a_hang_up_that_was_ignored_stays_ignored() {
    let folder = folder();
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_twodoor")).args(["serve", "--http", "127.0.0.1:0"]).current_dir(folder.path());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let mut served = Served { child, stderr, _folder: folder };
    let address = served.address();
    served.signal("HUP");
    assert!(Served::healthy(&address));
    served.signal("TERM");
    assert_eq!(served.code(), Some(0));
}

#[test]
fn a_port_that_is_taken_ends_with_5_and_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, _, stderr) = run(&["serve", "--http", &address]);
    assert_eq!(code, Some(5));
    assert!(stderr.contains(&address), "{stderr}");
}

#[test]
fn help_teaches_every_command_by_example() {
    for command in ["serve", "check", "call", "probe", "token", "approvals", "completions"] {
        let (code, stdout, _) = run(&[command, "--help"]);
        assert_eq!(code, Some(0));
        assert!(stdout.contains("Example"), "{command}");
    }
}
