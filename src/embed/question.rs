//! What a handler can ask its client, and how the answers are read.
//!
//! Promises: an answer that does not have the form that was asked for is no answer: the question
//! stands (2026-07-28 basic/patterns/mrtr, Server Requirements).

use std::collections::BTreeMap;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::schema;
use crate::protocol::json::Json;
use crate::protocol::schema::Schema;
use crate::protocol::{InputKind, InputRequest};

/// How a person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elicited<T> {
    /// They agreed, with this.
    Accepted(T),
    /// They said no.
    Declined,
    /// They did not say.
    Cancelled,
}

impl<T> Elicited<T> {
    /// What they agreed with.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(value) => Some(value),
            Self::Declined | Self::Cancelled => None,
        }
    }
}

/// What can be asked: one question, or several at once as a tuple or a vector.
pub trait Question {
    /// What is answered.
    type Answer;

    /// The answer, if all of it is there. Every question is looked at, so that all that are open are asked at once.
    fn answered(&self, round: &mut Round<'_>) -> Option<Self::Answer>;
}

/// What was answered so far, and what is to be asked next.
#[derive(Debug)]
pub struct Round<'r> {
    /// What the client told: in this round, and in earlier ones.
    pub(super) told: &'r BTreeMap<String, Value>,
    /// Of that, what was good.
    pub(super) used: &'r mut BTreeMap<String, Value>,
    /// What is open.
    pub(super) open: &'r mut Vec<InputRequest>,
}

impl Round<'_> {
    /// The answer under a key if `read` takes it; otherwise `ask` says what is asked under that key.
    pub fn one<A>(
        &mut self,
        key: &str,
        read: impl FnOnce(Value) -> Option<A>,
        ask: impl FnOnce() -> (InputKind, Value),
    ) -> Option<A> {
        if let Some((told, answer)) = self.told.get(key).and_then(|told| Some((told, read(told.clone())?))) {
            self.used.insert(key.to_owned(), told.clone());
            return Some(answer);
        }
        if self.open.iter().all(|other| other.key != key) {
            let (kind, params) = ask();
            self.open.push(InputRequest { key: key.to_owned(), kind, params });
        }
        None
    }
}

/// Reads the action of an elicitation; `content` reads what was agreed with.
fn elicited<T>(answer: &Value, content: impl FnOnce(&Value) -> Option<T>) -> Option<Elicited<T>> {
    match answer.get("action").and_then(Value::as_str)? {
        "accept" => content(answer).map(Elicited::Accepted),
        "decline" => Some(Elicited::Declined),
        "cancel" => Some(Elicited::Cancelled),
        _ => None,
    }
}

/// A form for the person: a flat object of texts, numbers, switches and choices.
#[derive(Debug, Clone)]
pub struct Form<T> {
    key: String,
    message: String,
    schema: Value,
    answer: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + JsonSchema> Form<T> {
    /// A form whose fields are those of `T`, under a key of its own.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of_schema(key, message, schema::of_form::<T>())
    }
}

impl<T: DeserializeOwned> Form<T> {
    /// A form with this schema, from whose answers a `T` is read.
    pub fn of_schema(key: impl Into<String>, message: impl Into<String>, schema: Value) -> Self {
        Self { key: key.into(), message: message.into(), schema, answer: PhantomData }
    }

    fn read(&self, answer: &Value) -> Option<T> {
        let content = answer.get("content").cloned().unwrap_or_else(|| json!({}));
        // A schema that cannot be checked is the client's to check alone.
        let fits =
            Schema::compile(&Json::from(&self.schema)).map_or(true, |schema| schema.violations(&content).is_empty());
        fits.then(|| serde_json::from_value(content).ok()).flatten()
    }
}

impl<T: DeserializeOwned> Question for Form<T> {
    type Answer = Elicited<T>;

    fn answered(&self, round: &mut Round<'_>) -> Option<Elicited<T>> {
        let read = |answer: Value| elicited(&answer, |answer| self.read(answer));
        round.one(&self.key, read, || {
            (InputKind::ElicitForm, json!({ "message": self.message, "requestedSchema": self.schema }))
        })
    }
}

/// A page that the person is to visit, for what must not pass through the client.
#[derive(Debug, Clone)]
pub struct Url {
    key: String,
    message: String,
    url: String,
}

impl Url {
    /// A page, why it is to be visited, and a key of its own.
    pub fn new(key: impl Into<String>, message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into(), url: url.into() }
    }
}

impl Question for Url {
    type Answer = Elicited<()>;

    fn answered(&self, round: &mut Round<'_>) -> Option<Elicited<()>> {
        let read = |answer: Value| elicited(&answer, |_| Some(()));
        round.one(&self.key, read, || (InputKind::ElicitUrl, json!({ "message": self.message, "url": self.url })))
    }
}

/// Something for the client's model to say.
#[derive(Debug, Clone)]
pub struct Sample {
    key: String,
    params: Value,
}

/// What a model is asked to say at most, unless said otherwise.
const MAX_TOKENS: u32 = 1000;

impl Sample {
    /// One message of a person, under a key of its own.
    pub fn new(key: impl Into<String>, text: impl Into<String>) -> Self {
        let content = json!({ "type": "text", "text": text.into() });
        Self::of_params(key, json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": MAX_TOKENS }))
    }

    /// These `params` of `sampling/createMessage`; with a member `tools`, only a client that lets models use tools is asked.
    pub fn of_params(key: impl Into<String>, params: Value) -> Self {
        Self { key: key.into(), params }
    }

    /// At most so many tokens; 1000 if this is not called.
    #[must_use]
    pub fn max_tokens(self, tokens: u32) -> Self {
        self.with("maxTokens", tokens.into())
    }

    /// What the model is told beforehand.
    #[must_use]
    pub fn system(self, prompt: impl Into<String>) -> Self {
        self.with("systemPrompt", prompt.into().into())
    }

    /// Tools that the model may ask to be used, as `tools/list` has them (from 2025-11-25).
    #[must_use]
    pub fn tools(self, tools: Vec<Value>) -> Self {
        self.with("tools", tools.into())
    }

    fn with(mut self, member: &str, value: Value) -> Self {
        if let Some(members) = self.params.as_object_mut() {
            members.insert(member.to_owned(), value);
        }
        self
    }
}

/// What a model said.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampled {
    /// Which model.
    pub model: String,
    /// `user` or `assistant`.
    pub role: String,
    /// One block of content, or several.
    pub content: Value,
    /// Why it stopped.
    pub stop_reason: Option<String>,
}

impl Sampled {
    /// The blocks of content.
    pub fn blocks(&self) -> &[Value] {
        match &self.content {
            Value::Array(blocks) => blocks,
            one => std::slice::from_ref(one),
        }
    }

    /// The texts, joined by line ends.
    pub fn text(&self) -> String {
        let texts = self.blocks().iter().filter_map(|block| block.get("text").and_then(Value::as_str));
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl Question for Sample {
    type Answer = Sampled;

    fn answered(&self, round: &mut Round<'_>) -> Option<Sampled> {
        let read = |answer: Value| {
            let said: Option<Sampled> = serde_json::from_value(answer).ok();
            said.filter(|said| said.blocks().iter().all(|block| block.get("type").is_some_and(Value::is_string)))
        };
        let kind = if self.params.get("tools").is_some() { InputKind::SampleWithTools } else { InputKind::Sample };
        round.one(&self.key, read, || (kind, self.params.clone()))
    }
}

/// The folders that the client works in.
#[derive(Debug, Clone)]
pub struct Roots {
    key: String,
}

impl Roots {
    /// Asks for them under a key of its own.
    pub fn new(key: impl Into<String>) -> Self {
        Self { key: key.into() }
    }
}

/// A folder that the client works in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// A `file:` URI. It is what the client says, not what we may open: confine it before use.
    pub uri: String,
    /// For people.
    pub name: Option<String>,
}

impl Question for Roots {
    type Answer = Vec<Root>;

    fn answered(&self, round: &mut Round<'_>) -> Option<Vec<Root>> {
        let read = |mut answer: Value| serde_json::from_value(answer.get_mut("roots")?.take()).ok();
        round.one(&self.key, read, || (InputKind::Roots, json!({})))
    }
}

impl<Q: Question> Question for Vec<Q> {
    type Answer = Vec<Q::Answer>;

    fn answered(&self, round: &mut Round<'_>) -> Option<Vec<Q::Answer>> {
        let answers: Vec<_> = self.iter().map(|question| question.answered(round)).collect();
        answers.into_iter().collect()
    }
}

macro_rules! together {
    ($($question:ident $answer:ident),+) => {
        impl<$($question: Question),+> Question for ($($question,)+) {
            type Answer = ($($question::Answer,)+);

            #[allow(non_snake_case, reason = "a variable is named as its type")]
            fn answered(&self, round: &mut Round<'_>) -> Option<Self::Answer> {
                let ($($question,)+) = self;
                let ($($answer,)+) = ($($question.answered(round),)+);
                Some(($($answer?,)+))
            }
        }
    };
}

together!(A a, B b);
together!(A a, B b, C c);
together!(A a, B b, C c, D d);
