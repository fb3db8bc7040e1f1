//! `twodoor export server.json`: what is written, what is kept, what `--check` says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const SURFACE: &str = "surface: hello\nversion: 1.2.0\ndescription: Says hello.\ntools:\n  greet:\n    description: Says hello.\n    read_only: true\n    run: [echo, hello]\n";

struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.write("surface.yaml", SURFACE);
        project
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.path().join(file), text).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(self.0.path().join("server.json")).unwrap()
    }

    fn value(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    fn twodoor(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null()).env("NO_COLOR", "1");
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    fn export(&self, arguments: &[&str]) -> (i32, String, String) {
        self.twodoor(&[&["export", "server.json"], arguments].concat())
    }

    fn good(&self, arguments: &[&str]) -> String {
        let (code, stdout, stderr) = self.export(arguments);
        assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
        stdout
    }
}

const NAMED: [&str; 2] = ["--name", "io.github.you/hello"];
const ADDED: &str = "io.modelcontextprotocol.registry/publisher-provided";

#[test]
fn a_file_is_made_of_the_surface_and_the_options_and_is_current_then() {
    let project = Project::new();
    assert_eq!(project.export(&["--check"]).0, 2);
    project.good(&[&NAMED[..], &["--package", "npm:@you/hello", "--remote", "https://example.com/mcp"]].concat());
    let (_, digest, _) = project.twodoor(&["digest", "--json"]);
    let digest: Value = serde_json::from_str(&digest).unwrap();
    let value = project.value();
    assert_eq!(value["_meta"][ADDED]["dev.twodoor/toolsDigest"], digest["digest"]);
    assert_eq!(value["_meta"][ADDED]["dev.twodoor/surfaceVersion"], "1.2.0");
    assert_eq!((&value["version"], &value["packages"][0]["version"]), (&json!("1.2.0"), &json!("1.2.0")));
    assert_eq!(value["description"], "Says hello.");
    assert!(project.good(&["--check"]).starts_with("current: "));
    assert!(project.good(&[]).starts_with("current: "));
    let text = project.text();
    assert_eq!(
        project.good(
            &[&NAMED[..], &["--package", "npm:@you/hello", "--remote", "https://example.com/mcp", "--out", "-"]]
                .concat()
        ),
        text
    );
}

#[test]
fn a_changed_surface_makes_the_file_stale_and_only_what_is_the_surfaces_is_written_anew() {
    let project = Project::new();
    project.good(&[&NAMED[..], &["--package", "pypi:hello", "--title", "Mine"]].concat());
    let kept = project.text().replace("\"title\": \"Mine\"", "\"title\":   \"Mine\",\n  \"extra\": [ 1.50 ]");
    project.write("server.json", &kept);
    assert!(project.good(&["--check"]).starts_with("current: "));
    project.write(
        "surface.yaml",
        &SURFACE.replace("1.2.0", "1.3.0").replace("Says hello.\n    read", "Says hi.\n    read"),
    );
    let (code, stdout, _) = project.export(&["--check"]);
    assert_eq!(code, 1);
    for line in [
        "/version: \"1.2.0\" -> \"1.3.0\"",
        "/packages/0/version: ",
        "~1toolsDigest: ",
        "~1surfaceVersion",
        "stale: server.json",
    ] {
        assert!(stdout.contains(line), "{line}: {stdout}");
    }
    assert_eq!(project.text(), kept);
    project.good(&[]);
    let text = project.text();
    assert!(text.contains("\"title\":   \"Mine\",\n  \"extra\": [ 1.50 ]"), "{text}");
    assert!(!text.contains("1.2.0") && text.contains("\"identifier\": \"hello\""), "{text}");
    assert!(project.good(&["--check"]).starts_with("current: "));
}

#[test]
fn the_digests_key_and_prefix_are_the_surfaces() {
    let project = Project::new();
    project.write("surface.yaml", &SURFACE.replace("version:", "digest_key: com.example/toolsDigest\nversion:"));
    project.good(&NAMED);
    let added = &project.value()["_meta"][ADDED];
    assert!(added["com.example/toolsDigest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(added["com.example/surfaceVersion"], "1.2.0");
}

#[test]
fn what_a_registry_would_refuse_is_not_written() {
    let long = "x".repeat(101);
    for (arguments, said) in [
        (&[][..], "\"name\""),
        (&["--name", "hello"], "one slash"),
        (&["--name", "a/b/c"], "one slash"),
        (&[NAMED[0], NAMED[1], "--description", &long], "100 characters"),
        (&[NAMED[0], NAMED[1], "--website", "http://x"], "https"),
        (&[NAMED[0], NAMED[1], "--repository", "https://github.com/you"], "OWNER/NAME"),
        (&[NAMED[0], NAMED[1], "--remote", "http://127.0.0.1:1/mcp"], "https"),
        (&[NAMED[0], NAMED[1], "--remote", "https://localhost/mcp"], "others reach"),
        (&[NAMED[0], NAMED[1], "--package", "npm:hello@3.0.0"], "surface's version"),
        (&[NAMED[0], NAMED[1], "--package", "oci:ghcr.io/you/hello"], ":VERSION"),
        (&[NAMED[0], NAMED[1], "--package", "mcpb:https://x/hello.mcpb"], "SHA256"),
        (&[NAMED[0], NAMED[1], "--package", "gem:hello"], "npm, pypi"),
    ] {
        let project = Project::new();
        let (code, _, stderr) = project.export(arguments);
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
        assert!(!project.0.path().join("server.json").exists());
    }
    let project = Project::new();
    project.good(&NAMED);
    let fat = project.text().replace(
        "\"dev.twodoor/surfaceVersion\"",
        &format!("\"a/b\": \"{}\",\n      \"dev.twodoor/surfaceVersion\"", "<".repeat(700)),
    );
    project.write("server.json", &fat);
    let (code, _, stderr) = project.export(&["--check"]);
    assert_eq!((code, stderr.contains("at most 4096")), (1, true), "{stderr}");
    assert_eq!(project.export(&[]).0, 2);
    assert_eq!(project.text(), fat);
}

#[test]
fn a_file_that_cannot_be_read_is_no_answer() {
    for text in ["{", "[]", "{ // x\n}", "{\"version\": 1, \"version\": 2}", "\u{feff}{,}"] {
        let project = Project::new();
        project.write("server.json", text);
        for arguments in [&NAMED[..], &["--check"]] {
            let (code, _, stderr) = project.export(arguments);
            assert_eq!((code, stderr.contains("server.json:1:")), (2, true), "{text}: {stderr}");
        }
        assert_eq!(project.text(), text);
    }
    let project = Project::new();
    project.write("other.json", "{}");
    symlink("other.json", project.0.path().join("server.json")).unwrap();
    assert_eq!(project.export(&NAMED).0, 2);
    assert_eq!(project.export(&["missing.yaml"]).0, 3);
    assert_eq!(project.twodoor(&["export", "other.json"]).0, 2);
}

#[test]
fn standard_output_is_no_file_that_could_be_left_or_checked() {
    let project = Project::new();
    let (code, stdout, stderr) = project.export(&["--out", "-"]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.contains("nothing was written") && !stderr.contains("- is left"), "{stderr}");
    let (code, _, stderr) = project.export(&["--out", "-", "--check"]);
    assert_eq!((code, stderr.contains("names none")), (2, true), "{stderr}");
    assert!(!project.0.path().join("server.json").exists());
}
