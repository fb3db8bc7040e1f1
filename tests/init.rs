//! `twodoor init`: what it writes works, and what is there is never touched.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use twodoor::surface::manifest;

fn twodoor(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).env("NO_COLOR", "1");
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(everything(&entry.path()));
        }
        found.push(entry.path());
    }
    found.sort();
    found
}

#[test]
fn a_project_passes_check_without_a_warning_and_its_tools_answer() {
    for runtime in ["exec", "python"] {
        let folder = tempfile::tempdir().unwrap();
        let (code, stdout, stderr) = twodoor(folder.path(), &["init", "my ops.1", "--runtime", runtime]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("cd 'my ops.1'") && stdout.contains("twodoor install"), "{stdout}");
        let project = folder.path().join("my ops.1");
        let (code, stdout, stderr) = twodoor(&project, &["check"]);
        assert_eq!((code, stdout.as_str()), (0, "ok: surface.yaml: my-ops 0.1.0, 2 tools, 1 skill\n"), "{stderr}");
        assert_eq!(twodoor(&project, &["check", "--json"]).1, "[]\n");
        let (code, stdout, _) = twodoor(&project, &["call", "hello", "name=Ada Ü"]);
        assert_eq!((code, stdout.as_str()), (0, "{\"greeting\":\"Hello, Ada Ü!\"}\n"), "{runtime}");
        assert_eq!(twodoor(&project, &["call", "hello", "name=--help"]).0, 0);
        let (code, stdout, _) = twodoor(&project, &["call", "list_files"]);
        assert_eq!((code, stdout.contains("surface.yaml")), (0, true), "{stdout}");
        assert_eq!(twodoor(&project, &["read", "skill://hello/SKILL.md"]).0, 0);
        assert_eq!(twodoor(&project, &["digest"]).0, 0);
        assert!(!fs::read_to_string(project.join("README.md")).unwrap().contains('@'));
        // The program keeps the contract of capabilities: one JSON value, errors included.
        let entry = project.join(if runtime == "exec" { "tools/hello/hello" } else { "tools/hello/main.py" });
        for bad in [&[][..], &["nope"], &["show"], &["show", "--nam=x"], &["show", "--name=x", "more"]] {
            let output = Command::new(&entry).args(bad).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{bad:?}");
            let error: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(error["error"]["code"], "usage", "{bad:?}");
        }
    }
}

#[test]
fn the_folder_may_be_there_and_hold_other_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tools")).unwrap();
    fs::write(folder.path().join("LICENSE"), "mine").unwrap();
    let (code, _, stderr) = twodoor(folder.path(), &["init", "--name", "ops"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(fs::read_to_string(folder.path().join("LICENSE")).unwrap(), "mine");
    assert!(fs::read_to_string(folder.path().join("surface.yaml")).unwrap().contains("surface: ops\n"));
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_is_written() {
    for (there, folder) in [
        ("surface.yaml", false),
        ("README.md", false),
        (".gitignore", false),
        ("skills/hello/SKILL.md", false),
        ("tools/hello/hello", true),
        ("tools", false),
        ("skills/hello", false),
    ] {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(there);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if folder {
            fs::create_dir(&path).unwrap()
        } else {
            fs::write(&path, "mine").unwrap()
        }
        let before = everything(root.path());
        let (code, stdout, stderr) = twodoor(root.path(), &["init"]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{there}");
        assert!(stderr.contains(there) && stderr.contains("nothing was written"), "{stderr}");
        assert_eq!(everything(root.path()), before);
        assert!(folder || fs::read_to_string(path).unwrap() == "mine");
    }
}

#[test]
fn links_lead_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    for there in ["tools", "skills", "surface.yaml", "tools/hello"] {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(there);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(outside.path(), &path).unwrap();
        let (code, _, stderr) = twodoor(root.path(), &["init"]);
        assert_eq!(code, 2, "{there}: {stderr}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_left_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    let (code, _, stderr) = twodoor(root.path(), &["init", "file/project"]);
    assert_eq!((code, stderr.contains("file/project")), (2, true), "{stderr}");
    assert_eq!(everything(root.path()).len(), 1);
}

#[test]
fn names_that_some_client_refuses_are_refused() {
    let root = tempfile::tempdir().unwrap();
    for bad in ["", "a b", "a.b", "workspace", "ü", "a\nb"] {
        assert_eq!(twodoor(root.path(), &["init", "project", "--name", bad]).0, 2, "{bad}");
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    assert_eq!(twodoor(root.path(), &["init", "42"]).0, 0);
    assert!(fs::read_to_string(root.path().join("42/surface.yaml")).unwrap().contains("surface: tools\n"));
}

#[test]
fn a_project_of_capabilities_has_a_manifest_and_a_surface_for_operators() {
    for (runtime, entry) in [("exec", "hello"), ("python", "main.py")] {
        let root = tempfile::tempdir().unwrap();
        let (code, stdout, stderr) = twodoor(root.path(), &["init", "ops", "--capability", "--runtime", runtime]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("\n  twodoor call capabilities search=greet --surface operator.yaml\n"), "{stdout}");
        let text = |file: &str| fs::read_to_string(root.path().join("ops").join(file)).unwrap();
        assert!(text("tools/hello/tool.yaml").contains(&format!("runtime: {runtime}\nentrypoint: {entry}\n")));
        assert!(root.path().join("ops/tools/hello").join(entry).exists());
        assert!(text("surface.yaml").contains("target: hello/show"));
        let scan = manifest::scan(&root.path().canonicalize().unwrap().join("ops"));
        assert!(scan.entries.iter().all(|entry| entry.found.is_ok()), "{:?}", scan.entries);
        let hello = scan.find(None, "hello").unwrap();
        assert_eq!(hello.action("show").unwrap().effects, Some(manifest::Effects::Read));
        let builtins: Vec<_> =
            ["capabilities", "run_tool", "run_tool_confirmed", "run_agent", "run_agent_confirmed", "get_skill"]
                .to_vec();
        let operator = text("operator.yaml");
        let found: Vec<_> =
            operator.lines().filter_map(|line| line.trim().split_once(": { builtin: ")).map(|(name, _)| name).collect();
        assert_eq!(found, builtins);
    }
}

#[test]
fn a_project_of_capabilities_passes_check_without_a_warning() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(twodoor(root.path(), &["init", "ops", "--capability"]).0, 0);
    let project = root.path().join("ops");
    for surface in ["surface.yaml", "operator.yaml"] {
        assert_eq!(twodoor(&project, &["check", surface, "--json"]).1, "[]\n", "{surface}");
    }
    let (code, stdout, stderr) = twodoor(&project, &["call", "hello", "name=Ada"]);
    assert_eq!((code, stdout.contains("Hello, Ada!")), (0, true), "{stderr}");
    let readme = fs::read_to_string(project.join("README.md")).unwrap();
    assert!(
        readme.contains("\ntwodoor serve surface.yaml operator.yaml --http 127.0.0.1:8484\n") && !readme.contains('@'),
        "{readme}"
    );
    let (code, stdout, stderr) = twodoor(&project, &["call", "capabilities", "-s", "operator.yaml"]);
    assert_eq!((code, stdout.contains("hello")), (0, true), "{stderr}");
}
