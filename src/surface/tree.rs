//! YAML text as a tree that remembers where everything stands.
//!
//! Promises: no key twice, no tag, no merge key, one document; nesting and size are bounded, with
//! aliases written out; numbers keep their text. What breaks these is reported and left out, so
//! that the rest of the file is still checked. Only broken syntax and bounds end the reading.

use std::collections::{HashMap, HashSet};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle};

use super::problem::{Findings, Rule};
use super::scalar::{self, Plain};
use super::source::{At, Span};
use crate::protocol::Json;
use crate::protocol::json::shortened;

/// Deepest nesting of lists and mappings; the JSON library reads 127.
const DEPTH: usize = 100;
/// Largest tree, in bytes of text and [`NODE_BYTES`] a node, aliases written out.
const TREE_BYTES: usize = 16 * 1024 * 1024;
/// What a node counts for beside its text.
const NODE_BYTES: usize = 32;

/// Not YAML.
pub(crate) const SYNTAX: Rule = Rule::error("yaml-syntax", "a surface file is YAML 1.2");
/// A key twice.
pub(crate) const DUPLICATE: Rule = Rule::error("yaml-duplicate-key", "a key stands once in a mapping");
/// A tag.
pub(crate) const TAG: Rule = Rule::error("yaml-tag", "a value has no tag");
/// A merge key.
pub(crate) const MERGE: Rule = Rule::error("yaml-merge-key", "a mapping is written out, not merged");
/// An alias that leads nowhere.
pub(crate) const ALIAS: Rule = Rule::error("yaml-alias", "an alias names an anchor that ends before it");
/// A key that is not text.
pub(crate) const KEY: Rule = Rule::error("yaml-key", "a key is text");
/// A number that readers dispute.
pub(crate) const NUMBER: Rule = Rule::error("yaml-number", "a number is written as JSON writes it");
/// Too deep.
pub(crate) const TOO_DEEP: Rule = Rule::error("yaml-depth", "lists and mappings nest at most 100 deep");
/// Too large.
pub(crate) const TOO_LARGE: Rule = Rule::error("yaml-size", "aliases written out, a file stays within 16 MiB");
/// Several documents.
pub(crate) const DOCUMENT: Rule = Rule::error("yaml-document", "a surface file holds one document");

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// What a node holds.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// A JSON number, as its text.
    Number(Box<str>),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a mapping with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: At<String>,
    pub(crate) node: Node,
}

impl Node {
    /// What sort of value this is, for people.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "empty",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    pub(crate) fn as_map(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key of a mapping.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.as_map()?.iter().find(|entry| entry.key.value == key)
    }

    /// The value as JSON: keys in their order, numbers as written.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(text) => Json::Number(text.clone()),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Value::Map(entries) => {
                Json::Object(entries.iter().map(|e| (e.key.value.clone(), e.node.to_json())).collect())
            }
        }
    }

    /// Where a JSON pointer leads: the value if it is a scalar, else its key; as far as it leads.
    pub(crate) fn locate<'p>(&self, start: Span, steps: impl Iterator<Item = &'p str>) -> Span {
        let (mut node, mut key) = (self, start);
        for step in steps {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match &node.value {
                Value::List(items) => step.parse().ok().and_then(|i: usize| items.get(i)).map(|n| (n, n.span)),
                _ => node.get(&step).map(|entry| (&entry.node, entry.key.span)),
            };
            let Some((below, span)) = next else { break };
            (node, key) = (below, span);
        }
        if matches!(node.value, Value::List(_) | Value::Map(_)) { key } else { node.span }
    }
}

/// Reads the source of the findings. `None` if what is wrong leaves nothing to check.
pub(crate) fn parse(findings: &mut Findings) -> Option<Node> {
    parse_within(TREE_BYTES, findings).map(|(node, _)| node)
}

/// The same of a text whose tree may only be so large; with how large it is.
pub(crate) fn parse_within(most: usize, findings: &mut Findings) -> Option<(Node, usize)> {
    let source = findings.source().clone();
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = DEPTH;
    options.block_nesting_limit = DEPTH;
    let parser = Parser::new_from_str_with_options(source.text(), options);
    let mut builder = Builder { most, ..Builder::default() };
    for event in parser {
        let (event, span) = match event {
            Ok((event, span)) => {
                let start = span.start.byte_offset().unwrap_or(0);
                let bytes = Span { start, end: span.end.byte_offset().unwrap_or(start).max(start) };
                if let Some(tag) = span.tag_span().and_then(|tag| tag.byte_range()) {
                    let tag = Span { start: tag.start, end: tag.end };
                    let message = format!(
                        "the tag {:?} means different things to different readers",
                        shortened(source.slice(tag), 40)
                    );
                    findings.report(&TAG, tag, message, "leave it out; put text that looks like a number in quotes");
                }
                (event, bytes)
            }
            Err(error) => {
                let start = error.marker().byte_offset().unwrap_or(source.text().len());
                if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
                    too_deep(Span { start, end: start }, findings).ok()?;
                }
                let message = shortened(error.info().as_str(), 200);
                let remedy = "check indentation and quotes: text with {, }, [, ], #, : or a leading - needs quotes";
                findings.report(&SYNTAX, Span { start, end: start }, message, remedy);
                return None;
            }
        };
        builder.take(event, span, findings).ok()?;
    }
    if builder.root.is_none() {
        findings.report(
            &SYNTAX,
            Span::START,
            "the file is empty",
            "begin with `surface: NAME` and `version:`, then `tools:`, `resources:` or `prompts:`",
        );
    }
    builder.root.map(|built| (built.node, built.bytes))
}

/// The reading ends: the reason was reported.
struct Ended;

/// A finished node and what it counts for.
#[derive(Debug, Clone)]
struct Built {
    node: Node,
    bytes: usize,
    height: usize,
}

#[derive(Debug)]
enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        keys: HashSet<String>,
        /// The key whose value comes next; the inner option is empty for one that was refused.
        pending: Option<Option<At<String>>>,
    },
}

#[derive(Debug)]
struct Frame {
    start: Span,
    anchor: usize,
    content: Content,
    bytes: usize,
    height: usize,
}

#[derive(Debug, Default)]
struct Builder {
    open: Vec<Frame>,
    anchors: HashMap<usize, Built>,
    root: Option<Built>,
    documents: usize,
    /// What everything read so far counts for.
    bytes: usize,
    /// What it may come to.
    most: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span, findings: &mut Findings) -> Result<(), Ended> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    findings.report(&DOCUMENT, span, "a second document starts here", "put it into a file of its own");
                    return Err(Ended);
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, _) => {
                let value = self.scalar(text.into_owned(), style, span, findings);
                self.finish(Node { span, value }, 0, 0, anchor, findings)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(span, anchor, Content::List(Vec::new()), findings),
            Event::MappingStart(_, anchor, _) => {
                let content = Content::Map { entries: Vec::new(), keys: HashSet::new(), pending: None };
                self.begin(span, anchor, content, findings)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Frame { start, anchor, content, bytes, height }) = self.open.pop() else { return Ok(()) };
                let value = match content {
                    Content::List(items) => Value::List(items),
                    Content::Map { entries, .. } => Value::Map(entries),
                };
                let span = Span { start: start.start, end: span.end.max(start.end) };
                self.finish(Node { span, value }, bytes, height + 1, anchor, findings)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(built) => {
                    let added = built.bytes;
                    self.place(built, added, findings)
                }
                None => {
                    findings.report(&ALIAS, span, "the alias stands inside what it names", "write the value out");
                    let node = Node { span, value: Value::Null };
                    self.place(Built { node, bytes: 0, height: 0 }, NODE_BYTES, findings)
                }
            },
            _ => Ok(()),
        }
    }

    fn scalar(&self, text: String, style: ScalarStyle, span: Span, findings: &mut Findings) -> Value {
        if style != ScalarStyle::Plain {
            return Value::Text(text);
        }
        match scalar::resolve(&text) {
            Plain::Null => Value::Null,
            Plain::Bool(value) => Value::Bool(value),
            Plain::Number => Value::Number(text.into()),
            Plain::Text => Value::Text(text),
            Plain::Disputed => {
                let message = format!("{text} is one number to some readers and another, or text, to others");
                let remedy = "put it in quotes if it is text, or write it in plain decimals";
                findings.suggest(&NUMBER, span, message, remedy, Some(format!("{text:?}")));
                Value::Text(text)
            }
        }
    }

    fn begin(&mut self, start: Span, anchor: usize, content: Content, findings: &mut Findings) -> Result<(), Ended> {
        if self.open.len() >= DEPTH {
            return too_deep(start, findings);
        }
        self.open.push(Frame { start, anchor, content, bytes: 0, height: 0 });
        Ok(())
    }

    fn finish(
        &mut self,
        node: Node,
        inner_bytes: usize,
        height: usize,
        anchor: usize,
        findings: &mut Findings,
    ) -> Result<(), Ended> {
        let text = match &node.value {
            Value::Text(text) => text.len(),
            Value::Number(text) => text.len(),
            _ => 0,
        };
        let own = text + NODE_BYTES;
        let built = Built { node, bytes: inner_bytes + own, height };
        if anchor == 0 {
            return self.place(built, own, findings);
        }
        // What is kept for aliases counts too: anchors may nest.
        let added = own + built.bytes;
        self.anchors.insert(anchor, built.clone());
        self.place(built, added, findings)
    }

    /// Puts a finished node where it belongs; `added` is what it counts for beyond what was counted.
    fn place(&mut self, built: Built, added: usize, findings: &mut Findings) -> Result<(), Ended> {
        let Built { node, bytes, height } = built;
        if self.open.len() + height > DEPTH {
            return too_deep(node.span, findings);
        }
        let Some(frame) = self.open.last_mut() else {
            self.root = Some(Built { node, bytes, height });
            return Ok(());
        };
        frame.bytes += bytes;
        frame.height = frame.height.max(height);
        self.bytes = self.bytes.saturating_add(added);
        if self.bytes > self.most {
            let remedy = "write aliases out where they are few; a surface this large serves no client";
            let message = format!("the file grows beyond {} MiB here, aliases written out", self.most / (1024 * 1024));
            findings.report(&TOO_LARGE, node.span, message, remedy);
            return Err(Ended);
        }
        match &mut frame.content {
            Content::List(items) => items.push(node),
            Content::Map { entries, keys, pending } => match pending.take() {
                None => *pending = Some(key(node, keys, findings)),
                Some(Some(key)) => entries.push(Entry { key, node }),
                Some(None) => {}
            },
        }
        Ok(())
    }
}

fn too_deep(span: Span, findings: &mut Findings) -> Result<(), Ended> {
    findings.report(&TOO_DEEP, span, format!("nested deeper than {DEPTH} levels"), "flatten it");
    Err(Ended)
}

/// A node as a key, or `None` if it cannot be one; its value is then left out.
fn key(node: Node, keys: &mut HashSet<String>, findings: &mut Findings) -> Option<At<String>> {
    let span = node.span;
    let Value::Text(text) = node.value else {
        let message = format!("this key is {}, not text", node.kind());
        let quoted =
            Some(findings.source().slice(span)).filter(|t| !t.is_empty() && !t.contains(['\n', '"', '{', '[']));
        let quoted = quoted.map(|text| format!("\"{text}\""));
        findings.suggest(&KEY, span, message, "put it in quotes if it is a name", quoted);
        return None;
    };
    if text == "<<" {
        findings.report(&MERGE, span, "a merge key hides what the mapping holds", "write the keys out");
        return None;
    }
    if !keys.insert(text.clone()) {
        let message = format!("{:?} stands here a second time", shortened(&text, 64));
        findings.report(&DUPLICATE, span, message, "keep one of the two: readers disagree on which counts");
        return None;
    }
    Some(At { span, value: text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::source::Source;

    fn read(text: &str) -> (Option<Node>, Vec<(&'static str, usize, usize)>) {
        let mut findings = Findings::new(Source::new("f.yaml".into(), text.to_owned()));
        let node = parse(&mut findings);
        let problems = findings.into_problems();
        (node, problems.list().iter().map(|p| (p.rule, p.line, p.column)).collect())
    }

    #[test]
    fn the_tree_keeps_order_numbers_and_places() {
        let text = "b: 1.50\na: [x, '1', true, ~]\nc:\n  d: |\n    two\n    lines\n";
        let (node, problems) = read(text);
        let node = node.unwrap();
        assert_eq!(problems, []);
        assert_eq!(node.to_json().to_text(), r#"{"b":1.50,"a":["x","1",true,null],"c":{"d":"two\nlines\n"}}"#);
        let place = |pointer: &str| {
            let span = node.locate(Span::START, pointer.split('/').skip(1));
            let place = Source::new("f".into(), text.to_owned()).place(span);
            (place.line, place.column, place.end_column)
        };
        assert_eq!(place("/b"), (1, 4, 8));
        assert_eq!(place("/a"), (2, 1, 2));
        assert_eq!(place("/a/1"), (2, 8, 11));
        assert_eq!(place("/c"), (3, 1, 2));
        assert_eq!(place("/c/none/x"), (3, 1, 2));
    }

    #[test]
    fn what_readers_disagree_on_is_refused_at_its_place_and_the_rest_is_read() {
        let table = [
            ("a: 1\nb: 2\na: 3\n", "yaml-duplicate-key", 3, 1, r#"{"a":1,"b":2}"#),
            ("a: !!str 5\n", "yaml-tag", 1, 4, r#"{"a":5}"#),
            ("a: !x {b: 1}\n", "yaml-tag", 1, 4, r#"{"a":{"b":1}}"#),
            ("x: {p: 1}\na:\n  <<: {q: 2}\n  r: 3\n", "yaml-merge-key", 3, 3, r#"{"x":{"p":1},"a":{"r":3}}"#),
            ("1: a\nb: c\n", "yaml-key", 1, 1, r#"{"b":"c"}"#),
            ("? [a, b]\n: 1\nc: 2\n", "yaml-key", 1, 3, r#"{"c":2}"#),
            ("a: 0644\n", "yaml-number", 1, 4, r#"{"a":"0644"}"#),
            ("a: &x [*x]\n", "yaml-alias", 1, 8, r#"{"a":[null]}"#),
        ];
        for (text, rule, line, column, rest) in table {
            let (node, problems) = read(text);
            assert_eq!(problems, [(rule, line, column)], "{text}");
            assert_eq!(node.unwrap().to_json().to_text(), rest);
        }
    }

    #[test]
    fn broken_syntax_ends_the_reading_at_its_place() {
        for (text, rule, line) in [
            ("a: [1, 2\nb: 3\n", "yaml-syntax", 2),
            ("a: 1\n---\nb: 2\n", "yaml-document", 2),
            ("a: \"x\n", "yaml-syntax", 1),
            ("a: *none\n", "yaml-syntax", 1),
            ("a:\n\tb: 1\n", "yaml-syntax", 2),
            ("", "yaml-syntax", 1),
            ("# nothing\n", "yaml-syntax", 1),
        ] {
            let (_, problems) = read(text);
            assert_eq!(problems.len(), 1, "{text:?} {problems:?}");
            assert_eq!((problems[0].0, problems[0].1), (rule, line), "{text:?}");
        }
    }

    #[test]
    fn depth_is_bounded_with_and_without_aliases() {
        let flow = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(read(&flow(DEPTH)).1, []);
        assert_eq!(read(&flow(DEPTH + 1)).1, [("yaml-depth", 1, DEPTH + 1)]);
        assert_eq!(read(&flow(10_000)).1, [("yaml-depth", 1, DEPTH + 1)]);
        let block: String = (0..10_000).map(|n| format!("{}a:\n", " ".repeat(n.min(300)))).collect();
        assert!(read(&block).1.iter().any(|p| p.0 == "yaml-depth"));
        let half = format!("a: &x {}\nb: {}*x{}\n", flow(60), "[".repeat(60), "]".repeat(60));
        assert_eq!(read(&half).1.len(), 1);
        assert_eq!(read(&half).1[0].0, "yaml-depth");
    }

    #[test]
    fn an_alias_bomb_is_refused_and_a_few_aliases_are_not() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let before = vec![format!("*a{}", n - 1); 9].join(", ");
            bomb.push_str(&format!("a{n}: &a{n} [{before}]\n"));
        }
        assert_eq!(read(&bomb).1.iter().map(|p| p.0).collect::<Vec<_>>(), ["yaml-size"]);
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 1000].join(","));
        assert_eq!(read(&long).1.iter().map(|p| p.0).collect::<Vec<_>>(), ["yaml-size"]);
        let (node, problems) = read("a: &p {type: string}\nb: *p\n");
        assert_eq!(problems, []);
        assert_eq!(node.unwrap().to_json().to_text(), r#"{"a":{"type":"string"},"b":{"type":"string"}}"#);
    }
}
