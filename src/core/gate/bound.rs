//! What an approval is bound to: the caller, the surface, the tool, its arguments, the rules in
//! force and the definition of the action behind it.

use crate::protocol::digest::{self, Digest};
use crate::protocol::json::JsonLimits;
use crate::protocol::{Arguments, Json};

/// A call, as far as it can be told from another. Two calls with the same key are one deed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) principal: String,
    pub(super) surface: String,
    pub(super) version: String,
    pub(super) tool: String,
    pub(super) tool_digest: Digest,
    pub(super) arguments: Digest,
    /// Of the rules.
    pub(super) rules: Digest,
    /// Of the action that a tool which can do several things was told to do.
    pub(super) definition: Digest,
}

impl Bound {
    /// The digest of all of it.
    pub(super) fn key(&self) -> Digest {
        let text = |text: &str| Json::String(text.to_owned());
        let parts = [
            text(&self.principal),
            text(&self.surface),
            text(&self.version),
            text(&self.tool),
            text(&self.tool_digest.to_string()),
            text(&self.arguments.to_string()),
            text(&self.rules.to_string()),
            text(&self.definition.to_string()),
        ];
        digest::of_bytes(Json::Array(parts.into()).to_text().as_bytes())
    }

    /// The name by which people and clients know a request for approval: nothing can be learnt from it.
    pub(super) fn request_id(&self) -> String {
        self.key().as_bytes().iter().take(10).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The digest of arguments, however their keys are ordered and their texts are escaped. Numbers count as they were
/// sent: a backend gets their digits, and a form that rounds them would let one number pass for another.
pub(super) fn digest_of(arguments: &Arguments) -> Digest {
    match Json::parse(arguments.text().as_bytes(), &LIMITS) {
        Ok(value) => {
            let mut text = String::new();
            write(&value, &mut text);
            digest::of_bytes(text.as_bytes())
        }
        Err(_) => digest::of_bytes(arguments.text().as_bytes()),
    }
}

/// What came was checked when it came.
pub(super) const LIMITS: JsonLimits = JsonLimits { depth: 127, keys: usize::MAX, items: usize::MAX };

fn write(value: &Json, out: &mut String) {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => out.push_str(&value.to_text()),
        Json::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            out.push('{');
            for (key, value) in members {
                out.push_str(&Json::String(key.clone()).to_text());
                out.push(':');
                write(value, out);
                out.push(',');
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::protocol::RawJson;

    fn of(text: &str) -> Digest {
        let text = RawJson::new(Bytes::from(text.to_owned()), &JsonLimits::default()).unwrap();
        digest_of(&Arguments::new(text).unwrap())
    }

    #[test]
    fn spelling_does_not_count_and_every_value_does() {
        assert_eq!(of(r#"{"a":1,"b":{"d":"\u0041","c":[]}}"#), of(r#"{ "b" : {"c":[],"d":"A"}, "a":1 }"#));
        let all = [
            "{}",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1.0}"#,
            r#"{"a":9007199254740993.0}"#,
            r#"{"a":9007199254740992.0}"#,
            r#"{"a":1e300}"#,
            r#"{"a":1e299}"#,
            r#"{"a":0}"#,
            r#"{"a":-0}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":[[1],2]}"#,
            r#"{"a":null}"#,
            r#"{"a":1,"b":1}"#,
        ];
        let digests: std::collections::HashSet<_> = all.iter().map(|text| of(text)).collect();
        assert_eq!(digests.len(), all.len());
    }

    #[test]
    fn whatever_an_approval_is_bound_to_makes_another_of_it() {
        let digest = |text: &str| digest::of_bytes(text.as_bytes());
        let bound = Bound {
            principal: "p".into(),
            surface: "s".into(),
            version: "1".into(),
            tool: "t".into(),
            tool_digest: digest("t"),
            arguments: digest("a"),
            rules: digest("r"),
            definition: digest("d"),
        };
        let others = [
            Bound { principal: "q".into(), ..bound.clone() },
            Bound { surface: "z".into(), ..bound.clone() },
            Bound { version: "2".into(), ..bound.clone() },
            Bound { tool: "u".into(), ..bound.clone() },
            Bound { tool_digest: digest("u"), ..bound.clone() },
            Bound { arguments: digest("b"), ..bound.clone() },
            Bound { rules: digest("q"), ..bound.clone() },
            Bound { definition: digest("e"), ..bound.clone() },
            Bound { principal: "ps".into(), surface: String::new(), ..bound.clone() },
        ];
        for other in others {
            assert_ne!(other.key(), bound.key());
            assert_ne!(other.request_id(), bound.request_id());
        }
        assert_eq!(bound.clone().request_id(), bound.request_id());
    }
}
