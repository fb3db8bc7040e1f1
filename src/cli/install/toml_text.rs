//! TOML files that belong to others, changed where they stand.
//!
//! Promises: what is not changed stays byte for byte; after each change the text is read again, and one that does not
//! say exactly what was meant is not kept. What cannot be changed so is refused, with its place.

use std::ops::Range;

use serde_json::{Map, Value};
use toml_edit::{Document, Item, Key, Table, TableLike};
use twodoor::surface::json_text::{Edit, Flaw, Ordered};
use twodoor::surface::mark;

/// A TOML text that is changed where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TomlText {
    marked: bool,
    text: String,
}

/// How an entry is written.
enum Written {
    /// `[table.name]` and those beneath it: their lines, the entry's own first.
    Tables(Vec<Range<usize>>),
    /// `name = { … }`: its line, and the value on it.
    Value { line: Range<usize>, value: Range<usize> },
}

impl TomlText {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Flaw> {
        let (marked, text) = mark::unmarked(bytes)?;
        let read = Self { marked, text: text.to_owned() };
        read.parse()?;
        Ok(read)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        mark::marked(self.marked, &self.text)
    }

    /// What it says.
    pub(super) fn value(&self) -> Value {
        self.parse().map_or(Value::Null, |document| valued(document.as_item()))
    }

    /// Where an entry stands.
    pub(super) fn place(&self, table: &str, name: &str) -> Option<(usize, usize)> {
        let document = self.parse().ok()?;
        let (key, _) = entry(&document, table, name)?;
        let at = Flaw::at(&self.text, key.span()?.start, "");
        Some((at.line, at.column))
    }

    /// Puts an entry there, in the place of another of its name if there is one.
    pub(super) fn set(&mut self, table: &str, name: &str, members: &[(String, Ordered)]) -> Result<Edit, Flaw> {
        let mut meant = self.value();
        let document = self.parse()?;
        if let Some(item) = document.get(table)
            && !item.is_table_like()
        {
            let start = item.span().map_or(0, |span| span.start);
            return Err(Flaw::at(&self.text, start, format!("`{table}` is no table: expected one")));
        }
        let newline = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let block = block(table, name, members, newline);
        let (splices, edit) = match entry(&document, table, name) {
            None => {
                let kept = self.text.trim_end_matches(['\n', '\r']).len();
                let end = self.text.get(kept..).unwrap_or_default();
                let gap = match (kept, end.matches('\n').count()) {
                    (0, _) => String::new(),
                    (_, 0) => format!("{newline}{newline}"),
                    (_, 1) => newline.to_owned(),
                    _ => String::new(),
                };
                let with = format!("{gap}{block}");
                (vec![(self.text.len()..self.text.len(), with)], Edit { removed: String::new(), added: block })
            }
            Some((key, item)) => {
                let (splices, removed, added) = match self.written(key, item)? {
                    Written::Tables(ranges) => {
                        let removed = self.joined(&ranges);
                        let with = |(index, range): (usize, Range<usize>)| {
                            (range, if index == 0 { block.clone() } else { String::new() })
                        };
                        (ranges.into_iter().enumerate().map(with).collect(), removed, block)
                    }
                    Written::Value { value, .. } => {
                        let inline = inline(members);
                        (vec![(value.clone(), inline.clone())], self.joined(&[value]), inline)
                    }
                };
                (splices, Edit { removed, added })
            }
        };
        drop(document);
        if let Some(root) = meant.as_object_mut() {
            let table = root.entry(table).or_insert_with(|| Value::Object(Map::new()));
            if let Some(table) = table.as_object_mut() {
                table.insert(name.to_owned(), Ordered::Map(members.to_vec()).value());
            }
        }
        self.apply(splices, &meant)?;
        Ok(edit)
    }

    /// Takes an entry away, its tables with it.
    pub(super) fn remove(&mut self, table: &str, name: &str) -> Result<Edit, Flaw> {
        let mut meant = self.value();
        let document = self.parse()?;
        let Some((key, item)) = entry(&document, table, name) else {
            return Err(Flaw::at(&self.text, 0, format!("there is no {name:?} to remove")));
        };
        let ranges = match self.written(key, item)? {
            Written::Tables(ranges) => ranges,
            Written::Value { line, .. } => vec![line],
        };
        let edit = Edit { removed: self.joined(&ranges), added: String::new() };
        drop(document);
        let header = if let Some(object) = meant.get_mut(table).and_then(Value::as_object_mut) {
            object.remove(name);
            object.is_empty()
        } else {
            false
        };
        let splices: Vec<_> = ranges.into_iter().map(|range| (range, String::new())).collect();
        // With the last entry a table that no header names is gone too.
        if header && self.apply(splices.clone(), &meant).is_ok() {
            return Ok(edit);
        }
        if header && let Some(root) = meant.as_object_mut() {
            root.remove(table);
        }
        self.apply(splices, &meant)?;
        Ok(edit)
    }

    fn parse(&self) -> Result<Document<&str>, Flaw> {
        Document::parse(self.text.as_str()).map_err(|error| {
            let start = error.span().map_or(self.text.len(), |span| span.start);
            Flaw::at(&self.text, start, error.message())
        })
    }

    fn joined(&self, ranges: &[Range<usize>]) -> String {
        ranges.iter().filter_map(|range| self.text.get(range.clone())).collect()
    }

    fn written(&self, key: &Key, item: &Item) -> Result<Written, Flaw> {
        let start = key.span().map_or(0, |span| span.start);
        let by_hand = || Flaw::at(&self.text, start, "the entry is written in a way that only you can change by hand");
        match item {
            Item::Table(table) if !table.is_dotted() => {
                let mut spans = Vec::new();
                spans_of(table, &mut spans).ok_or_else(by_hand)?;
                let ranges: Vec<_> = spans.iter().map(|span| self.lines(span)).collect();
                Ok(Written::Tables(ranges))
            }
            Item::Value(value) => {
                let value = value.span().ok_or_else(by_hand)?;
                Ok(Written::Value { line: self.lines(&(start..value.end)), value })
            }
            _ => Err(by_hand()),
        }
    }

    /// The whole lines that a span stands on.
    fn lines(&self, span: &Range<usize>) -> Range<usize> {
        let before = self.text.get(..span.start).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let rest = self.text.get(span.end..).unwrap_or_default();
        let end = rest.find('\n').map_or(self.text.len(), |at| span.end + at + 1);
        start..end
    }

    fn apply(&mut self, mut splices: Vec<(Range<usize>, String)>, meant: &Value) -> Result<(), Flaw> {
        splices.sort_by_key(|(range, _)| range.start);
        let mut text = self.text.clone();
        for (range, with) in splices.iter().rev() {
            text.replace_range(range.clone(), with);
        }
        let changed = Self { marked: self.marked, text };
        if changed.parse().is_ok() && changed.value() == *meant {
            *self = changed;
            return Ok(());
        }
        let at = splices.first().map_or(0, |(range, _)| range.start);
        Err(Flaw::at(&self.text, at, "this place cannot be changed without harm: change it by hand"))
    }
}

fn entry<'d>(document: &'d Document<&str>, table: &str, name: &str) -> Option<(&'d Key, &'d Item)> {
    let table: &dyn TableLike = document.get(table)?.as_table_like()?;
    table.get_key_value(name)
}

/// The spans of a table and of those beneath it.
fn spans_of(table: &Table, spans: &mut Vec<Range<usize>>) -> Option<()> {
    if !table.is_implicit() && !table.is_dotted() {
        // The span of a table is that of its header.
        let header = table.span()?;
        spans.push(header.start..end_of(table, header.end)?);
    }
    for (_, item) in table.iter() {
        match item {
            Item::Table(table) => spans_of(table, spans)?,
            Item::ArrayOfTables(tables) => {
                for table in tables.iter() {
                    spans_of(table, spans)?;
                }
            }
            Item::None | Item::Value(_) => {}
        }
    }
    Some(())
}

/// The end of the last value that stands beneath a table's own header.
fn end_of(table: &Table, least: usize) -> Option<usize> {
    let mut end = least;
    for (_, item) in table.iter() {
        match item {
            Item::Value(value) => end = end.max(value.span()?.end),
            Item::Table(dotted) if dotted.is_dotted() => end = end_of(dotted, end)?,
            Item::None | Item::Table(_) | Item::ArrayOfTables(_) => {}
        }
    }
    Some(end)
}

fn block(table: &str, name: &str, members: &[(String, Ordered)], newline: &str) -> String {
    let mut text = format!("[{table}.{}]{newline}", Key::new(name));
    for (key, value) in members {
        text.push_str(&format!("{} = {}{newline}", Key::new(key), written(value)));
    }
    text
}

fn inline(members: &[(String, Ordered)]) -> String {
    let members: Vec<_> =
        members.iter().map(|(key, value)| format!("{} = {}", Key::new(key), written(value))).collect();
    format!("{{ {} }}", members.join(", "))
}

fn written(value: &Ordered) -> String {
    match value {
        Ordered::Text(text) => toml_edit::Value::from(text.as_str()).to_string(),
        Ordered::Flag(flag) => flag.to_string(),
        Ordered::List(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        Ordered::Map(members) => inline(members),
    }
}

fn valued(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => plain(value),
        Item::Table(table) => {
            Value::Object(table.iter().map(|(key, item)| (key.to_owned(), valued(item))).collect::<Map<_, _>>())
        }
        Item::ArrayOfTables(tables) => {
            let tables = tables.iter().map(|t| t.iter().map(|(key, item)| (key.to_owned(), valued(item))).collect());
            Value::Array(tables.map(Value::Object).collect())
        }
    }
}

fn plain(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => Value::String(text.value().clone()),
        Toml::Integer(number) => Value::from(*number.value()),
        Toml::Boolean(flag) => Value::Bool(*flag.value()),
        // Only compared: as they are written.
        Toml::Float(number) => Value::String(format!("float {}", number.value())),
        Toml::Datetime(time) => Value::String(format!("time {}", time.value())),
        Toml::Array(items) => Value::Array(items.iter().map(plain).collect()),
        Toml::InlineTable(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.to_owned(), plain(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn members() -> Vec<(String, Ordered)> {
        vec![
            ("command".to_owned(), "/bin/x".into()),
            ("args".to_owned(), Ordered::List(vec!["serve".into(), "/s".into()])),
        ]
    }

    fn added(text: &str) -> String {
        let mut toml = TomlText::read(text.as_bytes()).unwrap();
        toml.set("mcp_servers", "new", &members()).unwrap();
        String::from_utf8(toml.bytes()).unwrap()
    }

    fn removed(text: &str) -> String {
        let mut toml = TomlText::read(text.as_bytes()).unwrap();
        toml.remove("mcp_servers", "new").unwrap();
        String::from_utf8(toml.bytes()).unwrap()
    }

    const BLOCK: &str = "[mcp_servers.new]\ncommand = \"/bin/x\"\nargs = [\"serve\", \"/s\"]\n";

    #[test]
    fn an_entry_is_put_at_the_end() {
        for (before, gap) in [
            ("", ""),
            ("# mine\n", "\n"),
            ("a = 1", "\n\n"),
            ("a = 1 # x\n\n", ""),
            ("[mcp_servers.old]\ncommand = 'x'\n\n[tui]\nx = 1.50\nt = 1979-05-27\n", "\n"),
            ("[mcp_servers]\nold = { command = \"x\" }\n", "\n"),
            ("mcp_servers.old.command = \"x\"\n", "\n"),
        ] {
            assert_eq!(added(before), format!("{before}{gap}{BLOCK}"), "{before}");
        }
        assert_eq!(added("\u{feff}a = 1\r\n"), format!("\u{feff}a = 1\r\n\r\n{}", BLOCK.replace('\n', "\r\n")));
    }

    #[test]
    fn an_entry_is_replaced_and_removed_where_it_stands() {
        let around = |inside: &str| format!("# top\n[a]\nx = 1 # y\n\n# ours\n{inside}\n# next\n[b]\nz = [\n  1,\n]\n");
        for old in [
            "[mcp_servers.new]\nurl = \"http://x\" # old\n",
            "[mcp_servers.new]\n# why\ncommand = \"y\"\nargs = [\n  \"z\",\n]\n[mcp_servers.new.env]\nA = \"1\"\n",
            "[mcp_servers.\"new\"]\n",
        ] {
            assert_eq!(added(&around(old)), around(BLOCK), "{old}");
            assert_eq!(removed(&around(old)), around(""), "{old}");
        }
        let inline = "[mcp_servers]\nold = { a = 1 }\nnew = { url = \"x\" } # c\n";
        let changed =
            "[mcp_servers]\nold = { a = 1 }\nnew = { command = \"/bin/x\", args = [\"serve\", \"/s\"] } # c\n";
        assert_eq!(added(inline), changed);
        assert_eq!(removed(inline), "[mcp_servers]\nold = { a = 1 }\n");
        let apart = "[mcp_servers.new]\nx = 1\n[a]\ny = 1\n[mcp_servers.new.env]\nz = 1\n[b]\n";
        assert_eq!(removed(apart), "[a]\ny = 1\n[b]\n");
    }

    #[test]
    fn what_is_broken_or_cannot_be_changed_is_refused_with_its_place() {
        let flaw = TomlText::read(b"a = 1\nb = \n").unwrap_err();
        assert_eq!(flaw.line, 2, "{flaw:?}");
        assert_eq!(TomlText::read(b"a = 1\n\xff").unwrap_err().line, 2);
        assert!(TomlText::read(b"a = 1\na = 2\n").is_err());
        for (text, line) in [
            ("x = 1\nmcp_servers = 1\n", 2),
            ("x = 1\nmcp_servers = { old = { command = \"x\" } }\n", 3),
            ("x = 1\nmcp_servers.new.command = \"x\"\n", 2),
            ("x = 1\n[[mcp_servers.new]]\ncommand = \"x\"\n", 2),
            ("[[mcp_servers]]\nx = 1\n", 1),
        ] {
            let mut toml = TomlText::read(text.as_bytes()).unwrap();
            let flaw = toml.set("mcp_servers", "new", &members()).unwrap_err();
            assert_eq!(flaw.line, line, "{text}: {flaw:?}");
            assert_eq!(toml.bytes(), text.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_fail_otherwise_than_by_an_error(
            lines in prop::collection::vec(prop::sample::select(vec![
                "a = 1", "# c", "", "[mcp_servers]", "[mcp_servers.new]", "[mcp_servers.new.env]", "new = { x = 1 }",
                "new.x = 1", "mcp_servers.x = 2", "[mcp_servers.old]", "s = \"\"\"", "\"\"\"", "[[t]]", "\r", "x = [", "]",
            ]), 0..8),
        ) {
            let text = lines.join("\n");
            let Ok(mut toml) = TomlText::read(text.as_bytes()) else { return Ok(()) };
            prop_assert_eq!(toml.bytes(), text.as_bytes());
            let before = toml.value();
            if toml.set("mcp_servers", "new", &members()).is_ok() {
                toml.remove("mcp_servers", "new").unwrap();
                if before.get("mcp_servers").is_none_or(|table| table.get("new").is_none()) {
                    let empty = |value: &Value| value.get("mcp_servers").and_then(Value::as_object).is_none_or(Map::is_empty);
                    prop_assert!(toml.value() == before || empty(&before));
                }
            }
        }
    }
}
