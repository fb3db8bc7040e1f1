//! Entries of options: names, the value, and what the words behind say of both.

use super::lines::{Text, entry};
use super::{Metavar, Opt};
use crate::import::text::one_line;

/// Reads the option of a line, and gives the line behind its description.
pub(super) fn read(text: &Text, index: usize) -> (Option<Opt>, usize) {
    let Some(line) = text.lines.get(index) else { return (None, index) };
    let (left, right) = gap(&line.text);
    let Some((mut option, rest)) = spec(left) else {
        let (_, next) = text.continued(index, right);
        return (None, next);
    };
    let first = if rest.is_empty() { right.to_owned() } else { format!("{rest} {right}") };
    let (about, next) = text.continued(index, &if rest.is_empty() { right.to_owned() } else { first });
    option.about = about;
    let mut value = option.value.take();
    let mut said = value.clone().unwrap_or_default();
    annotations(&mut option, &mut said);
    if let Some(value) = &mut value {
        value.choices = said.choices;
    }
    option.value = value;
    (Some(option), next)
}

/// The gap of an option's entry: between names such as `-a,  --all` there is none.
fn gap(text: &str) -> (&str, &str) {
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find("  ")) {
        let at = from + found;
        let (left, right) = text.split_at(at);
        let right = right.trim_start();
        if !(left.trim_end().ends_with([',', '|']) && right.starts_with('-')) {
            return (left, right);
        }
        from = text.len() - right.len();
    }
    entry(text)
}

/// Reads names and value; what is neither is given back as the beginning of the description.
pub(super) fn spec(text: &str) -> Option<(Opt, String)> {
    let mut option = Opt::default();
    let mut rest = text;
    while option.names.len() < 8 {
        rest = rest.trim_start_matches([' ', ',', '|', '/']);
        rest = rest
            .strip_prefix("or ")
            .map_or(rest, |after| if after.trim_start().starts_with('-') { after.trim_start() } else { rest });
        if !rest.starts_with('-') {
            break;
        }
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '<' | '|' | '/' | ':' | ')'))
            .unwrap_or(rest.len());
        let (mut name, mut after) = rest.split_at(end);
        // `--[no-]color`, `--color[=WHEN]`, `-O[level]`
        if let Some(positive) = name.strip_prefix("--[no-]") {
            let positive = positive.split('[').next().unwrap_or_default();
            push(&mut option.names, &format!("--{positive}"));
            push(&mut option.names, &format!("--no-{positive}"));
            after = rest.get("--[no-]".len() + positive.len()..).unwrap_or_default();
        } else {
            if let Some((before, _)) = name.split_once('[') {
                name = before;
                after = rest.get(before.len()..).unwrap_or_default();
            }
            // `--verbose...` may stand more than once.
            if let Some(before) = name.strip_suffix("...").or_else(|| name.strip_suffix('…')) {
                name = before;
                option.repeats = true;
            }
            if !is_name(name) {
                return (!option.names.is_empty()).then(|| (option, rest.to_owned()));
            }
            push(&mut option.names, name);
        }
        let (value, left) = metavar(after, option.value.is_some());
        if let Some((value, repeats)) = value {
            option.repeats |= repeats;
            option.value.get_or_insert(value);
        }
        if let Some(dots) = left.strip_prefix("...") {
            option.repeats = true;
            rest = dots;
        } else {
            rest = left;
        }
        if !rest.trim_start_matches([' ', ',', '|', '/']).starts_with('-') && !rest.trim_start().starts_with("or -") {
            break;
        }
    }
    (!option.names.is_empty()).then(|| (option, rest.trim().to_owned()))
}

fn push(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) && is_name(name) {
        names.push(name.to_owned());
    }
}

/// Whether a word is an option's name.
fn is_name(text: &str) -> bool {
    let bare = text.trim_start_matches('-');
    let dashes = text.len() - bare.len();
    (1..=2).contains(&dashes)
        && (1..=60).contains(&bare.len())
        && bare.starts_with(|c: char| c.is_ascii_alphanumeric())
        && bare.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'+'))
        && !(dashes == 2 && bare.len() == 1 && bare.bytes().all(|b| b.is_ascii_digit()))
}

/// Reads the value behind a name. What is not one is given back.
fn metavar(text: &str, known: bool) -> (Option<(Metavar, bool)>, &str) {
    // `[=WHEN]`, `[WHEN]`, `[=<WHEN>]`
    if let Some(inner) = text.strip_prefix('[')
        && let Some((inner, after)) = balanced(inner, '[', ']')
    {
        let (mut value, repeats) = named(inner.trim_start_matches('='));
        value.optional = true;
        return (Some((value, repeats)), after);
    }
    let (is_joined, rest) = match text.strip_prefix(['=', ':']) {
        Some(rest) => (true, rest),
        None => (text.starts_with('<'), text),
    };
    let spaced = rest.strip_prefix(' ').unwrap_or(rest);
    if !is_joined && (spaced.len() == rest.len() || spaced.starts_with(' ')) {
        return (None, text);
    }
    if let Some((inner, after)) = bracketed(spaced) {
        let optional = spaced.starts_with('[') && !is_joined && !inner.contains('|');
        let more = after.trim_start();
        let dots = more.starts_with("...") || more.starts_with('…');
        let (mut value, repeats) = named(inner);
        value.optional = optional && !inner.ends_with("...");
        let after = if dots { more.trim_start_matches(['.', '…']) } else { after };
        return (Some((value, repeats || dots)), after);
    }
    let end = spaced.find([' ', ',']).unwrap_or(spaced.len());
    let (word, after) = spaced.split_at(end);
    // Behind a comma or at the end a word is a value; before other words, one in capitals is.
    let is_word = word.starts_with(|c: char| c.is_alphanumeric()) && !word.ends_with('.');
    let capitals = word.chars().any(|c| c.is_ascii_uppercase()) && !word.chars().any(|c| c.is_ascii_lowercase());
    let ends = after.trim_start_matches([' ', ',']).is_empty() || after.trim_start_matches([' ', ',']).starts_with('-');
    if !is_word || !(is_joined || capitals || ends) || (known && !is_joined && !ends) {
        return (None, text);
    }
    let repeated = after
        .trim_start()
        .strip_prefix("...")
        .or_else(|| after.trim_start().strip_prefix('[').filter(|rest| rest.contains("...]")));
    let (value, repeats) = named(word);
    match repeated {
        Some(rest) => (Some((value, true)), rest.split_once("...]").map_or(rest, |(_, rest)| rest)),
        None => (Some((value, repeats)), after),
    }
}

/// What stands in a pair of brackets at the beginning, and what follows.
pub(super) fn bracketed(text: &str) -> Option<(&str, &str)> {
    [('<', '>'), ('[', ']'), ('{', '}'), ('(', ')')]
        .into_iter()
        .find_map(|(open, close)| balanced(text.strip_prefix(open)?, open, close))
}

/// What stands before the bracket that closes, and what follows.
pub(super) fn balanced(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    for (at, character) in text.char_indices() {
        if character == open {
            depth += 1;
        } else if character == close {
            match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return Some((text.get(..at)?, text.get(at + close.len_utf8()..)?)),
            }
        }
    }
    None
}

/// A value's name, its choices, and whether it repeats.
pub(super) fn named(text: &str) -> (Metavar, bool) {
    let repeats = text.contains("...") || text.contains('…');
    let bare = text.replace("...", "").replace('…', "");
    let bare = bare.trim().trim_matches(['<', '>', '[', ']', '{', '}', '(', ')', '"', '\'']);
    let separator = if bare.contains('|') { '|' } else { ',' };
    let parts: Vec<String> =
        bare.split(separator).map(|part| part.trim().trim_matches(['\'', '"']).to_owned()).collect();
    let is_choice = parts.len() > 1
        && text.contains(['|', '{', ','])
        && parts.iter().all(|part| is_choice(part))
        && !parts.iter().all(|part| part.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    let choices = if is_choice { parts } else { Vec::new() };
    let name = if is_choice { "choice".to_owned() } else { bare.to_owned() };
    (Metavar { name, optional: false, choices }, repeats)
}

fn is_choice(text: &str) -> bool {
    (1..=60).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'+' | b'/' | b':'))
        && !text.starts_with('-')
}

/// What a description says in brackets of values and of how often: `[possible values: a, b]`, `[required]`.
pub(super) fn annotations(option: &mut Opt, value: &mut Metavar) {
    let lower = option.about.to_ascii_lowercase();
    if let Some(choices) = choices(&option.about, &lower)
        && value.choices.is_empty()
    {
        value.choices = choices;
        // The schema says it now.
        if let Some(start) = lower.find("[possible values:") {
            let rest = option.about.get(start..).unwrap_or_default();
            let end = rest.find(']').map_or(option.about.len(), |end| start + end + 1);
            option.about.replace_range(start..end, "");
            option.about = one_line(&option.about);
        }
    }
    option.required |= lower.contains("[required]") || lower.ends_with("(required)");
    option.repeats |=
        ["multiple times", "more than once", "may be repeated", "can be repeated", "can be specified multiple"]
            .iter()
            .any(|words| lower.contains(words));
}

fn choices(about: &str, lower: &str) -> Option<Vec<String>> {
    const BEFORE: [&str; 4] = ["possible values:", "choices:", "possible choices:", "allowed values:"];
    let start = BEFORE.iter().find_map(|words| Some(lower.find(words)? + words.len()))?;
    let rest = about.get(start..)?.trim_start();
    let parts: Vec<String> = if rest.starts_with("; ") || rest.contains("; ") && !rest.contains(']') {
        // `; a: about a; b: about b`
        rest.split("; ")
            .filter(|part| !part.trim().is_empty())
            .map(|part| part.split(':').next().unwrap_or_default().trim().to_owned())
            .collect()
    } else {
        let end = rest.find([']', ')', ';']).unwrap_or(rest.len());
        rest.get(..end)?
            .split([',', '|'])
            .map(|part| part.trim().trim_matches(['\'', '"', '`', '.']).to_owned())
            .collect()
    };
    (parts.len() > 1 && parts.iter().all(|part| is_choice(part))).then_some(parts)
}
