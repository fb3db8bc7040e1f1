//! The shape of the code, enforced: who may use whom, and what may stand where.
//!
//! Each rule is a function over a file's path and tokens; each is shown a planted violation below.
//! A failure names file and line. The table is design section 1 (ARCHITECTURE.md).

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail by panicking")]

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// One module of the library and what it may use.
struct Row {
    module: &'static str,
    /// Modules of ours; itself always.
    ours: &'static [&'static str],
    /// The only crates it may use, or any but those of [`Row::refused`].
    crates: Option<&'static [&'static str]>,
    /// Paths that it must not use, whatever the above says.
    refused: &'static [&'static str],
}

const TABLE: [Row; 7] = [
    Row {
        module: "protocol",
        ours: &[],
        crates: Some(&[
            "base64",
            "bytes",
            "bytestring",
            "hmac",
            "jsonschema",
            "regex",
            "memchr",
            "serde",
            "serde_json",
            "serde_json_canonicalizer",
            "sha2",
            "smallvec",
            "thiserror",
            "tracing",
        ]),
        refused: &[
            "std::fs",
            "std::net",
            "std::process",
            "std::env",
            "std::thread",
            "std::io",
            "Instant::now",
            "SystemTime",
        ],
    },
    Row {
        module: "transport",
        ours: &["protocol"],
        crates: Some(&[
            "bytes",
            "ctutils",
            "getrandom",
            "http_body_util",
            "hyper",
            "hyper_util",
            "memchr",
            "rustix",
            "smallvec",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
        ]),
        refused: &[
            "std::fs",
            "std::process",
            "std::env",
            "tokio::fs",
            "tokio::process",
            "rustix::fs",
            "rustix::process",
        ],
    },
    Row {
        module: "surface",
        ours: &["protocol"],
        crates: None,
        refused: &[
            "tokio",
            "hyper",
            "hyper_util",
            "http_body_util",
            "std::process",
            "std::net",
            "clap",
            "tracing_subscriber",
        ],
    },
    Row {
        module: "core",
        ours: &["protocol", "surface", "client"],
        crates: None,
        refused: &["hyper::server", "hyper_util::server", "clap", "tracing_subscriber"],
    },
    Row {
        module: "client",
        ours: &["protocol"],
        crates: None,
        refused: &[
            "hyper::server",
            "hyper_util::server",
            "std::process",
            "tokio::process",
            "clap",
            "tracing_subscriber",
        ],
    },
    Row {
        module: "import",
        ours: &["protocol", "surface", "client"],
        crates: Some(&["thiserror"]),
        refused: &["std::fs", "std::process", "std::env", "std::thread", "tokio", "Instant::now", "SystemTime"],
    },
    Row {
        module: "embed",
        ours: &["protocol", "transport"],
        crates: Some(&["bytes", "getrandom", "schemars", "serde", "serde_json", "thiserror", "tokio", "tracing"]),
        refused: &["std::fs", "std::process", "std::env", "tokio::fs", "tokio::process"],
    },
];

/// The four domains of `core`, which never import one another.
const DOMAINS: [&str; 4] = ["capability", "workflow", "rails", "referee"];

/// What a file may use although its row refuses it.
const EXCEPTIONS: [(&str, &str, &str); 1] = [(
    "src/transport/stdio.rs",
    "std::fs::File",
    "owns the descriptors of the standard streams; the one path it opens is /dev/null, to empty descriptor 0",
)];

const LINES_AT_MOST: usize = 500;

/// Files that may be longer.
const LONG_FILES: [(&str, &str); 1] =
    [("src/protocol/json.rs", "the one strict reader: its check, its slices and its tree share one set of limits")];

struct Finding {
    path: String,
    line: usize,
    problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.problem)
    }
}

type Rule = fn(&Source) -> Vec<Finding>;

const RULES: [(&str, Rule); 9] = [
    ("arrows between modules", arrows),
    ("crates and parts of std", outside),
    ("revision dates", revision_dates),
    ("process starts", process_starts),
    ("file length", file_length),
    ("module comments", module_comments),
    ("documentation", documented),
    ("printing", printing),
    ("leftovers", leftovers),
];

// ---- the rules ----

fn arrows(source: &Source) -> Vec<Finding> {
    let Some(row) = source.row() else { return source.unknown_module() };
    let paths = source.paths().into_iter().filter(|p| p.names[0] == "crate");
    let mut findings = Vec::new();
    for path in paths {
        let Some(target) = path.names.get(1) else { continue };
        let is_module = TABLE.iter().any(|r| r.module == target);
        if is_module && target != row.module && !row.ours.contains(&target.as_str()) {
            findings.push(source.at(path.line, format!("{} must not use {}", row.module, path.text())));
        }
        let inside = source.module.get(1).filter(|_| row.module == "core").and_then(|m| domain(m));
        let reached = path.names.get(2).filter(|_| target == "core").and_then(|m| domain(m));
        if let (Some(inside), Some(reached)) = (inside, reached)
            && inside != reached
        {
            findings.push(source.at(path.line, format!("the domain {inside} must not use the domain {reached}")));
        }
    }
    findings
}

fn domain(name: &str) -> Option<&'static str> {
    DOMAINS.into_iter().find(|d| *d == name)
}

fn outside(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let crates = dependencies();
    for path in source.paths() {
        let text = path.text();
        if path.names[0] == "anyhow" && !source.is_binary() {
            findings.push(
                source.at(path.line, format!("{text}: the library's errors are types; anyhow is for the binary")),
            );
        }
        let Some(row) = source.row() else { continue };
        let refused = row.refused.iter().find(|refused| path.has(refused));
        let excepted = EXCEPTIONS.iter().any(|(file, what, _)| *file == source.path && path.has(what));
        if refused.is_some() && !excepted {
            findings.push(source.at(path.line, format!("{} must not use {text}", row.module)));
        }
        let allowed = row.crates.is_none_or(|list| list.contains(&path.names[0].as_str()));
        if crates.contains(&path.names[0]) && !allowed {
            findings.push(source.at(path.line, format!("{} may not use the crate {}", row.module, path.names[0])));
        }
    }
    findings
}

fn revision_dates(source: &Source) -> Vec<Finding> {
    if source.path == "src/protocol/revision.rs" {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for token in &source.tokens {
        if let (Kind::Text(text), false) = (&token.kind, token.test)
            && let Some(date) = date_in(text)
        {
            findings.push(source.at(token.line, format!("the revision {date} is named outside protocol/revision.rs")));
        }
    }
    findings
}

/// The first `20dd-dd-dd` of a text.
fn date_in(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find_map(|start| {
        let date = bytes.get(start..start + 10)?;
        let fits = |(at, byte): (usize, &u8)| match at {
            0 => *byte == b'2',
            1 => *byte == b'0',
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        date.iter().enumerate().all(fits).then(|| text.get(start..start + 10)).flatten()
    })
}

fn process_starts(source: &Source) -> Vec<Finding> {
    if source.path.starts_with("src/core/process/") {
        return Vec::new();
    }
    let starts = source.paths().into_iter().filter(|p| p.names.ends_with(&["Command".to_owned(), "new".to_owned()]));
    starts.map(|p| source.at(p.line, "a process may be started in core/process/ only".to_owned())).collect()
}

fn file_length(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    let excepted = LONG_FILES.iter().any(|(path, _)| *path == source.path);
    if lines <= LINES_AT_MOST || excepted {
        return Vec::new();
    }
    vec![source.at(LINES_AT_MOST + 1, format!("{lines} lines: at most {LINES_AT_MOST}, split the file"))]
}

fn module_comments(source: &Source) -> Vec<Finding> {
    if source.text.starts_with("//!") {
        return Vec::new();
    }
    vec![source.at(1, "a file begins with a //! comment: what it promises, never does, and who uses it".to_owned())]
}

fn documented(source: &Source) -> Vec<Finding> {
    const ITEMS: [&str; 10] = ["fn", "struct", "enum", "trait", "type", "const", "static", "async", "unsafe", "union"];
    let tokens = &source.tokens;
    let mut findings = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        if token.test || !token.is_word("pub") {
            continue;
        }
        let after = |n: usize| tokens.iter().skip(index + 1).filter(|t| !t.is_comment()).nth(n);
        let Some(Kind::Word(word)) = after(0).map(|t| &t.kind) else { continue };
        let field = after(1).is_some_and(|t| t.is_mark(':'));
        let inline_module = word == "mod" && after(2).is_some_and(|t| t.is_mark('{'));
        if (ITEMS.contains(&word.as_str()) || field || inline_module) && !has_doc(tokens, index) {
            let name = match after(1).map(|t| &t.kind) {
                Some(Kind::Word(name)) => name,
                _ => word,
            };
            findings.push(source.at(token.line, format!("pub {name} has no doc comment")));
        }
    }
    findings
}

/// Whether a doc comment stands before the token, attributes and plain comments passed over.
fn has_doc(tokens: &[Token], index: usize) -> bool {
    let mut before = index;
    while let Some(previous) = before.checked_sub(1) {
        before = previous;
        match &tokens[previous].kind {
            Kind::Doc(_) => return true,
            Kind::Comment(_) => {}
            Kind::Mark(']') => {
                let mut depth = 1usize;
                while depth > 0 && before > 0 {
                    before -= 1;
                    match tokens[before].kind {
                        Kind::Mark(']') => depth += 1,
                        Kind::Mark('[') => depth -= 1,
                        _ => {}
                    }
                }
                before = before.saturating_sub(1);
                if !tokens[before].is_mark('#') {
                    return false;
                }
            }
            _ => return false,
        }
    }
    false
}

fn printing(source: &Source) -> Vec<Finding> {
    const MACROS: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];
    if source.is_binary() {
        return Vec::new();
    }
    let pairs = source.tokens.iter().zip(source.tokens.iter().skip(1));
    let prints =
        pairs.filter(|(word, mark)| mark.is_mark('!') && !word.test && MACROS.iter().any(|name| word.is_word(name)));
    prints
        .map(|(word, _)| source.at(word.line, "the library prints nothing: return it, or trace it".to_owned()))
        .collect()
}

fn leftovers(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, token) in source.tokens.iter().enumerate() {
        if let Kind::Doc(text) | Kind::Comment(text) = &token.kind {
            let words = text.split(|c: char| !c.is_alphanumeric());
            if let Some(word) = words.into_iter().find(|w| ["TODO", "FIXME", "XXX", "HACK"].contains(w)) {
                findings.push(source.at(token.line, format!("{word}: do it, or say it in an issue")));
            }
        }
        if token.is_mark('#') && (source.mark_at(index + 1, '[') || source.mark_at(index + 2, '[')) {
            let attribute: Vec<&Token> = source.tokens.iter().skip(index).take_while(|t| !t.is_mark(']')).collect();
            let silences = attribute.iter().any(|t| t.is_word("allow") || t.is_word("expect"));
            if silences && !attribute.iter().any(|t| t.is_word("reason")) {
                findings.push(source.at(token.line, "a lint is silenced without a reason".to_owned()));
            }
        }
    }
    findings
}

// ---- reading ----

/// One file under `src/`.
struct Source {
    path: String,
    text: String,
    tokens: Vec<Token>,
    /// The path of its module from the crate's root.
    module: Vec<String>,
}

struct Token {
    kind: Kind,
    line: usize,
    /// Whether it belongs to an item under `#[cfg(test)]`.
    test: bool,
}

#[derive(Debug, PartialEq)]
enum Kind {
    Word(String),
    Mark(char),
    /// `::`
    Then,
    Text(String),
    Doc(String),
    Comment(String),
    /// A number, a character or a lifetime.
    Other,
}

impl Token {
    fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(w) if w == word)
    }
    fn is_mark(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
    fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::Doc(_) | Kind::Comment(_))
    }
}

/// A path that the code names, `super` and `self` resolved to `crate::…`.
struct Named {
    names: Vec<String>,
    line: usize,
}

impl Named {
    fn text(&self) -> String {
        self.names.join("::")
    }

    /// Whether it begins with a path, or holds one that begins with a type.
    fn has(&self, refused: &str) -> bool {
        let parts: Vec<&str> = refused.split("::").collect();
        let by_type = parts[0].starts_with(char::is_uppercase);
        let mut windows = self.names.windows(parts.len());
        if by_type { windows.any(|w| w == parts) } else { windows.next().is_some_and(|w| w == parts) }
    }
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let mut tokens = lex(text);
        mark_tests(&mut tokens);
        let inner = path.trim_start_matches("src/").trim_end_matches(".rs");
        let mut module: Vec<String> = inner.split('/').map(str::to_owned).collect();
        if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
            module.pop();
        }
        Self { path: path.to_owned(), text: text.to_owned(), tokens, module }
    }

    fn at(&self, line: usize, problem: String) -> Finding {
        Finding { path: self.path.clone(), line, problem }
    }

    fn is_binary(&self) -> bool {
        self.path == "src/main.rs" || self.path.starts_with("src/cli/")
    }

    fn row(&self) -> Option<&'static Row> {
        TABLE.iter().find(|row| self.module.first().is_some_and(|m| m == row.module))
    }

    /// A module without a row is a finding; the crate's root and the binary need none.
    fn unknown_module(&self) -> Vec<Finding> {
        if self.module.is_empty() || self.is_binary() {
            return Vec::new();
        }
        vec![self.at(1, format!("the module {} has no row in the table of tests/architecture.rs", self.module[0]))]
    }

    fn mark_at(&self, index: usize, mark: char) -> bool {
        self.tokens.get(index).is_some_and(|t| t.is_mark(mark))
    }

    /// Modules of this file that are compiled for tests only and stand in their own files.
    fn test_files(&self) -> Vec<String> {
        let base = self.path.trim_end_matches("/mod.rs").trim_end_matches(".rs").to_owned();
        let modules = self.tokens.windows(3).filter(|w| w[0].test && w[0].is_word("mod") && w[2].is_mark(';'));
        modules
            .filter_map(|w| match &w[1].kind {
                Kind::Word(name) => Some(format!("{base}/{name}")),
                _ => None,
            })
            .collect()
    }

    /// All paths outside tests, use trees expanded.
    fn paths(&self) -> Vec<Named> {
        let tokens: Vec<&Token> = self.tokens.iter().filter(|t| !t.is_comment()).collect();
        let mut paths = Vec::new();
        let mut inline: Vec<(String, usize)> = Vec::new();
        let mut depth = 0usize;
        for (index, token) in tokens.iter().enumerate() {
            match &token.kind {
                Kind::Mark('{') => {
                    if let [.., keyword, name] = &tokens[..index]
                        && keyword.is_word("mod")
                        && let Kind::Word(name) = &name.kind
                    {
                        inline.push((name.clone(), depth));
                    }
                    depth += 1;
                }
                Kind::Mark('}') => {
                    depth = depth.saturating_sub(1);
                    inline.pop_if(|(_, at)| *at == depth);
                }
                Kind::Word(_) if !token.test && begins_path(&tokens, index) => {
                    let here: Vec<&str> =
                        self.module.iter().map(String::as_str).chain(inline.iter().map(|(n, _)| n.as_str())).collect();
                    let mut found = Vec::new();
                    expand(&tokens, index, &mut Vec::new(), &mut found);
                    let used = index.checked_sub(1).is_some_and(|i| tokens[i].is_word("use"));
                    found.retain(|names| names.len() > 1 || used);
                    paths.extend(
                        found.into_iter().map(|names| Named { names: resolve(names, &here), line: token.line }),
                    );
                }
                _ => {}
            }
        }
        paths
    }
}

fn begins_path(tokens: &[&Token], index: usize) -> bool {
    match index.checked_sub(1).map(|i| &tokens[i].kind) {
        Some(Kind::Then) => {
            let before = index.checked_sub(2).map(|i| &tokens[i].kind);
            !matches!(before, Some(Kind::Word(_) | Kind::Mark('>')))
        }
        // Members of a group were expanded with the group.
        Some(Kind::Mark('{' | ',')) => !in_group(tokens, index),
        _ => true,
    }
}

/// Whether the token stands inside the braces of a use tree.
fn in_group(tokens: &[&Token], index: usize) -> bool {
    let mut depth = 0usize;
    for at in (0..index).rev() {
        match tokens[at].kind {
            Kind::Mark('}') => depth += 1,
            Kind::Mark('{') if depth == 0 => {
                return at > 0 && tokens[at - 1].kind == Kind::Then;
            }
            Kind::Mark('{') => depth -= 1,
            Kind::Mark(';') => return false,
            _ => {}
        }
    }
    false
}

/// Reads the path that begins at a token; gives the index after it.
fn expand(tokens: &[&Token], index: usize, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let length = prefix.len();
    let mut at = index;
    while let Some(Kind::Word(name)) = tokens.get(at).map(|t| &t.kind) {
        prefix.push(name.clone());
        at += 1;
        if tokens.get(at).is_none_or(|t| t.kind != Kind::Then) {
            break;
        }
        at += 1;
    }
    if tokens.get(at).is_some_and(|t| t.is_mark('{')) && at > 0 && tokens[at - 1].kind == Kind::Then {
        at += 1;
        while tokens.get(at).is_some_and(|t| !t.is_mark('}')) {
            let next = expand(tokens, at, prefix, found);
            at = if next == at { at + 1 } else { next };
        }
        at += 1;
    } else if prefix.len() > length {
        found.push(prefix.clone());
    }
    prefix.truncate(length);
    at
}

fn resolve(names: Vec<String>, here: &[&str]) -> Vec<String> {
    let supers = names.iter().take_while(|n| *n == "super").count();
    let from = match names[0].as_str() {
        "self" => Some((1, here.len())),
        "super" => Some((supers, here.len().saturating_sub(supers))),
        _ => None,
    };
    let Some((skip, keep)) = from else { return names };
    let rest = names.into_iter().skip(skip).filter(|n| n != "self");
    std::iter::once("crate".to_owned()).chain(here.iter().take(keep).map(|m| (*m).to_owned())).chain(rest).collect()
}

fn mark_tests(tokens: &mut [Token]) {
    let mut at = 0;
    while at < tokens.len() {
        let words = ["cfg", "test"];
        let shape = tokens[at].is_mark('#')
            && tokens.get(at + 1).is_some_and(|t| t.is_mark('['))
            && tokens.get(at + 2).is_some_and(|t| t.is_word(words[0]))
            && tokens.get(at + 4).is_some_and(|t| t.is_word(words[1]))
            && tokens.get(at + 6).is_some_and(|t| t.is_mark(']'));
        if !shape {
            at += 1;
            continue;
        }
        let end = item_end(tokens, at + 7);
        tokens.iter_mut().take(end).skip(at).for_each(|t| t.test = true);
        at = end;
    }
}

/// The index after the item that begins here: at its `;` outside brackets, or at its closing brace.
fn item_end(tokens: &[Token], start: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.kind {
            Kind::Mark('{' | '(' | '[') => depth += 1,
            Kind::Mark(mark @ ('}' | ')' | ']')) => {
                depth = depth.saturating_sub(1);
                if depth == 0 && mark == '}' {
                    return at + 1;
                }
            }
            Kind::Mark(';') if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

fn lex(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    let peek = |at: usize| chars.get(at).copied().unwrap_or('\0');
    while at < chars.len() {
        let start = at;
        let kind = match (peek(at), peek(at + 1)) {
            ('/', '/') => {
                while at < chars.len() && peek(at) != '\n' {
                    at += 1;
                }
                let comment: String = chars[start..at].iter().collect();
                let doc = comment.starts_with("//!") || (comment.starts_with("///") && !comment.starts_with("////"));
                Some(if doc { Kind::Doc(comment) } else { Kind::Comment(comment) })
            }
            ('/', '*') => {
                let mut depth = 0usize;
                loop {
                    match (peek(at), peek(at + 1)) {
                        ('/', '*') => (depth, at) = (depth + 1, at + 2),
                        ('*', '/') => (depth, at) = (depth - 1, at + 2),
                        _ => at += 1,
                    }
                    if depth == 0 || at >= chars.len() {
                        break;
                    }
                }
                Some(Kind::Comment(chars[start..at.min(chars.len())].iter().collect()))
            }
            ('"', _) => {
                at = quoted_end(&chars, at);
                Some(Kind::Text(chars[start..at].iter().collect()))
            }
            ('\'', next) => {
                let character = next == '\\' || peek(at + 2) == '\'';
                at = if character { character_end(&chars, at) } else { at + 1 };
                Some(Kind::Other)
            }
            (':', ':') => {
                at += 2;
                Some(Kind::Then)
            }
            (c, _) if c.is_ascii_digit() => {
                while peek(at).is_ascii_alphanumeric() || peek(at) == '_' {
                    at += 1;
                }
                Some(Kind::Other)
            }
            (c, _) if c.is_alphabetic() || c == '_' => {
                while peek(at).is_alphanumeric() || peek(at) == '_' {
                    at += 1;
                }
                let word: String = chars[start..at].iter().collect();
                let raw = ["r", "br", "cr"].contains(&word.as_str()) && matches!(peek(at), '#' | '"');
                if raw && raw_end(&chars, at).is_some() {
                    at = raw_end(&chars, at).unwrap();
                    Some(Kind::Text(chars[start..at].iter().collect()))
                } else if ["b", "c"].contains(&word.as_str()) && peek(at) == '"' {
                    at = quoted_end(&chars, at);
                    Some(Kind::Text(chars[start..at].iter().collect()))
                } else if word == "b" && peek(at) == '\'' {
                    at = character_end(&chars, at);
                    Some(Kind::Other)
                } else {
                    Some(Kind::Word(word))
                }
            }
            (c, _) => {
                at += 1;
                (!c.is_whitespace()).then_some(Kind::Mark(c))
            }
        };
        tokens.extend(kind.map(|kind| Token { kind, line, test: false }));
        line += chars[start..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

fn quoted_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn character_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != '\'' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// The end of a raw text whose hashes begin here; `None` for a raw identifier.
fn raw_end(chars: &[char], start: usize) -> Option<usize> {
    let hashes = chars[start..].iter().take_while(|c| **c == '#').count();
    let open = start + hashes;
    if chars.get(open) != Some(&'"') {
        return None;
    }
    let close = |at: usize| chars[at] == '"' && chars[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes;
    (open + 1..chars.len()).find(|at| close(*at)).map(|at| at + 1 + hashes)
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The crates of `[dependencies]`, as code names them.
fn dependencies() -> BTreeSet<String> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let lines = manifest.lines().skip_while(|l| *l != "[dependencies]").skip(1).take_while(|l| !l.starts_with('['));
    lines.filter_map(|l| l.split_once('=')).map(|(name, _)| name.trim().replace('-', "_")).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    collect(&root().join("src"), &mut files);
    files.sort();
    let read = |file: &PathBuf| {
        let path = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        Source::new(&path, &std::fs::read_to_string(file).unwrap())
    };
    let mut sources: Vec<Source> = files.iter().map(read).collect();
    let tests: Vec<String> = sources.iter().flat_map(Source::test_files).collect();
    for source in &mut sources {
        let own = source.path.trim_end_matches(".rs");
        if tests.iter().any(|t| own == t || own.strip_prefix(t.as_str()).is_some_and(|rest| rest.starts_with('/'))) {
            source.tokens.iter_mut().for_each(|t| t.test = true);
        }
    }
    sources
}

// ---- the code as it is ----

fn check(name: &str) {
    let rule = RULES.iter().find(|(n, _)| *n == name).unwrap().1;
    let findings: Vec<String> = sources().iter().flat_map(rule).map(|f| f.to_string()).collect();
    assert!(findings.is_empty(), "{name}:\n{}", findings.join("\n"));
}

#[test]
fn modules_use_only_what_the_table_lets_them() {
    check("arrows between modules");
}

#[test]
fn crates_and_parts_of_std_stand_only_where_the_table_lets_them() {
    check("crates and parts of std");
}

#[test]
fn a_revision_is_dated_in_one_file() {
    check("revision dates");
}

#[test]
fn processes_are_started_in_one_folder() {
    check("process starts");
}

#[test]
fn files_stay_short() {
    check("file length");
    for (path, reason) in LONG_FILES {
        let lines = std::fs::read_to_string(root().join(path)).unwrap().lines().count();
        assert!(lines > LINES_AT_MOST, "{path} needs its exception no more: {reason}");
    }
}

#[test]
fn every_file_says_what_it_is() {
    check("module comments");
}

#[test]
fn every_public_item_is_documented() {
    check("documentation");
}

#[test]
fn the_library_prints_nothing() {
    check("printing");
}

#[test]
fn nothing_is_left_for_later_or_silenced_without_a_reason() {
    check("leftovers");
}

#[test]
fn exceptions_are_still_needed() {
    for (path, what, reason) in EXCEPTIONS {
        let source = Source::new(path, &std::fs::read_to_string(root().join(path)).unwrap());
        assert!(source.paths().iter().any(|p| p.has(what)), "{path} does without {what} now: {reason}");
    }
}

#[test]
fn the_scan_sees_the_code() {
    let sources = sources();
    assert!(sources.len() >= 40, "{} files", sources.len());
    let paths: usize = sources.iter().map(|s| s.paths().len()).sum();
    assert!(paths > 1000, "{paths} paths");
    for row in TABLE {
        assert!(sources.iter().any(|s| s.row().is_some_and(|r| r.module == row.module)), "{}", row.module);
    }
}

// ---- the rules themselves ----

/// Shows a rule a file; gives the lines that it finds.
fn lines(name: &str, path: &str, text: &str) -> Vec<usize> {
    let rule = RULES.iter().find(|(n, _)| *n == name).unwrap().1;
    rule(&Source::new(path, text)).iter().map(|f| f.line).collect()
}

#[test]
fn planted_arrows_are_found() {
    let find = |path: &str, text: &str| lines("arrows between modules", path, text);
    assert_eq!(find("src/protocol/x.rs", "\nuse crate::core::gate;"), [2]);
    assert_eq!(find("src/protocol/x.rs", "use crate::{json, transport::http};"), [1]);
    assert_eq!(find("src/transport/http/x.rs", "use crate::protocol::{Limits, json};\nuse crate::surface;"), [2]);
    assert_eq!(find("src/transport/http/x.rs", "use super::super::super::core::gate;"), [1]);
    assert_eq!(find("src/transport/http/mod.rs", "fn f() { super::super::core::gate::run() }"), [1]);
    assert_eq!(find("src/surface/x.rs", "fn f() {\n    let x = crate::transport::now();\n}"), [2]);
    assert_eq!(find("src/core/x.rs", "mod y {\n    use super::super::super::transport;\n}"), [2]);
    assert_eq!(find("src/client/x.rs", "use crate :: core :: process;"), [1]);
    assert_eq!(find("src/core/rails/x.rs", "use crate::core::{process, referee};"), [1]);
    assert_eq!(find("src/core/rails/x.rs", "use super::super::workflow::Job;"), [1]);
    assert_eq!(find("src/extra/mod.rs", "fn f() {}"), [1]);
}

#[test]
fn allowed_arrows_pass() {
    for (path, text) in [
        (
            "src/protocol/x.rs",
            "use super::json; use crate::protocol::Limits; // crate::core\nconst T: &str = \"crate::core\";",
        ),
        ("src/transport/http/x.rs", "use super::super::driver::Driver; use crate::protocol::Era;"),
        ("src/core/rails/x.rs", "use crate::core::process; use super::facts; use crate::surface::Tool;"),
        ("src/protocol/x.rs", "#[cfg(test)]\nmod tests {\n    use crate::core::gate;\n}"),
        ("src/protocol/x.rs", "#[cfg(test)]\nuse crate::core::gate;\nuse crate::protocol::json;"),
        ("src/cli/serve.rs", "use twodoor::transport; use crate::cli::exit;"),
        ("src/lib.rs", "pub mod core;"),
    ] {
        assert!(lines("arrows between modules", path, text).is_empty(), "{path}: {text}");
    }
}

#[test]
fn planted_outside_uses_are_found() {
    let find = |path: &str, text: &str| lines("crates and parts of std", path, text);
    for text in [
        "use tokio::sync::Notify;",
        "use std::{fmt, fs::File};",
        "fn f() { std::thread::sleep(d) }",
        "fn f() { let now = Instant::now(); }",
        "fn f() { let now = std::time::Instant::now(); }",
        "use std::time::SystemTime;",
        "fn f() { ::getrandom::fill(&mut b); }",
        "use hyper;",
        "use rustix::fs as files;",
        "fn f() -> anyhow::Result<()> { Ok(()) }",
    ] {
        assert!(find("src/protocol/x.rs", text).contains(&1), "{text}");
    }
    assert_eq!(find("src/transport/x.rs", "\n\nuse std::fs;"), [3]);
    assert_eq!(find("src/transport/stdio.rs", "fn f() { std::fs::read(\"x\"); }"), [1]);
    assert_eq!(find("src/transport/x.rs", "use tokio::{net, process::Command};"), [1]);
    assert_eq!(find("src/surface/x.rs", "async fn f() { tokio::task::yield_now().await }"), [1]);
    assert_eq!(find("src/core/x.rs", "use hyper::{body, server::conn::http1};"), [1]);
    assert_eq!(find("src/core/x.rs", "use anyhow::Context as _;"), [1]);
    assert_eq!(find("src/client/x.rs", "use std::process::Stdio;"), [1]);
}

#[test]
fn allowed_outside_uses_pass() {
    for (path, text) in [
        ("src/protocol/x.rs", "use std::time::{Duration, Instant}; use bytes::Bytes; fn f(now: Instant) {}"),
        ("src/protocol/x.rs", "/// Unlike `tokio::spawn`.\nfn f() { /* std::fs */ let s = \"std::fs::read\"; }"),
        ("src/transport/stdio.rs", "struct S { input: std::fs::File }"),
        ("src/core/x.rs", "use hyper::client::conn::http1; use tokio::process::Command;"),
        ("src/cli/serve.rs", "use anyhow::Result;"),
        ("src/protocol/x.rs", "#[cfg(test)]\nmod tests { fn f() { Instant::now(); } }"),
    ] {
        assert!(lines("crates and parts of std", path, text).is_empty(), "{path}: {text}");
    }
}

#[test]
fn planted_dates_are_found() {
    let find = |path: &str, text: &str| lines("revision dates", path, text);
    assert_eq!(find("src/protocol/x.rs", "\nconst A: &str = \"2025-11-25\";"), [2]);
    assert_eq!(find("src/core/x.rs", "const A: &str = r#\"{\"v\":\"2026-07-28\"}\"#;"), [1]);
    assert_eq!(find("src/cli/x.rs", "const A: &[u8] = b\"x 2024-11-05 y\";"), [1]);
    assert!(find("src/protocol/revision.rs", "const A: &str = \"2025-11-25\";").is_empty());
    assert!(find("src/core/x.rs", "// 2025-11-25\n/// 2025-11-25 basic\nconst A: &str = \"25-11-25\";").is_empty());
    assert!(find("src/core/x.rs", "#[cfg(test)]\nmod tests {\n    const A: &str = \"2025-11-25\";\n}").is_empty());
}

#[test]
fn planted_process_starts_are_found() {
    let find = |path: &str, text: &str| lines("process starts", path, text);
    assert_eq!(find("src/core/git.rs", "fn f() {\n    std::process::Command::new(\"git\");\n}"), [2]);
    assert_eq!(find("src/client/x.rs", "fn f() { Command::new(\"x\"); }"), [1]);
    assert!(find("src/core/process/spawn.rs", "fn f() { Command::new(\"x\"); }").is_empty());
    assert!(find("src/core/x.rs", "fn f() { MyCommand::new(); Command::renew(); }").is_empty());
}

#[test]
fn planted_long_files_are_found() {
    let find = |lines_of: usize| lines("file length", "src/core/x.rs", &"//!\n".repeat(lines_of));
    assert!(find(499).is_empty() && find(500).is_empty());
    assert_eq!(find(501), [501]);
}

#[test]
fn planted_undocumented_items_are_found() {
    let find = |text: &str| lines("documentation", "src/core/x.rs", text);
    assert_eq!(find("/// Good.\npub fn a() {}\n\npub fn b() {}"), [4]);
    assert_eq!(find("// Not a doc comment.\npub struct A;"), [2]);
    assert_eq!(find("/// A.\npub struct A {\n    pub x: u8,\n}"), [3]);
    assert_eq!(
        find(
            "/// A.\n#[derive(Debug)]\n#[cfg_attr(test, derive(Clone))]\npub struct A;\n#[must_use]\npub const fn f() {}"
        ),
        [6]
    );
    assert_eq!(find("pub mod x {}"), [1]);
    assert_eq!(find("impl A {\n    pub async fn f(&self) {}\n}"), [2]);
    for good in [
        "pub mod x;",
        "pub use x::y;",
        "pub(super) fn f() {}",
        "/// A.\npub struct A(pub u8);",
        "#[cfg(test)]\nmod tests { pub fn f() {} }",
    ] {
        assert!(find(good).is_empty(), "{good}");
    }
}

#[test]
fn planted_prints_and_bare_files_are_found() {
    let find = |path: &str, text: &str| lines("printing", path, text);
    assert_eq!(find("src/core/x.rs", "fn f() {\n    println!(\"x\");\n}"), [2]);
    for name in ["print", "eprint", "eprintln", "dbg"] {
        assert_eq!(find("src/transport/x.rs", &format!("fn f() {{ {name}!(\"x\") }}")), [1], "{name}");
    }
    assert!(find("src/cli/serve.rs", "fn f() { println!(\"x\"); }").is_empty());
    assert!(find("src/core/x.rs", "// println!(\"x\")\nfn print() { write!(f, \"println!\"); }").is_empty());
    assert_eq!(lines("module comments", "src/core/x.rs", "use a::b;"), [1]);
    assert!(lines("module comments", "src/core/x.rs", "//! What it promises.\nuse a::b;").is_empty());
}

#[test]
fn planted_leftovers_are_found() {
    let find = |text: &str| lines("leftovers", "src/core/x.rs", text);
    assert_eq!(find("fn f() {}\n// TODO: finish"), [2]);
    assert_eq!(find("/// FIXME later\nfn f() {}"), [1]);
    assert_eq!(find("#[allow(dead_code)]\nfn f() {}"), [1]);
    assert_eq!(find("#![allow(clippy::all)]"), [1]);
    assert_eq!(find("#[cfg_attr(test, allow(unused))]\nfn f() {}"), [1]);
    assert!(find("#[allow(dead_code, reason = \"used by the other half\")]\nfn f() {}").is_empty());
    assert!(find("const T: &str = \"TODO\"; // mastodon\nfn allow() {}").is_empty());
}

#[test]
fn texts_comments_and_tests_are_told_from_code() {
    let source = Source::new(
        "src/core/x.rs",
        "fn f<'a>(x: &'a str) -> char { '\"' }\nconst R: &str = r##\"a \"# use tokio::x; \"##;\nconst C: char = '\\'';\n\
         /* outer /* inner */ use hyper::a; */ use bytes::Bytes;\n#[cfg(test)]\nfn g() { use tokio::y; }\nuse sha2::Sha256;",
    );
    let named: Vec<String> = source.paths().iter().map(Named::text).collect();
    assert_eq!(named, ["bytes::Bytes", "sha2::Sha256"]);
    let modules = Source::new("src/core/mod.rs", "#[cfg(test)]\nmod fake;\nmod real;");
    assert_eq!(modules.test_files(), ["src/core/fake"]);
    let nested = Source::new("src/core/a.rs", "#[cfg(test)]\nmod orders;");
    assert_eq!(nested.test_files(), ["src/core/a/orders"]);
}
