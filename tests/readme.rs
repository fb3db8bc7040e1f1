//! The README's commands, run in order as a reader would, with the output that the README shows.
//!
//! Only two things are changed: `cargo run --release --` and `twodoor` are the binary under test,
//! and the port is a free one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may fail by panicking"
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const README_PORT: &str = "127.0.0.1:8484";
const BINARY: &str = env!("CARGO_BIN_EXE_twodoor");

struct Step {
    command: String,
    expected: Vec<String>,
}

/// The steps of all `console` blocks: a line that begins with `$ `, a here-document if it opens one, the output.
fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        if line != "```console" {
            continue;
        }
        while let Some(line) = lines.next().filter(|line| *line != "```") {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    let mut command = command.to_owned();
                    if command.contains("<<'END'") {
                        for line in lines.by_ref() {
                            command = format!("{command}\n{line}");
                            if line == "END" {
                                break;
                            }
                        }
                    }
                    steps.push(Step { command, expected: Vec::new() });
                }
                None => steps.last_mut().expect("a command before its output").expected.push(line.to_owned()),
            }
        }
    }
    steps
}

/// Whether a text has the parts between the ellipses, in order, from its beginning to its end.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    last.map_or(rest.is_empty(), |last| last.is_empty() || text.ends_with(last))
}

/// A server of the README that runs until the test ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(folder: &Path, command: &str) -> Command {
    let bin = folder.join("bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).env("PATH", path).env("NO_COLOR", "1").stdin(Stdio::null());
    shell
}

/// A clone as a reader has it: the examples in a repository with one commit.
fn clone() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::create_dir_all(folder.path().join("examples")).unwrap();
    std::fs::create_dir_all(folder.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(BINARY, folder.path().join("bin/twodoor")).unwrap();
    let examples = ["git.yaml", "disk.yaml", "notes.yaml", "notes/welcome.md", "notes/prompts/review.md"];
    let days = ["notes/days/2026-01-05.md", "notes/days/2026-01-06.md"];
    for example in examples.into_iter().chain(days) {
        let copy = folder.path().join("examples").join(example);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(root.join("examples").join(example), copy).unwrap();
    }
    let commit = "git init -q . && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first";
    assert!(shell(folder.path(), commit).status().unwrap().success());
    folder
}

#[test]
fn every_command_of_the_readme_prints_what_the_readme_shows() {
    let readme = include_str!("../README.md");
    let steps = steps(readme);
    assert!(steps.len() >= 10, "the README lost its commands");
    let clone = clone();
    let mut servers = Vec::new();
    let mut address = README_PORT.to_owned();
    for Step { command, expected } in steps {
        let expected = expected.join("\n").replace(README_PORT, &address);
        let runnable =
            command.replace("cargo run --release --", "twodoor").replace("\"$PWD/target/release:$PATH\"", "\"$PATH\"");
        let printed = if runnable.contains(" serve ") && runnable.contains("--http") {
            let mut child = shell(clone.path(), &format!("exec {}", runnable.replace(README_PORT, "127.0.0.1:0")));
            let mut child = child.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
            let printed: Vec<String> = expected.lines().map(|_| lines.next().expect("a line").unwrap()).collect();
            servers.push(Server(child));
            let printed = printed.join("\n");
            let bound = printed.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address");
            address = bound.to_owned();
            printed.replace(&address, README_PORT)
        } else {
            let output = shell(clone.path(), &format!("{{ {}\n}} 2>&1", runnable.replace(README_PORT, &address)))
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(
            fits(&expected, printed.trim_end()),
            "$ {command}\n--- the README shows\n{expected}\n--- it prints\n{printed}"
        );
    }
    assert_eq!(servers.len(), 1);
}

#[test]
fn the_readme_names_the_command_that_runs_all_tests() {
    assert!(include_str!("../README.md").contains("\n./test.sh\n"));
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("test.sh").is_file());
}

#[test]
fn an_ellipsis_stands_for_any_text_and_nothing_else_does() {
    for (pattern, text, expected) in [
        ("a…c", "abc", true),
        ("a…", "a", true),
        ("…", "", true),
        ("a…c", "abcd", false),
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("…b…", "abc", true),
        ("…x…", "abc", false),
    ] {
        assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
    }
}
