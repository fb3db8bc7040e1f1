//! Secrets taken out of what a program or a server wrote.
//!
//! Promises: no value that it was given as a secret leaves in a text, a key or a number, plain or in the forms
//! that programs commonly write it in: escaped in JSON, percent-encoded, in base64 at any offset, in hex. A value of fewer
//! than four bytes is no secret that could be told from other text, and stays.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::outgoing::Outgoing;
use crate::protocol::Json;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Shortest value that is looked for, bytes.
const SHORTEST: usize = 4;
/// Shortest value whose base64 is looked for at any offset: of a shorter one too few characters are its own.
const SHORTEST_INSIDE_BASE64: usize = 6;

/// The secrets of one run.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Every form of every value, the longest first.
    forms: Vec<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({} forms)", self.forms.len())
    }
}

impl Secrets {
    /// Takes the values.
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let mut forms: Vec<String> = Vec::new();
        for value in values {
            // A value of several lines is written line by line as often as whole.
            let lines = value.lines().filter(|line| *line != value && line.len() >= 4 * SHORTEST);
            for part in std::iter::once(value).chain([value.trim()]).chain(lines).filter(|part| part.len() >= SHORTEST)
            {
                forms.extend(forms_of(part));
            }
        }
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        forms.dedup();
        Self { forms }
    }

    /// The text without secrets.
    pub fn clean(&self, text: &str) -> String {
        let mut out = text.to_owned();
        if self.are_longer_than(text.len()) {
            return out;
        }
        for form in self.forms.iter().filter(|form| text.contains(form.as_str())) {
            out = out.replace(form.as_str(), REDACTED);
        }
        out
    }

    /// Takes secrets out of a value's texts, keys and numbers.
    pub fn clean_json(&self, value: &mut Json) {
        if self.forms.is_empty() {
            return;
        }
        match value {
            Json::String(text) => *text = self.clean(text),
            Json::Number(text) if self.are_in(text.as_bytes()) => *value = Json::String(REDACTED.to_owned()),
            Json::Array(items) => items.iter_mut().for_each(|item| self.clean_json(item)),
            Json::Object(members) => {
                for (key, value) in members.iter_mut() {
                    self.clean_json(value);
                    *key = self.clean(key);
                }
                keep_apart(members);
            }
            Json::Number(_) | Json::Null | Json::Bool(_) => {}
        }
    }

    /// The beginning of `bytes` as text that may be sent, of at most `most` bytes. Hidden characters go first, the cut
    /// comes last: neither leaves a part of a secret.
    pub fn outgoing(&self, bytes: &[u8], most: usize) -> Outgoing {
        if self.forms.is_empty() {
            return Outgoing::clean(bytes, most);
        }
        let Outgoing { text, removed, .. } = Outgoing::clean(bytes, usize::MAX);
        Outgoing { removed, ..Outgoing::clean(self.clean(&text).as_bytes(), most) }
    }

    /// Whether one stands in these bytes, which may be no text.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        !self.are_longer_than(bytes.len())
            && self.forms.iter().any(|form| memchr::memmem::find(bytes, form.as_bytes()).is_some())
    }

    fn are_longer_than(&self, bytes: usize) -> bool {
        self.forms.last().is_none_or(|shortest| shortest.len() > bytes)
    }
}

/// Keys that became equal are told apart again.
fn keep_apart(members: &mut [(String, Json)]) {
    let mut seen = std::collections::HashSet::new();
    // The next number of each key, so that many equal ones do not try all numbers before theirs.
    let mut next = std::collections::HashMap::new();
    for (key, _) in members {
        let first = key.clone();
        let number = next.entry(first.clone()).or_insert(2usize);
        while !seen.insert(key.clone()) {
            *key = format!("{first} {number}");
            *number += 1;
        }
    }
}

fn forms_of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let in_json = serde_json::to_string(value).unwrap_or_default();
    let in_json = in_json.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned();
    forms.push(ascii_json(value));
    forms.push(in_json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"));
    forms.push(in_json.replace('/', "\\/"));
    forms.push(in_json);
    let lower: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    forms.push(lower.to_uppercase());
    forms.push(lower);
    // As RFC 3986 has it, as a path, and as scripts write it; each with `+` for a space too, as forms are written.
    for plain in [&b"-_.~"[..], b"-_.~/", b"-_.~!'()*", b"-_.*"] {
        for escape in [|byte| format!("%{byte:02X}"), |byte| format!("%{byte:02x}")] {
            let escaped = percent(value, plain, escape);
            forms.push(escaped.replace("%20", "+"));
            forms.push(escaped);
        }
    }
    if value.len() >= SHORTEST_INSIDE_BASE64 {
        for offset in 0..3 {
            forms.extend([&STANDARD, &URL_SAFE].map(|engine| {
                let padded = [vec![0; offset], value.as_bytes().to_vec()].concat();
                let encoded = engine.encode(&padded);
                // The first characters hold bits of what stands before, the last ones of what comes after.
                let from = [0, 2, 3].get(offset).copied().unwrap_or(0);
                let to = padded.len() * 8 / 6;
                encoded.get(from..to).unwrap_or_default().to_owned()
            }));
        }
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// As `json.dumps` of Python writes it: everything but ASCII escaped.
fn ascii_json(value: &str) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    let mut out = String::new();
    for character in text.trim_start_matches('"').strip_suffix('"').unwrap_or_default().chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        }
    }
    out
}

/// `value` with every byte escaped but letters, digits and the `plain` ones.
fn percent(value: &str, plain: &[u8], escape: fn(u8) -> String) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || plain.contains(&byte);
    value.bytes().map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { escape(byte) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::json::JsonLimits;

    const SECRET: &str = "sw0rd/fi\"sh é!";

    #[test]
    fn a_secret_is_taken_out_in_every_form_it_is_commonly_written_in() {
        let secrets = Secrets::new([SECRET]);
        let user = format!("user:{SECRET}");
        for text in [
            SECRET.to_owned(),
            format!("Bearer {SECRET}."),
            serde_json::to_string(SECRET).unwrap(),
            r#""sw0rd\/fi\"sh é!""#.to_owned(),
            r#""sw0rd/fi\"sh \u00e9!""#.to_owned(),
            STANDARD.encode(SECRET),
            STANDARD.encode(&user),
            STANDARD.encode(format!("x{user}y")),
            URL_SAFE.encode(format!("xx{user}")),
            "73773072642f66692273682 0c3a921".replace(' ', ""),
            "sw0rd%2Ffi%22sh%20%C3%A9%21".to_owned(),
            "sw0rd/fi%22sh%20%C3%A9%21".to_owned(),
            "sw0rd%2ffi%22sh%20%c3%a9%21".to_owned(),
            "sw0rd%2Ffi%22sh%20%C3%A9!".to_owned(),
            "sw0rd%2Ffi%22sh+%C3%A9%21".to_owned(),
            "sw0rd%2ffi%22sh+%c3%a9%21".to_owned(),
        ] {
            let clean = secrets.clean(&format!("<{text}>"));
            assert!(clean.contains(REDACTED), "{text} became {clean}");
            for part in ["sw0rd", "c3cwcm", "fi%22sh", "7377"] {
                assert!(!clean.contains(part), "{text} became {clean}");
            }
        }
        assert_eq!(secrets.clean("nothing of it"), "nothing of it");
    }

    #[test]
    fn a_secret_is_taken_out_of_texts_keys_and_numbers() {
        let secrets = Secrets::new(["12345678", "topsecret"]);
        let text = br#"{"a":["x topsecret y"],"topsecret":1,"n":9123456780,"[redacted]":2,"ok":12345}"#;
        let mut value = Json::parse(text, &JsonLimits::default()).unwrap();
        secrets.clean_json(&mut value);
        let expected = r#"{"a":["x [redacted] y"],"[redacted]":1,"n":"[redacted]","[redacted] 2":2,"ok":12345}"#;
        assert_eq!(value.to_text(), expected);
    }

    #[test]
    fn neither_hidden_characters_nor_a_cut_leave_a_part_of_a_secret() {
        let secrets = Secrets::new(["topsecret"]);
        for (bytes, most, text, removed, cut) in [
            ("a top\u{e0041}secret", 100, "a [redacted]", 1, false),
            ("a topsecret", 6, "a [red", 0, true),
            ("topsecret\u{7}", 10, "[redacted]", 1, false),
        ] {
            assert_eq!(secrets.outgoing(bytes.as_bytes(), most), Outgoing { text: text.to_owned(), removed, cut });
        }
        assert_eq!(Secrets::default().outgoing(b"topsecret", 3), Outgoing::clean(b"topsecret", 3));
        assert!(secrets.are_in(b"\xfftopsecret\xff") && !secrets.are_in(b"\xfftopsecre\xff"));
    }

    #[test]
    fn the_longer_of_two_overlapping_secrets_goes_first() {
        assert_eq!(Secrets::new(["abcd", "abcdefgh"]).clean("abcdefgh abcd"), "[redacted] [redacted]");
    }

    #[test]
    fn the_lines_of_a_key_are_secrets_too() {
        let secrets = Secrets::new(["-----BEGIN-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END-----\n"]);
        assert_eq!(secrets.clean("line MIIEvQIBADANBgkqhkiG9w0 of it"), "line [redacted] of it");
    }

    #[test]
    fn an_empty_or_tiny_value_takes_nothing_out() {
        assert_eq!(Secrets::new(["", "a", "abc"]).clean("a b abc"), "a b abc");
        assert!(!format!("{:?}", Secrets::new(["longer-secret"])).contains("longer"));
    }
}
