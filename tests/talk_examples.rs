//! `examples/talk.yaml` over the binary's standard streams, with a client of each era, and at the shell.

// Helpers of tests fail by panicking, as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use twodoor::surface::render;

mod folder;

use folder::{Folder, load};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");

/// A copy of the example, beside a folder with backup files in it.
fn copy(name: &str) -> (Folder, PathBuf) {
    let folder = Folder::new(name);
    for sub in ["talk", "old/.hidden"] {
        fs::create_dir_all(folder.0.join(sub)).unwrap();
    }
    for file in ["talk.yaml", "talk/tidy.sh", "talk/checksums.py"] {
        fs::copy(Path::new(EXAMPLES).join(file), folder.0.join(file)).unwrap();
    }
    for file in ["a~", "b \"quoted\".bak", "keep.txt", ".hidden/c.bak"] {
        folder.file(&format!("old/{file}"), "x");
    }
    let surface = folder.0.join("talk.yaml");
    (folder, surface)
}

fn left(folder: &Folder) -> Vec<String> {
    let names = fs::read_dir(folder.0.join("old")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

/// The binary as a server, and its peer.
struct Peer {
    child: Child,
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
}

impl Peer {
    fn new(surface: &Path) -> Self {
        let (their_input, input) = std::io::pipe().unwrap();
        let (output, their_output) = std::io::pipe().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
        command.arg("serve").arg(surface).stdin(their_input).stdout(their_output).stderr(Stdio::null());
        command.env_remove("HOME").env_remove("XDG_STATE_HOME");
        let child = command.spawn().unwrap();
        Self { child, input: Some(input), output: BufReader::new(output) }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The notifications before the next message with an id, and that message.
    fn answer(&mut self) -> (Vec<Value>, Value) {
        let mut told = Vec::new();
        loop {
            let message = self.next();
            if message.get("id").is_some() {
                return (told, message);
            }
            told.push(message);
        }
    }

    fn modern(&mut self, id: u32, params: &Value, capabilities: &Value) -> (Vec<Value>, Value) {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/logLevel": "info",
            "progressToken": "p",
        });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        self.answer()
    }

    fn initialize(&mut self, capabilities: &Value) {
        let client = json!({ "name": "raw", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
        self.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        let opened = self.next();
        assert_eq!(opened["result"]["capabilities"]["logging"], json!({}));
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    fn legacy(&mut self, id: u32, params: &Value) -> (Vec<Value>, Value) {
        let mut params = params.clone();
        params["_meta"] = json!({ "progressToken": "p" });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        self.answer()
    }

    fn end(mut self) {
        self.input = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"))
}

/// How far, of how much, for each notice of progress.
fn progress(told: &[Value]) -> Vec<(i64, i64)> {
    let told = told.iter().filter(|m| m["method"] == "notifications/progress").map(|m| &m["params"]);
    told.map(|params| (params["progress"].as_i64().unwrap(), params["total"].as_i64().unwrap())).collect()
}

fn logged(told: &[Value]) -> Vec<&Value> {
    told.iter().filter(|message| message["method"] == "notifications/message").map(|m| &m["params"]["data"]).collect()
}

const QUESTION: &str = "Delete 3 backup files? old/.hidden/c.bak, old/a~, old/b \"quoted\".bak";

#[test]
fn the_example_passes_without_a_warning() {
    let loaded = load(&Path::new(EXAMPLES).join("talk.yaml"));
    assert!(loaded.warnings.is_empty(), "{}", render(&loaded.warnings, false));
    assert!(loaded.tools.iter().all(|tool| tool.command().unwrap().talk));
}

#[test]
fn a_modern_client_is_asked_in_the_result_and_answers_in_the_next_request() {
    let (folder, surface) = copy("talk-modern");
    let mut peer = Peer::new(&surface);
    let call = json!({ "name": "tidy", "arguments": { "folder": "old" } });
    let asked = |peer: &mut Peer, id| {
        let (told, asked) = peer.modern(id, &call, &json!({ "elicitation": { "form": {} } }));
        assert!(told.is_empty(), "{told:?}");
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        assert_eq!(asked["result"]["inputRequests"]["delete"]["params"]["message"], QUESTION);
        assert_eq!(asked["result"]["inputRequests"]["delete"]["method"], "elicitation/create");
        asked["result"]["requestState"].clone()
    };
    let answered = |peer: &mut Peer, id, answer: &Value, state: &Value| {
        let mut call = call.clone();
        call["inputResponses"] = json!({ "delete": answer });
        call["requestState"] = state.clone();
        peer.modern(id, &call, &json!({ "elicitation": {} }))
    };
    let state = asked(&mut peer, 1);
    let (told, declined) = answered(&mut peer, 2, &json!({ "action": "decline" }), &state);
    assert_eq!((told.len(), text(&declined)), (0, "Nothing was deleted: the person did not agree.\n"));
    assert_eq!(left(&folder), ["a~", "b \"quoted\".bak", "keep.txt"]);

    let state = asked(&mut peer, 3);
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    let (told, done) = answered(&mut peer, 4, &yes, &state);
    assert_eq!(text(&done), "Deleted 3 backup files.\n");
    assert_eq!(progress(&told), [(1, 3), (2, 3), (3, 3)]);
    assert_eq!(logged(&told), ["3 files deleted"]);
    assert_eq!(left(&folder), ["keep.txt"]);

    let (_, none) = peer.modern(5, &call, &json!({}));
    assert_eq!(text(&none), "No backup files beneath old.\n", "what needs no answer needs no capability");
    peer.end();
}

#[test]
fn an_answer_to_what_has_changed_meanwhile_is_asked_for_again() {
    let (folder, surface) = copy("talk-changed");
    let mut peer = Peer::new(&surface);
    let mut call = json!({ "name": "tidy", "arguments": { "folder": "old" } });
    let able = json!({ "elicitation": {} });
    let (_, first) = peer.modern(1, &call, &able);
    folder.file("old/new.bak", "x");
    call["inputResponses"] = json!({ "delete": { "action": "accept", "content": { "confirm": true } } });
    call["requestState"] = first["result"]["requestState"].clone();
    let (_, again) = peer.modern(2, &call, &able);
    let message = again["result"]["inputRequests"]["delete"]["params"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("Delete 4 backup files?"), "{again}");
    assert_eq!(left(&folder).len(), 4);
    peer.end();
}

#[test]
fn a_legacy_client_is_asked_by_a_request_of_ours() {
    let (folder, surface) = copy("talk-legacy");
    let mut peer = Peer::new(&surface);
    peer.initialize(&json!({ "elicitation": {} }));
    let (_, asked) = peer.legacy(1, &json!({ "name": "tidy", "arguments": { "folder": "old" } }));
    assert_eq!((&asked["method"], &asked["params"]["message"]), (&json!("elicitation/create"), &json!(QUESTION)));
    assert_eq!(left(&folder).len(), 3);
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": yes }));
    let (told, done) = peer.answer();
    assert_eq!((&done["id"], text(&done)), (&json!(1), "Deleted 3 backup files.\n"));
    assert_eq!(progress(&told), [(1, 3), (2, 3), (3, 3)]);
    assert_eq!(left(&folder), ["keep.txt"]);
    peer.end();
}

#[test]
fn a_client_that_cannot_be_asked_is_told_so_at_once_and_nothing_is_done() {
    let (folder, surface) = copy("talk-unable");
    let call = json!({ "name": "tidy", "arguments": { "folder": "old" } });
    let mut peer = Peer::new(&surface);
    let (_, refused) = peer.modern(1, &call, &json!({ "sampling": {} }));
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    peer.initialize(&json!({}));
    let (_, refused) = peer.legacy(2, &call);
    assert!(refused["result"]["isError"] == true && text(&refused).contains("elicitation"), "{refused}");
    assert_eq!(left(&folder).len(), 3);
    peer.end();
}

#[test]
fn the_python_script_asks_by_form_and_both_eras_get_the_same() {
    let (folder, surface) = copy("talk-python");
    let call = json!({ "name": "checksums", "arguments": { "folder": "old" } });
    let chosen = json!({ "action": "accept", "content": { "algorithm": "sha256", "hidden": true } });
    let digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let names = ["old/.hidden/c.bak", "old/a~", "old/b \"quoted\".bak", "old/keep.txt"];
    let expected: String = names.iter().map(|name| format!("{digest}  {name}\n")).collect();

    let mut peer = Peer::new(&surface);
    let able = json!({ "elicitation": {} });
    let (_, asked) = peer.modern(1, &call, &able);
    let form = &asked["result"]["inputRequests"]["how"]["params"];
    assert_eq!(form["requestedSchema"]["properties"]["algorithm"]["enum"], json!(["sha256", "sha512", "blake2b"]));
    let answered = |answer: &Value, asked: &Value| {
        let mut call = call.clone();
        call["inputResponses"] = json!({ "how": answer });
        call["requestState"] = asked["result"]["requestState"].clone();
        call
    };
    let wrong = json!({ "action": "accept", "content": { "algorithm": "md5" } });
    let (_, again) = peer.modern(2, &answered(&wrong, &asked), &able);
    assert_eq!(&again["result"]["inputRequests"]["how"]["params"], form, "{again}");
    let (told, done) = peer.modern(3, &answered(&chosen, &again), &able);
    assert_eq!((text(&done), progress(&told)), (expected.as_str(), vec![(1, 4), (2, 4), (3, 4), (4, 4)]));
    let (_, done) = peer.modern(4, &answered(&json!({ "action": "cancel" }), &again), &able);
    assert_eq!(text(&done), "No checksums: the person did not choose how.\n");

    peer.initialize(&able);
    let (_, asked) = peer.legacy(5, &call);
    assert_eq!(&asked["params"]["requestedSchema"], &form["requestedSchema"]);
    peer.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": chosen }));
    let (told, done) = peer.answer();
    assert_eq!((text(&done), progress(&told).len()), (expected.as_str(), 4));
    peer.end();
    drop(folder);
}

#[test]
fn at_the_shell_without_a_terminal_the_question_is_said_and_nothing_is_done() {
    let (folder, surface) = copy("talk-shell");
    let call = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
        command.arg("call").args(arguments).arg("--surface").arg(&surface);
        command.stdin(Stdio::null()).output().unwrap()
    };
    let output = call(&["tidy", "folder=old"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no terminal to answer on") && said.contains(QUESTION), "{said}");
    assert!(output.stdout.is_empty());
    assert_eq!(left(&folder).len(), 3);
    let output = call(&["tidy", "folder=talk"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"No backup files beneath talk.\n"[..]));
    let output = call(&["tidy", "folder=old", "--dry-run"]);
    assert!(String::from_utf8(output.stdout).unwrap().contains("TWODOOR_FD"));
}

#[test]
fn at_a_terminal_the_person_is_asked_and_sees_how_far_it_is() {
    let (folder, surface) = copy("talk-terminal");
    let call = |typed: &str| {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let screen = || fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
        command.args(["call", "tidy", "folder=old", "--surface"]).arg(&surface);
        let child = command.stdin(screen()).stderr(screen()).stdout(Stdio::piped()).spawn().unwrap();
        drop(command);
        let mut master = fs::File::from(master);
        master.write_all(typed.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let mut seen = Vec::new();
        // Reading a terminal that everybody else has closed ends with an error.
        let _ = master.read_to_end(&mut seen);
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(seen).unwrap())
    };
    let (code, said, seen) = call("n\n");
    assert_eq!((code, said.as_str()), (Some(0), "Nothing was deleted: the person did not agree.\n"), "{seen}");
    assert!(seen.contains(QUESTION) && seen.contains("Yes [y/n]: "), "{seen}");
    assert_eq!(left(&folder).len(), 3);
    let (code, said, seen) = call("perhaps\ny\n");
    assert_eq!((code, said.as_str()), (Some(0), "Deleted 3 backup files.\n"), "{seen}");
    assert!(seen.contains("that is no answer here") && seen.contains("[####################] 3/3 deleted"), "{seen}");
    assert!(seen.contains("info: tidy: 3 files deleted"), "{seen}");
    assert_eq!(left(&folder), ["keep.txt"]);
}
