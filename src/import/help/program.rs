//! From help texts to a surface file: one tool for each subcommand that has none of its own.
//!
//! Promises: what runs is the program and the words that its own help names, written out; every value has a place where it is
//! one argument and no option. Options that run code, write files, ask, or hold secrets are switched off until a person decides.

use std::path::Path;

use super::judge::{risk, typed};
use super::{Help, Metavar, Opt, Positional};
use crate::import::effect;
use crate::import::name::{self, Names};
use crate::import::sheet::{Drafted, Head, ImportError, Imported, settle};
use crate::import::text::{DESCRIPTION_BYTES, cut, one_line};
use crate::import::yaml::{Line, Yaml};
use crate::protocol::Json;
use crate::surface::Problem;

/// A program with all that its help said.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Its name, without folders.
    pub name: String,
    /// What stands in `run`: the program as it is found, and the words before any subcommand.
    pub run: Vec<String>,
    /// What it says its version is.
    pub version: Option<String>,
    /// What the program as a whole is for.
    pub about: String,
    /// Each subcommand without subcommands of its own; the program itself if it has none.
    pub found: Vec<Found>,
    /// What was not read, and why.
    pub left_out: Vec<String>,
}

/// A subcommand.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The words behind those of [`Program::run`].
    pub words: Vec<String>,
    /// What its help says.
    pub help: Help,
    /// What the help above says of it.
    pub about: String,
}

/// What an argument's description may take.
const ARGUMENT_BYTES: usize = 400;
/// More options than a model makes sense of.
const OPTIONS: usize = 60;

#[derive(Debug, Clone)]
struct Tool {
    description: String,
    notes: Vec<String>,
    effect: Vec<Line>,
    run: Vec<String>,
    options: Vec<Argument>,
    positionals: Vec<Argument>,
    /// Positionals that stand before the `--`.
    before_dashes: usize,
    /// Options that are told of in a comment alone.
    others: Vec<(&'static str, Vec<String>)>,
    is_git: bool,
    is_find: bool,
}

#[derive(Debug, Clone)]
struct Argument {
    key: String,
    schema: Vec<(&'static str, Json)>,
    /// Its elements of `run`; more than one are a group.
    elements: Vec<String>,
    /// Why it is switched off.
    off: Option<String>,
    note: Option<String>,
}

/// The surface file of a program; `folder` is where it will stand.
pub fn surface(program: &Program, folder: &Path) -> Result<Imported, ImportError> {
    let head = head(program);
    let mut names = Names::default();
    let tools = program.found.iter().map(|found| {
        let wanted = if found.words.is_empty() { label(program) } else { found.words.join("_") };
        Drafted { name: names.take(&wanted), of: tool(program, found), off: None }
    });
    let tools: Vec<_> = tools.collect();
    let mut imported = settle(&head, tools, folder, Tool::lines, Tool::mend)?;
    imported.remarks.clone_from(&program.left_out);
    Ok(imported)
}

/// What the program is called with the words before any subcommand: `git_remote`, `json.tool`.
fn label(program: &Program) -> String {
    let words = program.run.get(1..).unwrap_or_default();
    match words.iter().any(|word| word.starts_with('-')) {
        true => words.last().cloned().unwrap_or_default(),
        false => std::iter::once(&program.name).chain(words).cloned().collect::<Vec<_>>().join("_"),
    }
}

fn head(program: &Program) -> Head {
    let version = program.version.as_ref().map(|said| format!(", which says \"{said}\"")).unwrap_or_default();
    let mut comments = vec![
        format!(
            "Imported from the help of {}{version}. Review it: what a program's help does not tell is for you to decide.",
            program.name
        ),
        "- Keep the tools that are needed; a model loses its way among more than 40.".to_owned(),
        "- Each `decide:` is a question. What is switched off works once `# ` is deleted, under args and run alike."
            .to_owned(),
        "- A flag is given as its own text: all: \"--all\". A path (as: path) stays beneath root.".to_owned(),
    ];
    comments.extend(program.left_out.iter().map(|left| format!("- Not read: {left}.")));
    let surface = name::of_surface(&label(program), &[]);
    let mut lines = vec![Line::text("surface", surface), Line::text("version", "0.1.0")];
    if !program.about.is_empty() {
        lines.push(Line::text("instructions", cut(&program.about, DESCRIPTION_BYTES)));
    }
    lines.push(Line::Comment("decide: the folder that paths stay beneath.".to_owned()));
    lines.push(Line::text("root", "."));
    Head { comments, lines }
}

fn tool(program: &Program, found: &Found) -> Tool {
    let help = &found.help;
    let about = if help.about.is_empty() { &found.about } else { &help.about };
    let about = if about.is_empty() { &program.about } else { about };
    let before = program.run.get(1..).unwrap_or_default();
    let called = std::iter::once(&program.name).chain(before).chain(&found.words).map(String::as_str);
    let called = called.collect::<Vec<_>>().join(" ");
    let description =
        if about.is_empty() { format!("Runs {called}.") } else { cut(&one_line(about), DESCRIPTION_BYTES) };
    let mut notes = Vec::new();
    if about.is_empty() {
        notes.push("decide: the help says nothing of it; write what it does, for models.".to_owned());
    }
    let is_git = program.name == "git";
    // Its expression is code of its own, which no `--` keeps values out of.
    let is_find = matches!(program.name.as_str(), "find" | "gfind");
    let mut used = Names::default();
    let mut seen: Vec<String> = Vec::new();
    let mut key = |wanted: &str| {
        let base = name::of_argument(wanted);
        let mut candidates = std::iter::once(base.clone()).chain((2u32..).map(|n| format!("{base}_{n}")));
        let free = candidates.find(|key| !seen.contains(key)).unwrap_or_else(|| used.take(&base));
        seen.push(free.clone());
        free
    };
    let mut others: Vec<(&'static str, Vec<String>)> = Vec::new();
    let mut options = Vec::new();
    for option in &help.options {
        let name = option.name();
        let is_plain = matches!(name.trim_start_matches('-'), "help" | "version" | "h" | "V" | "help-all" | "no-help");
        if name.is_empty() || is_plain {
            continue;
        }
        let why = if option.global {
            Some("of the program as a whole")
        } else if options.len() >= OPTIONS {
            Some("beyond the first 60")
        } else {
            None
        };
        match why {
            None => options.push(of_option(option, help, program, &mut key)),
            Some(why) => match others.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(name.to_owned()),
                None => others.push((why, vec![name.to_owned()])),
            },
        }
    }
    let positionals: Vec<Argument> =
        help.positionals.iter().map(|positional| of_positional(positional, &mut key)).collect();
    let mut run = program.run.clone();
    run.extend(found.words.iter().cloned());
    let last = found.words.last().map_or(program.name.as_str(), String::as_str);
    // The verb stands first or last: `remote add`, `container-create`.
    let whole = found.words.join("_");
    let effect = if effect::irreversible(&whole).is_some() { effect::lines(&whole) } else { effect::lines(last) };
    let before_dashes = help.dashes_before.unwrap_or(0).min(positionals.len());
    // Where nothing is offered behind the `--`, it serves what stands before; git tells revisions from paths by it.
    let behind = positionals.iter().skip(before_dashes);
    let before_dashes =
        if !is_git && behind.clone().all(|argument| argument.off.is_some()) { 0 } else { before_dashes };
    Tool { description, notes, effect, run, options, positionals, before_dashes, others, is_git, is_find }
}

fn of_option(option: &Opt, help: &Help, program: &Program, key: &mut impl FnMut(&str) -> String) -> Argument {
    let name = option.name().to_owned();
    let wanted = name.trim_start_matches('-').to_owned();
    let key = key(&wanted);
    let mut schema = Vec::new();
    let mut note = None;
    let elements = match &option.value {
        None if help.is_go && name.starts_with("--") => {
            schema.push(("type", Json::String("boolean".to_owned())));
            vec![format!("{}={{{key}}}", escaped(&name))]
        }
        None => {
            let flags: Vec<&String> = option.names.iter().filter(|name| name.starts_with("--")).collect();
            let negated = |name: &str| {
                flags.iter().any(|other| {
                    other.strip_prefix("--no-") == name.strip_prefix("--")
                        || name.strip_prefix("--no-") == other.strip_prefix("--")
                })
            };
            let choices: Vec<Json> = if flags.len() > 1 && negated(&name) {
                flags.iter().map(|flag| Json::String((*flag).clone())).collect()
            } else {
                vec![Json::String(name.clone())]
            };
            schema.push(("type", Json::String("string".to_owned())));
            schema.push(("enum", Json::Array(choices)));
            schema.push(("as", Json::String("data".to_owned())));
            vec![format!("{{{key}}}")]
        }
        Some(value) => {
            let is_path = typed(value, &mut schema);
            if name.starts_with("--") || (help.is_go && name.len() > 2) {
                vec![format!("{}={{{key}}}", escaped(&name))]
            } else if name.len() == 2 {
                vec![format!("{}{{{key}}}", escaped(&name))]
            } else {
                // Whatever follows an expression of find is its value.
                if matches!(program.name.as_str(), "find" | "gfind") && !is_path && value.choices.is_empty() {
                    schema.retain(|(key, value)| *key != "type" || value.as_str() == Some("string"));
                    if !schema.iter().any(|(key, _)| *key == "type") {
                        schema.push(("type", Json::String("string".to_owned())));
                    }
                    schema.push(("as", Json::String("data".to_owned())));
                }
                vec![escaped(&name), format!("{{{key}}}")]
            }
        }
    };
    describe(&option.about, &mut schema);
    if option.required {
        schema.push(("required", Json::Bool(true)));
    }
    if option.repeats && option.value.is_some() {
        note = Some("it may be given several times; one value is taken here.".to_owned());
    }
    let off = risk(option, &wanted).map(str::to_owned);
    if off.is_some() {
        schema.retain(|(key, _)| *key != "required");
    }
    Argument { key, schema, elements, off, note }
}

fn of_positional(positional: &Positional, key: &mut impl FnMut(&str) -> String) -> Argument {
    let wanted = positional.name.to_lowercase().replace([' ', '/', ':', '='], "_");
    let key = key(&wanted);
    let mut schema = Vec::new();
    let value = Metavar { name: positional.name.clone(), optional: false, choices: positional.choices.clone() };
    typed(&value, &mut schema);
    describe(&positional.about, &mut schema);
    if positional.required {
        schema.push(("required", Json::Bool(true)));
    }
    let note = positional.repeats.then(|| "it may be given several times; one value is taken here.".to_owned());
    let lower = positional.name.to_ascii_lowercase();
    let runs = ["command", "cmd", "program", "executable", "script", "code", "shell", "expression", "predicate"];
    let has = |words: &[&str]| name::split(&lower).iter().any(|part| words.contains(&part.as_str()));
    let off = if has(&runs) {
        Some("decide: what is given here may be run.".to_owned())
    } else {
        has(&["outfile", "output", "out"]).then(|| "decide: it writes where it is told.".to_owned())
    };
    if off.is_some() {
        schema.retain(|(key, _)| *key != "required");
    }
    Argument { elements: vec![format!("{{{key}}}")], key, schema, off, note }
}

/// Braces doubled, as `run` wants them.
fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

fn describe(about: &str, schema: &mut Vec<(&'static str, Json)>) {
    let about = cut(&one_line(&about.replace("[required]", "")), ARGUMENT_BYTES);
    if about.chars().any(char::is_alphanumeric) {
        schema.push(("description", Json::String(about)));
    }
}

impl Tool {
    fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.notes.iter().cloned().map(Line::Comment).collect();
        lines.push(Line::text("description", self.description.clone()));
        lines.extend(self.effect.iter().cloned());
        for (why, names) in &self.others {
            lines.push(Line::Comment(format!("Options {why} are left out: {}", cut(&names.join(" "), 600))));
        }
        let arguments: Vec<Line> = self.options.iter().chain(&self.positionals).flat_map(Argument::lines).collect();
        if !arguments.is_empty() {
            let args = Line::Entry("args".to_owned(), Yaml::Map(arguments));
            let any = self.options.iter().chain(&self.positionals).any(|argument| argument.off.is_none());
            if any {
                lines.push(args);
            } else {
                lines.push(Line::off(args));
            }
        }
        lines.push(Line::Entry("run".to_owned(), self.run()));
        lines
    }

    fn run(&self) -> Yaml {
        let text = |text: &str| Json::String(text.to_owned());
        let mut items: Vec<(bool, Json)> = self.run.iter().map(|word| (true, text(&escaped(word)))).collect();
        let element = |argument: &Argument| {
            let json = match argument.elements.as_slice() {
                [one] => text(one),
                several => Json::Array(several.iter().map(|element| text(element)).collect()),
            };
            (argument.off.is_none(), json)
        };
        if self.is_find {
            let is_leading = |option: &&Argument| option.elements.iter().any(|element| element.len() <= 3);
            items.extend(self.options.iter().filter(is_leading).map(element));
            items.extend(self.positionals.iter().map(element));
            items.extend(self.options.iter().filter(|option| !is_leading(option)).map(element));
            return laid_out(items);
        }
        items.extend(self.options.iter().map(element));
        let (before, behind) = self.positionals.split_at(self.before_dashes.min(self.positionals.len()));
        if self.is_git && before.iter().any(|argument| argument.off.is_none()) {
            items.push((true, text("--end-of-options")));
        }
        items.extend(before.iter().map(element));
        if behind.iter().any(|argument| argument.off.is_none()) {
            items.push((true, text("--")));
        }
        items.extend(behind.iter().map(element));
        laid_out(items)
    }

    /// Switches off the argument whose value the rule does not let stand where it is.
    fn mend(&mut self, problem: &Problem, at: &str) -> bool {
        let named = |argument: &Argument| at.contains(&format!("{{{}}}", argument.key)) || at == argument.key;
        let arguments = self.options.iter_mut().chain(&mut self.positionals);
        let Some(argument) = arguments.filter(|argument| argument.off.is_none()).find(|argument| named(argument))
        else {
            return false;
        };
        argument.off = Some(format!("left out: {} ({})", problem.message, problem.rule));
        true
    }
}

/// The elements of `run`: a line for each where one is switched off.
fn laid_out(items: Vec<(bool, Json)>) -> Yaml {
    if items.iter().all(|(on, _)| *on) {
        return Yaml::Value(Json::Array(items.into_iter().map(|(_, item)| item).collect()));
    }
    let lines = items.into_iter().map(|(on, item)| {
        let line = Line::Item(Yaml::Value(item));
        if on { line } else { Line::off(line) }
    });
    Yaml::List(lines.collect())
}

impl Argument {
    fn lines(&self) -> Vec<Line> {
        let members = self.schema.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        let entry = Line::value(&self.key, Json::Object(members.collect()));
        let mut lines = Vec::new();
        match &self.off {
            Some(why) => {
                lines.push(Line::Comment(why.clone()));
                lines.push(Line::off(entry));
            }
            None => {
                lines.extend(self.note.iter().map(|note| Line::Comment(format!("decide: {note}"))));
                lines.push(entry);
            }
        }
        lines
    }
}
