//! Text with placeholders, filled in.
//!
//! Promises: a value is data: braces in it are text; what comes out stays within its bound, however
//! often a value is asked for. Used for texts and paths; an argument vector is rendered by `command`,
//! where more has to hold.

use std::borrow::Cow;

use crate::surface::declaration::{Piece, Template};

/// What comes out would be longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Fills a text in, up to `most` bytes; a placeholder that has no value stands for nothing.
pub(super) fn fill<'v>(
    template: &Template,
    most: usize,
    value: impl Fn(&str) -> Option<Cow<'v, str>>,
) -> Result<String, TooLong> {
    let mut out = String::new();
    for piece in &template.0 {
        let part = match piece {
            Piece::Literal(text) => Cow::Borrowed(text.as_str()),
            Piece::Argument(name) => value(name).unwrap_or_default(),
        };
        if out.len().saturating_add(part.len()) > most {
            return Err(TooLong);
        }
        out.push_str(&part);
    }
    Ok(out)
}

/// The value under a name.
pub(super) fn among<'v>(values: &'v [(String, String)], name: &str) -> Option<Cow<'v, str>> {
    values.iter().find(|(key, _)| key == name).map(|(_, value)| Cow::Borrowed(value.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_never_read_as_a_template() {
        let template = Template::parse("{{{a}}} {b}{c}.").unwrap();
        let values = [("a".to_owned(), "{b}".to_owned()), ("b".to_owned(), "{{".to_owned())];
        assert_eq!(fill(&template, 100, |name| among(&values, name)).unwrap(), "{{b}} {{.");
    }

    #[test]
    fn what_comes_out_is_bounded() {
        let template = Template::parse(&"{a}".repeat(1000)).unwrap();
        let values = [("a".to_owned(), "x".repeat(1000))];
        assert_eq!(fill(&template, 999_999, |name| among(&values, name)), Err(TooLong));
        assert_eq!(fill(&template, 1_000_000, |name| among(&values, name)).unwrap().len(), 1_000_000);
    }
}
