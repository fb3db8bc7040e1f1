//! What of a project is read, and what is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::*;

/// A project with a tool of one action, for tests to spoil.
pub(crate) struct Project(tempfile::TempDir, PathBuf);

const GOOD: &str = "name: good\ndescription: Does good.\nruntime: python\nactions: [{name: do}]\n";

impl Project {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("project");
        fs::create_dir(&path).unwrap();
        let path = path.canonicalize().unwrap();
        let project = Self(folder, path);
        project.tool("good", GOOD);
        project
    }

    pub(crate) fn path(&self) -> &Path {
        &self.1
    }

    pub(crate) fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.1.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn tool(&self, folder: &str, manifest: &str) {
        self.file(&format!("tools/{folder}/tool.yaml"), manifest);
        self.file(&format!("tools/{folder}/main.py"), "print('{}')\n");
    }

    fn outside(&self) -> &Path {
        self.0.path()
    }
}

/// `FOLDER: NAME` or `FOLDER: !RULES` of each entry.
fn shown(scan: &Scan) -> Vec<String> {
    let entry = |entry: &ScanEntry| match &entry.found {
        Ok(found) => format!("{}: {}", entry.folder, found.name()),
        Err(problems) => {
            let rules: Vec<&str> = problems.list().iter().map(|p| p.rule).collect();
            format!("{}: !{}", entry.folder, rules.join(" "))
        }
    };
    scan.entries.iter().map(entry).collect()
}

fn with_tool(manifest: &str) -> Vec<String> {
    let project = Project::new();
    project.tool("bad", manifest);
    shown(&scan(project.path()))
}

fn facts(manifest: &str) -> Manifest {
    let project = Project::new();
    project.tool("t", manifest);
    let scan = scan(project.path());
    let entry = scan.entries.iter().find(|entry| entry.folder == "t").unwrap();
    match entry.found.as_ref().unwrap_or_else(|problems| panic!("{problems}")) {
        Found::Capability(manifest) => (**manifest).clone(),
        Found::Skill(_) => panic!("a skill"),
    }
}

#[test]
fn a_manifest_with_everything_in_it_becomes_facts() {
    let manifest = facts(
        r#"
name: xlsx
description: >
  Reads
  workbooks.
version: 0.2
runtime: python
entrypoint: main.py
argv_style: space
max_concurrent: 1
tier: official
actions:
  - name: read-sheet
    description: Reads one sheet.
    effects: read
    blast_class: none
    args:
      - {name: path, type: string, required: true, description: The file}
      - {name: max-results, type: integer, default: 5}
      - {name: options, type: object, schema: {type: object}, stdin: true, default: null}
    output_schema: '{ "sheet": "..." }'
    examples: [{cmd: "xlsx read-sheet", output: '{}'}]
  - {name: list}
secrets:
  - {name: "github:token", description: A token}
  - {name: other, optional: true}
routing: {triggers: [read a workbook], primary_action: read-sheet, example: ""}
healthcheck: {action: list, args: {max: 1}, label: lists}
web_session: {name: s, login_url: "https://x", persistent: true, channel: chrome, label: x}
requires: [{name: git, kind: binary, why: w, check: c, install: i, auto: true}]
output_schema: ""
examples: []
"#,
    );
    assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("xlsx", "0.2"));
    assert_eq!((manifest.description.as_str(), manifest.runtime), ("Reads workbooks.", Runtime::Python));
    assert!(manifest.entrypoint.ends_with("tools/t/main.py") && manifest.folder.ends_with("tools/t"));
    assert_eq!((manifest.argv_style, manifest.max_concurrent), (ArgvStyle::Space, 1));
    let plain = facts("name: plain\ndescription: x\nruntime: python\n");
    assert_eq!((plain.argv_style, plain.max_concurrent), (ArgvStyle::Eq, 8));
    let action = manifest.action("read-sheet").unwrap();
    assert_eq!((action.effects, action.blast_class.as_deref()), (Some(Effects::Read), Some("none")));
    let args: Vec<_> = action.args.iter().map(|a| (a.name.as_str(), a.kind.name(), a.required, a.stdin)).collect();
    let expected =
        [("path", "string", true, false), ("max-results", "integer", false, false), ("options", "object", false, true)];
    assert_eq!(args, expected);
    assert_eq!(action.args[1].default, Some(Json::Number("5".into())));
    assert!(action.args[2].default.is_none() && action.args[2].schema.is_some());
    assert_eq!(manifest.secrets[0].variable(), "GITHUB_TOKEN");
    assert!(manifest.secrets[1].optional && manifest.output_schema.is_none());
    let routing = &manifest.routing;
    assert_eq!((routing.primary_action.as_deref(), routing.example.as_deref()), (Some("read-sheet"), None));
    assert_eq!(action.examples.len(), 1);
}

#[test]
fn a_manifest_that_cannot_be_read_is_an_entry_with_its_reason_and_hides_no_other() {
    let base = "name: bad\ndescription: x\nruntime: python\n";
    let table = [
        (String::new(), "yaml-syntax"),
        ("- a\n".to_owned(), "value-kind"),
        ("name: bad\n".to_owned(), "missing-key"),
        (format!("{base}extra: 1\n"), "unknown-key"),
        (format!("{base}tools: [good]\n"), "unknown-key"),
        (format!("{base}name: bad\n"), "yaml-duplicate-key"),
        (format!("{base}actions: [{{name: a, arg: []}}]\n"), "unknown-key"),
        (format!("{base}actions: [{{name: a, args: [{{name: x, typ: string}}]}}]\n"), "unknown-key"),
        (format!("{base}actions: [{{name: a, args: [{{name: x, type: text}}]}}]\n"), "value-kind"),
        (format!("{base}actions: [{{name: a, args: [{{name: --x}}]}}]\n"), "manifest-name"),
        (format!("{base}actions: [{{name: a, args: [{{name: 1x}}]}}]\n"), "manifest-name"),
        (format!("{base}actions: [{{name: a, args: [{{name: x, schema: {{type: 5}}}}]}}]\n"), "manifest-schema"),
        (format!("{base}actions: [{{name: -a}}]\n"), "manifest-name"),
        (format!("{base}actions: [{{name: \"a b\"}}]\n"), "manifest-name"),
        (format!("{base}actions: [{{name: a}}, {{name: a}}]\n"), "manifest-twice"),
        (format!("{base}actions: [{{name: a}}]\nargs: [{{name: x}}]\n"), "manifest-shape"),
        (format!("{base}actions: [{{name: a, effects: harmless}}]\n"), "value-kind"),
        (format!("{base}secrets: [{{name: a, value: hunter2}}]\n"), "unknown-key"),
        (format!("{base}secrets: [{{name: \"a:b:c\"}}]\n"), "manifest-secret"),
        (format!("{base}secrets: [{{name: path}}]\n"), "manifest-secret"),
        (format!("{base}secrets: [{{name: \"ld:preload\"}}]\n"), "manifest-secret"),
        (format!("{base}secrets: [{{name: twodoor-token}}]\n"), "manifest-secret"),
        (format!("{base}healthcheck: {{action: none}}\n"), "manifest-shape"),
        (format!("{base}web_session: {{url: x}}\n"), "missing-key unknown-key"),
        (format!("{base}requires: [{{name: x, kind: thing}}]\n"), "value-kind"),
        (format!("{base}tier: gold\n"), "value-kind"),
        (format!("{base}routing: {{trigger: x}}\n"), "unknown-key"),
        (format!("{base}entrypoint: ../good/main.py\n"), "manifest-entrypoint"),
        (format!("{base}entrypoint: /bin/sh\n"), "manifest-entrypoint"),
        (format!("{base}entrypoint: none.py\n"), "manifest-entrypoint"),
        (format!("{base}entrypoint: .\n"), "manifest-entrypoint"),
        ("name: bad\ndescription: x\nruntime: exec\n".to_owned(), "manifest-entrypoint"),
        ("name: bad\ndescription: x\nruntime: ruby\n".to_owned(), "value-kind"),
        ("name: a/b\ndescription: x\nruntime: python\n".to_owned(), "manifest-name"),
        (format!("name: {}\ndescription: x\nruntime: python\n", "n".repeat(129)), "manifest-name"),
        ("name: \"\"\ndescription: x\nruntime: python\n".to_owned(), "manifest-name"),
        (format!("{base}# \u{202e}\n"), "hidden-characters"),
        (format!("{base}argv_style: equals\n"), "value-kind"),
        (format!("{base}max_concurrent: 0\n"), "manifest-concurrent"),
        (format!("{base}max_concurrent: 65\n"), "manifest-concurrent"),
        (format!("{base}max_concurrent: 1.5\n"), "manifest-concurrent"),
        (format!("{base}max_concurrent: \"1\"\n"), "value-kind"),
        (format!("{base}tier: \"\\e[2J\"\n"), "hidden-characters value-kind"),
        (format!("{base}<<: {{tier: custom}}\n"), "yaml-merge-key"),
        (format!("{base}tier: !!python/object x\n"), "value-kind yaml-tag"),
        (format!("{base}examples: {}{}\n", "[".repeat(10_000), "]".repeat(10_000)), "yaml-depth"),
        (format!("{base}---\nname: two\n"), "yaml-document"),
    ];
    for (manifest, rules) in table {
        let mut shown = with_tool(&manifest);
        let bad = shown.remove(0);
        let mut found: Vec<&str> = bad.strip_prefix("bad: !").unwrap_or(&bad).split(' ').collect();
        found.sort_unstable();
        assert_eq!(found.join(" "), rules, "{manifest}");
        assert_eq!(shown, ["good: good"], "{manifest}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place_relative_to_the_project_and_what_was_meant() {
    let project = Project::new();
    project.tool("bad", "name: bad\ndescripton: x\nruntime: python\n");
    let scan = scan(project.path());
    let problems = scan.entries[0].found.as_ref().unwrap_err();
    let text = problems.to_string();
    assert!(text.contains("tools/bad/tool.yaml:2:1: error[unknown-key]"), "{text}");
    assert!(!text.contains(&*project.path().to_string_lossy()), "{text}");
    assert!(problems.list().iter().any(|problem| problem.suggestion.as_deref() == Some("description")));
}

#[test]
fn an_alias_bomb_ends_early() {
    let mut bomb = "name: bad\ndescription: x\nexamples:\n- &a [\"lol lol lol lol\"]\n".to_owned();
    for (name, of) in "bcdefghijklm".chars().zip("abcdefghijkl".chars()) {
        let inner = vec![format!("*{of}"); 10].join(", ");
        bomb.push_str(&format!("- &{name} [{inner}]\n"));
    }
    assert_eq!(with_tool(&bomb), ["bad: !yaml-size", "good: good"]);
}

#[test]
fn what_is_no_file_of_the_project_is_refused_without_waiting() {
    let project = Project::new();
    let root = project.path();
    fs::write(project.outside().join("tool.yaml"), GOOD).unwrap();
    fs::create_dir_all(project.outside().join("elsewhere")).unwrap();
    fs::write(project.outside().join("elsewhere/tool.yaml"), GOOD).unwrap();
    for folder in ["device", "fifo", "folder", "link", "near", "nowhere", "open", "wide", "large", "utf16"] {
        fs::create_dir_all(root.join("tools").join(folder)).unwrap();
    }
    let made = std::process::Command::new("mkfifo").arg(root.join("tools/fifo/tool.yaml")).status().unwrap();
    assert!(made.success());
    symlink("/dev/zero", root.join("tools/device/tool.yaml")).unwrap();
    fs::create_dir(root.join("tools/folder/tool.yaml")).unwrap();
    symlink("../../../tool.yaml", root.join("tools/link/tool.yaml")).unwrap();
    symlink("../good/tool.yaml", root.join("tools/near/tool.yaml")).unwrap();
    symlink("gone", root.join("tools/nowhere/tool.yaml")).unwrap();
    symlink("../../elsewhere", root.join("tools/out")).unwrap();
    symlink("good", root.join("tools/same")).unwrap();
    symlink("circle", root.join("tools/circle")).unwrap();
    project.file("tools/large/tool.yaml", vec![b'#'; 2 * 1024 * 1024]);
    project.file("tools/utf16/tool.yaml", b"\xff\xfen\0a\0");
    project.file("tools/open/tool.yaml", GOOD);
    fs::set_permissions(root.join("tools/open/tool.yaml"), fs::Permissions::from_mode(0o666)).unwrap();
    project.file("tools/_lib/tool.yaml", "not read");
    project.file("tools/.git/tool.yaml", "not read");
    project.file("tools/empty/readme.md", "no manifest");
    project.file("tools/stray.yaml", "no folder");
    let expected = [
        "device: !file-link",
        "fifo: !file-kind",
        "folder: !file-kind",
        "good: good",
        "large: !file-size",
        "link: !file-link",
        "near: !manifest-entrypoint",
        "nowhere: !file-unreadable",
        "open: !file-mode",
        "out: !file-link",
        "same: !manifest-twice",
        "utf16: !file-utf8",
    ];
    assert_eq!(shown(&scan(root)), expected);
}

#[test]
fn a_place_that_leads_out_of_the_project_is_one_problem() {
    let project = Project::new();
    fs::create_dir_all(project.outside().join("agents/spy")).unwrap();
    fs::write(project.outside().join("agents/spy/agent.yaml"), GOOD).unwrap();
    symlink("../agents", project.path().join("agents")).unwrap();
    project.file("skills", "a file");
    assert_eq!(shown(&scan(project.path())), ["good: good", "agents: !file-link", "skills: !file-unreadable"]);
}

#[test]
fn the_first_of_two_names_counts_and_each_kind_has_names_of_its_own() {
    let project = Project::new();
    project.tool("a-good", GOOD);
    project.file("agents/good/agent.yaml", "name: good\ndescription: x\ntools: [good]\n");
    project.file("agents/good/main.py", "");
    let scan = scan(project.path());
    assert_eq!(shown(&scan), ["a-good: good", "good: !manifest-twice", "good: good"]);
    assert_eq!(scan.find(None, "good").unwrap().kind, CapabilityKind::Tool);
    let agent = scan.find(Some(CapabilityKind::Agent), "good").unwrap();
    assert_eq!((agent.drives.as_slice(), agent.runtime), (&["good".to_owned()][..], Runtime::Python));
    assert!(scan.find(None, "GOOD").is_none());
}

#[test]
fn more_folders_than_are_read_are_told_of() {
    let project = Project::new();
    for number in 0..1_100 {
        fs::create_dir(project.path().join(format!("tools/x{number:05}"))).unwrap();
    }
    project.tool("x00001", "name: one\ndescription: x\nruntime: python\n");
    let scan = scan(project.path());
    assert_eq!(shown(&scan), ["good: good", "x00001: one", "tools: !registry-size"]);
}

#[test]
fn a_skill_has_front_matter_whose_unknown_keys_are_not_ours() {
    let project = Project::new();
    project.file("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\nallowed-tools: [x]\nrouting: {triggers: [hello], more: 1}\n---\nBody: [ not yaml\n");
    project.file("skills/tests/SKILL.md", "not read");
    project.file("skills/bare/SKILL.md", "name: x\n");
    project.file("skills/open/SKILL.md", "---\nname: x\n");
    project.file("skills/twice/SKILL.md", "---\nname: x\ndescription: y\nname: z\n---\n");
    let scan = scan(project.path());
    let expected = [
        "good: good",
        "bare: !manifest-front-matter",
        "greet: greet",
        "open: !manifest-front-matter",
        "twice: !yaml-duplicate-key",
    ];
    assert_eq!(shown(&scan), expected);
    let twice = scan.entries.last().unwrap().found.as_ref().unwrap_err();
    assert_eq!((twice.list()[0].line, twice.list()[0].column), (4, 1));
    let Ok(Found::Skill(skill)) = &scan.entries[2].found else { panic!() };
    assert_eq!((skill.routing.triggers.as_slice(), skill.version.as_deref()), (&["hello".to_owned()][..], None));
}

#[test]
fn a_program_runs_itself_where_no_runtime_is_said() {
    let project = Project::new();
    project.file("tools/t/tool.yaml", "name: t\ndescription: x\nentrypoint: run\n");
    project.file("tools/t/run", "#!/bin/sh\n");
    assert_eq!(shown(&scan(project.path())), ["good: good", "t: !manifest-entrypoint"]);
    fs::set_permissions(project.path().join("tools/t/run"), fs::Permissions::from_mode(0o755)).unwrap();
    let scan = scan(project.path());
    assert_eq!(scan.find(None, "t").unwrap().runtime, Runtime::Exec);
    symlink("/bin/sh", project.path().join("tools/t/shell")).unwrap();
    project.file("tools/t/tool.yaml", "name: t\ndescription: x\nentrypoint: shell\n");
    assert_eq!(shown(&super::scan(project.path())), ["good: good", "t: !manifest-entrypoint"]);
}

#[test]
fn the_hidden_folders_are_read_from_the_project() {
    let hidden = |text: Option<&str>| {
        let project = Project::new();
        if let Some(text) = text {
            project.file("hidden-tools.json", text);
        }
        scan(project.path()).hidden.map_err(|problems| problems.list()[0].rule)
    };
    assert_eq!(hidden(None), Ok(vec![]));
    assert_eq!(hidden(Some(r#"{"hide": ["a", "b"], "note": 1}"#)), Ok(vec!["a".to_owned(), "b".to_owned()]));
    for bad in ["", "[]", "{}", r#"{"hide": "a"}"#, r#"{"hide": [1]}"#, r#"{"hide": [], "hide": []}"#] {
        assert_eq!(hidden(Some(bad)), Err("registry-hidden"), "{bad}");
    }
}

#[test]
fn a_change_of_what_was_looked_at_is_noticed() {
    let project = Project::new();
    let looked = || {
        let scan = scan(project.path());
        assert!(scan.is_current());
        scan
    };
    let before = looked();
    project.tool("good", &GOOD.replace("Does", "Does more"));
    assert!(!before.is_current());
    let before = looked();
    project.tool("new", "name: new\ndescription: x\n");
    assert!(!before.is_current());
    let before = looked();
    project.file("hidden-tools.json", "{\"hide\": []}");
    assert!(!before.is_current());
    let before = looked();
    project.file("skills/s/SKILL.md", "");
    assert!(!before.is_current());
    let before = looked();
    fs::remove_file(project.path().join("tools/new/main.py")).unwrap();
    assert!(!before.is_current());
    looked();
}

#[test]
fn readiness_is_of_the_capability_and_of_all_it_drives() {
    let tool = facts("name: t\ndescription: x\nsecrets: [{name: a}, {name: b, optional: true}, {name: c}]\n");
    let known = |missing: &'static [&'static str], short: &'static [&'static str]| {
        move |secret: &ManifestSecret| match secret.name.as_str() {
            name if missing.contains(&name) => State::NeedsCredentials,
            name if short.contains(&name) => State::NeedsScopes,
            _ => State::Ready,
        }
    };
    let none = |_: &str| None;
    assert!(readiness(&tool, none, known(&["b"], &[])).ready);
    let missing = readiness(&tool, none, known(&["c"], &["a"]));
    assert_eq!(
        (missing.ready, missing.own, missing.missing_secrets),
        (false, State::NeedsCredentials, vec!["c".to_owned()])
    );
    assert_eq!(readiness(&tool, none, known(&[], &["a"])).own, State::NeedsScopes);
    let agent = Manifest {
        kind: CapabilityKind::Agent,
        secrets: Vec::new(),
        drives: vec!["t".into(), "u".into()],
        ..tool.clone()
    };
    let find = |name: &str| (name == "t").then_some(&tool);
    let driving = readiness(&agent, find, known(&["a"], &[]));
    assert_eq!((driving.ready, driving.own), (false, State::Ready));
    let status: Vec<_> =
        driving.tool_status.iter().map(|s| (s.name.as_str(), s.present, s.ready, s.missing_secrets.len())).collect();
    assert_eq!(status, [("t", true, false, 1), ("u", false, false, 0)]);
}
