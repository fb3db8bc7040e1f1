//! The HTTP headers that mirror a modern request's body, and their check against it.
//!
//! Promises: the body is the truth; a header that is missing, malformed, repeated or different is
//! a fault before anything is dispatched, so that whoever routed by a header routed rightly
//! (2026-07-28 transports/streamable-http, Server Validation, Custom Headers).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::digest::escape_pointer;
use super::fault::Fault;
use super::invoke::Arguments;
use super::json::{Json, Kind, RawJson, shortened};
use super::limits::ECHOED_CHARACTERS;
use super::schema::{self, Place};

/// Names the revision.
pub const VERSION: &str = "mcp-protocol-version";
/// Mirrors the method.
pub const METHOD: &str = "mcp-method";
/// Mirrors the name of what is called.
pub const NAME: &str = "mcp-name";
/// Begins the name of a header that mirrors one argument.
pub const PARAM_PREFIX: &str = "mcp-param-";

/// The headers of one HTTP request that the protocol reads: names in lower case, values as they came.
#[derive(Debug, Clone, Default)]
pub struct Mirror<'h> {
    version: Sent<'h>,
    method: Sent<'h>,
    name: Sent<'h>,
    /// Those that mirror arguments.
    arguments: Vec<(&'h str, &'h [u8])>,
}

/// How often a header was sent.
#[derive(Debug, Clone, Copy, Default)]
enum Sent<'h> {
    #[default]
    Never,
    Once(&'h [u8]),
    Twice,
}

impl<'h> Sent<'h> {
    fn add(&mut self, value: &'h [u8]) {
        *self = if matches!(self, Self::Never) { Self::Once(value) } else { Self::Twice };
    }

    fn read(self, decode: impl FnOnce(&'h [u8]) -> Result<Cow<'h, str>, &'static str>) -> Said<'h> {
        match self {
            Self::Never => Said::Absent,
            // RFC 9110 5.5: white space around a value is not part of it.
            Self::Once(value) => decode(trim(value)).map_or_else(Said::Unclear, Said::Text),
            Self::Twice => Said::Unclear("it stands twice"),
        }
    }
}

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said<'h> {
    /// Nothing.
    Absent,
    /// This.
    Text(Cow<'h, str>),
    /// Something unreadable, or two things.
    Unclear(&'static str),
}

impl<'h> Mirror<'h> {
    /// Keeps those of a request's headers that matter here.
    pub fn new(headers: impl Iterator<Item = (&'h str, &'h [u8])>) -> Self {
        let mut mirror = Self::default();
        for (name, value) in headers {
            match name {
                VERSION => mirror.version.add(value),
                METHOD => mirror.method.add(value),
                NAME => mirror.name.add(value),
                _ if name.starts_with(PARAM_PREFIX) => mirror.arguments.push((name, value)),
                _ => {}
            }
        }
        mirror
    }

    /// The revision's header.
    pub fn version(&self) -> Said<'h> {
        self.version.read(plain)
    }

    fn argument(&self, header: &str) -> Said<'h> {
        let mut sent = Sent::Never;
        self.arguments.iter().filter(|(name, _)| *name == header).for_each(|(_, value)| sent.add(value));
        sent.read(decode)
    }

    /// Checks the revision's header against the body's claim.
    pub fn check_version(&self, claimed: &str) -> Result<(), Fault> {
        same(VERSION, self.version(), claimed)
    }

    /// Checks the mirrored method.
    pub fn check_method(&self, method: &str) -> Result<(), Fault> {
        same(METHOD, self.method.read(plain), method)
    }

    /// Whether the mirrored method is there at all.
    pub fn has_method(&self) -> bool {
        !matches!(self.method, Sent::Never)
    }

    /// Checks that a mirrored name can be read, whatever the method makes of it.
    pub fn check_name_readable(&self) -> Result<(), Fault> {
        match self.name.read(decode) {
            Said::Unclear(why) => Err(mismatch(NAME, why)),
            Said::Absent | Said::Text(_) => Ok(()),
        }
    }

    /// Checks the mirrored name; a method that mirrors none may still carry a right one.
    pub fn check_name(&self, name: &str) -> Result<(), Fault> {
        same(NAME, self.name.read(decode), name)
    }

    /// Checks every mirrored argument.
    pub fn check_arguments(&self, plan: &HeaderPlan, arguments: &Arguments) -> Result<(), Fault> {
        plan.0.iter().try_for_each(|entry| {
            let header = format!("{PARAM_PREFIX}{}", entry.name);
            let said = self.argument(&header);
            match value_at(arguments, &entry.path) {
                None => match said {
                    Said::Absent => Ok(()),
                    _ => Err(mismatch(&header, "the body has no such argument, so a router must not see one")),
                },
                Some(value) => check_argument(&header, said, &value),
            }
        })
    }
}

fn value_at(arguments: &Arguments, path: &[String]) -> Option<RawJson> {
    let (first, rest) = path.split_first()?;
    let mut value = arguments.get(first)?.clone();
    for step in rest {
        value = value.members()?.into_iter().find(|(key, _)| **key == **step)?.1;
    }
    (value.kind() != Kind::Null).then_some(value)
}

/// Integers are compared as numbers and texts as bytes (2026-07-28 transports/streamable-http, Value Encoding).
fn check_argument(header: &str, said: Said<'_>, value: &RawJson) -> Result<(), Fault> {
    match value.kind() {
        Kind::String => same(header, said, &value.as_text().unwrap_or_default()),
        Kind::Bool => same(header, said, value.as_str()),
        Kind::Number => {
            let Some(number) = exact_integer(value.as_str()) else {
                let problem = format!(
                    "{} mirrors a number that is no integer within ±(2^53-1)",
                    shortened(header, ECHOED_CHARACTERS)
                );
                return Err(Fault::InvalidParams(problem));
            };
            match said {
                Said::Text(text) if exact_integer(&text) == Some(number) => Ok(()),
                Said::Text(_) => Err(mismatch(header, "it differs from the body")),
                other => same(header, other, ""),
            }
        }
        // The schema refuses these below; they have no text form to compare.
        Kind::Array | Kind::Object | Kind::Null => Ok(()),
    }
}

/// The integer that a decimal text stands for, `42.0` included, if every reader holds it exactly.
fn exact_integer(text: &str) -> Option<i64> {
    const EXACT: i64 = (1 << 53) - 1;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let decimal = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    if !decimal(digits) || !decimal(fraction) || fraction.bytes().any(|b| b != b'0') {
        return None;
    }
    whole.parse().ok().filter(|n| (-EXACT..=EXACT).contains(n))
}

fn same(header: &str, said: Said<'_>, expected: &str) -> Result<(), Fault> {
    match said {
        Said::Text(text) if text == expected => Ok(()),
        Said::Text(_) => Err(mismatch(header, "it differs from the body")),
        Said::Absent => Err(mismatch(header, "it is missing")),
        Said::Unclear(why) => Err(mismatch(header, why)),
    }
}

fn mismatch(header: &str, problem: &str) -> Fault {
    let header = shortened(header, ECHOED_CHARACTERS);
    Fault::HeaderMismatch { problem: format!("{header}: {problem}"), header }
}

fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// A value as it stands, which needs no other form.
fn plain(value: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    std::str::from_utf8(value).map(Cow::Borrowed).map_err(|_| "it is not text")
}

const OPEN: &[u8] = b"=?base64?";
const CLOSE: &[u8] = b"?=";

/// Decodes a trimmed value: plain, or between the base64 markers, which are case-sensitive.
fn decode(value: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    if let Some(encoded) = value.strip_prefix(OPEN).and_then(|v| v.strip_suffix(CLOSE)) {
        let bytes = STANDARD.decode(encoded).map_err(|_| "its base64 is not valid")?;
        return String::from_utf8(bytes).map(Cow::Owned).map_err(|_| "it does not decode to UTF-8");
    }
    if value.iter().any(|b| !matches!(b, 0x20..=0x7e | b'\t')) {
        return Err("it has characters that need the base64 form");
    }
    plain(value)
}

/// A value as a client sends it in a header: plain where that reads back, else base64.
pub fn encode(text: &str) -> String {
    let plain = decode(trim(text.as_bytes())).is_ok_and(|read| read == text);
    if plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// The arguments of one tool that requests mirror in headers, found when the tool is published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderPlan(Vec<PlanEntry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct PlanEntry {
    /// The header's name after the prefix, in lower case.
    name: String,
    /// The property's path from the root.
    path: Vec<String>,
}

const ANNOTATION: &str = "x-mcp-header";

impl HeaderPlan {
    /// Reads the annotations of an `inputSchema`; gives every misplaced or malformed one by pointer.
    pub fn read(schema: &Json) -> Result<Self, Vec<(String, String)>> {
        let mut reachable = Vec::new();
        collect(schema, "", &mut Vec::new(), &mut reachable);
        let mut problems = Vec::new();
        schema::visit(schema, "", 0, &mut |pointer, _, place, subschema| {
            let annotated = subschema.get(ANNOTATION).is_some();
            if annotated && (place == Place::Root || !reachable.iter().any(|(p, _, _)| p == pointer)) {
                problems.push((
                    format!("{pointer}/{ANNOTATION}"),
                    "x-mcp-header is not reached through properties alone".to_owned(),
                ));
            }
            true
        });
        let mut entries: Vec<PlanEntry> = Vec::new();
        for (pointer, path, subschema) in reachable {
            let Some(annotation) = subschema.get(ANNOTATION) else { continue };
            let at = format!("{pointer}/{ANNOTATION}");
            let name = annotation.as_str().filter(|n| is_token(n)).map(str::to_ascii_lowercase);
            let typed = matches!(subschema.get("type").and_then(Json::as_str), Some("string" | "integer" | "boolean"));
            match name {
                None => problems.push((at, "x-mcp-header must be a token of RFC 9110".to_owned())),
                Some(name) if entries.iter().any(|e| e.name == name) => {
                    problems.push((at, format!("x-mcp-header {name:?} is used twice")));
                }
                Some(_) if !typed => {
                    problems.push((at, "x-mcp-header needs a property of type string, integer or boolean".to_owned()));
                }
                Some(name) => entries.push(PlanEntry { name, path }),
            }
        }
        if problems.is_empty() { Ok(Self(entries)) } else { Err(problems) }
    }

    /// The headers a client must send for a call: names and values.
    pub fn headers(&self, arguments: &Arguments) -> Vec<(String, String)> {
        let text = |value: &RawJson| value.as_text().unwrap_or_else(|| value.as_str().to_owned());
        let entries = self.0.iter();
        entries
            .filter_map(|e| Some((format!("{PARAM_PREFIX}{}", e.name), encode(&text(&value_at(arguments, &e.path)?)))))
            .collect()
    }
}

/// Pointer, path and schema of a property that `properties` alone lead to.
type Reached<'s> = (String, Vec<String>, &'s Json);

fn collect<'s>(schema: &'s Json, pointer: &str, path: &mut Vec<String>, found: &mut Vec<Reached<'s>>) {
    for (name, property) in schema.get("properties").and_then(Json::as_object).unwrap_or_default() {
        let below = format!("{pointer}/properties/{}", escape_pointer(name));
        path.push(name.clone());
        found.push((below.clone(), path.clone(), property));
        collect(property, &below, path, found);
        path.pop();
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::protocol::json::JsonLimits;

    fn json(text: &str) -> Json {
        Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap()
    }

    fn arguments(text: &str) -> Arguments {
        Arguments::new(RawJson::new(Bytes::copy_from_slice(text.as_bytes()), &JsonLimits::default()).unwrap()).unwrap()
    }

    fn mirror<'h>(headers: &[(&'h str, &'h str)]) -> Mirror<'h> {
        Mirror::new(headers.iter().map(|(n, v)| (*n, v.as_bytes())))
    }

    #[test]
    fn the_specifications_vectors_encode_and_decode() {
        let table = [
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("plain", "plain"),
            ("", ""),
        ];
        for (text, header) in table {
            assert_eq!(encode(text), header);
            assert_eq!(decode(header.as_bytes()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn only_both_markers_together_mean_base64_and_bad_base64_is_refused() {
        for literal in ["=?base64?SGVsbG8=", "SGVsbG8=?=", "=?BASE64?SGVsbG8=?="] {
            assert_eq!(decode(literal.as_bytes()).as_deref(), Ok(literal));
        }
        for bad in ["=?base64?SGVsbG8?=", "=?base64?SGVs bG8=?=", "=?base64?SGVs-G8=?=", "=?base64?/w==?="] {
            assert!(decode(bad.as_bytes()).is_err(), "{bad}");
        }
        for raw in [&b"caf\xc3\xa9"[..], b"a\0b", b"a\x7fb"] {
            assert!(decode(raw).is_err());
        }
        assert_eq!(decode(b"a\tb").as_deref(), Ok("a\tb"));
    }

    #[test]
    fn names_are_trimmed_compared_exactly_and_never_repeated() {
        assert!(mirror(&[("mcp-name", "  add\t")]).check_name("add").is_ok());
        assert!(mirror(&[("mcp-name", "=?base64?YWRk?=")]).check_name("add").is_ok());
        for bad in [
            &[("mcp-name", "Add")][..],
            &[],
            &[("mcp-name", "add"), ("mcp-name", "add")],
            &[("mcp-name", "=?base64?YWRk=?=")],
        ] {
            let fault = mirror(bad).check_name("add").expect_err("mismatch");
            assert_eq!(fault.code().number(), -32020);
        }
        assert!(mirror(&[("mcp-method", "TOOLS/LIST")]).check_method("tools/list").is_err());
    }

    #[test]
    fn arguments_are_compared_by_their_type() {
        let plan = HeaderPlan::read(&json(
            r#"{"properties":{"r":{"type":"string","x-mcp-header":"Region"},"n":{"properties":{"i":{"type":"integer","x-mcp-header":"Count"}}},"b":{"type":"boolean","x-mcp-header":"Flag"}}}"#,
        ))
        .unwrap();
        let check = |headers: &[(&str, &str)], args: &str| {
            mirror(headers).check_arguments(&plan, &arguments(args)).map_err(|f| f.code().number())
        };
        assert_eq!(check(&[], "{}"), Ok(()));
        assert_eq!(check(&[], r#"{"r":null}"#), Ok(()));
        assert_eq!(check(&[("mcp-param-region", "x")], r#"{"r":null}"#), Err(-32020));
        assert_eq!(check(&[], r#"{"r":"eu"}"#), Err(-32020));
        assert_eq!(check(&[("mcp-param-region", "eu")], r#"{"r":"eu"}"#), Ok(()));
        assert_eq!(check(&[("mcp-param-region", "EU")], r#"{"r":"eu"}"#), Err(-32020));
        for (header, value, outcome) in [
            ("42", "42", Ok(())),
            ("42.0", "42", Ok(())),
            ("42", "42.0", Ok(())),
            ("43", "42", Err(-32020)),
            ("4e1", "40", Err(-32020)),
            ("9007199254740993", "9007199254740993", Err(-32602)),
            ("-5", "-5", Ok(())),
        ] {
            assert_eq!(
                check(&[("mcp-param-count", header)], &format!(r#"{{"n":{{"i":{value}}}}}"#)),
                outcome,
                "{header} {value}"
            );
        }
        assert_eq!(check(&[("mcp-param-flag", "true")], r#"{"b":true}"#), Ok(()));
        assert_eq!(check(&[("mcp-param-flag", "True")], r#"{"b":true}"#), Err(-32020));
        assert_eq!(check(&[("mcp-param-unknown", "x")], "{}"), Ok(()));
    }

    #[test]
    fn a_client_sends_what_the_server_accepts() {
        let plan = HeaderPlan::read(&json(
            r#"{"properties":{"r":{"type":"string","x-mcp-header":"R"},"i":{"type":"integer","x-mcp-header":"I"}}}"#,
        ))
        .unwrap();
        let sent = arguments(r#"{"r":" é ","i":-7}"#);
        let headers = plan.headers(&sent);
        assert!(
            Mirror::new(headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes()))).check_arguments(&plan, &sent).is_ok()
        );
    }

    #[test]
    fn misplaced_and_malformed_annotations_are_found() {
        let table = [
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nb"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":5}}}"#,
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
            r#"{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}"#,
            r#"{"type":"object","x-mcp-header":"A"}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
        ];
        for text in table {
            assert_eq!(HeaderPlan::read(&json(text)).expect_err(text).len(), 1, "{text}");
        }
        assert!(HeaderPlan::read(&json(r#"{"properties":{"x-mcp-header":{"type":"number"}}}"#)).is_ok());
    }
}
