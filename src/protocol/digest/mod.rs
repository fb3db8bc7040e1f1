//! The tools digest: canonical JSON and its hash, byte for byte.
//!
//! Promises: the digest is `sha256:` and the hex SHA-256 of the canonical text of the `tools`
//! array as delivered. Two canonical forms are in use in the field, sorted keys as CPython writes
//! them and RFC 8785; a definition on which they differ is refused before it is published, so
//! anyone may recompute our digest with either. A foreign list may differ: then both are computed.

pub mod tool;

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::json::Json;

/// A SHA-256, written `sha256:` and 64 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Digest {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::str::FromStr for Digest {
    type Err = NotADigest;
    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let hex = text
            .strip_prefix("sha256:")
            .filter(|h| h.len() == 64 && h.bytes().all(|b| b.is_ascii_hexdigit()))
            .ok_or(NotADigest)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| NotADigest)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| NotADigest)?;
        }
        Ok(Self(bytes))
    }
}

/// The text is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a digest: expected \"sha256:\" and 64 hex digits")]
pub struct NotADigest;

/// The digest of bytes.
pub fn of_bytes(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// The digest of a value on which both canonical forms agree ([`not_portable`] finds nothing).
pub fn of(value: &Json) -> Digest {
    of_bytes(sorted_keys(value).unwrap_or_default().as_bytes())
}

/// The digests of a list that may not be ours, one for each canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// Sorted keys by code point, numbers as CPython writes them; `None` where that form has none.
    pub sorted_keys: Option<Digest>,
    /// RFC 8785.
    pub rfc8785: Option<Digest>,
}

/// Computes both forms.
pub fn of_foreign(value: &Json) -> Foreign {
    Foreign {
        sorted_keys: sorted_keys(value).map(|text| of_bytes(text.as_bytes())),
        rfc8785: rfc8785(value).map(|text| of_bytes(text.as_bytes())),
    }
}

/// The sorted-key form: `json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)` of CPython.
///
/// `None` for a number that overflows, which has no JSON text there.
pub fn sorted_keys(value: &Json) -> Option<String> {
    let mut out = String::new();
    write_sorted(value, &mut out)?;
    Some(out)
}

/// RFC 8785: keys by UTF-16 code unit, numbers as ECMAScript writes doubles. `None` for a number that overflows.
pub fn rfc8785(value: &Json) -> Option<String> {
    serde_json_canonicalizer::to_string(&serde_json::from_str::<serde_json::Value>(&value.to_text()).ok()?).ok()
}

fn write_sorted(value: &Json, out: &mut String) -> Option<()> {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(text) => out.push_str(&python_number(text)?),
        Json::String(text) => write_string(text, out),
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_sorted(item, out)?;
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            out.push('{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write_sorted(value, out)?;
            }
            out.push('}');
        }
    }
    Some(())
}

/// Both forms write strings alike: only what must be escaped is, `/`, U+007F and all non-ASCII stay.
fn write_string(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// A number as CPython's `json` reads it and writes it again.
pub(super) fn python_number(text: &str) -> Option<String> {
    if !text.contains(['.', 'e', 'E']) {
        return Some(if text == "-0" { "0".to_owned() } else { text.to_owned() });
    }
    let value: f64 = text.parse().ok().filter(|v: &f64| v.is_finite())?;
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    if (-4..16).contains(&exponent) {
        // The shortest digits that read back, never in exponent form: `{:?}` adds the `.0`.
        let fixed = format!("{value}");
        return Some(if fixed.contains('.') { fixed } else { format!("{fixed}.0") });
    }
    Some(format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()))
}

/// Largest integer that every reader holds exactly.
const EXACT: i64 = (1 << 53) - 1;

/// Where the canonical forms would differ, or readers could: JSON pointer and problem.
pub fn not_portable(value: &Json) -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found
}

fn walk(value: &Json, pointer: &str, found: &mut Vec<(String, String)>) {
    match value {
        Json::Null | Json::Bool(_) | Json::String(_) => {}
        Json::Number(text) => {
            let exact = text.parse::<i64>().ok().filter(|n| (-EXACT..=EXACT).contains(n) && &**text != "-0");
            if exact.is_none() {
                let problem =
                    format!("{text} is not written alike by every form of JSON: only integers within ±(2^53-1) are");
                found.push((pointer.to_owned(), problem));
            }
        }
        Json::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{pointer}/{index}"), found);
            }
        }
        Json::Object(members) => {
            let mut by_point: Vec<&str> = members.iter().map(|(key, _)| key.as_str()).collect();
            let mut by_unit = by_point.clone();
            by_point.sort_unstable();
            by_unit.sort_unstable_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            if by_point != by_unit {
                found.push((
                    pointer.to_owned(),
                    "its keys beyond U+FFFF are ordered differently by the two canonical forms".to_owned(),
                ));
            }
            for (key, value) in members {
                walk(value, &format!("{pointer}/{}", escape_pointer(key)), found);
            }
        }
    }
}

/// A key as one step of a JSON pointer (RFC 6901).
pub fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::json::JsonLimits;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap()
    }

    #[test]
    fn the_sorted_key_form_is_cpythons_for_floats_wide_integers_and_astral_keys() {
        let table = [
            ("[0,-0,1,9007199254740993,18446744073709551616,-1]", "[0,0,1,9007199254740993,18446744073709551616,-1]"),
            (
                "[1.0,0.1,1e5,1e16,1e22,1e-5,0.0001,-0.0,1.5,100000000000000000.0,5e-324,1.7976931348623157e308]",
                "[1.0,0.1,100000.0,1e+16,1e+22,1e-05,0.0001,-0.0,1.5,1e+17,5e-324,1.7976931348623157e+308]",
            ),
            ("{\"\\uffee\":1,\"\\ud83d\\ude00\":2,\"a\":3}", "{\"a\":3,\"\u{ffee}\":1,\"\u{1f600}\":2}"),
            (
                r#"["\"\\\/\b\f\n\r\t\u0000\u001f\u007f\u00e9\u2028\u2029\ud83d\ude00"]"#,
                "[\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}é\u{2028}\u{2029}😀\"]",
            ),
        ];
        for (text, canonical) in table {
            assert_eq!(sorted_keys(&json(text)).as_deref(), Some(canonical));
        }
        assert_eq!(sorted_keys(&Json::Number("1e999".into())), None);
    }

    #[test]
    fn known_digests_hold() {
        let table = [
            ("[]", "sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"),
            (
                r#"[{"name":"b"},{"name":"a"}]"#,
                "sha256:1e0dbffef14d24bea64cec13ae49d7cf36ec350166971f637684884ceb5d05d6",
            ),
            (
                r#"[ { "x" : [ 1 , { "y" : "  sp  " } ] } ]"#,
                "sha256:1a95c5352538ea3a156177a98a2b296d8f2e8cfccedd0a4e9af65fbcf4f8ff3c",
            ),
        ];
        for (text, digest) in table {
            assert_eq!(of(&json(text)).to_string(), digest);
            assert_eq!(digest.parse::<Digest>().unwrap(), of(&json(text)));
        }
        for none in
            ["sha256:00".to_owned(), format!("sha256:{}", "+f".repeat(32)), format!("sha256:{}", "é".repeat(32))]
        {
            assert_eq!(none.parse::<Digest>(), Err(NotADigest), "{none}");
        }
    }

    #[test]
    fn key_order_white_space_and_escaping_do_not_count_but_tool_order_does() {
        let same = [r#"[{"name":"a","x":1}]"#, r#"[{ "x":1, "name":"\u0061" }]"#];
        assert_eq!(of(&json(same[0])), of(&json(same[1])));
        assert_ne!(of(&json(r#"[{"name":"a"},{"name":"b"}]"#)), of(&json(r#"[{"name":"b"},{"name":"a"}]"#)));
    }

    #[test]
    fn what_the_two_forms_write_differently_is_found_and_nothing_else() {
        for text in ["1.0", "0.5", "1e2", "9007199254740992", "-9007199254740992", "-0", "{\"\u{ffee}\":1,\"😀\":2}"]
        {
            assert_eq!(not_portable(&json(text)).len(), 1, "{text}");
        }
        for text in ["9007199254740991", "-1", "0", "{\"é\":1,\"z\":2}", "{\"😀\":1}"] {
            let value = json(text);
            assert!(not_portable(&value).is_empty(), "{text}");
            assert_eq!(sorted_keys(&value), rfc8785(&value), "{text}");
        }
        assert_eq!(not_portable(&json(r#"{"a/b":[{"~":1.5}]}"#))[0].0, "/a~1b/0/~0");
    }

    proptest::proptest! {
        #[test]
        fn both_forms_agree_on_whatever_is_portable(keys in proptest::collection::btree_set("[a-z\u{e0}-\u{2fff}]{1,4}", 0..6), n in -EXACT..EXACT) {
            let value = Json::Object(keys.into_iter().map(|k| (k.clone(), Json::Array(vec![Json::String(k), Json::Number(n.to_string().into())]))).collect());
            proptest::prop_assert!(not_portable(&value).is_empty());
            proptest::prop_assert_eq!(sorted_keys(&value), rfc8785(&value));
        }
    }
}
