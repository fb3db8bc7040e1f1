//! Values as they are to be written: with an order of members, on one line or on several.

use serde_json::Value;

/// A value whose members keep the order in which they were put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ordered {
    /// A text.
    Text(String),
    /// `true` or `false`
    Flag(bool),
    /// Values in a row.
    List(Vec<Self>),
    /// Members.
    Map(Vec<(String, Self)>),
}

impl From<&str> for Ordered {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Ordered {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Ordered {
    /// A mapping of these members.
    pub fn map<K: Into<String>>(members: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// The same value without an order of members.
    pub fn value(&self) -> Value {
        match self {
            Self::Text(text) => Value::String(text.clone()),
            Self::Flag(flag) => Value::Bool(*flag),
            Self::List(items) => Value::Array(items.iter().map(Self::value).collect()),
            Self::Map(members) => Value::Object(members.iter().map(|(key, v)| (key.clone(), v.value())).collect()),
        }
    }

    /// As a file of its own, indented by two spaces.
    pub fn text(&self) -> String {
        format!("{}\n", self.render("", "  ", "\n"))
    }

    pub(super) fn render(&self, base: &str, unit: &str, newline: &str) -> String {
        let inner = format!("{base}{unit}");
        match self {
            Self::Map(members) if !members.is_empty() => {
                let line = |(key, value): &(String, Self)| {
                    format!("{inner}{}: {}", quoted(key), value.render(&inner, unit, newline))
                };
                let lines: Vec<_> = members.iter().map(line).collect();
                format!("{{{newline}{}{newline}{base}}}", lines.join(&format!(",{newline}")))
            }
            Self::List(items) if items.iter().any(|item| matches!(item, Self::Map(_))) => {
                let line = |item: &Self| format!("{inner}{}", item.render(&inner, unit, newline));
                let lines: Vec<_> = items.iter().map(line).collect();
                format!("[{newline}{}{newline}{base}]", lines.join(&format!(",{newline}")))
            }
            other => other.on_one_line(),
        }
    }

    pub(super) fn on_one_line(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Flag(flag) => flag.to_string(),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::on_one_line).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(members) if members.is_empty() => "{}".to_owned(),
            Self::Map(members) => {
                let members: Vec<_> =
                    members.iter().map(|(key, value)| format!("{}: {}", quoted(key), value.on_one_line())).collect();
                format!("{{ {} }}", members.join(", "))
            }
        }
    }
}

/// A text as JSON has it.
pub(super) fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}
