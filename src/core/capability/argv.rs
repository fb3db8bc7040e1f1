//! From the arguments of a call to the argument vector of a capability: one flag, one value, never text for a shell.
//!
//! Promises: no value becomes an option; numbers keep the digits they were sent with; nothing that no system call can
//! carry gets as far as one. Knows no manifest but what is said of standard input. Used by the runner.

use std::collections::HashSet;

use crate::protocol::json::{JsonLimits, Kind};
use crate::protocol::{Json, RawJson};
use crate::surface::manifest::ArgvStyle;

/// Longest element of an argument vector that Linux takes, with the NUL that ends it.
const ELEMENT_BYTES: usize = 128 * 1024;

/// An argument vector, and what is to be read on standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The elements, the action first.
    pub argv: Vec<String>,
    /// What is fed to the program; nothing if absent.
    pub input: Option<Vec<u8>>,
}

/// Why arguments make no vector. The texts are for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadArgument {
    /// The name cannot be a flag.
    #[error(
        "argument name {0:?} cannot be a flag: it has to begin with a letter and go on with letters, digits, \"_\", \".\" or \"-\""
    )]
    Name(String),
    /// The name stands twice.
    #[error("argument {0:?} is given twice: give it once")]
    Twice(String),
    /// No system call can carry it.
    #[error("argument {0:?} contains a NUL character: give a value without it")]
    Nul(String),
    /// Too long for an argument vector, and the capability reads it nowhere else.
    #[error(
        "argument {name:?} is {bytes} bytes long, more than the {ELEMENT_BYTES} that one argument may have: give a shorter value, or the path of a file if the capability takes one"
    )]
    TooLong {
        /// The argument.
        name: String,
        /// Its length as rendered.
        bytes: usize,
    },
    /// Standard input is one stream.
    #[error(
        "arguments {0:?} and {1:?} are both too long for an argument vector, and only one can be fed: give one of them shorter"
    )]
    TwoFed(String, String),
}

/// Renders arguments in the order in which they were sent. `fed` says whether a value may be fed where it does not fit.
pub fn render<'a>(
    action: Option<&str>,
    arguments: impl IntoIterator<Item = (&'a str, &'a RawJson)>,
    style: ArgvStyle,
    fed: impl Fn(&str) -> bool,
) -> Result<Rendered, BadArgument> {
    let mut rendered = Rendered { argv: action.map(str::to_owned).into_iter().collect(), input: None };
    let mut fed_already: Option<&str> = None;
    let mut seen = HashSet::new();
    for (name, value) in arguments {
        if !is_flag(name) {
            return Err(BadArgument::Name(name.to_owned()));
        }
        if !seen.insert(name) {
            return Err(BadArgument::Twice(name.to_owned()));
        }
        let flag = format!("--{name}");
        let text = match value.kind() {
            Kind::Null => continue,
            Kind::Bool => {
                rendered.argv.extend((value.as_str() == "true").then_some(flag));
                continue;
            }
            Kind::String => value.as_text().unwrap_or_default(),
            Kind::Number => value.as_str().to_owned(),
            Kind::Array | Kind::Object => compact(value),
        };
        if text.contains('\0') {
            return Err(BadArgument::Nul(name.to_owned()));
        }
        let joined = text.starts_with('-') || (value.kind() == Kind::String && style == ArgvStyle::Eq);
        let length = if joined { flag.len() + 1 + text.len() } else { text.len() };
        // What begins with "@" would be a reference to a capability that knows references.
        let refers = value.kind() == Kind::String && text.starts_with('@');
        if fed(name) && (length >= ELEMENT_BYTES || refers) {
            if let Some(first) = fed_already.replace(name) {
                return Err(BadArgument::TwoFed(first.to_owned(), name.to_owned()));
            }
            rendered.argv.extend(match style {
                ArgvStyle::Eq => vec![format!("{flag}=@-")],
                ArgvStyle::Space => vec![flag, "@-".to_owned()],
            });
            rendered.input = Some(text.into_bytes());
        } else if length >= ELEMENT_BYTES {
            return Err(BadArgument::TooLong { name: name.to_owned(), bytes: length });
        } else if joined {
            rendered.argv.push(format!("{flag}={text}"));
        } else {
            rendered.argv.extend([flag, text]);
        }
    }
    Ok(rendered)
}

/// Whether a name can stand behind two dashes and mean itself: `^[A-Za-z][A-Za-z0-9_.-]*$`.
pub fn is_flag(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// The value without the white space it was sent with; numbers as sent.
fn compact(value: &RawJson) -> String {
    // It passed the same limits when it arrived.
    Json::parse(value.as_bytes(), &JsonLimits::default())
        .map_or_else(|_| value.as_str().to_owned(), |json| json.to_text())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn rendered(arguments: &str, fed: &[&str]) -> Result<Rendered, BadArgument> {
        styled(arguments, ArgvStyle::Eq, fed)
    }

    fn styled(arguments: &str, style: ArgvStyle, fed: &[&str]) -> Result<Rendered, BadArgument> {
        let arguments = RawJson::new(Bytes::copy_from_slice(arguments.as_bytes()), &JsonLimits::default()).unwrap();
        let members = arguments.members().unwrap();
        render(Some("act"), members.iter().map(|(name, value)| (&**name, value)), style, |name| fed.contains(&name))
    }

    fn argv(arguments: &str) -> Vec<String> {
        let rendered = rendered(arguments, &[]).unwrap();
        assert_eq!((rendered.argv[0].as_str(), rendered.input), ("act", None));
        rendered.argv[1..].to_vec()
    }

    #[test]
    fn a_number_keeps_the_token_it_was_sent_as() {
        assert_eq!(argv(r#"{"k":3}"#), ["--k", "3"]);
        assert_eq!(argv(r#"{"k":1.0}"#), ["--k", "1.0"]);
        assert_eq!(argv(r#"{"k":1e16}"#), ["--k", "1e16"]);
        assert_eq!(argv(r#"{"k":18446744073709551617}"#), ["--k", "18446744073709551617"]);
    }

    #[test]
    fn null_is_left_out() {
        assert_eq!(argv(r#"{"k":null}"#), [""; 0]);
    }

    #[test]
    fn a_negative_number_is_one_element_with_its_flag() {
        assert_eq!(argv(r#"{"k":-5}"#), ["--k=-5"]);
        assert_eq!(argv(r#"{"k":-0}"#), ["--k=-0"]);
    }

    #[test]
    fn a_text_that_looks_like_an_option_stays_a_value() {
        assert_eq!(argv(r#"{"k":"--evil"}"#), ["--k=--evil"]);
        assert_eq!(argv(r#"{"k":"-o/etc/x"}"#), ["--k=-o/etc/x"]);
        assert_eq!(argv(r#"{"k":"a=b --c"}"#), ["--k=a=b --c"]);
        assert_eq!(argv(r#"{"k":""}"#), ["--k="]);
    }

    #[test]
    fn true_is_a_flag_alone_and_false_is_nothing() {
        assert_eq!(argv(r#"{"a":true,"b":false,"c":true}"#), ["--a", "--c"]);
    }

    #[test]
    fn a_list_or_an_object_is_compact_json_in_one_element() {
        assert_eq!(
            argv(r#"{"k":{"b": [1, 2.50, "é\u0000"],  "a": null}}"#),
            ["--k", "{\"b\":[1,2.50,\"é\\u0000\"],\"a\":null}"]
        );
        assert_eq!(argv(r#"{"k":[]}"#), ["--k", "[]"]);
    }

    #[test]
    fn the_order_is_that_of_the_call_and_without_an_action_flags_come_first() {
        assert_eq!(argv(r#"{"z":1,"a":"x","m":true}"#), ["--z", "1", "--a=x", "--m"]);
        let value = RawJson::encode(&1);
        assert_eq!(render(None, [("k", &value)], ArgvStyle::Eq, |_| false).unwrap().argv, ["--k", "1"]);
    }

    #[test]
    fn shell_text_arrives_as_it_was_sent() {
        for text in ["; rm -rf x", "$(id)", "`id`", "a\nb", "%PATH%", "'\"", "\\"] {
            let call = serde_json::json!({ "k": text }).to_string();
            assert_eq!(argv(&call), [format!("--k={text}")]);
        }
    }

    #[test]
    fn a_name_that_is_no_flag_is_refused() {
        for name in ["", "-k", "--k", "k v", "k=v", "1k", "é", "k\u{0}", "_k", "k/../v"] {
            let call = serde_json::json!({ name: 1 }).to_string();
            assert_eq!(rendered(&call, &[]), Err(BadArgument::Name(name.to_owned())));
        }
        for name in ["k", "max-results", "max_results", "K.v2", "k-"] {
            assert!(is_flag(name));
        }
    }

    #[test]
    fn a_nul_is_refused_before_any_start() {
        assert_eq!(rendered("{\"k\":\"a\\u0000b\"}", &[]), Err(BadArgument::Nul("k".to_owned())));
    }

    #[test]
    fn a_value_that_no_vector_holds_is_fed_where_that_is_declared_and_refused_otherwise() {
        let text = "x".repeat(ELEMENT_BYTES - "--k=".len());
        let call = serde_json::json!({ "k": text }).to_string();
        assert!(matches!(rendered(&call, &[]), Err(BadArgument::TooLong { bytes: ELEMENT_BYTES, .. })));
        let fed = rendered(&call, &["k"]).unwrap();
        assert_eq!(fed.argv, ["act", "--k=@-"]);
        assert_eq!(fed.input, Some(text.clone().into_bytes()));
        let shorter = serde_json::json!({ "k": text.get(1..) }).to_string();
        assert_eq!(rendered(&shorter, &["k"]).unwrap().input, None);
        assert_eq!(rendered(&shorter, &[]).unwrap().argv[1].len(), ELEMENT_BYTES - 1);
        let two = serde_json::json!({ "k": text, "l": text }).to_string();
        assert_eq!(rendered(&two, &["k", "l"]), Err(BadArgument::TwoFed("k".into(), "l".into())));
    }

    #[test]
    fn a_program_that_knows_no_equals_sign_gets_two_elements_but_where_a_value_would_be_an_option() {
        let argv = |arguments: &str| styled(arguments, ArgvStyle::Space, &["long"]).unwrap().argv[1..].to_vec();
        assert_eq!(argv(r#"{"k":"a b","e":"","n":3}"#), ["--k", "a b", "--e", "", "--n", "3"]);
        assert_eq!(argv(r#"{"k":"--evil","m":"-","n":-5}"#), ["--k=--evil", "--m=-", "--n=-5"]);
        assert_eq!(argv(r#"{"long":"@x","b":true,"l":[1]}"#), ["--long", "@-", "--b", "--l", "[1]"]);
        let longest = "x".repeat(ELEMENT_BYTES - 1);
        let call = serde_json::json!({ "k": longest }).to_string();
        assert_eq!(argv(&call)[1].len(), longest.len());
        assert!(styled(&call.replace("\"k\":\"", "\"k\":\"x"), ArgvStyle::Space, &[]).is_err());
    }

    #[test]
    fn a_text_that_reads_like_a_reference_is_fed_to_whoever_knows_references() {
        let call = r#"{"k":"@/etc/passwd"}"#;
        let fed = rendered(call, &["k"]).unwrap();
        assert_eq!((fed.argv[1].as_str(), fed.input.as_deref()), ("--k=@-", Some(&b"@/etc/passwd"[..])));
        assert_eq!(argv(call), ["--k=@/etc/passwd"]);
    }
}
