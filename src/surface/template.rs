//! Text with `{placeholder}`s, as elements of an argument vector are written.
//!
//! Promises: a brace is either doubled or part of a placeholder; nothing is guessed.

use super::declaration::{Piece, Template};

/// A brace that is neither doubled nor part of a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StrayBrace {
    /// The text from the brace on, to point at.
    pub(crate) at: String,
    /// What is wrong with it.
    pub(crate) problem: String,
}

/// Reads a template.
pub(crate) fn parse(text: &str) -> Result<Template, StrayBrace> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(index) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(index);
        literal.push_str(before);
        if let Some((brace, after)) = doubled(from) {
            literal.push(brace);
            rest = after;
            continue;
        }
        let Some(inner) = from.strip_prefix('{') else {
            return Err(StrayBrace { at: "}".to_owned(), problem: "a `}` closes nothing".to_owned() });
        };
        let Some((name, after)) = inner.split_once('}') else {
            return Err(StrayBrace { at: from.to_owned(), problem: "a `{` is never closed".to_owned() });
        };
        if !is_argument_name(name) {
            let at = format!("{{{name}}}");
            return Err(StrayBrace { problem: format!("{at:?} is not a placeholder"), at });
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Argument(name.to_owned()));
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(Template(pieces))
}

fn doubled(text: &str) -> Option<(char, &str)> {
    ["{{", "}}"].into_iter().find_map(|pair| Some((pair.chars().next()?, text.strip_prefix(pair)?)))
}

/// Names that every client and model API takes for a property: 1 to 64 of `A-Z a-z 0-9 _ . -`.
pub(crate) fn is_argument_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// The text, if it has no placeholder.
pub(crate) fn literal(template: &Template) -> Option<&str> {
    match template.0.as_slice() {
        [Piece::Literal(text)] => Some(text),
        _ => None,
    }
}

/// The text before the first placeholder.
pub(crate) fn leading(template: &Template) -> &str {
    match template.0.first() {
        Some(Piece::Literal(text)) => text,
        _ => "",
    }
}

/// The arguments it names, in order.
pub(crate) fn arguments(template: &Template) -> impl Iterator<Item = &str> {
    template.0.iter().filter_map(|piece| match piece {
        Piece::Argument(name) => Some(name.as_str()),
        Piece::Literal(_) => None,
    })
}

/// The one argument of a path, whose values the names in a folder are.
pub(crate) fn completed_by_folder(path: &Template) -> Option<&str> {
    let mut arguments = arguments(path);
    arguments.next().filter(|_| arguments.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_and_doubled_braces_are_told_apart() {
        let literal = |text: &str| Piece::Literal(text.to_owned());
        let argument = |name: &str| Piece::Argument(name.to_owned());
        for (text, pieces) in [
            ("", vec![literal("")]),
            ("plain", vec![literal("plain")]),
            ("{a}", vec![argument("a")]),
            ("--max={count}", vec![literal("--max="), argument("count")]),
            ("{a}{b-1.c}", vec![argument("a"), argument("b-1.c")]),
            ("{{print $1}}", vec![literal("{print $1}")]),
            ("{{{a}}}", vec![literal("{"), argument("a"), literal("}")]),
            ("{{}}", vec![literal("{}")]),
        ] {
            assert_eq!(parse(text), Ok(Template(pieces)), "{text}");
        }
    }

    #[test]
    fn any_other_brace_is_refused() {
        for (text, at) in [("{}", "{}"), ("{print $1}", "{print $1}"), ("a}", "}"), ("{a", "{a"), ("x{ a }", "{ a }")] {
            assert_eq!(parse(text).unwrap_err().at, at, "{text}");
        }
    }
}
