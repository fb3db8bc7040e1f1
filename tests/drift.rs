//! What was published and what it leads to part: manifests that change behind surfaces and their frozen versions.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking"
)]

mod common;
#[path = "support/running.rs"]
mod running;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::Receiver;

use common::{NEWEST_LEGACY, PATIENCE, initialize, legacy, modern, notification, text_of};
use running::{Running, lines, twodoor};
use serde_json::{Value, json};

const CHANGED: &str = "notifications/tools/list_changed";

const MANIFEST: &str = "\
name: echo
description: Echoes.
entrypoint: run
actions:
  - {name: say, effects: read, args: [{name: text, required: true}, {name: rows, type: integer}]}
  - {name: list, effects: read}
";

/// Leaves a trace of each time it ran.
const PROGRAM: &str = "#!/bin/sh\necho \"$@\" >> ran\nprintf '{\"said\": \"%s\"}' \"$*\"\n";

const SURFACE: &str = "\
surface: ops
version: 1.0.0
registry: .
tools:
  say:
    description: Says.
    read_only: true
    target: echo/say
    args: {text: {type: string, required: true}, rows: {type: integer}}
";

/// What became of it, which `say` is no part of.
const LATER: &str = "\
surface: ops
version: 2.0.0
registry: .
tools:
  list: {description: Lists., read_only: true, target: echo/list}
";

const OPERATOR: &str = "\
surface: ops
version: 1.0.0
registry: .
tools:
  capabilities: {builtin: capabilities}
  run_tool: {builtin: run_tool}
";

struct Project(tempfile::TempDir);

impl Project {
    fn new(surface: &str) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.write("tools/echo/tool.yaml", MANIFEST);
        project.write("tools/echo/run", PROGRAM);
        fs::set_permissions(project.path("tools/echo/run"), fs::Permissions::from_mode(0o755)).unwrap();
        project.write("ops.yaml", surface);
        project
    }

    /// One whose `ops.yaml` was frozen at 1.0.0 and is something else now.
    fn frozen() -> Self {
        let project = Self::new(SURFACE);
        assert_eq!(project.run(&["freeze", "ops.yaml"]).0, 0);
        project.write("ops.yaml", LATER);
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // In one step, as an editor would: a reader finds the old text or the new one.
        fs::write(path.with_extension("tmp"), text).unwrap();
        fs::rename(path.with_extension("tmp"), path).unwrap();
    }

    /// The manifest with a change.
    fn drift(&self, from: &str, to: &str) {
        assert!(MANIFEST.contains(from), "{from}");
        self.write("tools/echo/tool.yaml", &MANIFEST.replace(from, to));
    }

    /// Code and what was said, to either stream.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = twodoor(self.0.path(), arguments).stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }

    /// How often the program ran.
    fn runs(&self) -> usize {
        fs::read_to_string(self.path("ran")).unwrap_or_default().lines().count()
    }
}

/// A server over stdio.
struct Served {
    running: Running,
    told: Receiver<String>,
}

impl Served {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut running = Running::start(project.0.path(), &[&["ops.yaml"], arguments].concat());
        let told = lines(running.child.stdout.take().unwrap());
        running.hears("ops 1.0.0, ");
        Self { running, told }
    }

    /// Sends a request and gives what came before its answer, and that.
    fn ask(&mut self, message: &str) -> (Vec<Value>, Value) {
        let id = serde_json::from_str::<Value>(message).unwrap()["id"].clone();
        writeln!(self.running.child.stdin.as_mut().unwrap(), "{message}").unwrap();
        let mut before = Vec::new();
        loop {
            let line = self.told.recv_timeout(PATIENCE).expect("a message in time");
            match serde_json::from_str::<Value>(&line).unwrap() {
                answer if answer["id"] == id && answer.get("method").is_none() => return (before, answer),
                other => before.push(other),
            }
        }
    }

    fn open_legacy_session(&mut self) {
        self.ask(&initialize(&json!("open"), NEWEST_LEGACY));
        let ready = notification("notifications/initialized", &json!({}));
        writeln!(self.running.child.stdin.as_mut().unwrap(), "{ready}").unwrap();
    }

    fn told_so_far(&mut self) -> Vec<Value> {
        self.ask(&legacy(&json!("ping"), "ping", &json!({}))).0
    }

    fn list(&mut self) -> Value {
        self.ask(&modern(&json!("list"), "tools/list", &json!({}))).1["result"]["tools"].take()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask(&modern(&json!("call"), "tools/call", &params)).1
    }
}

/// What a manifest may do to what was published of it: the change, and the rule that it breaks.
const DRIFTS: [(&str, &str, &str); 5] = [
    ("name: say", "name: tell", "target"),
    ("args: [", "args: [{name: new, required: true}, ", "target-required"),
    ("rows, type: integer", "rows, type: boolean", "target-argument"),
    ("name: say, effects: read", "name: say, effects: irreversible", "target-effect"),
    ("entrypoint", "entry_point", "target"),
];

#[test]
fn check_and_serve_name_the_frozen_version_that_a_changed_manifest_breaks() {
    let project = Project::frozen();
    let (code, said) = project.run(&["check", "ops.yaml"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("ok: ops.yaml: ops 2.0.0, 1 tool\n"), "{said}");
    assert!(said.ends_with("ok: ops@1.yaml: ops@1 1.0.0, 1 tool\n"), "{said}");
    for (from, to, rule) in DRIFTS {
        project.drift(from, to);
        let (code, said) = project.run(&["check", "ops.yaml"]);
        assert_eq!(code, 3, "{to}: {said}");
        let (check, serve) = (said, project.run(&["serve", "ops.yaml", "--http", "127.0.0.1:0"]));
        assert_eq!(serve.0, 3, "{to}: {}", serve.1);
        for said in [&check, &serve.1] {
            let which =
                "error: this cannot be served: ops@1.yaml, which is ops.yaml as it was frozen under the label 1\n";
            assert!(said.contains(which) && said.contains(&format!("error[{rule}]")), "{to}: {said}");
            assert!(said.contains("remove ops@1.yaml and ops@1.lock if nobody uses it"), "{to}: {said}");
        }
        let (_, problems) = project.run(&["check", "ops.yaml", "--json"]);
        let problems: Value = serde_json::from_str(&problems).unwrap();
        let of_frozen = |problem: &&Value| problem["file"] == "ops@1.yaml" && problem["label"] == "1";
        let found = problems.as_array().unwrap().iter().find(of_frozen).unwrap_or_else(|| panic!("{problems}"));
        assert_eq!(found["rule"], rule, "{to}");
    }
    project.drift("name: say", "name: tell");
    assert_eq!(project.run(&["check", "ops.yaml", "--no-frozen"]).0, 0);
    // What is behind a frozen tool may be mended; its lock holds what is published alone.
    project.write("ops@1.yaml", &SURFACE.replace("echo/say", "echo/tell"));
    assert_eq!(project.run(&["check", "ops.yaml"]).0, 0);
}

#[test]
fn a_frozen_file_that_was_edited_by_hand_is_refused_with_what_to_do() {
    let project = Project::frozen();
    project.write("ops@1.yaml", &SURFACE.replace("Says.", "Says more."));
    for arguments in [&["check", "ops.yaml"][..], &["serve", "ops.yaml", "--http", "127.0.0.1:0"]] {
        let (code, said) = project.run(arguments);
        assert_eq!(code, 3, "{said}");
        assert!(said.contains("frozen under the label 1") && said.contains("error[lock-differs]"), "{said}");
        assert!(said.contains("1 wording: say /description"), "{said}");
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("restore ops@1.yaml") && words.contains("twodoor freeze ops.yaml --as LABEL"), "{said}");
        assert!(!words.contains("twodoor lock"), "{said}");
    }
    // A lock and a file that were both written anew by hand agree, and are no other tools than the lock says.
    project.write("ops@1.yaml", SURFACE);
    let lock = fs::read_to_string(project.path("ops@1.lock")).unwrap();
    project.write("ops@1.lock", &lock.replace("Says.", "Says more."));
    let (code, said) = project.run(&["check", "ops.yaml"]);
    assert!(code == 3 && said.contains("error[lock-digest]"), "{code}: {said}");
}

#[test]
fn a_lock_that_was_merged_badly_or_is_no_lock_is_refused_at_once() {
    let project = Project::new(SURFACE);
    assert_eq!(project.run(&["lock", "ops.yaml"]).0, 0);
    let lock = fs::read_to_string(project.path("ops.lock")).unwrap();
    let digest = lock.lines().find(|line| line.starts_with("digest:")).unwrap();
    let merged = format!("<<<<<<< HEAD\n{digest}\n=======\n{digest}\n>>>>>>> other");
    let nine = |n: usize| vec![format!("*a{n}"); 9].join(", ");
    let bomb: String = (1..9).map(|n| format!("a{n}: &a{n} [{}]\n", nine(n - 1))).collect();
    for (text, rule) in [
        (lock.replace(digest, &merged), "lock-conflict"),
        (format!("{}x{}", "[".repeat(100_000), "]".repeat(100_000)), "yaml-depth"),
        (format!("{lock}x: {}", "[".repeat(500_000)), "yaml-depth"),
        (format!("{lock}# {}\n", "x".repeat(2 * 1024 * 1024)), "file-size"),
        (format!("a0: &a0 [x]\n{bomb}"), "yaml-"),
        ("\0\0\0".to_owned(), "yaml-"),
    ] {
        project.write("ops.lock", &text);
        for arguments in [&["check", "ops.yaml"][..], &["serve", "ops.yaml"]] {
            let (code, said) = project.run(arguments);
            assert_eq!(code, 3, "{said}");
            assert!(said.contains(&format!("error[{rule}")) && said.contains("ops.lock"), "{rule}: {said}");
            assert!(said.len() < 20_000, "{}", said.len());
        }
        let (code, said) = project.run(&["lock", "ops.yaml"]);
        assert!(code == 2 && said.contains("it cannot be read"), "{code}: {said}");
    }
}

#[test]
fn a_changed_manifest_changes_no_curated_list_and_what_it_breaks_is_refused_and_not_run() {
    for (from, to, rule) in DRIFTS {
        let project = Project::new(SURFACE);
        let mut served = Served::start(&project, &[]);
        served.open_legacy_session();
        let before = served.list();
        let answer = served.call("say", &json!({ "text": "hello" }));
        assert!(text_of(&answer).contains("hello"), "{answer}");

        project.drift(from, to);
        served.running.hears(&format!("error[{rule}]"));
        served.running.hears("refused: ops 1.0.0");
        let arguments = json!({ "text": "hello", "rows": 3 });
        let answer = served.call("say", &arguments);
        assert_eq!(answer["result"]["isError"], true, "{to}: {answer}");
        let text = text_of(&answer);
        assert!(text.contains("target_gone") || text.contains("target_changed"), "{to}: {text}");
        assert_eq!(project.runs(), 1, "{to}");
        assert_eq!(served.list(), before, "{to}");
        assert_eq!(served.told_so_far(), [Value::Null; 0], "{to}");

        project.write("tools/echo/tool.yaml", MANIFEST);
        served.running.hears("unchanged: ops 1.0.0");
        let answer = served.call("say", &arguments);
        assert!(text_of(&answer).contains("\"ok\":true") && project.runs() == 2, "{to}: {answer}");
    }
}

#[test]
fn an_action_that_goes_between_the_check_and_the_call_is_refused_and_not_run() {
    let project = Project::new(SURFACE);
    // Nobody hears of the change but the call itself.
    let mut served = Served::start(&project, &["--no-watch"]);
    project.drift("name: say", "name: tell");
    let answer = served.call("say", &json!({ "text": "hello" }));
    let text = text_of(&answer);
    assert!(text.contains("target_gone") && text.contains("echo/say is not in the registry any more"), "{text}");
    fs::remove_dir_all(project.path("tools/echo")).unwrap();
    let answer = served.call("say", &json!({ "text": "hello" }));
    assert!(text_of(&answer).contains("target_gone"), "{answer}");
    assert_eq!(project.runs(), 0);
}

#[test]
fn a_path_of_a_target_stays_beneath_the_root_and_the_rules_see_what_the_program_sees() {
    let rules = "root: files\nrules:\n  - {deny: \"args.text.startsWith('private/')\", message: that is private}\n  - {allow: \"true\"}\n";
    let confined = SURFACE
        .replace("required: true}", "required: true, as: path}")
        .replace("tools:\n", &format!("{rules}tools:\n"));
    let project = Project::new(SURFACE);
    for name in ["files/a.txt", "files/private/b.txt", "secret"] {
        project.write(name, "x");
    }
    std::os::unix::fs::symlink("../secret", project.path("files/out")).unwrap();
    let digest = |project: &Project| project.run(&["digest", "ops.yaml"]).1;
    let before = digest(&project);
    project.write("ops.yaml", &confined);
    assert_eq!((digest(&project), project.run(&["check", "ops.yaml"]).0), (before, 0), "it publishes nothing");
    let mut served = Served::start(&project, &[]);
    let answer = served.call("say", &json!({ "text": "./a.txt" }));
    assert!(text_of(&answer).contains("say --text=files/a.txt"), "{answer}");
    for path in ["../secret", "/etc/passwd", "out", "sub/../../secret"] {
        let answer = served.call("say", &json!({ "text": path }));
        assert!(text_of(&answer).contains("bad_argument") && answer["result"]["isError"] == true, "{path}: {answer}");
    }
    for path in ["private/b.txt", "./private//b.txt"] {
        let answer = served.call("say", &json!({ "text": path }));
        assert!(text_of(&answer).contains("that is private"), "{path}: {answer}");
    }
    assert_eq!(project.runs(), 1);
}

#[test]
fn an_operator_hears_of_another_list_and_not_of_another_manifest() {
    let project = Project::new(OPERATOR);
    let mut served = Served::start(&project, &[]);
    served.open_legacy_session();
    let before = served.list();
    project.drift("name: list", "name: enumerate");
    let answer = served.call("capabilities", &json!({ "name": "echo" }));
    assert!(text_of(&answer).contains("enumerate"), "{answer}");
    assert_eq!(served.list(), before);
    project.write("ops.yaml", &OPERATOR.replace("{builtin: capabilities}", "{builtin: capabilities, title: All}"));
    served.running.hears("published: ops 1.0.0");
    let told = served.told_so_far();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["method"], CHANGED);
    assert_ne!(served.list(), before);
}
