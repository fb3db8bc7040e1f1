//! The commands of the README and of the pages in docs/, run in order as a reader would, with the output that the page
//! shows.
//!
//! Only this is changed: `cargo run --release --` and `twodoor` are the binary under test, the port is a free one, and
//! `3fa9` is the request for approval that was made last.

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
/// How pages begin the id of a request for approval.
const README_REQUEST: &str = "3fa9";
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
    shell.env("HOME", folder.join("home")).env_remove("XDG_STATE_HOME");
    shell
}

/// The examples, without what calls leave beneath them.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let copy = to.join(entry.file_name());
        if [".venv", "project/outbox", "__pycache__"].iter().any(|left| entry.path().ends_with(left)) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            self::copy(&entry.path(), &copy);
        } else {
            std::fs::copy(entry.path(), copy).unwrap();
        }
    }
}

/// A clone as a reader has it: the examples in a repository with one commit.
fn clone() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::create_dir_all(folder.path().join("bin")).unwrap();
    std::fs::create_dir_all(folder.path().join("home")).unwrap();
    std::os::unix::fs::symlink(BINARY, folder.path().join("bin/twodoor")).unwrap();
    copy(&root.join("examples"), &folder.path().join("examples"));
    let commit =
        "git init -q . && git add examples && git -c user.name=a -c user.email=a@example.org commit -q -m first";
    assert!(shell(folder.path(), commit).status().unwrap().success());
    folder
}

/// Writes the files that a page shows: a `yaml` block below a line that ends with "In `NAME`:".
fn write_files(page: &str, folder: &Path) {
    let mut lines = page.lines();
    let mut last = "";
    while let Some(line) = lines.next() {
        let named = last.strip_suffix("`:").and_then(|last| last.rsplit_once("In `"));
        if let (Some((_, name)), "```yaml") = (named, line) {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            std::fs::write(folder.join(name), text.join("\n")).unwrap();
        }
        if !line.is_empty() {
            last = line;
        }
    }
}

/// Runs every command of a page; gives how many there were, and how many of them are servers.
fn play(name: &str, page: &str) -> (usize, usize) {
    let steps = steps(page);
    let count = steps.len();
    let clone = clone();
    write_files(page, clone.path());
    let mut servers = Vec::new();
    let mut address = README_PORT.to_owned();
    let mut request = README_REQUEST.to_owned();
    for Step { command, expected } in steps {
        let expected = expected.join("\n").replace(README_PORT, &address).replace(README_REQUEST, &request);
        let runnable = command
            .replace("cargo run --release --", "twodoor")
            .replace("\"$PWD/target/release:$PATH\"", "\"$PATH\"")
            .replace(README_REQUEST, &request);
        let printed = if runnable.contains(" serve ") && runnable.contains("--http") {
            let mut child = shell(clone.path(), &format!("exec {}", runnable.replace(README_PORT, "127.0.0.1:0")));
            let mut child = child.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
            let printed: Vec<String> = expected.lines().map(|_| lines.next().expect("a line").unwrap()).collect();
            servers.push(Server(child));
            let printed = printed.join("\n");
            let bound = printed.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address");
            let before = std::mem::replace(&mut address, bound.to_owned());
            printed.replace(&address, &before)
        } else {
            let output = shell(clone.path(), &format!("{{ {}\n}} 2>&1", runnable.replace(README_PORT, &address)))
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        if let Some((_, id)) = printed.split_once("\"request_id\":\"") {
            request = id[..README_REQUEST.len()].to_owned();
        }
        assert!(
            fits(&expected, printed.trim_end()),
            "{name}\n$ {command}\n--- the page shows\n{expected}\n--- it prints\n{printed}"
        );
    }
    (count, servers.len())
}

#[test]
fn every_command_of_the_readme_prints_what_the_readme_shows() {
    let (steps, servers) = play("README.md", include_str!("../README.md"));
    assert!(steps >= 10 && servers == 1, "the README lost its commands");
}

#[test]
fn every_command_of_the_documentation_prints_what_its_page_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<_> = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.push(root.join("examples/project/README.md"));
    let mut steps = 0;
    for page in pages {
        steps += play(&page.display().to_string(), &std::fs::read_to_string(&page).unwrap()).0;
    }
    assert!(steps >= 40, "the pages lost their commands: {steps}");
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
