//! The commands, as people run them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

fn twodoor(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A folder with a program that keeps books.
fn shelf() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"#!/bin/sh
case "$*" in
  --version) echo "shelf 3.1 from /opt/secret/place" ;;
  --help) printf '%s\n' "Keeps books." "" "Usage: shelf <COMMAND>" "" "Commands:" "  find    Finds books" "  delete  Deletes a book" "  box     More" "  help    Prints" ;;
  "find --help") printf '%s\n' "Finds books" "" "Usage: shelf find [OPTIONS] <TITLE>" "" "Options:" "      --max <N>  At most so many" "      --old  Old ones" "      --exec <CMD>  Runs" ;;
  "delete -h") printf '%s\n' "usage: shelf delete BOOK" >&2 ;;
  "delete --help") cat ;;
  "box --help") printf '%s\n' "Usage: shelf box <COMMAND>" "" "Commands:" "  open  Opens it" ;;
  "box open --help") printf '%s\n' "Usage: shelf box open" ;;
  *) for word; do printf '<%s>' "$word"; done; [ -z "$HOME" ] || printf home ;;
esac
"#;
    let path = folder.path().join("shelf");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn a_program_is_imported_checked_and_called() {
    let folder = shelf();
    let imported = twodoor(folder.path(), &["import", "cli", "./shelf", "--out", "shelf.yaml"]);
    assert!(imported.status.success(), "{}", said(&imported));
    let text = fs::read_to_string(folder.path().join("shelf.yaml")).unwrap();
    assert!(text.contains("says \"shelf 3.1\"") && !text.contains("secret"), "{text}");
    for name in ["find", "delete", "box_open"] {
        assert!(text.contains(&format!("\n  {name}:\n")), "{text}");
    }
    assert!(text.contains("run: [./shelf, delete, --, \"{book}\"]"), "{text}");
    let checked = twodoor(folder.path(), &["check", "shelf.yaml"]);
    assert!(
        checked.status.success() && said(&checked).contains("3 tools") && !said(&checked).contains("warning"),
        "{}",
        said(&checked)
    );
    let arguments = ["call", "find", "title=-x", "max=3", "old=--old", "--surface", "shelf.yaml"];
    let called = twodoor(folder.path(), &arguments);
    assert!(said(&called).contains("<find><--max=3><--old><--><-x>"), "{}", said(&called));
}

#[test]
fn a_file_that_is_there_stays_unless_it_may_be_replaced() {
    let folder = shelf();
    fs::write(folder.path().join("mine.yaml"), "mine").unwrap();
    let refused = twodoor(folder.path(), &["import", "cli", "./shelf", "--out", "mine.yaml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("--force"));
    assert_eq!(fs::read_to_string(folder.path().join("mine.yaml")).unwrap(), "mine");
    let replaced = twodoor(folder.path(), &["import", "cli", "./shelf", "--out", "mine.yaml", "--force"]);
    assert!(replaced.status.success(), "{}", said(&replaced));
    assert!(fs::read_to_string(folder.path().join("mine.yaml")).unwrap().contains("surface: shelf"));
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let printed = twodoor(folder.path(), &["import", "cli", "./shelf", "find"]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("surface: shelf_find"), "{}", said(&printed));
}

#[test]
fn what_gives_nothing_is_said_with_an_exit_code() {
    let folder = shelf();
    fs::write(folder.path().join("mute"), "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(folder.path().join("mute"), fs::Permissions::from_mode(0o755)).unwrap();
    let vague = "#!/bin/sh\nprintf '%s\\n' 'Usage: vague [ignored command line arguments]' '  or:  vague OPTION' 'Fails.' '' '      --help   shows this'\n";
    fs::write(folder.path().join("vague"), vague).unwrap();
    fs::set_permissions(folder.path().join("vague"), fs::Permissions::from_mode(0o755)).unwrap();
    for (arguments, code, words) in [
        (&["import", "cli", "no-such-program-here"][..], 2, "is not there"),
        (&["import", "cli", "./mute"], 1, "nothing that reads like help"),
        (&["import", "cli", "./vague"], 1, "no options found in its help"),
        (&["import", "openapi", "none.yaml"], 2, "none.yaml"),
        (&["import", "mcp", "ftp://x"], 2, "behind --"),
        (&["import", "mcp", "--", "false"], 2, "code 1"),
        (&["import", "mcp"], 2, "URL"),
    ] {
        let output = twodoor(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{arguments:?}: {}", said(&output));
    }
}

#[test]
fn operations_are_listed_and_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/import/openapi/library.yaml");
    let listed = twodoor(folder.path(), &["import", "openapi", document, "--list", "--only", "books"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "GET    /books/{bookId}  books/get  books  One book\n");
    let none = twodoor(folder.path(), &["import", "openapi", document, "--only", "nothing*"]);
    assert_eq!(none.status.code(), Some(1), "{}", said(&none));
    let made = twodoor(folder.path(), &["import", "openapi", document, "--only", "* /books", "--out", "l.yaml"]);
    assert!(made.status.success() && said(&made).contains("2 tools"), "{}", said(&made));
    assert!(twodoor(folder.path(), &["check", "l.yaml"]).status.success());
}

#[test]
fn a_server_is_imported_by_either_door_and_pinned() {
    let folder = tempfile::tempdir().unwrap();
    let surface = "surface: notes\nversion: 1.0.0\ntools:\n  read-it: { description: Reads., read_only: true, run: [echo, hi] }\n";
    fs::write(folder.path().join("notes.yaml"), surface).unwrap();
    let ours = env!("CARGO_BIN_EXE_twodoor");
    let made = twodoor(folder.path(), &["import", "mcp", "--out", "up.yaml", "--", ours, "serve", "notes.yaml"]);
    assert!(made.status.success(), "{}", said(&made));
    let text = fs::read_to_string(folder.path().join("up.yaml")).unwrap();
    let digest = said(&twodoor(folder.path(), &["digest", "notes.yaml"]));
    assert!(text.contains(digest.split_whitespace().next().unwrap()), "{text}\n{digest}");
    assert!(text.contains("upstream: notes/read-it") && !text.contains("era: legacy"), "{text}");
    let checked = twodoor(folder.path(), &["check", "up.yaml"]);
    assert!(checked.status.success(), "{}", said(&checked));
}

#[test]
fn programs_that_are_on_most_machines_give_files_that_can_be_served() {
    for (words, least) in [
        (&["git"][..], 10),
        (&["git", "log"], 1),
        (&["cargo"], 10),
        (&["find"], 1),
        (&["tar"], 1),
        (&["ls"], 1),
        (&["grep"], 1),
        (&["curl"], 1),
        (&["--", "python3", "-m", "json.tool"], 1),
        (&["--", "python3", "-m", "venv"], 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let arguments = [&["import", "cli", "--out", "it.yaml"][..], words].concat();
        let made = twodoor(folder.path(), &arguments);
        if said(&made).contains("is not there") || said(&made).contains("nothing that reads like help") {
            // Not on this machine, or of a family that says little.
            continue;
        }
        assert!(made.status.success(), "{words:?}: {}", said(&made));
        let checked = twodoor(folder.path(), &["check", "it.yaml"]);
        assert!(checked.status.success(), "{words:?}: {}", said(&checked));
        let text = fs::read_to_string(folder.path().join("it.yaml")).unwrap();
        let tools = text.lines().filter(|line| line.starts_with("    run:")).count();
        assert!(tools >= least, "{words:?}: {tools} tools\n{text}");
    }
}
