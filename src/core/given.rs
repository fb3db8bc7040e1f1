//! What a call was given, for servers that others run: arguments as sent, and declared defaults.
//!
//! Promises: a value goes on with the characters it was sent with, numbers keep their digits.

use std::fmt::Write as _;

use super::command::argv::{text_of, text_of_default};
use crate::protocol::json::JsonLimits;
use crate::protocol::{Arguments, Json, RawJson};
use crate::surface::declaration::Argument;

/// The values of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'c> {
    sent: &'c Arguments,
    declared: &'c [Argument],
}

impl<'c> Given<'c> {
    pub(super) fn new(sent: &'c Arguments, declared: &'c [Argument]) -> Self {
        Self { sent, declared }
    }

    fn default(&self, name: &str) -> Option<&'c Json> {
        self.declared.iter().find(|argument| argument.name == name)?.default.as_ref()
    }

    /// The text of a value; `None` where there is none, or it is null.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.sent.get(name) {
            Some(sent) => text_of(sent),
            None => self.default(name).and_then(text_of_default),
        }
    }

    /// The texts of a value: of an array those of its elements, of anything else the one it has.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        match self.json(name).and_then(|text| Json::parse(text.as_bytes(), &JsonLimits::default()).ok()) {
            Some(Json::Array(items)) => items.iter().filter_map(text_of_default).collect(),
            _ => self.text(name).into_iter().collect(),
        }
    }

    /// The value as JSON, as it was sent.
    pub(super) fn json(&self, name: &str) -> Option<String> {
        match self.sent.get(name) {
            Some(sent) => Some(sent.as_str().to_owned()),
            None => self.default(name).map(Json::to_text),
        }
    }

    /// All of them as one object: members as sent, then the defaults of those that were not.
    pub(super) fn object(&self) -> String {
        let sent = self.sent.iter().map(|(name, value)| (name, value.as_str().to_owned()));
        let absent = self.declared.iter().filter(|argument| self.sent.get(&argument.name).is_none());
        let defaults = absent.filter_map(|a| Some((a.name.as_str(), a.default.as_ref()?.to_text())));
        let mut text = String::from("{");
        for (name, value) in sent.chain(defaults) {
            let comma = if text.len() > 1 { "," } else { "" };
            let _ = write!(text, "{comma}{}:{value}", RawJson::encode(&name).as_str());
        }
        text.push('}');
        text
    }
}
