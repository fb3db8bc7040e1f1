//! Curated surfaces upon a project on disk: checked, called, and told what has drifted.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const MANIFEST: &str = "\
name: echo
description: Echoes.
entrypoint: run
actions:
  - name: say
    effects: read
    args: [{name: text, required: true}, {name: max-results, type: integer}, {name: loud, type: boolean}]
  - {name: fail}
  - {name: long}
  - {name: delete}
secrets: [{name: \"registry-test:key\", optional: true}]
";

const PROGRAM: &str = r#"#!/bin/sh
case $1 in
say) printf '{"args": ["%s", "%s", "%s"], "key": "%s", "home": "%s"}' "$2" "$3" "$4" "$REGISTRY_TEST_KEY" "$HOME";;
fail) echo oops >&2; echo '{"error": {"code": "bad", "message": "it failed"}}'; exit 1;;
long) printf '{"rows": ['; i=0; while [ $i -lt 400 ]; do printf '{"n": %d, "text": "a row"},' $i; i=$((i+1)); done; printf '{}]}';;
esac
"#;

const SURFACE: &str = "\
surface: demo
version: 1.0.0
registry: .
common_args: {loud: {type: boolean}}
tools:
  say:
    description: Says.
    read_only: true
    target: echo/say
    args:
      text: {type: string, required: true}
      max_results: {type: integer, default: 7}
    common: [loud]
  fail: {description: Fails., target: echo/fail}
  long: {description: Long., target: echo/long, cap: 2000, args: {}}
  list: {description: Lists., read_only: true, run: [ls, /]}
excluded: [{target: echo/delete, reason: it cannot be undone}]
";

struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.file("tools/echo/tool.yaml", MANIFEST);
        project.file("tools/echo/run", PROGRAM);
        fs::set_permissions(project.path().join("tools/echo/run"), fs::Permissions::from_mode(0o755)).unwrap();
        project.file("surface.yaml", SURFACE);
        project
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn twodoor(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
        command.args(args).current_dir(self.path()).env("REGISTRY_TEST_KEY", "s3cr3t-value").output().unwrap()
    }

    /// The answer of a call, and whether it is a failure.
    fn call(&self, args: &[&str]) -> (Value, bool) {
        let output = self.twodoor(&[&["call"], args, &["--json"]].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        let result: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:?}"));
        let answer = serde_json::from_str(result["text"].as_str().unwrap()).unwrap();
        (answer, result["isError"].as_bool().unwrap())
    }

    fn rules(&self) -> Vec<String> {
        let output = self.twodoor(&["check", "--json"]);
        let problems: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        let mut rules: Vec<String> = problems.iter().map(|p| p["rule"].as_str().unwrap().to_owned()).collect();
        rules.dedup();
        rules
    }
}

#[test]
fn a_target_is_called_under_the_names_of_its_action_with_its_secrets_alone() {
    let project = Project::new();
    assert_eq!(project.rules(), [""; 0]);
    let (answer, failed) = project.call(&["say", "text=--evil $(id)", "loud=true"]);
    assert!(!failed && answer["ok"] == true, "{answer}");
    assert_eq!(answer["data"]["args"], serde_json::json!(["--loud", "--text=--evil $(id)", "--max-results"]));
    let text = answer.to_string();
    assert!(!text.contains("s3cr3t-value") && !text.contains("/root"), "{text}");
    let (answer, failed) = project.call(&["fail"]);
    assert!(failed && answer["error"]["code"] == "bad" && answer["hint"].is_string(), "{answer}");
}

#[test]
fn a_dry_run_shows_what_would_run() {
    let project = Project::new();
    let output = project.twodoor(&["call", "say", "text=a b", "--dry-run", "--json"]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let argv = shown["argv"].as_array().unwrap();
    assert!(argv[0].as_str().unwrap().ends_with("tools/echo/run"), "{shown}");
    assert_eq!(argv[1..], [Value::from("say"), "--text=a b".into(), "--max-results".into(), "7".into()]);
    assert!(shown["env"].as_array().unwrap().contains(&"REGISTRY_TEST_KEY".into()), "{shown}");
    assert!(!shown.to_string().contains("s3cr3t-value"));
}

#[test]
fn a_result_that_is_too_long_is_cut_at_whole_items() {
    let project = Project::new();
    let (answer, failed) = project.call(&["long"]);
    assert!(!failed && answer["truncated"] == true, "{answer}");
    assert_eq!(answer["item_count"], 401);
    assert!(answer.to_string().len() <= 2000);
    project.file(
        "surface.yaml",
        SURFACE
            .replace("cap: 2000, args: {}", "cap: 2000, args: {rows: {type: integer, flag: first}}, narrow_by: [rows]"),
    );
    project.file(
        "tools/echo/tool.yaml",
        MANIFEST.replace("{name: long}", "{name: long, args: [{name: first, type: integer}]}"),
    );
    assert!(project.call(&["long"]).0["hint"].as_str().unwrap().contains("rows"));
}

#[test]
fn drift_between_a_surface_and_its_registry_is_named_by_check() {
    for (was, is, rule) in [
        ("name: say", "name: speak", "target"),
        (
            "{name: text, required: true}",
            "{name: text, required: true}, {name: lang, required: true}",
            "target-required",
        ),
        ("{name: max-results, type: integer}", "{name: max-results}", "target-argument"),
        ("{name: loud, type: boolean}", "{name: noisy, type: boolean}", "target-argument"),
        ("effects: read", "effects: irreversible", "target-effect"),
        ("effects: read", "effects: write", "target-reads"),
        ("{name: fail}", "{name: fail, effects: irreversible}", "target-effect"),
        ("  - {name: delete}\n", "", "excluded"),
        ("name: echo", "name: shout", "target excluded"),
        ("entrypoint: run", "entrypoint: gone", "target excluded"),
        ("description: Echoes.", "descripton: Echoes.", "target excluded"),
        (", optional: true", "", "nothing"),
    ] {
        let project = Project::new();
        project.file("tools/echo/tool.yaml", MANIFEST.replace(was, is));
        let expected: Vec<&str> = rule.split(' ').filter(|rule| *rule != "nothing").collect();
        assert_eq!(project.rules(), expected, "{is}");
    }
    let project = Project::new();
    project.file(
        "tools/echo/tool.yaml",
        MANIFEST.replace("name: \"registry-test:key\", optional: true", "name: never-set-anywhere"),
    );
    assert_eq!(project.rules(), ["unready-target"]);
    let (answer, failed) = project.call(&["say", "text=x"]);
    assert!(failed && answer["error"]["code"] == "not_ready", "{answer}");
}

#[test]
fn hostile_siblings_block_nothing() {
    let project = Project::new();
    for name in ["fifo", "zero", "out", "bomb", "twice", "large"] {
        fs::create_dir_all(project.path().join("tools").join(name)).unwrap();
    }
    let made = Command::new("mkfifo").arg(project.path().join("tools/fifo/tool.yaml")).status().unwrap();
    assert!(made.success());
    symlink("/dev/zero", project.path().join("tools/zero/tool.yaml")).unwrap();
    symlink("/etc/passwd", project.path().join("tools/out/tool.yaml")).unwrap();
    symlink("..", project.path().join("tools/circle")).unwrap();
    let mut bomb = "name: bomb\ndescription: x\nexamples:\n- &a [x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, of) in "bcdefghij".chars().zip("abcdefghi".chars()) {
        bomb.push_str(&format!("- &{name} [{}]\n", vec![format!("*{of}"); 10].join(", ")));
    }
    project.file("tools/bomb/tool.yaml", bomb);
    project.file("tools/twice/tool.yaml", "name: twice\nname: twice\ndescription: x\n");
    project.file("tools/large/tool.yaml", vec![b'#'; 2 * 1024 * 1024]);
    project.file("hidden-tools.json", "{\"hide\": ");
    assert_eq!(project.rules(), [""; 0]);
    assert!(!project.call(&["say", "text=x"]).1);
}

#[test]
fn a_folder_of_ten_thousand_is_answered() {
    let project = Project::new();
    for number in 0..10_000 {
        fs::create_dir(project.path().join(format!("tools/x{number:05}"))).unwrap();
    }
    assert_eq!(project.rules(), [""; 0]);
}
