//! The surfaces in `examples/`: they pass without a warning, work, and are as hardened as they say.

// Helpers of tests fail by panicking, as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::Path;
use std::process::Command;

use twodoor::protocol::{Catalog, Published};
use twodoor::surface::declaration::{Element, Feed, Output, Piece, Run, Template, Variable};
use twodoor::surface::{LoadedSurface, Surface, render};

mod folder;

use folder::{Folder, load};

fn example(name: &str) -> LoadedSurface {
    load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name))
}

#[test]
fn the_examples_pass_without_a_warning() {
    for name in ["git.yaml", "disk.yaml"] {
        let loaded = example(name);
        assert!(loaded.warnings.is_empty(), "{}", render(&loaded.warnings, false));
        assert!(loaded.tools.len() >= 5);
        assert_eq!(loaded.root, Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap());
        for tool in &loaded.parts.tools {
            assert_eq!(tool.annotations.read_only, Some(true), "{}", tool.name);
        }
        let catalog = Catalog::build(loaded.parts).unwrap();
        let surface = Surface::new(catalog);
        assert_eq!(surface.current().tools().len(), loaded.tools.len());
    }
    let http = example("http.yaml");
    assert!(http.warnings.is_empty(), "{}", render(&http.warnings, false));
    let disk = example("disk.yaml");
    assert!(disk.tools.iter().any(|tool| tool.command().unwrap().output == Output::Json));
}

/// A command line as `core` would render it, well enough for the examples.
fn command_line(run: &Run, given: &[(&str, &str)]) -> Vec<String> {
    let value = |name: &str| {
        let default = run.arguments.iter().find(|a| a.name == name).and_then(|a| a.default.as_ref());
        let given = given.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        given.or_else(|| default.map(|d| d.as_str().map_or_else(|| d.to_text(), str::to_owned)))
    };
    let text = |template: &Template| {
        let pieces = template.0.iter().map(|piece| match piece {
            Piece::Literal(text) => Some(text.clone()),
            Piece::Argument(name) => value(name),
        });
        pieces.collect::<Option<String>>()
    };
    let elements = run.argv.iter().filter_map(|element| match element {
        Element::One(template) => Some(vec![text(template)?]),
        Element::Group(templates) => templates.iter().map(text).collect(),
    });
    elements.flatten().collect()
}

fn run(run: &Run, given: &[(&str, &str)]) -> std::process::Output {
    use std::io::Write as _;
    let line = command_line(run, given);
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).current_dir(&run.cwd).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    for variable in &run.env {
        if let Variable::Literal(name, value) = variable {
            command.env(name, value);
        }
    }
    let pipe = std::process::Stdio::piped;
    let mut child = command.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    let fed = |key: &str| matches!(&run.stdin, Some(Feed::Argument(name)) if name == key);
    let stdin = given.iter().find(|(key, _)| fed(key));
    let mut input = child.stdin.take().unwrap();
    input.write_all(stdin.map_or("", |(_, text)| text).as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let code = output.status.code().unwrap();
    assert!(run.exit_codes.contains(&code), "{line:?}: {code} {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn the_git_example_runs_no_program_that_the_repository_names() {
    let folder = Folder::new("git");
    let script = folder.file("mark", format!("#!/bin/sh\ntouch {}/marked\ncat\n", folder.0.display()));
    #[cfg(unix)]
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let repository = folder.0.join("repository");
    fs::create_dir_all(repository.join("surfaces")).unwrap();
    let git = |line: &[&str]| {
        let base = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
        let status = Command::new("git").args(base).args(line).current_dir(&repository).output().unwrap();
        assert!(status.status.success(), "{line:?}: {}", String::from_utf8_lossy(&status.stderr));
    };
    git(&["init", "--quiet"]);
    fs::write(repository.join("a.txt"), "one\ntwo\n").unwrap();
    fs::write(repository.join(".gitattributes"), "*.txt diff=evil filter=evil\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    fs::write(repository.join("a.txt"), "one\ntwo\nthree\n").unwrap();
    git(&["commit", "--quiet", "-a", "-m", "second"]);
    let mark = script.display().to_string();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "gpg.program",
        "pager.log",
        "alias.log",
    ] {
        git(&["config", key, &mark]);
    }
    git(&["config", "log.showSignature", "true"]);
    fs::write(repository.join("a.txt"), "changed\n").unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/git.yaml");
    fs::copy(source, repository.join("surfaces/git.yaml")).unwrap();
    let loaded = load(&repository.join("surfaces/git.yaml"));
    type Call<'c> = (&'c str, &'c [(&'c str, &'c str)], &'c str);
    let calls: [Call<'_>; 8] = [
        ("log", &[], "second"),
        ("log", &[("path", "a.txt"), ("author", "Ann"), ("message", "first"), ("since", "2001-01-01")], "first"),
        ("show", &[("revision", "HEAD")], "+three"),
        ("show", &[("revision", "HEAD"), ("path", "a.txt")], "+three"),
        ("blame", &[("path", "a.txt")], "three"),
        ("blame", &[("path", "a.txt"), ("lines", "2,3")], "two"),
        ("grep", &[("text", "chang"), ("path", "a.txt")], "a.txt:1:changed"),
        ("files", &[], "a.txt"),
    ];
    for (name, given, expected) in calls {
        let tool = loaded.tools.iter().find(|tool| tool.name == name).unwrap();
        let output = String::from_utf8(run(tool.command().unwrap(), given).stdout).unwrap();
        assert!(output.contains(expected), "{name}: {output}");
        assert!(!folder.0.join("marked").exists(), "{name} ran what the repository names");
    }
    git(&["diff"]);
    assert!(folder.0.join("marked").exists(), "the repository names nothing that runs, so this test shows nothing");
    let show = loaded.tools.iter().find(|tool| tool.name == "show").unwrap();
    let line = command_line(show.command().unwrap(), &[("revision", "--output=stolen")]);
    let output = Command::new(&line[0]).args(&line[1..]).current_dir(&repository).output().unwrap();
    assert!(!output.status.success() && !repository.join("stolen").exists());
}

#[test]
fn the_disk_example_works_on_this_machine() {
    let loaded = example("disk.yaml");
    let call = |name: &str, given: &[(&str, &str)]| {
        let tool = loaded.tools.iter().find(|tool| tool.name == name).unwrap();
        String::from_utf8(run(tool.command().unwrap(), given).stdout).unwrap()
    };
    assert!(call("space", &[]).contains('%'));
    assert!(call("usage", &[("path", "examples")]).contains("examples"));
    assert!(call("find", &[("name", "disk.*")]).contains("./examples/disk.yaml"));
    assert!(call("head", &[("path", "examples/disk.yaml"), ("lines", "1")]).starts_with("# Disks"));
    assert!(call("tail", &[("path", "examples/disk.yaml"), ("lines", "1")]).contains("timeout"));
    assert!(call("count", &[("path", "examples/disk.yaml")]).contains("examples/disk.yaml"));
    assert!(call("grep", &[("text", "surface: disk"), ("path", "examples")]).contains("disk.yaml:2:"));
    assert_eq!(call("sort", &[("text", "b\na\nb\n")]), "a\nb\n");
    let measure = loaded.tools.iter().find(|tool| tool.name == "measure").unwrap();
    let catalog = Catalog::build(loaded.parts.clone()).unwrap();
    let schema = catalog.tool("measure").unwrap().output.as_ref().unwrap();
    for (text, expected) in [("a b\nc\n", [2, 3, 6]), ("", [0, 0, 0])] {
        let output = run(measure.command().unwrap(), &[("text", text)]).stdout;
        let value: serde_json::Value = serde_json::from_slice(&output).unwrap();
        assert!(schema.violations(&value).is_empty());
        assert_eq!([&value["lines"], &value["words"], &value["bytes"]], expected.each_ref());
    }
}
