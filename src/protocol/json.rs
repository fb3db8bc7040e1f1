//! Strict JSON: one check for what arrives, one tree that forgets nothing.
//!
//! Promises: a text that passes [`check`] has no duplicate key at any level, no lone surrogate and
//! stays within [`JsonLimits`]; what an inspector in front of us reads is what we run.
//! [`Json`] keeps key order and the exact text of every number, which the digest needs.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{self, DeserializeSeed, Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::members::Text;
use super::scan;

/// Bounds on one JSON text.
#[derive(Debug, Clone, Copy)]
pub struct JsonLimits {
    /// Deepest nesting of arrays and objects.
    pub depth: usize,
    /// Most keys in one object.
    pub keys: usize,
    /// Most items in one array.
    pub items: usize,
}

impl Default for JsonLimits {
    /// The limits on incoming messages: below the parser's own depth of 127, far above any real message.
    fn default() -> Self {
        Self { depth: 64, keys: 10_000, items: 100_000 }
    }
}

/// Why a text is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Not JSON, not UTF-8, or more than one value.
    #[error("not valid JSON: {0}")]
    Syntax(String),
    /// A key stands twice in one object; readers disagree on which counts.
    #[error("duplicate key {0:?}")]
    Duplicate(String),
    /// Nested deeper than allowed.
    #[error("nested deeper than {0} levels")]
    Depth(usize),
    /// An object with more keys than allowed.
    #[error("an object with more than {0} keys")]
    Keys(usize),
    /// An array with more items than allowed.
    #[error("an array with more than {0} items")]
    Items(usize),
}

/// Walks one JSON text without building anything and refuses what [`JsonError`] names.
pub fn check(text: &[u8], limits: &JsonLimits) -> Result<(), JsonError> {
    scan::check(text, limits)
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Cow<'de, str>;
    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = Cow<'de, str>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(v))
    }
    fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(v.to_owned()))
    }
}

/// At most `most` characters of a peer's text, control characters escaped, for use in an error.
pub fn shortened(text: &str, most: usize) -> String {
    let mut out = visible(text.chars().take(most));
    if text.chars().nth(most).is_some() {
        out.push('…');
    }
    out
}

/// Text as a person may see it: control and invisible characters escaped, line ends included.
pub fn visible(text: impl IntoIterator<Item = char>) -> String {
    let mut out = String::new();
    for character in text {
        match character {
            c if c.is_control() || is_invisible(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Characters that change how text around them is shown, or that nobody sees: bidirectional
/// controls, zero-width characters, line separators, tags.
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// What sort of value a JSON text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number
    Number,
    /// A string
    String,
    /// An array
    Array,
    /// An object
    Object,
}

/// One JSON value as text, a slice of the message it came in: shared, never copied.
///
/// The text has passed [`check`], so it is valid UTF-8 and valid JSON.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(Bytes);

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl Kind {
    /// The kind of a text that has passed [`check`], without white space before it.
    pub(super) fn of(text: &[u8]) -> Self {
        match text.first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
        }
    }
}

/// A text without the white space around it: the four characters of RFC 8259, and no form feed.
pub(super) fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] | [rest @ .., b' ' | b'\t' | b'\n' | b'\r'] = text {
        text = rest;
    }
    text
}

impl RawJson {
    /// Checks a text and keeps it.
    pub fn new(text: Bytes, limits: &JsonLimits) -> Result<Self, JsonError> {
        check(&text, limits)?;
        Ok(Self(text.slice_ref(trim(&text))))
    }

    /// The empty object.
    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// Encodes a value of ours; an unencodable one becomes `null`.
    pub fn encode(value: &impl serde::Serialize) -> Self {
        Self(serde_json::to_vec(value).map_or_else(|_| Bytes::from_static(b"null"), Bytes::from))
    }

    /// A part of a text that was checked as a whole.
    pub(super) fn part(whole: &Bytes, part: &RawValue) -> Self {
        Self(whole.slice_ref(part.get().as_bytes()))
    }

    /// A text that was checked, without white space around it.
    pub(super) fn checked(text: Bytes) -> Self {
        Self(text)
    }

    /// The same text in memory of its own.
    #[must_use]
    pub(super) fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, shared.
    pub(super) fn to_bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// The text as a string slice.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("null")
    }

    /// What sort of value this is.
    pub fn kind(&self) -> Kind {
        Kind::of(&self.0)
    }

    /// The value if it is a string.
    pub fn as_text(&self) -> Option<String> {
        (self.kind() == Kind::String).then(|| serde_json::from_slice(&self.0).ok()).flatten()
    }

    /// The value if it is a string, as a slice of the message where it has no escapes.
    pub fn as_words(&self) -> Option<Text> {
        Text::read(&self.0)
    }

    /// Decodes the value.
    pub fn parse<'a, T: de::Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// The members of an object in the order of the text, or `None` for any other kind.
    pub fn members(&self) -> Option<Vec<(Box<str>, RawJson)>> {
        if self.kind() != Kind::Object {
            return None;
        }
        let mut deserializer = serde_json::Deserializer::from_slice(&self.0);
        deserializer.deserialize_map(MembersOf(&self.0)).ok()
    }
}

struct MembersOf<'b>(&'b Bytes);

impl<'de> Visitor<'de> for MembersOf<'_> {
    type Value = Vec<(Box<str>, RawJson)>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = map.next_key_seed(KeySeed)? {
            let value: &'de RawValue = map.next_value()?;
            members.push((Box::from(key.as_ref()), RawJson::part(self.0, value)));
        }
        Ok(members)
    }
}

/// A JSON value with its key order and its numbers exactly as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as its text
    Number(Box<str>),
    /// A string
    String(String),
    /// An array
    Array(Vec<Json>),
    /// An object, keys in the order written, none twice
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads one strict JSON text.
    pub fn parse(text: &[u8], limits: &JsonLimits) -> Result<Self, JsonError> {
        check(text, limits)?;
        Ok(Reader { rest: text }.value())
    }

    /// The member of an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Self::Object(members) => members.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The members of an object.
    pub fn as_object(&self) -> Option<&[(String, Json)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The compact text, keys in their own order.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned())
    }

    /// The value as `serde_json` holds it: key order is lost and wide numbers are rounded.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.to_text()).unwrap_or_default()
    }
}

/// Reads a text that passed [`check`], so that it is JSON and not too deep: one pass, whatever the nesting.
struct Reader<'t> {
    rest: &'t [u8],
}

impl Reader<'_> {
    fn value(&mut self) -> Json {
        match self.peek() {
            b'{' => {
                let mut members = Vec::new();
                while self.next_within(b'}') {
                    let key = self.string();
                    self.step();
                    members.push((key, self.value()));
                }
                Json::Object(members)
            }
            b'[' => {
                let mut items = Vec::new();
                while self.next_within(b']') {
                    items.push(self.value());
                }
                Json::Array(items)
            }
            b'"' => Json::String(self.string()),
            _ => {
                let end = self.rest.iter().position(|b| b",]} \t\r\n".contains(b)).unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                match text {
                    b"null" => Json::Null,
                    b"true" => Json::Bool(true),
                    b"false" => Json::Bool(false),
                    number => Json::Number(String::from_utf8_lossy(number).into()),
                }
            }
        }
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> u8 {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied().unwrap_or_default()
    }

    /// Passes over one byte of structure.
    fn step(&mut self) {
        self.peek();
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    /// Passes over the bracket or comma before an element; `false` once the closing bracket is passed.
    fn next_within(&mut self, close: u8) -> bool {
        if self.peek() != close {
            self.step();
        }
        let more = self.peek() != close && !self.rest.is_empty();
        if !more {
            self.step();
        }
        more
    }

    fn string(&mut self) -> String {
        self.peek();
        let mut escaped = false;
        let inside = self.rest.iter().skip(1).position(|b| match b {
            b'"' if !escaped => true,
            b => {
                escaped = *b == b'\\' && !escaped;
                false
            }
        });
        let (text, rest) = self.rest.split_at(inside.map_or(self.rest.len(), |inside| inside + 2));
        self.rest = rest;
        serde_json::from_slice(text).unwrap_or_default()
    }
}

impl serde::Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(text) => {
                RawValue::from_string(text.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.to_string().into()),
            Value::String(text) => Self::String(text.clone()),
            Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(members.iter().map(|(k, v)| (k.clone(), Self::from(v))).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> JsonError {
        check(text.as_bytes(), &JsonLimits::default()).expect_err(text)
    }

    #[test]
    fn duplicate_keys_are_refused_at_every_level() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"x":[{"a":1,"\u0061":2}]}"#, r#"{"x":{"y":{"k":0,"k":0}}}"#] {
            assert!(matches!(refused(text), JsonError::Duplicate(_)), "{text}");
        }
        let many: Vec<String> = (0..40).map(|i| format!("\"k{i}\":0")).collect();
        assert!(matches!(refused(&format!("{{{},\"k39\":1}}", many.join(","))), JsonError::Duplicate(_)));
    }

    #[test]
    fn depth_is_refused_one_above_the_limit_and_deep_input_does_not_grow_the_stack() {
        let nest = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(check(nest(63).as_bytes(), &JsonLimits::default()).is_ok());
        assert!(check(nest(64).as_bytes(), &JsonLimits::default()).is_ok());
        assert_eq!(refused(&nest(65)), JsonError::Depth(64));
        assert_eq!(refused(&"[".repeat(100_000)), JsonError::Depth(64));
    }

    #[test]
    fn keys_and_items_are_counted_one_above_the_limit() {
        let limits = JsonLimits { depth: 4, keys: 3, items: 3 };
        assert!(check(br#"{"a":1,"b":2,"c":3}"#, &limits).is_ok());
        assert_eq!(check(br#"{"a":1,"b":2,"c":3,"d":4}"#, &limits), Err(JsonError::Keys(3)));
        assert!(check(b"[1,2,3]", &limits).is_ok());
        assert_eq!(check(b"[1,2,3,4]", &limits), Err(JsonError::Items(3)));
    }

    #[test]
    fn what_is_not_json_is_a_syntax_error() {
        for text in ["", "{", "nul", "[1,]", "1e400", "NaN", "0x1", "{} {}", "\"\\ud800\"", "// c\n1", "\u{feff}1"] {
            assert!(matches!(refused(text), JsonError::Syntax(_)), "{text:?}");
        }
        for bytes in [&b"\"\xff\""[..], b"{\"a\":\"\xc0\xaf\"}", b"\xff\xfe1\x00"] {
            assert!(matches!(check(bytes, &JsonLimits::default()), Err(JsonError::Syntax(_))));
        }
    }

    #[test]
    fn the_tree_keeps_key_order_and_number_text() {
        let text = r#"{"z":1.50,"a":[18446744073709551616,-0,1E5],"m":{"k":null,"b":true}}"#;
        let json = Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap();
        assert_eq!(json.to_text(), text);
    }

    #[test]
    fn the_tree_reads_what_the_library_reads() {
        for text in [
            "null",
            " true ",
            "[]",
            "[ ]",
            "{ }",
            "{\"a\" : [ ] }",
            "[[[]],{}]",
            "[1 ,2\n,\t3]",
            "\"\\\\\"",
            "[\"\\\\\",\"\\\"]\"]",
            "{\"\\u0061\\\"\":{\"b\":[\"}\",\"]\"]},\"c\":-1.5e-3}",
            "[\"é\",\"\\ud83d\\ude00\"]",
            "\"\"",
        ] {
            let expected: serde_json::Value = serde_json::from_str(text).unwrap();
            let tree = Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap();
            assert_eq!(tree.to_value(), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_tree_survives_printing(strings in proptest::collection::vec(".{0,6}", 0..6), depth in 0usize..20) {
            let leaves = Json::Array(strings.into_iter().map(Json::String).collect());
            let tree = (0..depth).fold(leaves, |inner, level| Json::Object(vec![(level.to_string(), inner), ("z".into(), Json::Null)]));
            proptest::prop_assert_eq!(Json::parse(tree.to_text().as_bytes(), &JsonLimits::default()).unwrap(), tree);
        }
    }

    #[test]
    fn the_json_library_keeps_the_three_behaviours_our_bytes_rest_on() {
        let value: serde_json::Value = serde_json::from_str(r#"{"b":1,"a":1.0}"#).unwrap();
        assert_eq!(value.to_string(), r#"{"a":1.0,"b":1}"#, "preserve_order must stay off");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>("1e2").unwrap().to_string(),
            "100.0",
            "arbitrary_precision must stay off"
        );
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(serde_json::from_str::<serde_json::Value>(&deep).is_err(), "unbounded_depth must stay off");
    }
}
