//! The few words with which answers are put together: ordered JSON, as a model reads it.

use crate::protocol::Json;

/// A JSON object that keeps the order in which it is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Object(Vec<(String, Json)>);

impl Object {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one member more.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Word>) -> Self {
        self.put(key, value);
        self
    }

    /// With one member more if there is a value.
    #[must_use]
    pub fn with_some(self, key: &str, value: Option<impl Into<Word>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Adds a member, or replaces the one of that key.
    pub fn put(&mut self, key: &str, value: impl Into<Word>) {
        let Word(value) = value.into();
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// The object as a value.
    pub fn into_json(self) -> Json {
        Json::Object(self.0)
    }
}

/// Anything that can be a member.
#[derive(Debug, Clone, PartialEq)]
pub struct Word(Json);

impl Word {
    /// As a value.
    pub fn into_json(self) -> Json {
        self.0
    }
}

impl From<Json> for Word {
    fn from(value: Json) -> Self {
        Self(value)
    }
}

impl From<Object> for Word {
    fn from(value: Object) -> Self {
        Self(value.into_json())
    }
}

impl From<&str> for Word {
    fn from(value: &str) -> Self {
        Self(Json::String(value.to_owned()))
    }
}

impl From<String> for Word {
    fn from(value: String) -> Self {
        Self(Json::String(value))
    }
}

impl From<bool> for Word {
    fn from(value: bool) -> Self {
        Self(Json::Bool(value))
    }
}

impl From<usize> for Word {
    fn from(value: usize) -> Self {
        Self(Json::Number(value.to_string().into()))
    }
}

impl From<u64> for Word {
    fn from(value: u64) -> Self {
        Self(Json::Number(value.to_string().into()))
    }
}

impl From<i32> for Word {
    fn from(value: i32) -> Self {
        Self(Json::Number(value.to_string().into()))
    }
}

impl<T: Into<Word>> From<Option<T>> for Word {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self(Json::Null), Into::into)
    }
}

impl<T: Into<Word>> From<Vec<T>> for Word {
    fn from(values: Vec<T>) -> Self {
        Self(Json::Array(values.into_iter().map(|value| value.into().0).collect()))
    }
}

/// The beginning of a text, at most so many characters.
pub fn beginning(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}
