//! The real server, killed at any moment: whatever it acknowledged of a task is there afterwards.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking"
)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything that must happen may take.
const PATIENCE: Duration = Duration::from_secs(20);

const SURFACE: &str = r#"
surface: crash
version: 1.0.0
tools:
  say:
    description: Says a text.
    read_only: true
    task: optional
    args: { text: { type: string, required: true } }
    run: [printf, "%s", "{text}"]
  wait:
    description: Waits.
    read_only: true
    task: required
    run: [sleep, "60"]
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("surface.yaml"), SURFACE).unwrap();
    folder
}

/// A server over stdio, killed with its owner.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    sent: u64,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
        command.args(["serve", "surface.yaml", "--state", "state"]).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, sent: 0 }
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.sent += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params});
        // A server that was killed reads no more; that is seen where its answers end.
        let _ = writeln!(self.input, "{message}");
        self.sent
    }

    /// Sends a request of a client that follows tasks.
    fn modern(&mut self, method: &str, mut params: Value) -> u64 {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        });
        self.send(method, params)
    }

    fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        // The last line of one that was killed may be cut.
        line.ends_with('\n').then(|| serde_json::from_str(&line).unwrap())
    }

    fn ask(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive().expect("the server ended");
            if message["id"] == id {
                return message;
            }
        }
    }

    fn get(&mut self, task: &str) -> Value {
        let id = self.modern("tasks/get", json!({"taskId": task}));
        self.ask(id)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as its client would.
    fn end(mut self) -> Option<i32> {
        drop(self.input);
        self.child.wait().unwrap().code()
    }
}

/// Calls, looks and kills: after `answers` answers, with more requests on their way. Gives what was acknowledged.
fn until_killed(folder: &Path, answers: u64, acknowledged: &mut BTreeMap<String, Option<String>>) {
    let mut server = Server::start(folder);
    let mut looks = BTreeMap::new();
    let mut texts = BTreeMap::new();
    for n in 0..answers + 3 {
        let text = format!("{answers}.{n}");
        let tool = if n % 7 == 3 { "wait" } else { "say" };
        let id = server.modern(
            "tools/call",
            json!({"name": tool, "arguments": if tool == "say" { json!({"text": text}) } else { json!({}) }}),
        );
        texts.insert(id, text);
    }
    let mut received = 0;
    while received < answers {
        let answer = server.receive().expect("the server ended");
        received += 1;
        let id = answer["id"].as_u64().unwrap();
        let result = &answer["result"];
        let task = result["taskId"].as_str().unwrap_or_default().to_owned();
        match result["resultType"].as_str() {
            Some("task") => {
                acknowledged.insert(task.clone(), None);
                let look = server.modern("tasks/get", json!({"taskId": task}));
                looks.insert(look, task);
            }
            Some("complete") if looks.contains_key(&id) => {
                assert_eq!(looks[&id], task);
                if result["status"] == "completed" {
                    let text = result["result"]["content"][0]["text"].as_str().unwrap().to_owned();
                    acknowledged.insert(task, Some(text));
                }
            }
            // A call beyond the limit of those that run is refused, and so makes no task.
            _ => assert_eq!(result["isError"], true, "{answer}"),
        }
    }
    server.kill();
}

#[test]
fn whatever_moment_the_server_is_killed_at_every_acknowledged_task_is_there_afterwards() {
    let folder = folder();
    let mut acknowledged = BTreeMap::new();
    for round in 0..6u64 {
        let answers = 1 + round * 3 + getrandom::u64().unwrap() % 12;
        until_killed(folder.path(), answers, &mut acknowledged);
        let mut server = Server::start(folder.path());
        for (task, completed) in &acknowledged {
            let answer = server.get(task);
            let result = &answer["result"];
            match (completed, result["status"].as_str()) {
                (Some(text), Some("completed")) => assert_eq!(result["result"]["content"][0]["text"], **text),
                (None, Some("completed")) => {}
                (None, Some("failed")) => {
                    let message = result["error"]["message"].as_str().unwrap();
                    assert!(message.contains("the server was restarted"), "{answer}");
                }
                other => panic!("round {round}: {task} was {other:?}: {answer}"),
            }
        }
        assert!(round == 0 || !acknowledged.is_empty());
        assert_eq!(server.end(), Some(0));
    }
}

#[test]
fn an_older_client_waits_for_the_result_of_its_task_and_lists_and_cancels() {
    let folder = folder();
    let mut server = Server::start(folder.path());
    let opening =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let id = server.send("initialize", opening);
    let opened = server.ask(id);
    assert!(opened["result"]["capabilities"]["tasks"]["list"].is_object(), "{opened}");
    let call = json!({"name": "say", "arguments": {"text": "hello"}, "task": {"ttl": 120_000}});
    let id = server.send("tools/call", call);
    let created = server.ask(id);
    assert_eq!(created["result"]["task"]["ttl"], 120_000, "{created}");
    let said = created["result"]["task"]["taskId"].clone();
    let id = server.send("tasks/result", json!({"taskId": said}));
    let result = server.ask(id);
    assert_eq!(result["result"]["content"][0]["text"], "hello", "{result}");
    assert_eq!(result["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], said);

    let id = server.send("tools/call", json!({"name": "wait", "arguments": {}, "task": {}}));
    let waits = server.ask(id)["result"]["task"]["taskId"].clone();
    let id = server.send("tasks/list", json!({}));
    let listed = server.ask(id);
    let statuses: Vec<_> = listed["result"]["tasks"].as_array().unwrap().iter().map(|t| t["status"].clone()).collect();
    assert_eq!(statuses, ["completed", "working"]);
    for (expected, pointer) in [(json!("cancelled"), "/result/status"), (json!(-32602), "/error/code")] {
        let id = server.send("tasks/cancel", json!({"taskId": waits}));
        let cancelled = server.ask(id);
        assert_eq!(cancelled.pointer(pointer), Some(&expected), "{cancelled}");
    }
    assert_eq!(server.end(), Some(0));
}

#[test]
fn two_servers_share_a_state_folder() {
    let folder = folder();
    let (mut one, mut two) = (Server::start(folder.path()), Server::start(folder.path()));
    let id = one.modern("tools/call", json!({"name": "wait", "arguments": {}}));
    let task = one.ask(id)["result"]["taskId"].as_str().unwrap().to_owned();
    assert_eq!(two.get(&task)["result"]["status"], "working");
    one.kill();
    // A program that was being started as its server died holds the server's lock until it runs.
    let began = Instant::now();
    let mut seen = two.get(&task);
    while seen["result"]["status"] == "working" && began.elapsed() < PATIENCE {
        seen = two.get(&task);
    }
    assert_eq!(seen["result"]["status"], "failed", "{seen}");
    assert_eq!(two.end(), Some(0));
}

#[test]
fn a_state_folder_that_cannot_be_trusted_is_refused_with_4() {
    let state = |prepare: &dyn Fn(&Path)| {
        let folder = folder();
        let state = folder.path().join("state");
        std::fs::create_dir(&state).unwrap();
        prepare(&state);
        let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
        command.args(["serve", "surface.yaml", "--state", "state"]).current_dir(folder.path()).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let holder = |state: &Path| {
        let holder = state.join("0123456789abcdef0123456789abcdef");
        std::fs::write(state.join("format"), "{\"twodoor\":\"state\",\"v\":1}\n").unwrap();
        std::fs::create_dir(&holder).unwrap();
        holder
    };
    assert_eq!(state(&|_| {}).0, Some(0));
    let name = format!("{}-{}.json", "0".repeat(64), "0".repeat(32));
    for (prepare, said) in [
        (&(|state: &Path| std::fs::write(state.join("notes"), "mine").unwrap()) as &dyn Fn(&Path), "notes"),
        (&|state: &Path| std::fs::write(state.join("format"), "").unwrap(), "format is damaged"),
        (&|state: &Path| std::fs::write(state.join("format"), r#"{"v":9}"#).unwrap(), "newer twodoor"),
        (&|state: &Path| std::fs::write(holder(state).join(&name), r#"{"v":1"#).unwrap(), "is damaged"),
        (&|state: &Path| std::fs::write(holder(state).join(&name), r#"{"v":2}"#).unwrap(), "newer twodoor"),
        (&|state: &Path| std::fs::create_dir(holder(state).join(&name)).unwrap(), "cannot read"),
        (
            &|state: &Path| std::fs::set_permissions(state, std::fs::Permissions::from_mode(0o777)).unwrap(),
            "can be written by other users",
        ),
    ] {
        let (code, stderr) = state(prepare);
        assert_eq!(code, Some(4), "{said}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains("help: "), "{said}: {stderr}");
    }
}
