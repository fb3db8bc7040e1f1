//! What the tests of rules are written with.

use std::fs;
use std::path::{Path, PathBuf};

use crate::surface::load::{self, Host};
use crate::surface::problem::{Findings, Problems, Rule};
use crate::surface::source::Source;

/// A surface with one tool, `show`, of which more is said from line 6 on; it runs `ls` unless told otherwise.
pub(super) fn tool(more: &str) -> String {
    let run = if more.contains("run: ") || more.contains("run:\n") { "" } else { "run: [ls]" };
    let lines = more.lines().chain([run]).filter(|l| !l.is_empty()).map(|line| format!("    {line}\n"));
    format!("surface: s\nversion: 1.0.0\ntools:\n  show:\n    description: Shows.\n{}", lines.collect::<String>())
}

/// A surface with one tool, `show`, that is this request, of which more is said below it.
pub(super) fn http(request: &str, more: &str) -> String {
    let lines: String = more.lines().map(|line| format!("    {line}\n")).collect();
    let head = "surface: s\nversion: 1.0.0\ntools:\n  show:\n    description: Shows.";
    format!("{head}\n    http: {{{request}}}\n{lines}")
}

/// A surface with one tool, `show`, of the upstream `up`, which is this.
pub(super) fn upstream(upstream: &str) -> String {
    let tool = "  show:\n    description: Shows.\n    upstream: up/echo\n";
    format!("surface: s\nversion: 1.0.0\nupstreams:\n  up: {{{upstream}}}\ntools:\n{tool}")
}

/// A surface of that name with tools of those names.
pub(super) fn named(surface: &str, tools: &[&str]) -> String {
    let tools = tools.iter().map(|name| format!("  {name}: {{description: Shows., run: [ls]}}\n"));
    format!("surface: {surface}\nversion: 1.0.0\ntools:\n{}", tools.collect::<String>())
}

/// A surface with one resource, `entry`, described by these lines.
pub(super) fn resource(lines: &str) -> String {
    entry("resources", lines)
}

/// A surface with one template, `entry`, described by these lines.
pub(super) fn template(lines: &str) -> String {
    entry("templates", lines)
}

/// A surface with one prompt, `entry`, described by these lines.
pub(super) fn prompt(lines: &str) -> String {
    entry("prompts", lines)
}

fn entry(list: &str, lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!("surface: s\nversion: 1.0.0\n{list}:\n  entry:\n{lines}")
}

/// A surface whose one tool, `show`, is described by these lines and stands upon the project of its folder.
pub(super) fn target(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!("surface: s\nversion: 1.0.0\nregistry: .\ntools:\n  show:\n    description: Shows.\n{lines}")
}

/// A folder with a project of three tools and an agent.
pub(super) fn project(name: &str) -> Folder {
    let folder = Folder::new(name);
    let xlsx = "\
name: xlsx
description: Workbooks.
actions:
  - name: read-sheet
    effects: read
    args:
      - {name: path, required: true}
      - {name: sheet}
      - {name: max-results, type: integer}
      - {name: ratio, type: number}
  - {name: write-sheet, effects: write}
  - {name: delete-sheet}
  - {name: archive, effects: irreversible}
";
    let locked = "name: locked\ndescription: x\nactions: [{name: read}]\nsecrets: [{name: never-set-in-a-test}]\n";
    let reporter = "name: reporter\ndescription: x\nactions: [{name: view}]\ntools: [locked, xlsx]\n";
    for (path, manifest) in [
        ("tools/xlsx/tool.yaml", xlsx),
        ("tools/flat/tool.yaml", "name: flat\ndescription: x\n"),
        ("tools/locked/tool.yaml", locked),
        ("agents/reporter/agent.yaml", reporter),
    ] {
        let (within, _) = path.rsplit_once('/').unwrap();
        folder.make(within);
        folder.file(path, manifest, 0o644);
        folder.file(&format!("{within}/main.py"), "", 0o644);
    }
    folder
}

/// All problems of a surface, warnings included.
pub(super) fn problems(yaml: &str) -> Problems {
    examine(Path::new("/"), yaml)
}

/// All problems of a surface in a folder.
pub(super) fn problems_in(folder: &Folder, yaml: &str) -> Problems {
    examine(&folder.0, yaml)
}

fn examine(folder: &Path, yaml: &str) -> Problems {
    let findings = Findings::new(Source::new("surface.yaml".into(), yaml.to_owned()));
    match load::examine(findings, &Host::new(folder.to_owned())) {
        Ok(loaded) => loaded.warnings,
        Err(problems) => problems,
    }
}

fn assert_breaks(problems: &Problems, rule: Rule, yaml: &str) {
    let found = problems.list().iter().find(|p| p.rule == rule.id);
    let found = found.unwrap_or_else(|| panic!("{} is not reported for\n{yaml}\nbut\n{problems}", rule.id));
    assert_eq!(found.severity, rule.severity);
    assert!(!found.message.is_empty() && !found.remedy.is_empty() && found.end_column > found.column, "{found:?}");
}

fn assert_keeps(problems: &Problems, rule: Rule, yaml: &str) {
    assert!(problems.list().iter().all(|p| p.rule != rule.id), "{problems}\nfor\n{yaml}");
}

pub(super) fn breaks(rule: Rule, yaml: &str) {
    assert_breaks(&problems(yaml), rule, yaml);
}

pub(super) fn keeps(rule: Rule, yaml: &str) {
    assert_keeps(&problems(yaml), rule, yaml);
}

pub(super) fn breaks_in(folder: &Folder, rule: Rule, yaml: &str) {
    assert_breaks(&examine(&folder.0, yaml), rule, yaml);
}

pub(super) fn keeps_in(folder: &Folder, rule: Rule, yaml: &str) {
    assert_keeps(&examine(&folder.0, yaml), rule, yaml);
}

/// A folder for one test, removed at its end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("twodoor-lint-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder.canonicalize().unwrap())
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    pub(super) fn make(&self, path: &str) {
        fs::create_dir_all(self.0.join(path)).unwrap();
    }

    pub(super) fn file(&self, path: &str, text: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(self.0.join(path), text).unwrap();
        fs::set_permissions(self.0.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(super) fn link(&self, to: &str, path: &str) {
        std::os::unix::fs::symlink(to, self.0.join(path)).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
