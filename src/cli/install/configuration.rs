//! A client's configuration, of whatever format, and the entries in it.

use serde_json::Value;
use twodoor::surface::json_text::{Edit, Flaw, JsonText, Ordered, Step};

use super::client::Format;
use super::toml_text::TomlText;

/// A configuration as it was read, and as it is to be written.
pub(super) enum Configuration {
    /// JSON, with comments or not.
    Json(JsonText),
    /// TOML.
    Toml(TomlText),
}

impl Configuration {
    pub(super) fn read(format: Format, bytes: &[u8]) -> Result<Self, Flaw> {
        match format {
            Format::Json | Format::Jsonc => JsonText::read(bytes).map(Self::Json),
            Format::Toml => TomlText::read(bytes).map(Self::Toml),
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Json(json) => json.bytes(),
            Self::Toml(toml) => toml.bytes(),
        }
    }

    pub(super) fn value(&self) -> Value {
        match self {
            Self::Json(json) => json.value(),
            Self::Toml(toml) => toml.value(),
        }
    }

    /// The entry of this name, if there is one.
    pub(super) fn entry(&self, keys: &[&str], name: &str) -> Option<Value> {
        let value = self.value();
        let table = keys.iter().try_fold(&value, |value, key| value.get(*key))?;
        table.get(name).cloned()
    }

    /// Line and column of an entry.
    pub(super) fn place(&self, keys: &[&str], name: &str) -> Option<(usize, usize)> {
        match self {
            Self::Json(json) => json.place(&steps(keys, name)),
            Self::Toml(toml) => toml.place(keys.first()?, name),
        }
    }

    /// Puts an entry there.
    pub(super) fn set(&mut self, keys: &[&str], name: &str, entry: &[(String, Ordered)]) -> Result<Edit, Flaw> {
        match self {
            Self::Json(json) => json.set(&steps(keys, name), &Ordered::Map(entry.to_vec())),
            Self::Toml(toml) => toml.set(keys.first().unwrap_or(&""), name, entry),
        }
    }

    /// Takes an entry away.
    pub(super) fn remove(&mut self, keys: &[&str], name: &str) -> Result<Edit, Flaw> {
        match self {
            Self::Json(json) => json.remove(keys, name),
            Self::Toml(toml) => toml.remove(keys.first().unwrap_or(&""), name),
        }
    }

    /// What the client's own reader stumbles over although ours does not.
    pub(super) fn beyond_plain(&self, format: Format) -> Option<Flaw> {
        match self {
            Self::Json(json) if format == Format::Json => json.beyond_plain(),
            Self::Json(_) | Self::Toml(_) => None,
        }
    }

    /// A whole configuration with this entry alone.
    pub(super) fn alone(format: Format, keys: &[&str], name: &str, entry: &[(String, Ordered)]) -> String {
        let made = Self::read(format, b"").and_then(|mut made| made.set(keys, name, entry).map(|_| made.bytes()));
        made.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// An entry as people read it.
    pub(super) fn shown(entry: &Value) -> String {
        format!("{entry:#}")
    }
}

fn steps<'a>(keys: &[&'a str], name: &'a str) -> Vec<Step<'a>> {
    keys.iter().chain([&name]).map(|key| Step::Key(key)).collect()
}
