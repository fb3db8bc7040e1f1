//! `digest`, `diff`, `lock`, `verify` and what `check` and `serve` make of a lock, by the binary and by the vectors.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use twodoor::protocol::Json;
use twodoor::protocol::digest::tool::{of_surface, of_tool};
use twodoor::protocol::digest::{Digest, of_foreign};
use twodoor::protocol::json::JsonLimits;

const BINARY: &str = env!("CARGO_BIN_EXE_twodoor");
const SURFACE: &str = "surface: ops
version: 1.2.0
tools:
  say:
    description: Says a word.
    read_only: true
    args: { word: { type: string, maxLength: 20, required: true } }
    run: [echo, \"{word}\"]
  date:
    description: Tells the time.
    read_only: true
    run: [date]
";

/// A folder with `surface.yaml`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("surface.yaml"), SURFACE).unwrap();
    folder
}

fn change(folder: &Path, changes: &[(&str, &str)]) {
    let text = changes.iter().fold(SURFACE.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    std::fs::write(folder.join("surface.yaml"), text).unwrap();
}

/// Exit code, standard output, standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(BINARY).args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json_of(folder: &Path, arguments: &[&str]) -> (i32, Value) {
    let (code, stdout, stderr) = run(folder, arguments);
    (code, serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}")))
}

/// A server that ends with the test.
struct Server(Child, String);

impl Server {
    fn start(folder: &Path) -> Self {
        let mut serve = Command::new(BINARY);
        serve.args(["serve", "--http", "127.0.0.1:0"]).current_dir(folder);
        let mut child = serve.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.find_map(|line| line.unwrap().strip_prefix("listening on ").map(str::to_owned)).unwrap();
        Self(child, line)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_vectors_hold() {
    let vectors: Value = serde_json::from_str(include_str!("digest/vectors.json")).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 40);
    let said = |digest: Option<Digest>| digest.map_or(Value::Null, |digest| digest.to_string().into());
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let found = match (Json::parse(text.as_bytes(), &JsonLimits::default()), case["kind"].as_str().unwrap()) {
            (Err(_), _) => json!({ "refused": true }),
            (Ok(value), "json") => {
                let of = of_foreign(&value);
                json!({ "sortedKeys": said(of.sorted_keys), "rfc8785": said(of.rfc8785) })
            }
            (Ok(tool), "tool") => {
                let of = of_tool(&tool);
                json!({ "tool": said(of.tool), "wording": said(of.wording), "shape": said(of.shape), "gateway": said(of.gateway) })
            }
            (Ok(surface), "surface") => {
                let text = |key: &str| surface.get(key).and_then(Json::as_str);
                let Some(Json::Array(tools)) = surface.get("tools") else { panic!("{case}") };
                let of = of_surface(text("name").unwrap(), text("version").unwrap(), text("instructions"), tools);
                json!({ "surface": said(of) })
            }
            (_, kind) => panic!("{kind}"),
        };
        assert_eq!(found, case["expected"], "{}", case["name"]);
    }
}

#[test]
fn a_word_changed_in_a_description_is_wording_demands_a_patch_and_is_not_served_under_the_lock() {
    let folder = folder();
    let path = folder.path();
    let (code, stdout, stderr) = run(path, &["lock"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.starts_with("locked: surface.lock: ops 1.2.0, 2 tools, sha256:"), "{stdout}");
    assert_eq!(run(path, &["diff"]).0, 0);

    change(path, &[("a word.", "some word.")]);
    let (code, stdout, _) = run(path, &["diff"]);
    assert_eq!(code, 1);
    for line in [
        "wording   say /description  wording\n  - \"Says a word.\"\n  + \"Says some word.\"\n1 wording\n",
        "demands a patch version: from 1.2.0 to 1.2.1 or above, and the new version is 1.2.0\n",
    ] {
        assert!(stdout.contains(line), "{line}{stdout}");
    }
    let (code, report) = json_of(path, &["diff", "--json"]);
    assert_eq!(code, 1);
    assert_eq!((&report["class"], &report["bump"]), (&json!("wording"), &json!("patch")));
    assert_eq!((&report["demanded"], &report["satisfied"]), (&json!("1.2.1"), &json!(false)));
    assert_eq!(report["changes"][0]["pointer"], "/description");

    let (code, _, stderr) = run(path, &["serve"]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("lock-differs") && stderr.contains("1 wording: say /description"), "{stderr}");
    // What is said to be done can be done: first the version, then the lock.
    let bump = "raise `version` from 1.2.0 to 1.2.1 or above, since the change is wording, and then run `twodoor lock surface.yaml`";
    assert!(stderr.contains(bump), "{stderr}");
    let (code, stdout, _) = run(path, &["check"]);
    assert!(code == 3 && stdout.contains("error[version-bump]"), "{stdout}");
    assert!(stdout.contains("to 1.2.1 or above, then run `twodoor lock surface.yaml`"), "{stdout}");
    assert_eq!(stdout.matches("1 error").count(), 1, "{stdout}");

    let (code, stdout, stderr) = run(path, &["lock"]);
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("1.2.0 in the lock") && stderr.contains("to 1.2.1 or above"), "{stderr}");
    change(path, &[("a word.", "some word."), ("1.2.0", "1.2.1")]);
    let (code, stdout, _) = run(path, &["diff"]);
    assert_eq!(code, 1);
    assert!(stdout.ends_with("demands a patch version: 1.2.0 -> 1.2.1 is one\n"), "{stdout}");
    assert_eq!(run(path, &["lock"]).0, 0);
    assert_eq!(run(path, &["check"]).0, 0);
    let lock = std::fs::read_to_string(path.join("surface.lock")).unwrap();
    assert!(lock.contains("- name: say\n  description: \"Says some word.\"\n"), "{lock}");
    let names: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn check_fails_where_a_breaking_change_has_a_minor_version() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(run(path, &["lock"]).0, 0);
    for (changes, demanded) in [
        (&[("maxLength: 20", "maxLength: 10"), ("1.2.0", "1.3.0")][..], Some("2.0.0")),
        (&[("  date:", "  time:"), ("1.2.0", "1.3.0")], Some("2.0.0")),
        (&[("type: string, max", "type: integer, max"), ("1.2.0", "1.3.0"), ("{word}", "{word}")], Some("2.0.0")),
        (&[("maxLength: 20", "maxLength: 30")], Some("1.3.0")),
        (&[("maxLength: 20", "maxLength: 30"), ("1.2.0", "1.3.0")], None),
        (&[("1.2.0", "1.0.0")], None),
    ] {
        change(path, changes);
        let (code, problems) = json_of(path, &["check", "--json"]);
        let of = |rule: &str| problems.as_array().unwrap().iter().find(|problem| problem["rule"] == rule).cloned();
        let bump = of("version-bump");
        assert_eq!(bump.as_ref().map(|bump| bump["suggestion"].as_str().unwrap()), demanded, "{changes:?} {problems}");
        if let Some(bump) = bump {
            assert_eq!((&bump["file"], &bump["line"], code), (&json!("surface.yaml"), &json!(2), 3));
        }
        // With the bump there is still the lock to write; one matter is told once.
        let same_tools = changes.len() == 1 && changes[0].0 == "1.2.0";
        assert_eq!(of("lock-differs").is_none(), same_tools || demanded.is_some(), "{changes:?}");
    }
}

#[test]
fn a_lock_is_replaced_without_a_bump_only_if_that_is_said() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(run(path, &["lock"]).0, 0);
    let before = std::fs::read_to_string(path.join("surface.lock")).unwrap();
    change(path, &[("maxLength: 20", "maxLength: 5")]);
    assert_eq!(run(path, &["lock"]).0, 1);
    assert_eq!(run(path, &["digest", "--lock"]).0, 1);
    assert_eq!(std::fs::read_to_string(path.join("surface.lock")).unwrap(), before);
    let (code, written) = json_of(path, &["lock", "--unbumped", "--json"]);
    assert_eq!((code, &written[0]["changes"][0]["class"]), (0, &json!("breaking")));
    std::fs::write(path.join("surface.lock"), "version: 9\n").unwrap();
    assert_eq!(run(path, &["lock"]).0, 2);
    assert_eq!(run(path, &["lock", "--unbumped"]).0, 0);
    assert_eq!(run(path, &["check"]).0, 0);
    assert_eq!(run(path, &["lock", "none.yaml"]).0, 3);
}

#[test]
fn any_two_lists_can_be_compared() {
    let folder = folder();
    let path = folder.path();
    git(path, &["init", "-q", "."]);
    git(path, &["add", "surface.yaml"]);
    git(path, &["commit", "-qm", "first"]);
    let server = Server::start(path);
    assert_eq!(run(path, &["lock"]).0, 0);
    let list = |text: &str| std::fs::write(path.join("list.json"), text).unwrap();
    list("[]");
    let url = server.1.as_str();
    let command = format!("'{BINARY}' serve surface.yaml");
    for same in [
        &["surface.yaml", "surface.lock"][..],
        &["surface.lock", url],
        &[url, &command],
        &["HEAD:surface.yaml", url],
        &["HEAD:./surface.yaml", "surface.yaml"],
        &["--since", "HEAD"],
        &["--since", "HEAD", "surface.yaml"],
        &["surface.yaml", "--", BINARY, "serve"],
    ] {
        let arguments: Vec<&str> = std::iter::once("diff").chain(same.iter().copied()).collect();
        let (code, stdout, stderr) = run(path, &arguments);
        assert_eq!(code, 0, "{same:?}: {stdout}{stderr}");
        assert!(stdout.starts_with("same: sha256:"), "{same:?}: {stdout}");
    }
    let (code, report) = json_of(path, &["diff", "list.json", url, "--json"]);
    assert_eq!((code, &report["bump"], &report["satisfied"]), (1, &json!("minor"), &Value::Null));
    assert_eq!(report["new"]["version"], "1.2.0");
    change(path, &[("a word.", "some word."), ("1.2.0", "1.2.1")]);
    let (code, stdout, _) = run(path, &["diff", "--since", "HEAD"]);
    assert_eq!(code, 1);
    assert!(stdout.contains("1.2.0 -> 1.2.1 is one"), "{stdout}");
    // A revision's file is read without what stands beside it.
    git(path, &["mv", "surface.yaml", "other.yaml"]);
    assert_eq!(run(path, &["diff", "HEAD:surface.yaml", "other.yaml"]).0, 1);
}

#[test]
fn what_cannot_be_compared_is_said_with_what_to_do() {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("old.lock"), format!("version: 1\ndigest: sha256:{}\n", "0".repeat(64))).unwrap();
    let list = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
    list("twice.json", r#"[{"name":"a","name":"b"}]"#);
    list("lone.json", r#"["\ud800"]"#);
    list("page.json", r#"{"tools":[],"nextCursor":"x"}"#);
    list("deep.json", &format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    list("other.json", r#"{"a":1}"#);
    list("bad.yaml", "surface: x\nversion: 1.0.0\ntools: { t: { descriptoin: x } }\n");
    for (arguments, code, words) in [
        (&["diff"][..], 2, "no lock to compare it with"),
        (&["diff", "old.lock", "surface.yaml"], 1, ""),
        (&["diff", "old.lock", "old.lock"], 0, ""),
        (&["diff", "twice.json", "surface.yaml"], 2, "duplicate key"),
        (&["diff", "lone.json", "surface.yaml"], 2, "not valid JSON"),
        (&["diff", "page.json", "surface.yaml"], 2, "another follows"),
        (&["diff", "deep.json", "surface.yaml"], 2, "nested deeper"),
        (&["diff", "other.json", "surface.yaml"], 2, "no array of tools"),
        (&["diff", "bad.yaml", "surface.yaml"], 2, "unknown-key"),
        (&["diff", "none.yaml", "surface.yaml"], 2, "there is no none.yaml"),
        (&["diff", "surface.yaml", "HEAD:surface.yaml"], 2, "git has no file"),
        (&["diff", "surface.yaml", "--output=x:y"], 2, "unexpected argument"),
        (&["diff", "surface.yaml", "http://127.0.0.1:1/mcp"], 2, "probe"),
        (&["diff", "surface.yaml", "no-such-program serve"], 2, "no-such-program"),
        (&["diff", "surface.yaml", "'open"], 2, "there is no"),
        (&["diff", "surface.yaml", "a 'b"], 2, "quote"),
        (&["diff", "surface.yaml", "old.lock", "--", "x"], 2, "three things"),
        (&["diff", "--since", "HEAD:x", "surface.yaml"], 2, "no revision"),
        (&["diff", "--since", "--output=/tmp/x", "surface.yaml"], 2, ""),
        (&["diff", "a", "b", "c"], 2, ""),
        (&["diff", "list.json"], 2, "no surface file with a lock"),
    ] {
        let (found, stdout, stderr) = run(path, arguments);
        assert_eq!(found, code, "{arguments:?}: {stdout}{stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_repository_runs_nothing_when_an_earlier_revision_is_read() {
    let folder = folder();
    let path = folder.path();
    git(path, &["init", "-q", "."]);
    std::fs::write(path.join(".gitattributes"), "*.yaml filter=bad diff=bad\n").unwrap();
    git(path, &["add", "."]);
    git(path, &["commit", "-qm", "first"]);
    let mark = path.join("mark");
    let touch = format!("touch {}", mark.display());
    for key in
        ["core.fsmonitor", "core.pager", "filter.bad.smudge", "diff.bad.textconv", "diff.external", "core.sshCommand"]
    {
        git(path, &["config", key, &touch]);
    }
    assert_eq!(run(path, &["diff", "--since", "HEAD"]).0, 0);
    assert!(!mark.exists());
}

#[test]
fn verify_holds_either_door_against_whatever_was_reviewed() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(run(path, &["lock"]).0, 0);
    let server = Server::start(path);
    let url = server.1.as_str();
    let (_, printed) = json_of(path, &["digest", "--json"]);
    let digest = printed["digest"].as_str().unwrap();
    let entry = json!({ "name": "a/b", "_meta": { "io.modelcontextprotocol.registry/publisher-provided": { "x.y/toolsDigest": digest } } });
    std::fs::write(path.join("server.json"), entry.to_string()).unwrap();
    std::fs::write(path.join("old.lock"), format!("version: 1\ndigest: {digest}\n")).unwrap();
    for expected in [digest, "server.json", "surface.lock", "old.lock", "surface.yaml"] {
        for era in ["auto", "modern", "legacy"] {
            let (code, stdout, stderr) = run(path, &["verify", "--era", era, url, expected]);
            assert_eq!(code, 0, "{expected} {era}: {stdout}{stderr}");
            assert!(stdout.starts_with("same: ") && stdout.contains(digest), "{stdout}");
        }
        let (code, stdout, stderr) = run(path, &["verify", expected, "--", BINARY, "serve"]);
        assert_eq!(code, 0, "{expected}: {stdout}{stderr}");
    }
    assert_eq!(run(path, &["verify", &format!("'{BINARY}' serve"), digest]).0, 0);

    change(path, &[("a word.", "some word."), ("maxLength: 20", "maxLength: 10")]);
    let (code, stdout, _) = run(path, &["verify", url, "surface.yaml"]);
    assert_eq!(code, 1);
    for line in [
        "wording   say /description  wording\n  - \"Says some word.\"\n  + \"Says a word.\"\n",
        "additive  say /inputSchema/properties/word/maxLength  wider\n  - 10\n  + 20\n",
        "does not deliver what was expected\n",
    ] {
        assert!(stdout.contains(line), "{line}{stdout}");
    }
    let none = format!("sha256:{}", "0".repeat(64));
    let (code, report) = json_of(path, &["verify", "--json", url, &none]);
    assert_eq!((code, &report["verdict"], &report["changes"]), (1, &json!("drift"), &Value::Null));
    assert_eq!((&report["digest"]["sortedKeys"], &report["expected"][0]["rfc8785"]), (&json!(digest), &json!(none)));
}

#[test]
fn verify_cannot_tell_without_an_answer_or_without_something_to_hold_it_against() {
    let folder = folder();
    let path = folder.path();
    let none = format!("sha256:{}", "0".repeat(64));
    std::fs::write(
        path.join("server.json"),
        r#"{"_meta":{"io.modelcontextprotocol.registry/publisher-provided":{"k":1}}}"#,
    )
    .unwrap();
    std::fs::write(
        path.join("bad.json"),
        r#"{"_meta":{"io.modelcontextprotocol.registry/publisher-provided":{"toolsDigest":"md5"}}}"#,
    )
    .unwrap();
    for (arguments, words) in [
        (&["verify", "http://127.0.0.1:1/mcp", &none][..], "127.0.0.1:1"),
        (&["verify", &none, "--", "false"], "false"),
        (&["verify", "http://127.0.0.1:1/mcp", "sha256:12"], "64 hex digits"),
        (&["verify", "http://127.0.0.1:1/mcp", "none.json"], "none.json"),
        (&["verify", "http://127.0.0.1:1/mcp", "server.json"], "no toolsDigest"),
        (&["verify", "http://127.0.0.1:1/mcp", "bad.json"], "not a digest"),
        (&["verify", "surface.yaml", &none], "TARGET is no server"),
        (&["verify", &none], "nothing to hold"),
        (&["verify"], "required"),
        (&["verify", "a b", &none, "--", "x"], "two servers"),
    ] {
        let (code, stdout, stderr) = run(path, arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
}

/// A server that answers what a script says, one answer a line, whatever it is asked.
fn scripted(path: &Path, tools: &str) -> Vec<String> {
    let opening =
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}"#;
    let script = format!(
        "import json,sys\nfor line in sys.stdin:\n    m=json.loads(line)\n    if 'id' not in m: continue\n    r={{'initialize':{opening:?},'tools/list':{tools:?}}}.get(m['method'])\n    \
         print('{{\"jsonrpc\":\"2.0\",\"id\":%s,%s}}' % (json.dumps(m['id']), '\"result\":'+r if r else '\"error\":{{\"code\":-32601,\"message\":\"no\"}}'),flush=True)\n"
    );
    std::fs::write(path.join("server.py"), script).unwrap();
    vec!["python3".to_owned(), "server.py".to_owned()]
}

#[test]
fn a_foreign_list_is_held_in_both_canonical_forms_and_the_one_that_fits_is_named() {
    let folder = folder();
    let path = folder.path();
    let list = r#"{"tools":[{"name":"t","inputSchema":{"type":"object","x-n":1.0}}]}"#;
    let server = scripted(path, list);
    std::fs::write(path.join("list.json"), list).unwrap();
    std::fs::write(path.join("one.json"), list.replace("1.0", "1")).unwrap();
    let (_, printed) = json_of(path, &["digest", "--list", "list.json", "--json"]);
    let verify = |expected: &str| {
        let words: Vec<&str> =
            ["verify", expected, "--"].into_iter().chain(server.iter().map(String::as_str)).collect();
        run(path, &words)
    };
    let sorted = printed["sortedKeys"].as_str().unwrap();
    let rfc8785 = printed["rfc8785"].as_str().unwrap();
    assert_ne!(sorted, rfc8785);
    for (expected, form) in [
        (sorted, ", in the form of sorted keys alone\n"),
        (rfc8785, ", in the form of RFC 8785 alone\n"),
        ("one.json", ", in the form of RFC 8785 alone\n"),
        ("list.json", "(RFC 8785)\n"),
    ] {
        let (code, stdout, stderr) = verify(expected);
        assert_eq!(code, 0, "{expected}: {stdout}{stderr}");
        assert!(stdout.ends_with(form), "{expected}: {stdout}");
    }
    for bad in [
        r#"{"tools":[{"name":"t","name":"u"}]}"#,
        r#"{"tools":[{"name":"\ud800"}]}"#,
        r#"{"tools":[1e999]}"#,
        r#"{"tools":{}}"#,
    ] {
        scripted(path, bad);
        let (code, stdout, stderr) = verify(sorted);
        assert_eq!((code, stdout.as_str()), (2, ""), "{bad}: {stderr}");
    }
}

#[test]
fn every_digest_of_a_tool_is_shown() {
    let folder = folder();
    let path = folder.path();
    let (code, stdout, _) = run(path, &["digest", "--tools"]);
    assert_eq!(code, 0);
    let labels: Vec<&str> =
        stdout.lines().skip(1).take(6).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(labels, ["say", "tool", "wording", "shape", "gateway", "definition"]);
    let (_, before) = json_of(path, &["digest", "--json"]);
    change(path, &[("a word.", "some word.")]);
    let (_, after) = json_of(path, &["digest", "--json"]);
    let differ = |key: &str| before["tools"][0][key] != after["tools"][0][key];
    assert_eq!(["digest", "wording", "shape", "gateway", "definition"].map(differ), [true, true, false, true, true]);
    assert_ne!(before["contract"], after["contract"]);
    assert_eq!(before["tools"][1], after["tools"][1]);
    let mut child = Command::new(BINARY)
        .args(["digest", "--list", "-", "--tools"])
        .current_dir(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"[{"name":"\u001b[2J"}]"#).unwrap();
    let printed = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(printed.lines().any(|line| line == "\\u{1b}[2J"), "{printed}");
}
