//! Content as it is kept: whatever a tool returned comes back equal.
//!
//! Promises: bytes, the order of keys, the digits of numbers and every block are kept exactly. Values of
//! any shape are kept as texts of their own, so that the depth of a file says nothing of theirs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::protocol::json::JsonLimits;
use crate::protocol::{Audience, Block, Body, Content, Json, Piece, ResourceContents, ResourceLink, Role};

/// Deepest value that is kept: what the parser itself can read.
const LIMITS: JsonLimits = JsonLimits { depth: 127, keys: usize::MAX, items: usize::MAX };

/// A value cannot be kept, or what was kept cannot be read; what is wrong.
pub(super) type Problem = String;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptContent {
    blocks: Vec<KeptBlock>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    structured: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptBlock {
    piece: KeptPiece,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    audience: Vec<KeptRole>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    priority: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    last_modified: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    meta: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptRole {
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum KeptPiece {
    Text(String),
    Image { data: String, mime_type: String },
    Audio { data: String, mime_type: String },
    Resource(KeptResource),
    Link(KeptLink),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptResource {
    uri: String,
    mime_type: Option<String>,
    body: KeptBody,
    meta: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptBody {
    Text(String),
    Blob(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptLink {
    uri: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    size: Option<u64>,
}

impl KeptContent {
    /// Takes what a tool returned.
    pub(super) fn of(content: &Content) -> Result<Self, Problem> {
        let Content { blocks, structured } = content;
        let blocks = blocks.iter().map(KeptBlock::of).collect::<Result<_, _>>()?;
        Ok(Self { blocks, structured: structured.as_ref().map(text_of).transpose()? })
    }

    /// What the tool returned.
    pub(super) fn content(&self) -> Result<Content, Problem> {
        let blocks = self.blocks.iter().map(KeptBlock::block).collect::<Result<_, _>>()?;
        Ok(Content { blocks, structured: self.structured.as_deref().map(value_of).transpose()? })
    }
}

impl KeptBlock {
    fn of(block: &Block) -> Result<Self, Problem> {
        let Block { piece, audience: Audience { audience, priority, last_modified }, meta } = block;
        Ok(Self {
            piece: KeptPiece::of(piece)?,
            audience: audience.iter().map(|role| (*role).into()).collect(),
            // As a text it keeps every bit, and what is no number as well.
            priority: priority.map(|priority| priority.to_string()),
            last_modified: last_modified.clone(),
            meta: meta.as_ref().map(text_of_json).transpose()?,
        })
    }

    fn block(&self) -> Result<Block, Problem> {
        let priority = self.priority.as_ref().map(|text| text.parse().map_err(|_| "a priority".to_owned()));
        Ok(Block {
            piece: self.piece.piece()?,
            audience: Audience {
                audience: self.audience.iter().map(|role| (*role).into()).collect(),
                priority: priority.transpose()?,
                last_modified: self.last_modified.clone(),
            },
            meta: self.meta.as_deref().map(json_of).transpose()?,
        })
    }
}

impl From<Role> for KeptRole {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
        }
    }
}

impl From<KeptRole> for Role {
    fn from(role: KeptRole) -> Self {
        match role {
            KeptRole::User => Self::User,
            KeptRole::Assistant => Self::Assistant,
        }
    }
}

impl KeptPiece {
    fn of(piece: &Piece) -> Result<Self, Problem> {
        Ok(match piece {
            Piece::Text(text) => Self::Text(text.clone()),
            Piece::Image { data, mime_type } => {
                Self::Image { data: STANDARD.encode(data), mime_type: mime_type.clone() }
            }
            Piece::Audio { data, mime_type } => {
                Self::Audio { data: STANDARD.encode(data), mime_type: mime_type.clone() }
            }
            Piece::Resource(ResourceContents { uri, mime_type, body, meta }) => Self::Resource(KeptResource {
                uri: uri.clone(),
                mime_type: mime_type.clone(),
                body: match body {
                    Body::Text(text) => KeptBody::Text(text.clone()),
                    Body::Blob(bytes) => KeptBody::Blob(STANDARD.encode(bytes)),
                },
                meta: meta.as_ref().map(text_of_json).transpose()?,
            }),
            Piece::Link(ResourceLink { uri, name, title, description, mime_type, size }) => Self::Link(KeptLink {
                uri: uri.clone(),
                name: name.clone(),
                title: title.clone(),
                description: description.clone(),
                mime_type: mime_type.clone(),
                size: *size,
            }),
        })
    }

    fn piece(&self) -> Result<Piece, Problem> {
        Ok(match self {
            Self::Text(text) => Piece::Text(text.clone()),
            Self::Image { data, mime_type } => Piece::Image { data: bytes_of(data)?, mime_type: mime_type.clone() },
            Self::Audio { data, mime_type } => Piece::Audio { data: bytes_of(data)?, mime_type: mime_type.clone() },
            Self::Resource(kept) => Piece::Resource(ResourceContents {
                uri: kept.uri.clone(),
                mime_type: kept.mime_type.clone(),
                body: match &kept.body {
                    KeptBody::Text(text) => Body::Text(text.clone()),
                    KeptBody::Blob(data) => Body::Blob(bytes_of(data)?),
                },
                meta: kept.meta.as_deref().map(json_of).transpose()?,
            }),
            Self::Link(kept) => Piece::Link(ResourceLink {
                uri: kept.uri.clone(),
                name: kept.name.clone(),
                title: kept.title.clone(),
                description: kept.description.clone(),
                mime_type: kept.mime_type.clone(),
                size: kept.size,
            }),
        })
    }
}

fn bytes_of(data: &str) -> Result<Bytes, Problem> {
    STANDARD.decode(data).map(Bytes::from).map_err(|_| "bytes that are no base64".to_owned())
}

fn json_of(text: &str) -> Result<Json, Problem> {
    Json::parse(text.as_bytes(), &LIMITS).map_err(|error| error.to_string())
}

fn text_of_json(json: &Json) -> Result<String, Problem> {
    let text = json.to_text();
    json_of(&text).map(|_| text)
}

/// A value as text; refused if it could not be read again.
pub(super) fn text_of(value: &Value) -> Result<String, Problem> {
    let text = value.to_string();
    json_of(&text).map(|_| text)
}

/// A value of a text.
pub(super) fn value_of(text: &str) -> Result<Value, Problem> {
    json_of(text).map(exact)
}

/// serde_json's own reading of a fraction may be off by its last bit; the standard library's is not.
fn exact(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => value.into(),
        Json::String(text) => text.into(),
        Json::Array(items) => items.into_iter().map(exact).collect(),
        Json::Object(members) => {
            members.into_iter().map(|(key, value)| (key, exact(value))).collect::<Map<_, _>>().into()
        }
        Json::Number(text) => {
            let whole = || text.parse::<u64>().map(Number::from).or_else(|_| text.parse::<i64>().map(Number::from));
            let number = whole().ok().or_else(|| text.parse().ok().and_then(Number::from_f64));
            number.map_or(Value::Null, Value::Number)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn round_trip(content: &Content) -> Content {
        let text = serde_json::to_vec(&KeptContent::of(content).unwrap()).unwrap();
        serde_json::from_slice::<KeptContent>(&text).unwrap().content().unwrap()
    }

    fn value() -> impl Strategy<Value = Value> {
        let number = any::<f64>().prop_map(|n| Number::from_f64(n).map_or(Value::Null, Value::Number));
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            number,
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn text() -> impl Strategy<Value = Option<String>> {
        proptest::option::of(any::<String>())
    }

    fn json() -> impl Strategy<Value = Option<Json>> {
        proptest::option::of(value().prop_map(|v| Json::parse(v.to_string().as_bytes(), &LIMITS).unwrap()))
    }

    fn bytes() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
    }

    fn block() -> impl Strategy<Value = Block> {
        let body = prop_oneof![any::<String>().prop_map(Body::Text), bytes().prop_map(Body::Blob)];
        let resource = (any::<String>(), text(), body, json())
            .prop_map(|(uri, mime_type, body, meta)| ResourceContents { uri, mime_type, body, meta });
        let link = (any::<String>(), any::<String>(), text(), text(), text(), any::<Option<u64>>()).prop_map(
            |(uri, name, title, description, mime_type, size)| ResourceLink {
                uri,
                name,
                title,
                description,
                mime_type,
                size,
            },
        );
        let piece = prop_oneof![
            any::<String>().prop_map(Piece::Text),
            (bytes(), any::<String>()).prop_map(|(data, mime_type)| Piece::Image { data, mime_type }),
            (bytes(), any::<String>()).prop_map(|(data, mime_type)| Piece::Audio { data, mime_type }),
            resource.prop_map(Piece::Resource),
            link.prop_map(Piece::Link),
        ];
        let roles = proptest::collection::vec(prop_oneof![Just(Role::User), Just(Role::Assistant)], 0..3);
        let audience = (roles, proptest::option::of(-1e300..1e300), text())
            .prop_map(|(audience, priority, last_modified)| Audience { audience, priority, last_modified });
        (piece, audience, json()).prop_map(|(piece, audience, meta)| Block { piece, audience, meta })
    }

    proptest! {
        #[test]
        fn whatever_a_tool_returned_comes_back_equal(
            blocks in proptest::collection::vec(block(), 0..4),
            structured in proptest::option::of(value()),
        ) {
            let content = Content { blocks, structured };
            prop_assert_eq!(round_trip(&content), content);
        }
    }

    #[test]
    fn nothing_and_null_are_told_apart() {
        for structured in [None, Some(Value::Null), Some(json!({}))] {
            let content = Content { blocks: Vec::new(), structured };
            assert_eq!(round_trip(&content), content);
        }
    }

    #[test]
    fn a_value_that_could_not_be_read_again_is_refused() {
        let mut value = json!(1);
        for _ in 0..127 {
            value = Value::Array(vec![value]);
        }
        let mut content = Content::structured(value);
        assert_eq!(round_trip(&content), content);
        content.structured = content.structured.map(|value| Value::Array(vec![value]));
        assert!(KeptContent::of(&content).is_err());
    }
}
