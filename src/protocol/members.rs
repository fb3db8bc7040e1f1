//! Texts and members of a message, as slices of the bytes that arrived.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use bytestring::ByteString;

use super::json::{Kind, RawJson};
use super::scan::{Member, Outline, Role};

/// A text of a message: a slice of it where it stands there without escapes.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(ByteString);

impl Text {
    /// What a JSON text says; `None` if it is no string. It has passed [`super::json::check`].
    pub(super) fn read(raw: &Bytes) -> Option<Self> {
        let within = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if memchr::memchr(b'\\', within).is_none() {
            return Self::of(raw.slice_ref(within));
        }
        serde_json::from_slice::<String>(raw).ok().map(|said| Self(said.into()))
    }

    fn of(bytes: Bytes) -> Option<Self> {
        ByteString::try_from(bytes).ok().map(Self)
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        (*text).to_owned()
    }
}

impl From<Text> for Box<str> {
    fn from(text: Text) -> Self {
        (*text).into()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// The members of a message's `params`, and of their `_meta` and `arguments`, found when the message was checked.
#[derive(Clone)]
pub struct Members {
    whole: Bytes,
    outline: Outline,
}

impl Members {
    pub(super) fn new(whole: Bytes, outline: Outline) -> Self {
        Self { whole, outline }
    }

    /// The members of one of the objects.
    pub(super) fn of(&self, role: Role) -> Object<'_> {
        Object { members: self, role }
    }

    fn key(&self, member: &Member) -> Cow<'_, [u8]> {
        let raw = member.key.of(&self.whole);
        if !member.escaped {
            return Cow::Borrowed(raw);
        }
        let said = member.key.quoted(&self.whole).and_then(|quoted| serde_json::from_slice::<String>(quoted).ok());
        said.map_or(Cow::Borrowed(raw), |said| Cow::Owned(said.into_bytes()))
    }

    fn value(&self, member: &Member) -> RawJson {
        RawJson::checked(self.whole.slice_ref(member.value.of(&self.whole)))
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.of(Role::Params).iter()).finish()
    }
}

/// One object of a message.
#[derive(Clone, Copy)]
pub(super) struct Object<'m> {
    members: &'m Members,
    role: Role,
}

impl<'m> Object<'m> {
    fn each(self) -> impl Iterator<Item = &'m Member> {
        self.members.outline.iter().filter(move |member| member.of == self.role)
    }

    fn find(self, name: &str) -> Option<&'m Member> {
        self.each().find(|member| match member.escaped {
            false => member.key.of(&self.members.whole) == name.as_bytes(),
            true => *self.members.key(member) == *name.as_bytes(),
        })
    }

    /// One member.
    pub(super) fn get(self, name: &str) -> Option<RawJson> {
        self.find(name).map(|member| self.members.value(member))
    }

    /// The kind of one member.
    pub(super) fn kind(self, name: &str) -> Option<Kind> {
        self.find(name).map(|member| Kind::of(member.value.of(&self.members.whole)))
    }

    /// The text of a member that is one.
    pub(super) fn text(self, name: &str) -> Option<Text> {
        self.get(name)?.as_words()
    }

    /// All members, in the order of the text.
    pub(super) fn iter(self) -> impl Iterator<Item = (Text, RawJson)> {
        self.each().filter_map(move |member| {
            let key = match self.members.key(member) {
                Cow::Borrowed(raw) => self.members.whole.slice_ref(raw),
                Cow::Owned(said) => said.into(),
            };
            Some((Text::of(key)?, self.members.value(member)))
        })
    }
}
