//! What stands behind an entry as written: a command, or the texts and files that are read.

use std::time::Duration;

use crate::surface::arguments::Input;
use crate::surface::declaration::{Feed, Output, Template, Variable};
use crate::surface::fields::Fields;
use crate::surface::lint::{braces, cap, duration, env_name, exit_code, missing_key, stdin_argument, value_kind};
use crate::surface::matching::Matching;
use crate::surface::problem::Findings;
use crate::surface::source::At;
use crate::surface::tree::{Entry, Node, Value};

/// Keys that say which command runs, and how.
pub(super) const RUN_KEYS: &[&str] = &["run", "cwd", "env", "timeout", "cap", "exit_codes", "output"];

/// What stands behind an entry, and the arguments that it is given.
#[derive(Debug)]
pub(crate) struct BackendEntry<'t> {
    /// The entry's name.
    pub(crate) name: &'t At<String>,
    pub(crate) input: Input<'t>,
    /// Empty if there is none, or none that can be read.
    pub(crate) run: Vec<ElementEntry>,
    pub(crate) cwd: Option<At<String>>,
    pub(crate) env: Vec<At<Variable>>,
    pub(crate) stdin: Option<At<Feed>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) cap: Option<usize>,
    pub(crate) exit_codes: Option<Vec<i32>>,
    pub(crate) missing_codes: Vec<i32>,
    pub(crate) output: Option<At<Output>>,
    pub(crate) talk: bool,
    /// Texts with placeholders that are no part of a command.
    pub(crate) texts: Vec<At<Template>>,
    /// The files and folders that are read.
    pub(crate) paths: Vec<PathEntry>,
    /// Whether everything that could use an argument was read, so that one which nothing uses is known.
    pub(crate) whole: bool,
}

/// A path that the file names.
#[derive(Debug, Clone)]
pub(crate) struct PathEntry {
    pub(crate) path: At<String>,
    pub(crate) want: Want,
}

/// What a path that the file names has to lead to.
#[derive(Debug, Clone)]
pub(crate) enum Want {
    /// A regular file.
    File,
    /// A text with placeholders for these arguments.
    Text(Vec<String>),
    /// A folder whose files are listed.
    Folder(Matching),
    /// Whatever its placeholders make of it.
    Pattern,
}

/// An element of `run`.
#[derive(Debug, Clone)]
pub(crate) enum ElementEntry {
    One(At<Template>),
    Group(Vec<At<Template>>),
}

impl ElementEntry {
    pub(crate) fn templates(&self) -> &[At<Template>] {
        match self {
            Self::One(template) => std::slice::from_ref(template),
            Self::Group(templates) => templates,
        }
    }
}

impl<'t> BackendEntry<'t> {
    /// One that runs and reads nothing yet.
    pub(super) fn new(name: &'t At<String>, input: Input<'t>) -> Self {
        Self {
            name,
            input,
            run: Vec::new(),
            cwd: None,
            env: Vec::new(),
            stdin: None,
            timeout: None,
            cap: None,
            exit_codes: None,
            missing_codes: Vec::new(),
            output: None,
            talk: false,
            texts: Vec::new(),
            paths: Vec::new(),
            whole: true,
        }
    }

    /// The command that the fields describe.
    pub(super) fn of_command(
        name: &'t At<String>,
        input: Input<'t>,
        fields: &Fields<'_>,
        findings: &mut Findings,
    ) -> Self {
        let run = fields.get("run").map(|entry| read_run(entry, findings)).unwrap_or_default();
        Self {
            whole: !run.is_empty(),
            run,
            cwd: fields.text("cwd", findings),
            env: fields.get("env").map(|entry| env_name::read(entry, findings)).unwrap_or_default(),
            stdin: fields.get("stdin").and_then(|entry| stdin_argument::read(entry, findings)),
            timeout: fields.get("timeout").and_then(|entry| duration::read_timeout(entry, findings)),
            cap: fields.get("cap").and_then(|entry| cap::read(entry, findings)),
            exit_codes: fields.get("exit_codes").and_then(|entry| exit_code::read(entry, findings)),
            output: output(fields, findings),
            talk: fields.flag("talk", findings).is_some_and(|flag| flag.value),
            ..Self::new(name, input)
        }
    }

    /// The elements of `run`, groups opened.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &At<Template>> {
        self.run.iter().flat_map(ElementEntry::templates)
    }

    /// Every text with placeholders.
    pub(crate) fn all_templates(&self) -> impl Iterator<Item = &At<Template>> {
        self.templates().chain(&self.texts)
    }

    /// The file or folder that it reads.
    pub(super) fn reads(&mut self, path: At<String>, want: Want) {
        self.paths.push(PathEntry { path, want });
    }
}

fn output(fields: &Fields<'_>, findings: &mut Findings) -> Option<At<Output>> {
    let said = fields.text("output", findings)?;
    let value = match said.value.as_str() {
        "text" => Output::Text,
        "json" => Output::Json,
        "content" => Output::Content,
        _ => {
            value_kind::one_of("output", &said, &["text", "json", "content"], findings);
            return None;
        }
    };
    Some(At { span: said.span, value })
}

fn read_run(entry: &Entry, findings: &mut Findings) -> Vec<ElementEntry> {
    let Some(items) = entry.node.as_list() else {
        value_kind::report("run", &entry.node, "a list of the program and its arguments", findings);
        return Vec::new();
    };
    if items.is_empty() {
        let remedy = "name a program, such as `run: [git, --version]`";
        findings.report(&missing_key::RULE, entry.key.span, "`run` is empty", remedy);
    }
    // Every element is read before one bad element gives the list up: positions in it would be wrong.
    let elements: Vec<_> = items.iter().map(|item| read_element(item, findings)).collect();
    elements.into_iter().collect::<Option<_>>().unwrap_or_default()
}

fn read_element(item: &Node, findings: &mut Findings) -> Option<ElementEntry> {
    let Some(group) = item.as_list() else { return read_template(item, findings).map(ElementEntry::One) };
    let templates: Vec<_> = group.iter().map(|item| read_template(item, findings)).collect();
    templates.into_iter().collect::<Option<_>>().map(ElementEntry::Group)
}

fn read_template(node: &Node, findings: &mut Findings) -> Option<At<Template>> {
    let text: &str = match &node.value {
        Value::Text(text) => text,
        // As written: an argument vector has no numbers.
        Value::Number(text) => text,
        _ => {
            value_kind::element(node, findings);
            return None;
        }
    };
    braces::read(text, node.span, findings).map(|value| At { span: node.span, value })
}

/// A text with placeholders under a key.
pub(super) fn text(fields: &Fields<'_>, key: &str, findings: &mut Findings) -> Option<At<Template>> {
    let said = fields.text(key, findings)?;
    braces::read(&said.value, said.span, findings).map(|value| At { span: said.span, value })
}
