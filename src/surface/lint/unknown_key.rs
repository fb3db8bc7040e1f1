//! A key that is not known is a slip or a wish; either way it would be ignored silently.

use crate::protocol::json::shortened;
use crate::surface::problem::{Findings, Rule, did_you_mean};
use crate::surface::tree::{Entry, Value};

pub(crate) const RULE: Rule = Rule::error("unknown-key", "every key is one that the format knows");

pub(crate) fn report(Entry { key, node }: &Entry, owner: &str, known: &[&str], findings: &mut Findings) {
    let suggestion = (!findings.is_full()).then(|| did_you_mean(&key.value, known.iter().copied())).flatten();
    // `{description: Before a comma, and after it}` is a slip that YAML reads as two keys.
    let after_a_comma = matches!(node.value, Value::Null) && key.value.contains(' ');
    let remedy = match &suggestion {
        _ if after_a_comma => "put the text before it in quotes: a comma ended it here".to_owned(),
        Some(_) => "correct its name, or leave it out".to_owned(),
        None if known.is_empty() => "leave it out".to_owned(),
        None => format!("leave it out; known are {}", known.join(", ")),
    };
    let message = format!("{owner} has no key {:?}", shortened(&key.value, 64));
    findings.suggest(&RULE, key.span, message, remedy, suggestion);
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, tool};

    #[test]
    fn a_slip_is_named_with_what_was_meant() {
        breaks(super::RULE, &tool("descripton: x"));
        breaks(super::RULE, &tool("args:\n  a: {type: string, minlength: 1}\nrun: [ls, \"x{a}\"]"));
        breaks(super::RULE, "surface: s\nversion: 1.0.0\nextra: 1\ntools: {}\n");
        keeps(super::RULE, &tool("title: Show"));
        let builtin = |name: &str| {
            format!(
                "surface: s\nversion: 1.0.0\nregistry: .\ntools: {{t: {{builtin: {name}, coerce_arg_names: true}}}}\n"
            )
        };
        breaks(super::RULE, &builtin("get_skill"));
        keeps(super::RULE, &builtin("run_agent"));
        let comma = problems(&tool("args: {a: {type: string, description: One, two words}}\nrun: [ls, \"x{a}\"]"));
        assert!(comma.list()[0].remedy.contains("comma"), "{comma}");
        let problems = problems(&tool("descripton: x"));
        assert_eq!(problems.list().iter().find_map(|p| p.suggestion.clone()).as_deref(), Some("description"));
    }
}
