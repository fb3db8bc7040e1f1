//! What tools, prompts and resources return, and its projection for a revision.
//!
//! Promises: a block that a revision does not know is written as one that it knows, so that no
//! client meets a kind of block its revision has not (2.8 of every schema: `ContentBlock`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::Value;

use super::json::Json;
use super::revision::{Rules, Structured};

/// Who says something, or whom something is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// What a client may do with a block or a resource; hints only (2025-06-18 schema, `Annotations`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Audience {
    /// Whom it is for; nothing said if empty.
    pub audience: Vec<Role>,
    /// From 0, which may be left out, to 1, which must not.
    pub priority: Option<f64>,
    /// ISO 8601, as the resource's owner gives it.
    pub last_modified: Option<String>,
}

impl Audience {
    /// The object on the wire; `None` if nothing is said.
    pub fn to_json(&self) -> Option<Json> {
        let mut members = Vec::new();
        if !self.audience.is_empty() {
            let roles = self.audience.iter().map(|role| text(role.name())).collect();
            members.push(("audience".to_owned(), Json::Array(roles)));
        }
        if let Some(priority) = self.priority.filter(|p| p.is_finite()) {
            members.push(("priority".to_owned(), number(priority.clamp(0.0, 1.0))));
        }
        if let Some(time) = &self.last_modified {
            members.push(("lastModified".to_owned(), text(time)));
        }
        (!members.is_empty()).then_some(Json::Object(members))
    }
}

/// The contents of one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceContents {
    /// What was read; for a folder or a template, the resource itself.
    pub uri: String,
    /// Media type.
    pub mime_type: Option<String>,
    /// The contents.
    pub body: Body,
    /// `_meta`, as written.
    pub meta: Option<Json>,
}

/// Text or bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes, sent as base64.
    Blob(Bytes),
}

impl ResourceContents {
    /// Text under a URI.
    pub fn text(uri: impl Into<String>, mime_type: Option<&str>, text: impl Into<String>) -> Self {
        let mime_type = mime_type.map(str::to_owned);
        Self { uri: uri.into(), mime_type, body: Body::Text(text.into()), meta: None }
    }

    /// Bytes under a URI.
    pub fn blob(uri: impl Into<String>, mime_type: Option<&str>, bytes: impl Into<Bytes>) -> Self {
        let mime_type = mime_type.map(str::to_owned);
        Self { uri: uri.into(), mime_type, body: Body::Blob(bytes.into()), meta: None }
    }

    pub(super) fn to_json(&self, rules: &Rules) -> Json {
        let (key, body) = match &self.body {
            Body::Text(said) => ("text", text(said)),
            Body::Blob(bytes) => ("blob", text(&STANDARD.encode(bytes))),
        };
        object([
            ("uri", Some(text(&self.uri))),
            ("mimeType", self.mime_type.as_deref().map(text)),
            (key, Some(body)),
            ("_meta", self.meta.clone().filter(|_| rules.block_meta)),
        ])
    }

    fn size_hint(&self) -> usize {
        match &self.body {
            Body::Text(text) => text.len() + 96,
            Body::Blob(bytes) => bytes.len() * 4 / 3 + 96,
        }
    }
}

/// A resource that is only named.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceLink {
    /// Where it is.
    pub uri: String,
    /// Programmatic name.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// For models.
    pub description: Option<String>,
    /// Media type.
    pub mime_type: Option<String>,
    /// Bytes.
    pub size: Option<u64>,
}

/// What one piece of a result is.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// Its bytes.
        data: Bytes,
        /// Its media type.
        mime_type: String,
    },
    /// Sound (from 2025-03-26).
    Audio {
        /// Its bytes.
        data: Bytes,
        /// Its media type.
        mime_type: String,
    },
    /// A resource with its contents.
    Resource(ResourceContents),
    /// A resource that is only named (from 2025-06-18).
    Link(ResourceLink),
}

/// One piece of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The piece.
    pub piece: Piece,
    /// Hints for the client.
    pub audience: Audience,
    /// `_meta`, as written (from 2025-06-18).
    pub meta: Option<Json>,
}

impl From<Piece> for Block {
    fn from(piece: Piece) -> Self {
        Self { piece, audience: Audience::default(), meta: None }
    }
}

impl Block {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Piece::Text(text.into()).into()
    }

    /// A picture.
    pub fn image(data: impl Into<Bytes>, mime_type: impl Into<String>) -> Self {
        Piece::Image { data: data.into(), mime_type: mime_type.into() }.into()
    }

    /// Sound.
    pub fn audio(data: impl Into<Bytes>, mime_type: impl Into<String>) -> Self {
        Piece::Audio { data: data.into(), mime_type: mime_type.into() }.into()
    }

    /// A resource with its contents.
    pub fn resource(contents: ResourceContents) -> Self {
        Piece::Resource(contents).into()
    }

    /// A resource that is only named.
    pub fn link(link: ResourceLink) -> Self {
        Piece::Link(link).into()
    }

    /// The text of a block of text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.piece {
            Piece::Text(text) => Some(text),
            Piece::Image { .. } | Piece::Audio { .. } | Piece::Resource(_) | Piece::Link(_) => None,
        }
    }

    fn size_hint(&self) -> usize {
        match &self.piece {
            Piece::Text(text) => text.len() + 32,
            Piece::Image { data, .. } | Piece::Audio { data, .. } => data.len() * 4 / 3 + 96,
            Piece::Resource(contents) => contents.size_hint(),
            Piece::Link(_) => 256,
        }
    }

    /// The block as a revision knows it; one that it does not know becomes one or two that it does.
    fn write(&self, rules: &Rules, out: &mut BytesMut) {
        match &self.piece {
            Piece::Text(said) if self.audience == Audience::default() && self.meta.is_none() => write_text(said, out),
            Piece::Audio { data, mime_type } if !rules.audio_blocks => {
                // A revision without sound can carry its bytes as an embedded resource.
                let contents = ResourceContents::blob("audio:embedded", Some(mime_type), data.clone());
                write_text(&format!("The following resource is audio ({mime_type})."), out);
                out.put_u8(b',');
                self.write_as(
                    rules,
                    object([("type", Some(text("resource"))), ("resource", Some(contents.to_json(rules)))]),
                    out,
                );
            }
            Piece::Link(link) if !rules.link_blocks => {
                let about = link.description.as_ref().map(|d| format!(" ({d})")).unwrap_or_default();
                let said = format!("{}: {}{about}", link.name, link.uri);
                self.write_as(rules, object([("type", Some(text("text"))), ("text", Some(text(&said)))]), out);
            }
            piece => self.write_as(rules, piece_json(piece, rules), out),
        }
    }

    fn write_as(&self, rules: &Rules, piece: Json, out: &mut BytesMut) {
        let Json::Object(mut members) = piece else { return };
        let audience = Audience {
            last_modified: self.audience.last_modified.clone().filter(|_| rules.last_modified),
            ..self.audience.clone()
        };
        if let Some(audience) = audience.to_json() {
            members.push(("annotations".to_owned(), audience));
        }
        if let Some(meta) = self.meta.as_ref().filter(|_| rules.block_meta) {
            members.push(("_meta".to_owned(), meta.clone()));
        }
        out.put_slice(Json::Object(members).to_text().as_bytes());
    }
}

fn piece_json(piece: &Piece, rules: &Rules) -> Json {
    let bytes = |kind: &str, data: &Bytes, mime_type: &str| {
        object([
            ("type", Some(text(kind))),
            ("data", Some(text(&STANDARD.encode(data)))),
            ("mimeType", Some(text(mime_type))),
        ])
    };
    match piece {
        Piece::Text(said) => object([("type", Some(text("text"))), ("text", Some(text(said)))]),
        Piece::Image { data, mime_type } => bytes("image", data, mime_type),
        Piece::Audio { data, mime_type } => bytes("audio", data, mime_type),
        Piece::Resource(contents) => {
            object([("type", Some(text("resource"))), ("resource", Some(contents.to_json(rules)))])
        }
        Piece::Link(link) => object([
            ("type", Some(text("resource_link"))),
            ("uri", Some(text(&link.uri))),
            ("name", Some(text(&link.name))),
            ("title", link.title.as_deref().map(text)),
            ("description", link.description.as_deref().map(text)),
            ("mimeType", link.mime_type.as_deref().map(text)),
            ("size", link.size.map(|size| Json::Number(size.to_string().into()))),
        ]),
    }
}

/// What a tool returned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// What the model reads.
    pub blocks: Vec<Block>,
    /// What a program reads; must fit the tool's `outputSchema`. Its JSON is added as a block of text, unless one has it.
    pub structured: Option<Value>,
}

impl Content {
    /// One block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { blocks: vec![Block::text(text)], structured: None }
    }

    /// These blocks.
    pub fn blocks(blocks: impl Into<Vec<Block>>) -> Self {
        Self { blocks: blocks.into(), structured: None }
    }

    /// A structured value with its JSON as text, which every revision can read.
    pub fn structured(value: Value) -> Self {
        Self { blocks: Vec::new(), structured: Some(value) }
    }

    /// The texts of the blocks of text, joined by line ends.
    pub fn plain_text(&self) -> String {
        self.blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
    }

    /// The `content` array, with the structured value's text for clients that read nothing else (2026-07-28 server/tools,
    /// Structured Content).
    pub(super) fn write_blocks(&self, rules: &Rules, out: &mut BytesMut) {
        out.put_u8(b'[');
        for (index, block) in self.blocks.iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            block.write(rules, out);
        }
        if let Some(value) = self.structured.as_ref().filter(|value| !self.tells(value)) {
            if !self.blocks.is_empty() {
                out.put_u8(b',');
            }
            write_text(&value.to_string(), out);
        }
        out.put_u8(b']');
    }

    /// Whether a block of text is this value's JSON, however it is spaced.
    fn tells(&self, value: &Value) -> bool {
        let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value);
        self.blocks.iter().filter_map(Block::as_text).any(is_json)
    }

    /// About how many bytes the blocks take.
    pub(super) fn size_hint(&self) -> usize {
        self.blocks.iter().map(Block::size_hint).sum()
    }

    /// The structured value as far as a revision can carry it.
    pub(super) fn structured_for(&self, rules: &Rules) -> Option<&Value> {
        self.structured.as_ref().filter(|value| match rules.structured {
            Structured::Never => false,
            Structured::Object => value.is_object(),
            Structured::Any => true,
        })
    }
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub block: Block,
}

impl PromptMessage {
    /// What the person says.
    pub fn user(block: Block) -> Self {
        Self { role: Role::User, block }
    }

    /// What the model says.
    pub fn assistant(block: Block) -> Self {
        Self { role: Role::Assistant, block }
    }

    /// The messages of a prompt. A block that a revision writes as two takes two messages.
    pub(super) fn write_all(messages: &[Self], rules: &Rules, out: &mut BytesMut) {
        out.put_u8(b'[');
        for (index, message) in messages.iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            let block = match &message.block.piece {
                // A message has one block, so the note that goes before sound elsewhere has no place here.
                Piece::Audio { data, mime_type } if !rules.audio_blocks => {
                    let contents = ResourceContents::blob("audio:embedded", Some(mime_type), data.clone());
                    Block { piece: Piece::Resource(contents), ..message.block.clone() }
                }
                _ => message.block.clone(),
            };
            out.put_slice(format!("{{\"role\":\"{}\",\"content\":", message.role.name()).as_bytes());
            block.write(rules, out);
            out.put_u8(b'}');
        }
        out.put_u8(b']');
    }
}

fn write_text(text: &str, out: &mut BytesMut) {
    out.put_slice(br#"{"type":"text","text":"#);
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out.writer(), text);
    out.put_u8(b'}');
}

/// A text.
pub(super) fn text(text: &str) -> Json {
    Json::String(text.to_owned())
}

fn number(value: f64) -> Json {
    Json::Number(serde_json::json!(value).to_string().into())
}

/// An object of the members that are there.
pub(super) fn object<'k>(members: impl IntoIterator<Item = (&'k str, Option<Json>)>) -> Json {
    Json::Object(members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::revision::Revision;

    fn written(block: Block, revision: Revision) -> String {
        let mut out = BytesMut::new();
        Content::blocks([block]).write_blocks(revision.rules(), &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn an_old_revision_gets_blocks_that_it_knows() {
        let [oldest, second, third, ..] = Revision::ALL;
        let sound = || Block::audio(&b"\x01\x02"[..], "audio/wav");
        assert!(written(sound(), oldest).contains(
            r#"{"type":"resource","resource":{"uri":"audio:embedded","mimeType":"audio/wav","blob":"AQI="}}"#
        ));
        assert_eq!(written(sound(), second), r#"[{"type":"audio","data":"AQI=","mimeType":"audio/wav"}]"#);
        let link = || {
            Block::link(ResourceLink {
                uri: "a:b".into(),
                name: "n".into(),
                description: Some("d".into()),
                ..Default::default()
            })
        };
        assert_eq!(written(link(), second), r#"[{"type":"text","text":"n: a:b (d)"}]"#);
        assert_eq!(written(link(), third), r#"[{"type":"resource_link","uri":"a:b","name":"n","description":"d"}]"#);
    }

    #[test]
    fn what_a_revision_knows_of_a_blocks_notes_is_sent_and_no_more() {
        let audience = Audience {
            audience: vec![Role::User],
            priority: Some(0.5),
            last_modified: Some("2025-01-12T15:00:58Z".into()),
        };
        let noted =
            || Block { audience: audience.clone(), meta: Some(object([("k", Some(text("v")))])), ..Block::text("t") };
        let [oldest, _, third, ..] = Revision::ALL;
        assert_eq!(
            written(noted(), oldest),
            r#"[{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5}}]"#
        );
        let whole = r#"[{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12T15:00:58Z"},"_meta":{"k":"v"}}]"#;
        assert_eq!(written(noted(), third), whole);
    }
}
