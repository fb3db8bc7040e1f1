//! Usage lines: where they stand, and what they say of positional arguments and options.

use std::ops::Range;

use super::lines::Text;
use super::options::{balanced, bracketed, named, spec};
use super::{Metavar, Opt, Positional};

/// The usage lines of a text, and where they stand.
#[derive(Debug, Default)]
pub(super) struct Usage {
    pub(super) lines: Vec<String>,
    pub(super) span: Range<usize>,
}

/// Most usage lines that are read.
const LINES: usize = 40;

/// Finds the usage: behind the word, until an empty line or the margin.
pub(super) fn collect(text: &Text) -> Usage {
    let is_start = |line: &str| {
        line.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("usage:") || word.eq_ignore_ascii_case("usage "))
            || line.eq_ignore_ascii_case("usage")
            || line.eq_ignore_ascii_case("synopsis")
    };
    let Some(start) = text.lines.iter().position(|line| is_start(&line.text)) else { return Usage::default() };
    let Some(first) = text.lines.get(start) else { return Usage::default() };
    let behind = first.text.split_once(':').map_or("", |(_, rest)| rest.trim());
    let mut lines = Vec::new();
    if !behind.is_empty() {
        lines.push(behind.to_owned());
    }
    let mut index = start + 1;
    // `Usage:` alone: the lines beneath, an empty one between perhaps.
    if behind.is_empty() && text.lines.get(index).is_some_and(|line| line.text.is_empty()) {
        index += 1;
    }
    let mut inner = None;
    while let Some(line) = text.lines.get(index).filter(|line| !line.text.is_empty() && lines.len() < LINES) {
        let other = line.text.strip_prefix("or:").map(str::trim);
        if line.indent <= first.indent && other.is_none() {
            break;
        }
        let inner_indent = *inner.get_or_insert(line.indent);
        match (other, lines.last_mut()) {
            (Some(other), _) => lines.push(other.to_owned()),
            // Further right than the first: it goes on.
            (None, Some(last)) if !behind.is_empty() || line.indent > inner_indent => {
                last.push(' ');
                last.push_str(&line.text);
            }
            (None, _) => lines.push(line.text.clone()),
        }
        index += 1;
    }
    Usage { lines, span: start..index }
}

/// What usage lines say.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) options: Vec<Opt>,
    pub(super) positionals: Vec<Positional>,
    pub(super) dashes_before: Option<usize>,
    pub(super) takes_command: bool,
}

/// Words that stand for options, not for an argument.
const OPTIONS: [&str; 8] =
    ["options", "option", "flags", "flag", "opts", "global options", "global-options", "switches"];
/// Words that stand for a subcommand.
const COMMANDS: [&str; 6] = ["command", "subcommand", "cmd", "commands", "action", "task"];

/// Reads usage lines: options of all, positional arguments of the first that has any.
pub(super) fn read(lines: &[String], words: &[String]) -> Read {
    let mut read = Read::default();
    for line in lines {
        let mut of_line = Read::default();
        tokens(without_program(line, words), false, &mut of_line);
        read.takes_command |= of_line.takes_command;
        for option in of_line.options {
            let known = read.options.iter().any(|known| known.names.iter().any(|name| option.names.contains(name)));
            if !known && read.options.len() < 200 {
                read.options.push(option);
            }
        }
        if read.positionals.is_empty() {
            read.positionals = of_line.positionals;
            read.dashes_before = of_line.dashes_before;
        }
    }
    if lines.len() > 1 {
        // Another line may do without them.
        read.options.iter_mut().for_each(|option| option.required = false);
    }
    read
}

/// A usage line without the program and the subcommand.
fn without_program<'l>(line: &'l str, words: &[String]) -> &'l str {
    let mut rest = line.trim();
    let name = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or_default());
    for (index, word) in words.iter().enumerate() {
        let word = if index == 0 { name } else { word.as_str() };
        let (first, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_same = first == word
            || (index == 0
                && (first.rsplit('/').next() == Some(word)
                    || first.contains(word)
                    || !first.starts_with(['[', '<', '-'])));
        if !is_same {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

fn tokens(text: &str, optional: bool, read: &mut Read) {
    let mut rest = text.trim();
    let mut guard = 0;
    while !rest.is_empty() && guard < 400 {
        guard += 1;
        rest = rest.trim_start_matches([' ', '|', ',']);
        if let Some(inner) = rest.strip_prefix('[') {
            let Some((inner, after)) = balanced(inner, '[', ']') else { return };
            rest = after;
            let repeats = take_dots(&mut rest);
            group(inner, repeats, read);
        } else if rest.starts_with('-') && !rest.starts_with("- ") && rest != "-" {
            rest = option(rest, optional, read);
        } else if let Some((inner, after)) = bracketed(rest).filter(|_| rest.starts_with(['(', '{'])) {
            let whole = rest.get(..rest.len() - after.len()).unwrap_or_default();
            rest = after;
            let repeats = take_dots(&mut rest);
            let is_round = whole.starts_with('(');
            // `[(amend|reword):]<commit>`: a part of a word, not an argument.
            if is_round && optional && rest.starts_with(':') {
                rest = rest.trim_start_matches(':');
            } else if is_round && inner.contains(['-', '[', '<', ' ']) {
                tokens(inner, true, read);
            } else {
                add(whole, optional, repeats, read);
            }
        } else {
            let end = if rest.starts_with('<') {
                rest.find('>').map_or(rest.len(), |end| end + 1)
            } else {
                rest.find([' ', '[']).unwrap_or(rest.len())
            };
            let (word, after) = rest.split_at(end);
            rest = after;
            let repeats = take_dots(&mut rest);
            add(word, optional, repeats, read);
        }
    }
}

fn take_dots(rest: &mut &str) -> bool {
    let trimmed = rest.trim_start();
    for dots in ["...", "…"] {
        if let Some(after) = trimmed.strip_prefix(dots) {
            *rest = after;
            return true;
        }
    }
    false
}

/// What stands in square brackets.
fn group(inner: &str, repeats: bool, read: &mut Read) {
    let inner = inner.trim();
    if inner == "--" {
        read.dashes_before = Some(read.positionals.len());
        return;
    }
    if let Some(cluster) = inner.strip_prefix('-').filter(|rest| is_cluster(rest)) {
        let flags = cluster.chars().map(|c| Opt { names: vec![format!("-{c}")], ..Opt::default() });
        read.options.extend(flags);
        return;
    }
    let parts: Vec<&str> = inner.split('|').map(str::trim).collect();
    if parts.len() > 1 && parts.iter().all(|part| part.starts_with('-')) {
        let before = read.options.len();
        parts.iter().for_each(|part| {
            option(part, true, read);
        });
        // Two names of one option, `-q | --quiet`, are one.
        let same = parts.len() == 2 && read.options.len() == before + 2;
        if let (true, Some(second)) = (same, read.options.pop()) {
            let first = read.options.last_mut();
            let joins = first.as_ref().is_some_and(|first| {
                let letter = first.names.first().and_then(|name| name.strip_prefix('-')).filter(|n| n.len() == 1);
                letter.is_some_and(|letter| {
                    second.name().trim_start_matches('-').starts_with(&letter.to_ascii_lowercase())
                        || second.name().trim_start_matches('-').starts_with(letter)
                })
            });
            match first.filter(|_| joins) {
                Some(first) => {
                    first.names.extend(second.names);
                    if first.value.is_none() {
                        first.value = second.value;
                    }
                }
                None => read.options.push(second),
            }
        }
        return;
    }
    if is_prose(inner) {
        return;
    }
    let before = read.positionals.len();
    tokens(inner, true, read);
    if repeats {
        read.positionals.iter_mut().skip(before).for_each(|positional| positional.repeats = true);
    }
}

/// Whether a group tells of arguments instead of naming them: `ignored command line arguments`.
fn is_prose(inner: &str) -> bool {
    let words: Vec<&str> = inner.split(' ').collect();
    words.len() > 2 && words.iter().all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase()))
}

/// Whether a usage line has such a group.
pub(super) fn has_prose(line: &str) -> bool {
    line.split('[').skip(1).filter_map(|rest| rest.split_once(']')).any(|(inner, _)| is_prose(inner))
}

/// Letters of flags that are written together, in their order: `[-ABCabc]`.
fn is_cluster(text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    let plain = letters.len() > 1 && letters.iter().all(char::is_ascii_alphanumeric);
    let in_order =
        |fold: fn(char) -> char| letters.windows(2).all(|pair| matches!(pair, [a, b] if fold(*a) <= fold(*b)));
    plain && (in_order(|c| c) || in_order(|c| c.to_ascii_lowercase()) || letters.len() > 14)
}

/// Reads one option of a usage line; gives what follows.
fn option<'t>(text: &'t str, optional: bool, read: &mut Read) -> &'t str {
    if let Some(rest) = text.strip_prefix("--").filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
        read.dashes_before = Some(read.positionals.len());
        return rest;
    }
    // Up to the next option or bracket, so that a value is a word of its own.
    let end = text
        .match_indices([' ', '|'])
        .map(|(at, _)| at)
        .find(|at| {
            let after = text.get(at + 1..).unwrap_or_default().trim_start();
            after.starts_with(['-', '[', '|']) || text.get(..*at).unwrap_or_default().contains(' ')
        })
        .unwrap_or(text.len());
    let (own, rest) = text.split_at(end);
    if let Some((mut option, _)) = spec(own) {
        option.required = !optional && option.value.is_some();
        read.options.push(option);
    }
    rest
}

fn add(word: &str, optional: bool, repeats: bool, read: &mut Read) {
    let Some(mut positional) = positional(word) else { return };
    let lower = positional.name.to_ascii_lowercase();
    if OPTIONS.contains(&lower.as_str()) {
        return;
    }
    // What follows a subcommand is its own matter.
    if COMMANDS.contains(&lower.as_str()) {
        read.takes_command = true;
        return;
    }
    if read.takes_command && matches!(lower.as_str(), "args" | "arg" | "arguments" | "command args" | "subcommand args")
    {
        return;
    }
    positional.required = !optional;
    positional.repeats |= repeats;
    if !read.positionals.iter().any(|known| known.name == positional.name) && read.positionals.len() < 20 {
        read.positionals.push(positional);
    } else if let Some(known) = read.positionals.iter_mut().find(|known| known.name == positional.name) {
        // `FILE [FILE...]`
        known.repeats = true;
    }
}

/// A positional argument as it is written: `<FILE>...`, `[FILE]`, `{a,b}`, `FILE`.
pub(super) fn positional(word: &str) -> Option<Positional> {
    let text = word.trim().trim_end_matches([':', ',', ';']);
    let (Metavar { name, choices, .. }, repeats) = named(text);
    let name = name.trim_matches(['<', '>', '[', ']', '{', '}', '.', '*', '+', '?']).trim().to_owned();
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ' | '/' | '.' | ':' | '|' | '=' | '@' | '#'));
    if name.is_empty()
        || name.chars().count() > 60
        || !plain
        || !name.chars().any(char::is_alphanumeric)
        || name.starts_with('-')
    {
        return None;
    }
    Some(Positional { name, required: !text.starts_with('['), repeats, choices, about: String::new() })
}
