//! JSON files that belong to others, changed where they stand.
//!
//! Promises: what is not changed stays byte for byte, comments, order, indentation, line ends and a byte order mark
//! included; after each change the text is read again, and one that does not say exactly what was meant is not kept.
//! Comments and trailing commas are read, nothing else that JSON has not. Used by `export`, and by the command line for
//! the configurations of clients.

mod ordered;

use super::mark;
use jsonc_parser::ast::{self, ObjectProp};
use jsonc_parser::common::{Range, Ranged as _};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

pub use ordered::Ordered;
use ordered::quoted;

/// The most bytes of a file that is read.
pub const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found and what was expected.
    pub problem: String,
}

impl Flaw {
    /// A flaw at a byte of a text.
    pub fn at(text: &str, byte: usize, problem: impl Into<String>) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { line, column, problem: problem.into() }
    }
}

/// One step from a value to one within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The member of this name.
    Key(&'a str),
    /// The item at this place, from 0.
    Item(usize),
}

/// What a change took away and what it put there, as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edit {
    /// Text that is gone.
    pub removed: String,
    /// Text that is new.
    pub added: String,
}

/// A JSON text that is changed where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText {
    marked: bool,
    text: String,
}

impl JsonText {
    /// Reads a text. A blank one is one without a value.
    pub fn read(bytes: &[u8]) -> Result<Self, Flaw> {
        let (marked, text) = mark::unmarked(bytes)?;
        let read = Self { marked, text: text.to_owned() };
        read.parse()?;
        Ok(read)
    }

    /// The whole text, as it is written to a file.
    pub fn bytes(&self) -> Vec<u8> {
        mark::marked(self.marked, &self.text)
    }

    /// What it says; null if it says nothing.
    pub fn value(&self) -> Value {
        self.parse().ok().flatten().map_or(Value::Null, |value| valued(&value))
    }

    /// The first comment, or comma with nothing behind it, which a reader of plain JSON refuses.
    pub fn beyond_plain(&self) -> Option<Flaw> {
        let options = ParseOptions { allow_comments: false, allow_trailing_commas: false, ..options() };
        let error = parse_to_ast(&self.text, &collected(), &options).err()?;
        Some(Flaw::at(&self.text, error.range().start, said(error.kind())))
    }

    /// Where a value stands, if it is there.
    pub fn place(&self, path: &[Step<'_>]) -> Option<(usize, usize)> {
        let root = self.parse().ok()??;
        let mut value = &root;
        for step in path {
            value = match (step, value) {
                (Step::Key(key), ast::Value::Object(object)) => &object.get(key)?.value,
                (Step::Item(index), ast::Value::Array(array)) => array.elements.get(*index)?,
                _ => return None,
            };
        }
        let at = Flaw::at(&self.text, value.start(), "");
        Some((at.line, at.column))
    }

    /// Puts a value at a place; objects on the way there are made.
    pub fn set(&mut self, path: &[Step<'_>], value: &Ordered) -> Result<Edit, Flaw> {
        let mut meant = self.value();
        let plain = value.value();
        let (splices, edit) = match self.parse()? {
            None => self.fresh(path, value)?,
            Some(root) => self.set_beneath(&root, path, value)?,
        };
        put(&mut meant, path, plain);
        self.apply(splices, &meant)?;
        Ok(edit)
    }

    /// Puts a value behind those of a list.
    pub fn push(&mut self, path: &[Step<'_>], value: &Ordered) -> Result<Edit, Flaw> {
        let mut meant = self.value();
        let missing = || Flaw::at(&self.text, 0, "there is no list to add to");
        let root = self.parse()?.ok_or_else(missing)?;
        let Some(list @ ast::Value::Array(array)) = self.walk(&root, path)? else { return Err(missing()) };
        let first = array.elements.first().map(ast::Value::range);
        let last = array.elements.last().map(ast::Value::range);
        let (splices, edit) = self.insertion(list.range(), first, last, "", value);
        if let Some(list) = reach(&mut meant, path).and_then(Value::as_array_mut) {
            list.push(value.value());
        }
        self.apply(splices, &meant)?;
        Ok(edit)
    }

    /// Takes a member away. Comments stay.
    pub fn remove(&mut self, path: &[&str], key: &str) -> Result<Edit, Flaw> {
        let mut meant = self.value();
        let steps: Vec<_> = path.iter().map(|key| Step::Key(key)).collect();
        let missing = || Flaw::at(&self.text, 0, format!("there is no {key:?} to remove"));
        let root = self.parse()?.ok_or_else(missing)?;
        let Some(ast::Value::Object(object)) = self.walk(&root, &steps)? else { return Err(missing()) };
        let prop = self.only(object, key)?.ok_or_else(missing)?;
        let (splices, edit) = self.removal(object, prop);
        if let Some(object) = reach(&mut meant, &steps).and_then(Value::as_object_mut) {
            object.remove(key);
        }
        self.apply(splices, &meant)?;
        Ok(edit)
    }

    fn parse(&self) -> Result<Option<ast::Value<'_>>, Flaw> {
        let flaw =
            |error: jsonc_parser::errors::ParseError| Flaw::at(&self.text, error.range().start, said(error.kind()));
        Ok(parse_to_ast(&self.text, &collected(), &options()).map_err(flaw)?.value)
    }

    fn slice(&self, range: std::ops::Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// The one member of a name. Readers differ in which of two they take.
    fn only<'v, 'a>(&self, object: &'v ast::Object<'a>, key: &str) -> Result<Option<&'v ObjectProp<'a>>, Flaw> {
        let mut found = object.properties.iter().filter(|prop| prop.name.as_str() == key);
        let first = found.next();
        match found.next() {
            Some(second) => Err(Flaw::at(&self.text, second.start(), format!("{key:?} is there twice: expected once"))),
            None => Ok(first),
        }
    }

    fn walk<'v, 'a>(&self, root: &'v ast::Value<'a>, path: &[Step<'_>]) -> Result<Option<&'v ast::Value<'a>>, Flaw> {
        let mut value = root;
        for step in path {
            let next = match (step, value) {
                (Step::Key(key), ast::Value::Object(object)) => self.only(object, key)?.map(|prop| &prop.value),
                (Step::Item(index), ast::Value::Array(array)) => array.elements.get(*index),
                (step, other) => return Err(self.unexpected(*step, other)),
            };
            let Some(next) = next else { return Ok(None) };
            value = next;
        }
        Ok(Some(value))
    }

    fn unexpected(&self, step: Step<'_>, value: &ast::Value<'_>) -> Flaw {
        let expected = if matches!(step, Step::Key(_)) { "an object" } else { "a list" };
        Flaw::at(&self.text, value.start(), format!("here is {}: expected {expected}", kind(value)))
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// The white space that a line begins with, if nothing else stands before the byte.
    fn indent_before(&self, byte: usize) -> Option<&str> {
        let before = self.slice(0..byte);
        let line = before.rsplit('\n').next().unwrap_or_default();
        line.chars().all(|c| c == ' ' || c == '\t').then_some(line)
    }

    /// The white space that the line of a byte begins with.
    fn indent_of_line(&self, byte: usize) -> &str {
        let before = self.slice(0..byte);
        let line = before.rsplit('\n').next().unwrap_or_default();
        line.find(|c| c != ' ' && c != '\t').and_then(|end| line.get(..end)).unwrap_or(line)
    }

    /// One level of indentation, as the file has it.
    fn unit(&self) -> &str {
        let root = self.parse().ok().flatten();
        let first = root.as_ref().and_then(|root| root.as_object()).and_then(|object| object.properties.first());
        let start = first.map(|prop| prop.start());
        let indent = start.and_then(|start| self.indent_before(start).filter(|_| self.slice(0..start).contains('\n')));
        indent.filter(|indent| !indent.is_empty()).unwrap_or("  ")
    }

    /// A text without a value gets one, behind its comments.
    fn fresh(&self, path: &[Step<'_>], value: &Ordered) -> Result<(Vec<Splice>, Edit), Flaw> {
        let mut whole = value.clone();
        for step in path.iter().rev() {
            let Step::Key(key) = step else { return Err(Flaw::at(&self.text, 0, "there is no list to add to")) };
            whole = Ordered::map([(*key, whole)]);
        }
        let newline = self.newline();
        let kept = self.text.trim_end().len();
        let before = if kept == 0 { "" } else { newline };
        let text = format!("{before}{}{newline}", whole.render("", "  ", newline));
        let edit = Edit { removed: String::new(), added: text.trim_start().to_owned() };
        Ok((vec![Splice { range: kept..self.text.len(), with: text }], edit))
    }

    fn set_beneath(
        &self,
        root: &ast::Value<'_>,
        path: &[Step<'_>],
        value: &Ordered,
    ) -> Result<(Vec<Splice>, Edit), Flaw> {
        let mut current = root;
        let mut steps = path.iter();
        while let Some(step) = steps.next() {
            match (step, current) {
                (Step::Key(key), ast::Value::Object(object)) => match self.only(object, key)? {
                    Some(prop) => current = &prop.value,
                    None => {
                        let mut whole = value.clone();
                        for step in steps.as_slice().iter().rev() {
                            let Step::Key(key) = step else { return Err(self.unexpected(*step, current)) };
                            whole = Ordered::map([(*key, whole)]);
                        }
                        let first = object.properties.first().map(ObjectProp::range);
                        let last = object.properties.last().map(ObjectProp::range);
                        let name = format!("{}: ", quoted(key));
                        return Ok(self.insertion(object.range, first, last, &name, &whole));
                    }
                },
                (Step::Item(index), ast::Value::Array(array)) => match array.elements.get(*index) {
                    Some(item) => current = item,
                    None => return Err(Flaw::at(&self.text, array.start(), format!("there is no item {index}"))),
                },
                (step, other) => return Err(self.unexpected(*step, other)),
            }
        }
        let range = current.start()..current.end();
        let old = self.slice(range.clone());
        let base = self.indent_of_line(range.start);
        // What stood on one line stays on one.
        let new = if old.contains('\n') || current.as_string_lit().is_some() || !self.text.contains('\n') {
            value.render(base, self.unit(), self.newline())
        } else {
            value.on_one_line()
        };
        let edit = Edit { removed: old.to_owned(), added: new.clone() };
        Ok((vec![Splice { range, with: new }], edit))
    }

    /// Something new behind the last member or item of what stands at a place.
    fn insertion(
        &self,
        container: Range,
        first: Option<Range>,
        last: Option<Range>,
        name: &str,
        value: &Ordered,
    ) -> (Vec<Splice>, Edit) {
        let (open, close) = (container.start + 1, container.end.saturating_sub(1));
        let newline = self.newline();
        let outer = self.indent_of_line(container.start).to_owned();
        let indent = match first {
            Some(first) => self.indent_before(first.start).filter(|_| self.slice(open..first.start).contains('\n')),
            None => None,
        };
        let indent = indent.map_or_else(|| format!("{outer}{}", self.unit()), str::to_owned);
        let inner = self.slice(open..close);
        let after = open + inner.trim_end().len();
        let mut splices = Vec::new();
        let one_line = last.is_some() && !inner.contains('\n');
        let shown = if one_line { value.on_one_line() } else { value.render(&indent, self.unit(), newline) };
        let mut behind = String::new();
        if let Some(last) = last {
            match self.comma(last.end, close) {
                Some(_) => behind.push(','),
                None => splices.push(Splice { range: last.end..last.end, with: ",".to_owned() }),
            }
        }
        let member = format!("{name}{shown}");
        let with = if one_line {
            format!(" {member}{behind}")
        } else {
            let closes_below = self.slice(after..close).contains('\n');
            let end = if closes_below { String::new() } else { format!("{newline}{outer}") };
            format!("{newline}{indent}{member}{behind}{end}")
        };
        // White space between the last text and the closing brace stays, but where there is nothing else at all.
        let range =
            if last.is_none() && inner.trim().is_empty() && !inner.contains('\n') { open..close } else { after..after };
        splices.push(Splice { range, with });
        (splices, Edit { removed: String::new(), added: format!("{indent}{member}") })
    }

    fn removal(&self, object: &ast::Object<'_>, prop: &ObjectProp<'_>) -> (Vec<Splice>, Edit) {
        let (mut start, mut end) = (prop.start(), prop.end());
        let close = object.end().saturating_sub(1);
        let indent = self.indent_before(start).unwrap_or_default();
        let edit = Edit { removed: format!("{indent}{}", self.slice(start..end)), added: String::new() };
        let mut splices = Vec::new();
        let open = object.start() + 1;
        if self.slice(open..start).trim().is_empty() && self.slice(end..close).trim().trim_matches(',').is_empty() {
            splices.push(Splice { range: open..close, with: String::new() });
            return (splices, edit);
        }
        match self.comma(end, close) {
            // Nothing but white space stands between: it goes with its value.
            Some(at) if self.slice(end..at).trim().is_empty() => end = at + 1,
            Some(at) => splices.push(Splice { range: at..at + 1, with: String::new() }),
            None => {
                let before = object.properties.iter().take_while(|other| other.start() < start).last();
                if let Some(at) = before.and_then(|before| self.comma(before.end(), start)) {
                    splices.push(Splice { range: at..at + 1, with: String::new() });
                }
            }
        }
        // A line that would be blank goes too.
        let rest = self.slice(end..self.text.len());
        let line_end = rest.find('\n').map(|at| end + at + 1);
        if let (Some(indent), Some(line_end)) = (self.indent_before(start), line_end)
            && self.slice(end..line_end).trim().is_empty()
        {
            start -= indent.len();
            end = line_end;
        } else if self.slice(start..end).ends_with(',') {
            end += self.slice(end..close).chars().take_while(|c| *c == ' ').count();
        }
        splices.push(Splice { range: start..end, with: String::new() });
        splices.sort_by_key(|splice| splice.range.start);
        (splices, edit)
    }

    /// The comma between two places, comments passed over.
    fn comma(&self, from: usize, to: usize) -> Option<usize> {
        let mut at = from;
        while at < to {
            let rest = self.slice(at..to);
            if rest.starts_with("//") {
                at += rest.find('\n')? + 1;
            } else if rest.starts_with("/*") {
                at += rest.find("*/")? + 2;
            } else if rest.starts_with(',') {
                return Some(at);
            } else {
                at += rest.chars().next()?.len_utf8();
            }
        }
        None
    }

    /// Makes the change, if the text then says what was meant.
    fn apply(&mut self, splices: Vec<Splice>, meant: &Value) -> Result<(), Flaw> {
        let mut text = self.text.clone();
        for splice in splices.iter().rev() {
            text.replace_range(splice.range.clone(), &splice.with);
        }
        let changed = Self { marked: self.marked, text };
        match changed.parse() {
            Ok(Some(value)) if valued(&value) == *meant => {
                *self = changed;
                Ok(())
            }
            _ => {
                let at = splices.first().map_or(0, |splice| splice.range.start);
                Err(Flaw::at(&self.text, at, "this place cannot be changed without harm: change it by hand"))
            }
        }
    }
}

/// A part of the text, and what takes its place.
struct Splice {
    range: std::ops::Range<usize>,
    with: String,
}

fn collected() -> CollectOptions {
    CollectOptions { comments: CommentCollectionStrategy::Off, tokens: false }
}

fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn said(kind: &jsonc_parser::errors::ParseErrorKind) -> String {
    let text = kind.to_string();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

fn kind(value: &ast::Value<'_>) -> &'static str {
    match value {
        ast::Value::StringLit(_) => "a text",
        ast::Value::NumberLit(_) => "a number",
        ast::Value::BooleanLit(_) => "true or false",
        ast::Value::Object(_) => "an object",
        ast::Value::Array(_) => "a list",
        ast::Value::NullKeyword(_) => "null",
    }
}

fn valued(value: &ast::Value<'_>) -> Value {
    match value {
        ast::Value::StringLit(text) => Value::String(text.value.clone().into_owned()),
        // Numbers are only compared, and must not become another on the way.
        ast::Value::NumberLit(number) => {
            serde_json::from_str(number.value).unwrap_or_else(|_| Value::String(number.value.to_owned()))
        }
        ast::Value::BooleanLit(flag) => Value::Bool(flag.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(array) => Value::Array(array.elements.iter().map(valued).collect()),
        ast::Value::Object(object) => {
            Value::Object(object.properties.iter().map(|p| (p.name.as_str().to_owned(), valued(&p.value))).collect())
        }
    }
}

fn reach<'v>(value: &'v mut Value, path: &[Step<'_>]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.as_object_mut()?.get_mut(*key),
        Step::Item(index) => value.as_array_mut()?.get_mut(*index),
    })
}

fn put(value: &mut Value, path: &[Step<'_>], new: Value) {
    match path {
        [] => *value = new,
        [Step::Key(key), rest @ ..] => {
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
            if let Some(object) = value.as_object_mut() {
                put(object.entry(*key).or_insert(Value::Null), rest, new);
            }
        }
        [Step::Item(index), rest @ ..] => {
            if let Some(item) = value.as_array_mut().and_then(|items| items.get_mut(*index)) {
                put(item, rest, new);
            }
        }
    }
}

#[cfg(test)]
mod tests;
