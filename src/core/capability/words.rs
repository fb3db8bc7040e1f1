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

/// A text of at most so many characters: one that is longer ends between two words, where it can, with `…`.
pub fn summary(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut = beginning(text, most.saturating_sub(1));
    let is_whole = text.get(cut.len()..).is_some_and(|rest| rest.starts_with(char::is_whitespace));
    let at_a_word = cut.rfind(char::is_whitespace).filter(|at| !is_whole && at * 2 > cut.len());
    let cut = at_a_word.and_then(|at| cut.get(..at)).unwrap_or(cut);
    format!("{}…", cut.trim_end_matches(|c: char| c.is_whitespace() || ",;:-".contains(c)))
}

/// The beginning of a text, at most so many characters.
pub fn beginning(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_text_ends_between_two_words_and_says_that_it_goes_on() {
        for (text, most, expected) in [
            ("Reads one sheet.", 16, "Reads one sheet."),
            ("Reads one sheet.", 12, "Reads one…"),
            ("Reads one sheet.", 10, "Reads one…"),
            ("Reads, and more", 8, "Reads…"),
            ("ünterschied", 5, "ünte…"),
            ("a bcdefghij", 8, "a bcdef…"),
        ] {
            let said = summary(text, most);
            assert!(said == expected && said.chars().count() <= most, "{said:?}");
        }
    }
}
