//! What a program reads on its standard input: the text of one argument, or all arguments as JSON.
//!
//! Promises: a value that the caller sent goes on with the characters it was sent with, numbers keep
//! their digits; a path goes on as it was confined, never as it was sent.

use std::fmt::Write as _;

use super::argv::Values;
use crate::protocol::invoke::Arguments;
use crate::surface::declaration::{Argument, ArgumentKind, Feed};

/// The bytes; `None` where the one argument has no value.
pub(super) fn render(feed: &Feed, given: &Arguments, declared: &[Argument], values: &Values) -> Option<Vec<u8>> {
    match feed {
        Feed::Argument(name) => values.get(name)?.text.clone().map(String::into_bytes),
        Feed::Arguments => Some(object(given, declared, values).into_bytes()),
    }
}

/// The members as sent, then those that have a default and were not sent.
fn object(given: &Arguments, declared: &[Argument], values: &Values) -> String {
    let confined = |name: &str| values.get(name).filter(|value| value.kind == ArgumentKind::Path)?.text.as_deref();
    let sent = given.iter().map(|(name, value)| match confined(name) {
        Some(path) => (name, quoted(path)),
        None => (name, value.as_str().to_owned()),
    });
    let absent = declared.iter().filter(|argument| given.get(&argument.name).is_none());
    let defaults = absent.filter_map(|argument| {
        let text = match confined(&argument.name) {
            Some(path) => quoted(path),
            None => argument.default.as_ref()?.to_text(),
        };
        Some((argument.name.as_str(), text))
    });
    let mut text = String::from("{");
    for (name, value) in sent.chain(defaults) {
        let comma = if text.len() > 1 { "," } else { "" };
        let _ = write!(text, "{comma}{}:{value}", quoted(name));
    }
    text.push('}');
    text
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::argv::Value;
    use super::*;
    use crate::protocol::json::JsonLimits;
    use crate::protocol::{Json, RawJson};

    fn declared(name: &str, kind: ArgumentKind, default: Option<&str>) -> Argument {
        let default = default.map(|text| Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap());
        Argument { name: name.to_owned(), kind, default }
    }

    fn rendered(sent: &str, declared: &[Argument], values: &[(&str, &str, ArgumentKind)]) -> String {
        let given = Arguments::new(RawJson::new(sent.to_owned().into(), &JsonLimits::default()).unwrap()).unwrap();
        let value = |(name, text, kind): &(&str, &str, ArgumentKind)| {
            ((*name).to_owned(), Value { text: Some((*text).to_owned()), kind: *kind })
        };
        let values: Values = values.iter().map(value).collect();
        String::from_utf8(render(&Feed::Arguments, &given, declared, &values).unwrap()).unwrap()
    }

    #[test]
    fn all_arguments_go_on_as_sent_undeclared_ones_too() {
        for text in [
            "{}",
            r#"{"a":9007199254740993,"b":1e3,"c":-0.0,"d":123456789012345678901234567890}"#,
            r#"{"s":"a\u0000b","o":{"x":[1,null]},"n":null}"#,
        ] {
            assert_eq!(rendered(text, &[], &[]), text);
        }
    }

    #[test]
    fn a_default_follows_what_was_sent() {
        let count = [declared("count", ArgumentKind::Value, Some("20"))];
        let value = [("count", "20", ArgumentKind::Value)];
        assert_eq!(rendered(r#"{"a":1}"#, &count, &value), r#"{"a":1,"count":20}"#);
        assert_eq!(rendered(r#"{"count":5}"#, &count, &[]), r#"{"count":5}"#);
    }

    #[test]
    fn a_path_goes_on_as_it_was_confined() {
        let paths = [declared("p", ArgumentKind::Path, None), declared("q", ArgumentKind::Path, Some(r#""x""#))];
        let values = [("p", "../a\"b", ArgumentKind::Path), ("q", "../x", ArgumentKind::Path)];
        assert_eq!(rendered(r#"{"p":"a\"b"}"#, &paths, &values), r#"{"p":"../a\"b","q":"../x"}"#);
    }
}
