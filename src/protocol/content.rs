//! The content of a tool's result, and its projection for a revision.

use bytes::{BufMut as _, BytesMut};
use serde_json::Value;

use super::json::RawJson;
use super::revision::{Rules, Structured};

/// One piece of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Text.
    Text(String),
}

/// What a tool returned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// What the model reads.
    pub blocks: Vec<Block>,
    /// What a program reads; must fit the tool's `outputSchema`. Its text is added as a block if `blocks` is empty.
    pub structured: Option<Value>,
}

impl Content {
    /// One block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { blocks: vec![Block::Text(text.into())], structured: None }
    }

    /// A structured value with its JSON as text, which every revision can read.
    pub fn structured(value: Value) -> Self {
        Self { blocks: Vec::new(), structured: Some(value) }
    }

    /// The `content` array, with the structured value's text where nothing else is said (2026-07-28 server/tools, Structured Content).
    pub(super) fn write_blocks(&self, out: &mut BytesMut) {
        out.put_u8(b'[');
        match (self.blocks.is_empty(), &self.structured) {
            (true, Some(value)) => write_text(&value.to_string(), out),
            _ => {
                for (index, Block::Text(text)) in self.blocks.iter().enumerate() {
                    if index > 0 {
                        out.put_u8(b',');
                    }
                    write_text(text, out);
                }
            }
        }
        out.put_u8(b']');
    }

    /// About how many bytes the blocks take.
    pub(super) fn size_hint(&self) -> usize {
        self.blocks.iter().map(|Block::Text(text)| text.len() + 32).sum()
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

fn write_text(text: &str, out: &mut BytesMut) {
    out.put_slice(br#"{"type":"text","text":"#);
    out.put_slice(RawJson::encode(&text).as_bytes());
    out.put_u8(b'}');
}
