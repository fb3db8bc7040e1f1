//! One walk over one JSON text: it refuses what is not strict and remembers where a message's members are.
//!
//! Promises: what passes is JSON (RFC 8259) in UTF-8 without a duplicate key at any level, a lone surrogate or a number
//! beyond 64-bit floating point, within [`JsonLimits`]. A message of ordinary size is walked without taking memory.

use std::borrow::Cow;
use std::collections::HashSet;

use smallvec::SmallVec;

use super::json::{JsonError, JsonLimits, shortened};

/// Deepest nesting whatever the limits say, so that no text grows the stack; what decodes values later stops there too.
const DEPTH_AT_MOST: usize = 127;

/// Keys of one object that are compared one by one; more are hashed, with a random seed.
const FEW_KEYS: usize = 16;

/// Digits from which a number without an exponent may be beyond 64-bit floating point.
const WIDE_DIGITS: usize = 300;

/// A part of a text, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Nothing that is walked is longer than can be said here.
    fn new(start: usize, end: usize) -> Self {
        let short = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        Self { start: short(start), end: short(end) }
    }

    /// The part of that text.
    pub(super) fn of(self, text: &[u8]) -> &[u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The part of that text with the quotes around it.
    pub(super) fn quoted(self, text: &[u8]) -> Option<&[u8]> {
        text.get((self.start as usize).checked_sub(1)?..(self.end as usize).checked_add(1)?)
    }
}

/// What an object is in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The message itself.
    Message,
    /// Its `params`.
    Params,
    /// The `_meta` of its params.
    Meta,
    /// The `arguments` of its params.
    Arguments,
    /// Anything else, whose members are not remembered.
    Other,
}

impl Role {
    /// What the value of a key is.
    fn within(self, key: &[u8]) -> Self {
        match (self, key) {
            (Self::Message, b"params") => Self::Params,
            (Self::Params, b"_meta") => Self::Meta,
            (Self::Params, b"arguments") => Self::Arguments,
            _ => Self::Other,
        }
    }
}

/// A member of a message.
#[derive(Debug, Clone, Copy)]
enum Part {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl Part {
    fn named(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"jsonrpc" => Self::Jsonrpc,
            b"id" => Self::Id,
            b"method" => Self::Method,
            b"params" => Self::Params,
            b"result" => Self::Result,
            b"error" => Self::Error,
            _ => return None,
        })
    }
}

impl Envelope {
    fn part(&mut self, part: Part) -> &mut Option<Span> {
        match part {
            Part::Jsonrpc => &mut self.jsonrpc,
            Part::Id => &mut self.id,
            Part::Method => &mut self.method,
            Part::Params => &mut self.params,
            Part::Result => &mut self.result,
            Part::Error => &mut self.error,
        }
    }
}

/// A member of an object that is remembered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    /// Of which object.
    pub(super) of: Role,
    /// Within the quotes.
    pub(super) key: Span,
    /// Whether the key is written with escapes.
    pub(super) escaped: bool,
    pub(super) value: Span,
}

/// The members that are remembered; those of one object stand in the order of the text.
pub(super) type Outline = SmallVec<[Member; 12]>;

/// The members of a message that say what it is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Envelope {
    pub(super) jsonrpc: Option<Span>,
    pub(super) id: Option<Span>,
    pub(super) method: Option<Span>,
    pub(super) params: Option<Span>,
    pub(super) result: Option<Span>,
    pub(super) error: Option<Span>,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) envelope: Envelope,
    pub(super) outline: Outline,
}

/// Walks a text; remembers nothing.
pub(super) fn check(text: &[u8], limits: &JsonLimits) -> Result<(), JsonError> {
    walk(text, limits, Role::Other).map(drop)
}

/// Walks a text of that role.
pub(super) fn walk(text: &[u8], limits: &JsonLimits, role: Role) -> Result<Found, JsonError> {
    let mut walk = Walk { text, limits, at: 0, keys: SmallVec::new(), found: Found::default() };
    if u32::try_from(text.len()).is_err() {
        return Err(JsonError::Syntax("it is longer than 4 GiB".to_owned()));
    }
    if let Err(error) = std::str::from_utf8(text) {
        return Err(walk.unexpected(error.valid_up_to()));
    }
    walk.space();
    walk.value(0, role)?;
    walk.space();
    if walk.at < text.len() { Err(walk.unexpected(walk.at)) } else { Ok(walk.found) }
}

struct Walk<'t> {
    text: &'t [u8],
    limits: &'t JsonLimits,
    at: usize,
    /// Of every object that is open.
    keys: SmallVec<[Cow<'t, [u8]>; 24]>,
    found: Found,
}

impl<'t> Walk<'t> {
    /// The byte to come; 0, which begins nothing, at the end.
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or_default()
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    /// What is wrong at a byte, without any of the text itself, which an error must not echo.
    fn unexpected(&self, at: usize) -> JsonError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let kind = if at >= self.text.len() { "it ends too early" } else { "unexpected text" };
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
        JsonError::Syntax(format!("{kind} at line {line} column {column}"))
    }

    fn value(&mut self, depth: usize, role: Role) -> Result<(), JsonError> {
        match self.peek() {
            b'"' => self.skip_string().map(drop),
            b'{' => self.object(self.deeper(depth)?, role),
            b'[' => self.array(self.deeper(depth)?),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, JsonError> {
        let most = self.limits.depth.min(DEPTH_AT_MOST);
        if depth < most { Ok(depth + 1) } else { Err(JsonError::Depth(most)) }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        for byte in word {
            if self.peek() != *byte {
                return Err(self.unexpected(self.at));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonError> {
        self.at += 1;
        self.space();
        if self.peek() == b']' {
            self.at += 1;
            return Ok(());
        }
        let mut items = 0;
        loop {
            self.value(depth, Role::Other)?;
            items += 1;
            if items > self.limits.items {
                return Err(JsonError::Items(self.limits.items));
            }
            if self.ends(b']')? {
                return Ok(());
            }
        }
    }

    fn object(&mut self, depth: usize, role: Role) -> Result<(), JsonError> {
        self.at += 1;
        self.space();
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(());
        }
        let first = self.keys.len();
        let mut many = HashSet::new();
        loop {
            if self.peek() != b'"' {
                return Err(self.unexpected(self.at));
            }
            if self.keys.len() - first + many.len() >= self.limits.keys {
                return Err(JsonError::Keys(self.limits.keys));
            }
            let (key, text) = self.key()?;
            let (escaped, inner) = (matches!(text, Cow::Owned(_)), role.within(&text));
            let part = (role == Role::Message).then(|| Part::named(&text)).flatten();
            self.remember(first, &mut many, text)?;
            self.space();
            if self.peek() != b':' {
                return Err(self.unexpected(self.at));
            }
            self.at += 1;
            self.space();
            let start = self.at;
            self.value(depth, inner)?;
            let value = Span::new(start, self.at);
            match (role, part) {
                (Role::Other, _) | (Role::Message, None) => {}
                (Role::Message, Some(part)) => *self.found.envelope.part(part) = Some(value),
                (of, _) => self.found.outline.push(Member { of, key, escaped, value }),
            }
            if self.ends(b'}')? {
                self.keys.truncate(first);
                return Ok(());
            }
        }
    }

    /// Passes over what follows an element: a comma, or the bracket that closes.
    fn ends(&mut self, close: u8) -> Result<bool, JsonError> {
        self.space();
        let byte = self.peek();
        if byte != close && byte != b',' {
            return Err(self.unexpected(self.at));
        }
        self.at += 1;
        if byte == close {
            return Ok(true);
        }
        self.space();
        Ok(false)
    }

    /// Adds a key to those of the innermost object, unless it is there.
    fn remember(
        &mut self,
        first: usize,
        many: &mut HashSet<Cow<'t, [u8]>>,
        key: Cow<'t, [u8]>,
    ) -> Result<(), JsonError> {
        let few = self.keys.get(first..).unwrap_or_default();
        if few.contains(&key) || (!many.is_empty() && many.contains(&key)) {
            return Err(JsonError::Duplicate(shortened(&String::from_utf8_lossy(&key), 64)));
        }
        if few.len() < FEW_KEYS {
            self.keys.push(key);
        } else {
            many.insert(key);
        }
        Ok(())
    }

    /// Passes over a key; gives where it is within its quotes, and what it says.
    fn key(&mut self) -> Result<(Span, Cow<'t, [u8]>), JsonError> {
        let (span, escaped) = self.skip_string()?;
        if !escaped {
            return Ok((span, Cow::Borrowed(span.of(self.text))));
        }
        let quoted = span.quoted(self.text).unwrap_or_default();
        let said: String = serde_json::from_slice(quoted).map_err(|_| self.unexpected(self.at))?;
        Ok((span, Cow::Owned(said.into_bytes())))
    }

    /// Passes over a text; gives where it is within its quotes, and whether it has escapes.
    fn skip_string(&mut self) -> Result<(Span, bool), JsonError> {
        let start = self.at + 1;
        self.at = start;
        let mut escaped = false;
        loop {
            self.at = plain_end(self.text, self.at);
            match self.peek() {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(self.unexpected(self.at)),
            }
        }
        let span = Span::new(start, self.at);
        self.at += 1;
        Ok((span, escaped))
    }

    /// Passes over one escape.
    fn escape(&mut self) -> Result<(), JsonError> {
        let begin = self.at;
        match self.text.get(begin + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match self.unit(begin)? {
                0xdc00..0xe000 => return Err(self.unexpected(begin)),
                0xd800..0xdc00 => {
                    let low = self.at;
                    if self.text.get(low..low + 2) != Some(b"\\u") || !(0xdc00..0xe000).contains(&self.unit(low)?) {
                        return Err(self.unexpected(begin));
                    }
                }
                _ => {}
            },
            _ => return Err(self.unexpected(begin + 1)),
        }
        Ok(())
    }

    /// Passes over `\uXXXX`; gives the code unit.
    fn unit(&mut self, begin: usize) -> Result<u32, JsonError> {
        let digits = self.text.get(begin + 2..begin + 6).and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at = begin + 6;
        unit.ok_or_else(|| self.unexpected(begin))
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        let whole = self.at;
        self.digits()?;
        if self.at > whole + 1 && self.text.get(whole) == Some(&b'0') {
            return Err(self.unexpected(whole + 1));
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        let raised = matches!(self.peek(), b'e' | b'E');
        if raised {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        if raised || self.at - start >= WIDE_DIGITS {
            let text = self.text.get(start..self.at).and_then(|text| std::str::from_utf8(text).ok());
            if !text.and_then(|text| text.parse().ok()).is_some_and(f64::is_finite) {
                return Err(self.unexpected(start));
            }
        }
        Ok(())
    }

    /// Passes over at least one digit.
    fn digits(&mut self) -> Result<(), JsonError> {
        if !self.peek().is_ascii_digit() {
            return Err(self.unexpected(self.at));
        }
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }
}

/// The first byte from `at` on that does not stand for itself in a text: a quote, a backslash, a control character.
fn plain_end(text: &[u8], mut at: usize) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // Of eight bytes at a time, each that is zero or below a bound leaves its high bit; a borrow can only add one above it.
    let zero = |word: u64| word.wrapping_sub(EACH) & !word & HIGH;
    let below_space = |word: u64| word.wrapping_sub(EACH * 0x20) & !word & HIGH;
    while let Some(word) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        let found = zero(word ^ (EACH * u64::from(b'"'))) | zero(word ^ (EACH * u64::from(b'\\'))) | below_space(word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while text.get(at).is_some_and(|byte| *byte >= b' ' && *byte != b'"' && *byte != b'\\') {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests;
