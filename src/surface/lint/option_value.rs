//! A value that begins with `-` and stands where options stand would be one; so such calls are refused.

use crate::protocol::Json;
use crate::surface::arguments::ArgumentEntry;
use crate::surface::declaration::{ArgumentKind, Piece};
use crate::surface::file::{BackendEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule};
use crate::surface::template;

pub(crate) const RULE: Rule =
    Rule::warning("option-value", "a value that may begin with `-` stands where it cannot be taken for an option");

/// Elements after which nothing is an option.
const SEPARATORS: [&str; 2] = ["--", "--end-of-options"];

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    file.backends().for_each(|tool| check_tool(tool, findings));
}

fn check_tool(tool: &BackendEntry<'_>, findings: &mut Findings) {
    let mut separated = false;
    for element in &tool.run {
        let mut within = separated;
        for template in element.templates() {
            if template::literal(&template.value).is_some_and(|text| SEPARATORS.contains(&text)) {
                within = true;
            }
            let Some(Piece::Argument(name)) = template.value.0.first().filter(|_| !within) else { continue };
            let argument = tool.input.arguments.iter().find(|a| a.name.value == *name);
            if argument.is_some_and(may_begin_with_dash) {
                let span = findings.source().narrow(template.span, &format!("{{{name}}}"));
                let message = format!("a value of {name:?} that begins with - is refused here: it would be an option");
                let remedy = format!(
                    "put `--` before it, or write \"--option={{{name}}}\" as one element; `as: data` lets it begin with -"
                );
                findings.report(&RULE, span, message, remedy);
            }
        }
        // A separator in a group with a placeholder is left out with it.
        separated |= within && element.templates().iter().all(|t| template::literal(&t.value).is_some());
    }
}

fn may_begin_with_dash(argument: &ArgumentEntry) -> bool {
    if argument.kind != ArgumentKind::Value {
        return false;
    }
    let schema = &argument.schema;
    let text_is_safe = |value: &Json| value.as_str().is_none_or(|text| !text.starts_with('-'));
    if let Some(Json::Array(values)) = schema.get("enum") {
        return !values.iter().all(text_is_safe);
    }
    if let Some(value) = schema.get("const") {
        return !text_is_safe(value);
    }
    match schema.get("type").and_then(Json::as_str) {
        Some("boolean" | "array" | "object") => false,
        Some("integer" | "number") => !["minimum", "exclusiveMinimum"]
            .iter()
            .any(|key| matches!(schema.get(key), Some(Json::Number(least)) if !least.starts_with('-'))),
        _ => !schema.get("pattern").and_then(Json::as_str).is_some_and(begins_otherwise),
    }
}

/// Whether a pattern demands another first character, as far as its first item tells.
fn begins_otherwise(pattern: &str) -> bool {
    let Some(rest) = pattern.strip_prefix('^').filter(|_| !pattern.contains('|')) else { return false };
    let (safe, after) = match rest.strip_prefix('[').and_then(|class| class.split_once(']')) {
        Some((class, after)) => {
            let characters: Vec<char> = class.chars().collect();
            let plain_ranges = characters.windows(3).all(|three| match three {
                [from, '-', to] => from.is_ascii_alphanumeric() && to.is_ascii_alphanumeric(),
                _ => true,
            });
            (
                plain_ranges
                    && !class.starts_with(['-', '^'])
                    && !class.ends_with('-')
                    && !class.contains(['\\', '[', '&']),
                after,
            )
        }
        None => (rest.starts_with(|c: char| c.is_ascii_alphanumeric()), rest.get(1..).unwrap_or_default()),
    };
    safe && !after.starts_with(['?', '*', '{'])
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_value_where_options_stand_is_warned_of() {
        let run = |run: &str, arg: &str| tool(&format!("args: {{x: {{{arg}}}}}\nrun: {run}"));
        for bad in [
            "[ls, \"{x}\"]",
            "[ls, -n, \"{x}\"]",
            "[ls, \"{x}.txt\"]",
            "[ls, [--, \"{x}\"], \"{x}\"]",
            "[ls, [-n, \"{x}\"]]",
        ] {
            breaks(super::RULE, &run(bad, "type: string"));
        }
        for good in [
            "[ls, --, \"{x}\"]",
            "[ls, --end-of-options, \"{x}\"]",
            "[ls, \"--n={x}\"]",
            "[ls, -n{x}]",
            "[ls, [--, \"{x}\"]]",
        ] {
            keeps(super::RULE, &run(&good.replace("-n{x}", "\"-n{x}\""), "type: string"));
        }
    }

    #[test]
    fn what_cannot_begin_with_a_dash_needs_no_separator() {
        let arg = |arg: &str| tool(&format!("args: {{x: {{{arg}}}}}\nrun: [ls, \"{{x}}\"]"));
        for safe in [
            "type: integer, minimum: 0",
            "type: boolean",
            "type: string, as: data",
            "type: string, as: path",
            "type: string, enum: [a, b]",
            "type: string, pattern: '^[A-Za-z0-9_.]+$'",
            "type: string, pattern: '^v[0-9]+$'",
        ] {
            keeps(super::RULE, &arg(safe));
        }
        for unsafe_ in [
            "type: integer",
            "type: integer, minimum: -1",
            "type: string, enum: [a, -b]",
            "type: string, pattern: '[a-z]+'",
            "type: string, pattern: '^[a-z]*-'",
            "type: string, pattern: '^[a-z-]+$'",
            "type: string, pattern: '^[-a-z]+$'",
            "type: string, pattern: '^[^a]+$'",
            "type: string, pattern: '^[+--]+$'",
            "type: string, pattern: '^a|-b'",
            "type: string, pattern: '^[\\W]'",
        ] {
            breaks(super::RULE, &arg(unsafe_));
        }
    }
}
