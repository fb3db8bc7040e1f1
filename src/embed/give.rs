//! What handlers return, and the ways in which they end without it.

use std::any::Any;
use std::fmt;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::schema;
use crate::protocol::{Block, Body, Completion, Content, Json as Tree, PromptMessage, Prompted, ResourceContents};

/// How a handler failed.
///
/// Every [`std::error::Error`] becomes one by `?`; [`NotFound`] and [`Refused`] keep what they mean. A handler may
/// also return an error of any other type that can be shown: its text is what the model reads.
#[derive(Debug, Clone)]
pub struct ToolError(pub(super) End);

#[derive(Debug, Clone)]
pub(super) enum End {
    Failed(Content),
    NotFound,
    Refused(String),
}

impl ToolError {
    /// A failure whose text tells the model what to change.
    pub fn new(text: impl Into<String>) -> Self {
        Self(End::Failed(Content::text(text)))
    }

    /// A failure that shows more than a text.
    pub fn content(content: Content) -> Self {
        Self(End::Failed(content))
    }

    /// Keeps what our own errors mean, whatever type the handler declares.
    fn of<E: fmt::Display + 'static>(error: E) -> Self {
        let any: &dyn Any = &error;
        if let Some(known) = any.downcast_ref::<Self>() {
            return known.clone();
        }
        if any.is::<NotFound>() {
            return Self(End::NotFound);
        }
        match any.downcast_ref::<Refused>() {
            Some(Refused(why)) => Self(End::Refused(why.clone())),
            None => Self::new(error.to_string()),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            End::Failed(content) => f.write_str(&content.plain_text()),
            End::NotFound => NotFound.fmt(f),
            End::Refused(why) => f.write_str(why),
        }
    }
}

impl<E: std::error::Error + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::of(error)
    }
}

/// There is nothing behind a URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is nothing of that name")]
pub struct NotFound;

/// The request asks for what cannot be: its client is answered with an error of the protocol, not with a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(
    /// What was wrong, and what was expected.
    pub String,
);

/// A structured result: its JSON Schema is published as the tool's `outputSchema`, its value sent as
/// `structuredContent`, and its JSON as text beside it for clients that read nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(
    /// The value.
    pub T,
);

/// What a handler may return in place of a `T`: a [`Content`] from a tool, [`Prompted`] from a prompt, a [`Reading`]
/// from a resource, a [`Completion`]; or a `Result` of it with any error that can be shown.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}` here",
    note = "tools return a text, `()`, `Json<T>`, `Block`s or `Content`; prompts a text or `PromptMessage`s; resources a text, bytes or `ResourceContents`; each also in a `Result` whose error can be shown"
)]
pub trait Give<T> {
    /// The value, or how the handler failed.
    fn give(self) -> Result<T, ToolError>;

    /// The JSON Schema of what is given, where that is structured.
    fn output_schema() -> Option<Tree> {
        None
    }
}

impl<T, G: Give<T>, E: fmt::Display + 'static> Give<T> for Result<G, E> {
    fn give(self) -> Result<T, ToolError> {
        self.map_err(ToolError::of).and_then(Give::give)
    }

    fn output_schema() -> Option<Tree> {
        G::output_schema()
    }
}

/// The contents of a resource: of the URI that was read, or of URIs of their own.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// Of the URI that was read.
    Of(Body),
    /// Each with its own URI.
    Contents(Vec<ResourceContents>),
}

macro_rules! give {
    ($($what:ty => $goal:ty: |$value:ident| $given:expr;)+) => {$(
        impl Give<$goal> for $what {
            fn give(self) -> Result<$goal, ToolError> {
                let $value = self;
                Ok($given)
            }
        }
    )+};
}

give! {
    Content => Content: |content| content;
    String => Content: |text| Content::text(text);
    &'static str => Content: |text| Content::text(text);
    () => Content: |_nothing| Content::default();
    Block => Content: |block| Content::blocks([block]);
    Vec<Block> => Content: |blocks| Content::blocks(blocks);

    () => (): |nothing| nothing;

    Prompted => Prompted: |prompted| prompted;
    String => Prompted: |text| said(vec![PromptMessage::user(Block::text(text))]);
    &'static str => Prompted: |text| said(vec![PromptMessage::user(Block::text(text))]);
    PromptMessage => Prompted: |message| said(vec![message]);
    Vec<PromptMessage> => Prompted: |messages| said(messages);

    Reading => Reading: |reading| reading;
    String => Reading: |text| Reading::Of(Body::Text(text));
    &'static str => Reading: |text| Reading::Of(Body::Text(text.to_owned()));
    Vec<u8> => Reading: |bytes| Reading::Of(Body::Blob(bytes.into()));
    Bytes => Reading: |bytes| Reading::Of(Body::Blob(bytes));
    ResourceContents => Reading: |contents| Reading::Contents(vec![contents]);
    Vec<ResourceContents> => Reading: |contents| Reading::Contents(contents);

    Completion => Completion: |completion| completion;
    Vec<String> => Completion: |values| Completion { values, ..Completion::default() };
}

fn said(messages: Vec<PromptMessage>) -> Prompted {
    Prompted { description: None, messages }
}

impl<const N: usize> Give<Content> for [Block; N] {
    fn give(self) -> Result<Content, ToolError> {
        Ok(Content::blocks(self))
    }
}

impl<T: Serialize + JsonSchema> Give<Content> for Json<T> {
    fn give(self) -> Result<Content, ToolError> {
        let value: Value = serde_json::to_value(self.0)
            .map_err(|error| ToolError::new(format!("the result cannot be written as JSON: {error}")))?;
        Ok(Content::structured(value))
    }

    fn output_schema() -> Option<Tree> {
        Some(schema::of_output::<T>())
    }
}
