//! From a call's arguments to an argument vector: one placeholder, one element, never text for a shell.
//!
//! Promises: the same declaration and arguments give the same vector; an element whose placeholder has
//! no value is left out, a group as a whole; no value becomes an option unless the declaration says so;
//! no value holds a NUL. Reads nothing but its input.

use std::collections::HashMap;

use crate::protocol::json::{JsonLimits, Kind};
use crate::protocol::{Json, RawJson};
use crate::surface::declaration::{ArgumentKind, Element, Piece, Template};

/// From here on, an integer that the caller wrote with an exponent or a fraction keeps an exponent.
const WRITTEN_OUT: f64 = 1e20;

/// Why the arguments make no vector. The texts are for the model, which can choose other values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgvRefusal {
    /// No system call can carry it.
    #[error("argument {0:?} contains a NUL character: give a value without it")]
    Nul(String),
    /// The program could take it for an option.
    #[error("argument {0:?} begins with \"-\", which the program could take for an option: give a value that does not")]
    LooksLikeOption(String),
    /// A defect of the declaration, which `load` should have refused.
    #[error("placeholder {0:?} is not declared")]
    Undeclared(String),
}

/// An argument's text, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// What stands in the place of a placeholder; `None` where the caller gave none and none is the default.
    pub text: Option<String>,
    /// What the text is.
    pub kind: ArgumentKind,
}

/// The values of all declared arguments by name.
pub type Values = HashMap<String, Value>;

/// The text of a value as sent: a string as it stands, an integer with its own digits, a number that
/// is written with a fraction or an exponent as what it was validated as, an array or object as compact JSON. Null has none.
pub fn text_of(value: &RawJson) -> Option<String> {
    match value.kind() {
        Kind::Null => None,
        Kind::String => value.as_text(),
        Kind::Bool => Some(value.as_str().to_owned()),
        Kind::Number => Some(number(value.as_str())),
        Kind::Array | Kind::Object => {
            let value = Json::parse(value.as_bytes(), &JsonLimits::default()).ok()?;
            Some(value.to_text())
        }
    }
}

/// The text of a declared default, by the rules of [`text_of`].
pub fn text_of_default(value: &Json) -> Option<String> {
    match value {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        Json::Number(text) => Some(number(text)),
        other => Some(other.to_text()),
    }
}

/// What was validated, not how it was written: a schema sees a number with a fraction or an exponent as
/// the nearest `f64`, and counts `42.0` and `4.2e1` among the integers; few programs do.
fn number(text: &str) -> String {
    if text == "-0" {
        return "0".to_owned();
    }
    let is_plain = !text.contains(['.', 'e', 'E']);
    match serde_json::from_str::<f64>(text) {
        Ok(value) if !is_plain && value.fract() == 0.0 && value.abs() < WRITTEN_OUT => {
            // Without the sign of a zero.
            format!("{:.0}", value + 0.0)
        }
        Ok(value) if !is_plain => format!("{value:?}"),
        _ => text.to_owned(),
    }
}

/// Renders the elements in their order.
pub fn render(elements: &[Element], values: &Values) -> Result<Vec<String>, ArgvRefusal> {
    let mut argv: Vec<String> = Vec::new();
    let mut after_dashes = false;
    for element in elements {
        let templates = match element {
            Element::One(template) => std::slice::from_ref(template),
            Element::Group(templates) => templates,
        };
        let mut rendered = Vec::new();
        let mut ends_options = after_dashes;
        for template in templates {
            let Some(text) = fill(template, values)? else {
                rendered.clear();
                break;
            };
            check(template, &text, values, ends_options)?;
            ends_options |= template.as_literal() == Some("--");
            rendered.push(text);
        }
        // A `--` of a group that is left out stands before nothing.
        if rendered.len() == templates.len() {
            after_dashes = ends_options;
            argv.append(&mut rendered);
        }
    }
    Ok(argv)
}

/// The template's text; `None` where a placeholder has no value.
fn fill(template: &Template, values: &Values) -> Result<Option<String>, ArgvRefusal> {
    let mut text = String::new();
    let mut complete = true;
    for piece in &template.0 {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Argument(name) => match values.get(name) {
                None => return Err(ArgvRefusal::Undeclared(name.clone())),
                Some(Value { text: None, .. }) => complete = false,
                Some(Value { text: Some(value), .. }) if value.contains('\0') => {
                    return Err(ArgvRefusal::Nul(name.clone()));
                }
                Some(Value { text: Some(value), .. }) => text.push_str(value),
            },
        }
    }
    Ok(complete.then_some(text))
}

/// Refuses an element that is an option because of a value: one that has no text of the declaration's own
/// before the value, no literal `--` before itself, and a value that is not declared to be data.
fn check(template: &Template, text: &str, values: &Values, after_dashes: bool) -> Result<(), ArgvRefusal> {
    let first = template.0.iter().find(|piece| !matches!(piece, Piece::Literal(literal) if literal.is_empty()));
    let Some(Piece::Argument(name)) = first else { return Ok(()) };
    let is_data = values.get(name).is_some_and(|value| value.kind == ArgumentKind::Data);
    if text.starts_with('-') && !after_dashes && !is_data {
        return Err(ArgvRefusal::LooksLikeOption(name.clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// `{name}` is a placeholder, all else is literal.
    fn template(text: &str) -> Template {
        let mut pieces = Vec::new();
        for (index, part) in text.split(['{', '}']).enumerate().filter(|(_, part)| !part.is_empty()) {
            let part = part.to_owned();
            pieces.push(if index % 2 == 0 { Piece::Literal(part) } else { Piece::Argument(part) });
        }
        Template(pieces)
    }

    /// Elements between spaces; those joined by `+` are a group.
    fn elements(text: &str) -> Vec<Element> {
        let element = |text: &str| match text.contains('+') {
            true => Element::Group(text.split('+').map(template).collect()),
            false => Element::One(template(text)),
        };
        text.split(' ').map(element).collect()
    }

    fn values(given: &[(&str, &str)]) -> Values {
        let mut values = Values::new();
        for name in ["a", "b", "data", "path"] {
            let kind = match name {
                "data" => ArgumentKind::Data,
                "path" => ArgumentKind::Path,
                _ => ArgumentKind::Value,
            };
            let text = given.iter().find(|(given, _)| *given == name).map(|(_, text)| (*text).to_owned());
            values.insert(name.to_owned(), Value { text, kind });
        }
        values
    }

    #[test]
    fn elements_render_one_for_one_and_are_left_out_without_a_value() {
        for (declared, given, expected) in [
            ("log --max={a}", &[("a", "20")][..], &["log", "--max=20"][..]),
            ("log --max={a}", &[], &["log"]),
            ("log --by+{a} end", &[("a", "x y")], &["log", "--by", "x y", "end"]),
            ("log --by+{a} end", &[], &["log", "end"]),
            ("log --from+{a}+--to+{b}", &[("a", "1")], &["log"]),
            ("{a}..{b}", &[("a", "v1"), ("b", "v2")], &["v1..v2"]),
            ("{a}..{b}", &[("a", "v1")], &[]),
            ("{a} {a}", &[("a", "twice")], &["twice", "twice"]),
            ("{a}", &[("a", "")], &[""]),
            ("{a}", &[("a", "; rm -rf x $(id) `id` %PATH% \" ' \n *")], &["; rm -rf x $(id) `id` %PATH% \" ' \n *"]),
            ("{a}", &[("a", "{b}"), ("b", "no")], &["{b}"]),
        ] {
            let rendered = render(&elements(declared), &values(given));
            assert_eq!(rendered, Ok(expected.iter().map(|s| (*s).to_owned()).collect()), "{declared} {given:?}");
        }
    }

    #[test]
    fn a_value_becomes_no_option_unless_the_declaration_lets_it() {
        let refused = |name: &str| Err(ArgvRefusal::LooksLikeOption(name.to_owned()));
        let vector = |argv: &[&str]| Ok(argv.iter().map(|s| (*s).to_owned()).collect());
        for (declared, given, expected) in [
            ("ls {a}", &[("a", "-rf")][..], refused("a")),
            ("ls {a}", &[("a", "--")], refused("a")),
            ("ls {a}", &[("a", "-")], refused("a")),
            ("ls -n+{a}", &[("a", "-5")], refused("a")),
            ("ls {a}{b}", &[("a", ""), ("b", "-x")], refused("a")),
            ("ls {a}-x", &[("a", "")], refused("a")),
            ("ls {path}", &[("path", "-x")], refused("path")),
            ("ls {a} --", &[("a", "-x")], refused("a")),
            ("ls {data} {a}", &[("data", "--"), ("a", "-x")], refused("a")),
            ("ls --+{b} {a}", &[("a", "-x")], refused("a")),
            ("ls -- {a}", &[("a", "-x")], vector(&["ls", "--", "-x"])),
            ("ls -- {path}", &[("path", "-x")], vector(&["ls", "--", "-x"])),
            ("ls --+{a}", &[("a", "-x")], vector(&["ls", "--", "-x"])),
            ("ls --+{b} {a}", &[("a", "-x"), ("b", "y")], vector(&["ls", "--", "y", "-x"])),
            ("ls {data}", &[("data", "-x")], vector(&["ls", "-x"])),
            ("ls --count={a}", &[("a", "-1")], vector(&["ls", "--count=-1"])),
            ("ls +{a}", &[("a", "-1")], refused("a")),
            ("ls a{a}", &[("a", "-1")], vector(&["ls", "a-1"])),
            ("ls {a}", &[("a", "@file")], vector(&["ls", "@file"])),
            ("ls {a}", &[("a", "\u{2010}x")], vector(&["ls", "\u{2010}x"])),
        ] {
            assert_eq!(render(&elements(declared), &values(given)), expected, "{declared} {given:?}");
        }
    }

    #[test]
    fn nul_is_refused_and_an_undeclared_placeholder_is_a_defect() {
        let nul = render(&elements("x --a={a}"), &values(&[("a", "b\0c")]));
        assert_eq!(nul, Err(ArgvRefusal::Nul("a".to_owned())));
        let data = render(&elements("x {data}"), &values(&[("data", "\0")]));
        assert_eq!(data, Err(ArgvRefusal::Nul("data".to_owned())));
        let undeclared = render(&elements("x {unknown}"), &values(&[]));
        assert_eq!(undeclared, Err(ArgvRefusal::Undeclared("unknown".to_owned())));
    }

    #[test]
    fn a_value_keeps_its_text_and_an_integer_looks_like_one() {
        for (json, text) in [
            (r#""plain""#, Some("plain")),
            (r#""\u00e9\n\u0022""#, Some("é\n\"")),
            ("true", Some("true")),
            ("false", Some("false")),
            ("null", None),
            ("42", Some("42")),
            ("42.0", Some("42")),
            ("4.2e1", Some("42")),
            ("42E+0", Some("42")),
            ("420e-1", Some("42")),
            ("1e3", Some("1000")),
            ("-7.00", Some("-7")),
            ("-0", Some("0")),
            ("0.0", Some("0")),
            ("0e5", Some("0")),
            ("1.50", Some("1.5")),
            ("0.5e1", Some("5")),
            ("15e-1", Some("1.5")),
            ("1e-400", Some("0")),
            ("-0.0", Some("0")),
            ("-1e-400", Some("0")),
            ("1e-7", Some("1e-7")),
            ("200.00000000000000001", Some("200")),
            ("0.99999999999999999999", Some("1")),
            ("9007199254740993.0", Some("9007199254740992")),
            ("9007199254740993", Some("9007199254740993")),
            ("18446744073709551615", Some("18446744073709551615")),
            ("-9223372036854775808", Some("-9223372036854775808")),
            ("12e18", Some("12000000000000000000")),
            ("1e300", Some("1e300")),
            ("12345678901234567890123", Some("12345678901234567890123")),
            ("0.1000000000000000055511151231257827", Some("0.1")),
            (r#"[ 1.50, "a b" , {"k" : null} ]"#, Some(r#"[1.50,"a b",{"k":null}]"#)),
            ("{}", Some("{}")),
        ] {
            let raw = RawJson::new(Bytes::from(json.to_owned()), &JsonLimits::default()).unwrap();
            assert_eq!(text_of(&raw).as_deref(), text, "{json}");
            let default = Json::parse(json.as_bytes(), &JsonLimits::default()).unwrap();
            assert_eq!(text_of_default(&default).as_deref(), text, "default {json}");
        }
    }
}
