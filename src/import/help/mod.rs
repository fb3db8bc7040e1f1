//! The help text of a program as facts: usage, options, positional arguments, subcommands.
//!
//! Promises: any text gives some answer, in time that grows with its length; what is not understood is left out. Knows the
//! styles of clap, argparse, click, cobra, GNU getopt, git, docker and BSD. Guesses nothing about effects.

mod judge;
mod lines;
mod options;
mod program;
mod usage;

use lines::{Text, entry};

pub use program::{Found, Program, surface};

/// Longest help text that is read.
pub const HELP_BYTES: usize = 512 * 1024;
/// Most options, positional arguments or subcommands that are taken of one help text.
const ENTRIES: usize = 600;

/// What a help text says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Help {
    /// What the program does.
    pub about: String,
    /// The usage lines, without `usage:`.
    pub usages: Vec<String>,
    /// The options.
    pub options: Vec<Opt>,
    /// The positional arguments, in order.
    pub positionals: Vec<Positional>,
    /// Whether options end at `--` before the first positional of this index, by the usage's own words.
    pub dashes_before: Option<usize>,
    /// The subcommands.
    pub commands: Vec<Command>,
    /// Whether the usage asks for a subcommand.
    pub takes_command: bool,
    /// Whether the text is of a kind of program whose flags take `=true`.
    pub is_go: bool,
    /// Whether the text is a manual page.
    pub is_manual: bool,
}

impl Help {
    /// Whether anything was understood.
    pub fn is_useful(&self) -> bool {
        let says_nothing = self.usages.is_empty() && self.options.is_empty() && self.commands.is_empty();
        !(self.is_manual || says_nothing)
    }

    /// Whether a program tells that it takes something, and names nothing that it takes: `[ignored arguments of any kind]`.
    pub fn is_mere_prose(&self) -> bool {
        let tells_of_itself = |option: &Opt| {
            option.names.iter().any(|name| matches!(name.as_str(), "--help" | "--version" | "-h" | "-V"))
        };
        self.commands.is_empty()
            && self.positionals.is_empty()
            && self.options.iter().all(tells_of_itself)
            && self.usages.iter().any(|line| usage::has_prose(line))
    }
}

/// An option.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opt {
    /// Its names with their dashes: `-x`, `--long`, `-long`.
    pub names: Vec<String>,
    /// Its value; a flag has none.
    pub value: Option<Metavar>,
    /// Whether it may stand more than once.
    pub repeats: bool,
    /// Whether it must be given.
    pub required: bool,
    /// Whether it belongs to the program, not to the subcommand.
    pub global: bool,
    /// What it does.
    pub about: String,
}

impl Opt {
    /// The name to use: a long one before a short one.
    pub fn name(&self) -> &str {
        let long = self.names.iter().find(|name| name.starts_with("--"));
        let long = long.or_else(|| self.names.iter().max_by_key(|name| name.len()));
        long.map_or("", String::as_str)
    }
}

/// A value as the help names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metavar {
    /// Its name, without brackets.
    pub name: String,
    /// Whether the option may stand without it.
    pub optional: bool,
    /// The values that it may have, if they are all named.
    pub choices: Vec<String>,
}

/// A positional argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Positional {
    /// Its name.
    pub name: String,
    /// Whether it must be given.
    pub required: bool,
    /// Whether it may stand more than once.
    pub repeats: bool,
    /// The values that it may have, if they are all named.
    pub choices: Vec<String>,
    /// What it is.
    pub about: String,
}

/// A subcommand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// Its name.
    pub name: String,
    /// What it does.
    pub about: String,
}

/// What a part of a help text is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Start,
    Usage,
    Options,
    GlobalOptions,
    Arguments,
    Commands,
    Other,
}

/// Reads a help text; `words` are the program and the subcommand that it is of.
pub fn parse(text: &str, words: &[String]) -> Help {
    let text = Text::read(text);
    let mut help = Help { is_manual: text.is_manual(), is_go: text.is_go(), ..Help::default() };
    if help.is_manual {
        return help;
    }
    let usage = usage::collect(&text);
    help.usages = usage.lines;
    let from_usage = usage::read(&help.usages, words);
    help.takes_command = from_usage.takes_command;
    let mut section = Section::Start;
    let mut described: Vec<Positional> = Vec::new();
    let mut about: Vec<String> = Vec::new();
    let mut index = 0;
    while let Some(line) = text.lines.get(index) {
        if usage.span.contains(&index) {
            section = Section::Usage;
            index += 1;
            continue;
        }
        if section == Section::Usage && !line.text.is_empty() {
            section = Section::Start;
        }
        if line.text.is_empty() {
            // A paragraph of prose is over; so is the description, once there is one.
            if section == Section::Usage {
                section = Section::Start;
            }
            if section == Section::Start && about.last().is_some_and(|last| !last.is_empty()) {
                about.push(String::new());
            }
            index += 1;
            continue;
        }
        if let Some(found) = text.heading(index) {
            section = found;
            index += 1;
            continue;
        }
        if line.text.starts_with('-') && section != Section::Usage {
            let (option, next) = options::read(&text, index);
            if let Some(mut option) = option.filter(|_| help.options.len() < ENTRIES) {
                option.global = section == Section::GlobalOptions;
                add(&mut help.options, option);
            }
            if section == Section::Start {
                section = Section::Other;
            }
            index = next.max(index + 1);
            continue;
        }
        let commands_here = section == Section::Commands || (section == Section::Other && help.takes_command);
        match section {
            Section::Arguments => {
                let next = argument(&text, index, &mut described, &mut help.commands);
                index = next.max(index + 1);
                continue;
            }
            _ if commands_here && line.indent > 0 => {
                let (found, next) = commands(&text, index);
                let room = ENTRIES.saturating_sub(help.commands.len());
                help.commands.extend(found.into_iter().take(room));
                index = next.max(index + 1);
                continue;
            }
            Section::Start => about.push(line.text.clone()),
            _ => {}
        }
        index += 1;
    }
    let paragraph = about.split(String::is_empty).find(|lines| !lines.is_empty() && is_prose(lines, words));
    help.about = paragraph.map(|lines| super::text::one_line(&lines.join(" "))).unwrap_or_default();
    help.commands.retain(|command| is_command_name(&command.name));
    let mut seen = std::collections::HashSet::new();
    help.commands.retain(|command| seen.insert(command.name.clone()));
    for option in from_usage.options {
        let known = help.options.iter().any(|known| known.names.iter().any(|name| option.names.contains(name)));
        if !known && help.options.len() < ENTRIES {
            help.options.push(option);
        }
    }
    help.dashes_before = from_usage.dashes_before;
    help.positionals = merge(from_usage.positionals, described, help.commands.is_empty());
    help
}

/// Adds an option, or what is said of it again.
fn add(options: &mut Vec<Opt>, option: Opt) {
    let known = options.iter_mut().find(|known| known.names.iter().any(|name| option.names.contains(name)));
    match known {
        Some(known) if known.about.is_empty() => known.about = option.about,
        Some(_) => {}
        None => options.push(option),
    }
}

/// Whether lines are a sentence about the program, not its name or its version.
fn is_prose(lines: &[String], words: &[String]) -> bool {
    let text = lines.join(" ");
    let name = words.first().map_or("", String::as_str);
    let is_version =
        lines.len() == 1 && text.split_whitespace().count() <= 3 && text.chars().any(|c| c.is_ascii_digit());
    !is_version
        && !text.contains(" -")
        && text.trim() != name
        && text.contains(' ')
        && text.chars().any(char::is_alphabetic)
}

/// A word that a subcommand may be called by.
fn is_command_name(name: &str) -> bool {
    (2..=40).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':' | b'.'))
        && name.bytes().any(|b| b.is_ascii_alphabetic())
}

/// The subcommands of a line, and the line behind their description.
fn commands(text: &Text, index: usize) -> (Vec<Command>, usize) {
    let Some(line) = text.lines.get(index) else { return (Vec::new(), index) };
    let (left, right) = entry(&line.text);
    // `add, rm, list` on a line without descriptions.
    if right.is_empty() && left.contains(", ") {
        let names: Vec<&str> = left.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.iter().all(|name| is_command_name(name)) {
            let found = names.into_iter().map(|name| Command { name: name.to_owned(), about: String::new() });
            return (found.collect(), index + 1);
        }
    }
    let name = left.split([',', ' ', '|']).next().unwrap_or_default().trim_end_matches(['*', ':']);
    let others = left.split([',', ' ', '|']).skip(1).filter(|word| !word.is_empty());
    let only_aliases =
        others.clone().all(|word| is_command_name(word) || word.starts_with(['<', '[', '(']) || word.len() == 1);
    if !is_command_name(name) || !only_aliases || (right.is_empty() && others.count() > 2) {
        return (Vec::new(), index + 1);
    }
    let (about, next) = text.continued(index, right);
    (vec![Command { name: name.to_owned(), about }], next)
}

/// A positional argument of a section on them, and the line behind its description.
fn argument(text: &Text, index: usize, described: &mut Vec<Positional>, into: &mut Vec<Command>) -> usize {
    let Some(line) = text.lines.get(index) else { return index };
    let (left, right) = entry(&line.text);
    // argparse names subcommands so, and describes them beneath.
    if let Some(names) = left.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(names, _)| names) {
        let inner =
            text.lines.get(index + 1).filter(|next| next.indent > line.indent && entry(&next.text).0 != next.text);
        let listed: Vec<&str> = names.split(',').map(str::trim).collect();
        let is_described = inner.is_some_and(|next| listed.contains(&entry(&next.text).0));
        if is_described || right.to_ascii_lowercase().contains("command") {
            let mut next = index + 1;
            while text.lines.get(next).is_some_and(|below| below.indent > line.indent) {
                let (found, after) = commands(text, next);
                into.extend(found.into_iter().filter(|c| listed.contains(&c.name.as_str())));
                next = after.max(next + 1);
            }
            let missing = listed.iter().filter(|name| !into.iter().any(|c| c.name == **name)).collect::<Vec<_>>();
            let missing: Vec<Command> =
                missing.into_iter().map(|name| Command { name: (*name).to_owned(), about: String::new() }).collect();
            into.extend(missing);
            return next;
        }
    }
    let (about, next) = text.continued(index, right);
    let word = left.split_whitespace().next().unwrap_or_default();
    let Some(mut positional) =
        usage::positional(if left.contains(' ') && !left.starts_with(['<', '[', '{']) { word } else { left })
    else {
        return next;
    };
    let mut option = Opt { about, ..Opt::default() };
    let mut value = Metavar { choices: std::mem::take(&mut positional.choices), ..Metavar::default() };
    options::annotations(&mut option, &mut value);
    positional.choices = value.choices;
    positional.about = option.about;
    described.push(positional);
    next
}

/// The positional arguments of the usage, with what a section says of them.
fn merge(mut usage: Vec<Positional>, described: Vec<Positional>, may_add: bool) -> Vec<Positional> {
    let same = |a: &str, b: &str| {
        a.eq_ignore_ascii_case(b) || a.trim_end_matches('s').eq_ignore_ascii_case(b.trim_end_matches('s'))
    };
    for positional in described {
        let has_room = may_add && usage.len() < 20;
        match usage.iter_mut().find(|known| same(&known.name, &positional.name)) {
            Some(known) => {
                known.about = positional.about;
                if !positional.choices.is_empty() {
                    known.choices = positional.choices;
                }
            }
            None if has_room => usage.push(positional),
            None => {}
        }
    }
    usage
}
