//! What a call would do, as its backend sees it: all that the gate knows of backends.

use std::sync::Arc;

use crate::protocol::digest::Digest;
use crate::surface::effect::{Effect, Judged, Policy, classify, only_reads};
use crate::surface::level::{Latitude, Level};
use crate::surface::rules::Declared;

/// What becomes of a call that cannot be undone, by the kind of its tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Manner {
    /// A person is asked: every published tool, and the confirmed tools of an operator surface.
    #[default]
    Asks,
    /// It is refused with `approval_required` and the name of the tool of the same surface that asks, which takes the
    /// same arguments: the plain tools of an operator surface.
    Refers(Arc<str>),
    /// It runs, as its program asks a person before it does it; where nobody may be asked it is refused.
    Itself,
    /// It is refused: what was published as reversible, and is not.
    Never,
}

/// What a call would do. A backend makes one of the arguments it is given, before anything runs, without looking at
/// the world: `Subject::of_tool` for a tool that stands for itself, `Subject::of_action` for one that can do several
/// things and is told which.
///
/// Whatever would make it another deed has to be in the arguments of the call, for an approval is bound to these.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    labels: Vec<(&'static str, String)>,
    names: Vec<String>,
    policy: Policy,
    manner: Manner,
    declared: Declared,
    definition: Option<Digest>,
}

impl Subject {
    /// A tool that does one thing, whatever its arguments.
    pub fn of_tool(name: impl Into<String>, policy: Policy) -> Self {
        let name = name.into();
        Self { labels: vec![("tool", name.clone())], names: vec![name], policy, ..Self::nothing() }
    }

    /// An action of a capability, whose `kind` is the word for it in answers: `tool` or `agent`.
    pub fn of_action(kind: &'static str, name: &str, action: Option<&str>, policy: Policy) -> Self {
        let mut labels = vec![(kind, name.to_owned())];
        labels.extend(action.map(|action| ("action", action.to_owned())));
        let names = std::iter::once(name).chain(action).map(str::to_owned).collect();
        Self { labels, names, policy, ..Self::nothing() }
    }

    fn nothing() -> Self {
        Self {
            labels: Vec::new(),
            names: Vec::new(),
            policy: Policy::default(),
            manner: Manner::Asks,
            declared: Declared::default(),
            definition: None,
        }
    }

    /// What is declared of its arguments, for the rules of the surface.
    #[must_use]
    pub fn declaring(mut self, declared: Declared) -> Self {
        self.declared = declared;
        self
    }

    /// Looks for verbs in these names too, after those before: of an action behind a published tool, of an upstream's
    /// tool.
    #[must_use]
    pub fn probing(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names.extend(names.into_iter().map(Into::into));
        self
    }

    /// By what it is judged, where that may change between two calls: an approval holds for it alone, and nothing else
    /// is run.
    #[must_use]
    pub fn defined_by(mut self, definition: Digest) -> Self {
        self.definition = Some(definition);
        self
    }

    /// What becomes of it where it cannot be undone.
    #[must_use]
    pub fn in_manner(mut self, manner: Manner) -> Self {
        self.manner = manner;
        self
    }

    /// What it does.
    pub fn judged(&self) -> Judged {
        classify(self.names.iter().map(String::as_str), self.policy)
    }

    /// The lowest level at which it runs unasked; `None` if there is none.
    pub fn unasked_from(&self, latitude: &Latitude) -> Option<Level> {
        let judged = self.judged();
        match judged.effect {
            Effect::Irreversible if self.manner == Manner::Never => None,
            Effect::Irreversible if self.is_among(&latitude.allow, judged.verb) => Some(Level::L2),
            Effect::Irreversible => Some(Level::L3),
            _ if only_reads(self.names.iter().map(String::as_str), self.policy) => Some(Level::L0),
            Effect::Read | Effect::Write => Some(Level::L1),
        }
    }

    /// Whether it is named in a list: by a name of its own, by two that follow each other, or by the verb in them.
    fn is_among(&self, list: &[String], verb: Option<&str>) -> bool {
        let one = |name: &String| self.names.contains(name) || verb == Some(name.as_str());
        let pairs = || self.names.iter().zip(self.names.iter().skip(1));
        let two = |name: &String| {
            let said = |(of, action): (&String, &String)| {
                name.strip_prefix(of.as_str()).and_then(|rest| rest.strip_prefix(':')) == Some(action)
            };
            pairs().any(said)
        };
        list.iter().any(|name| one(name) || two(name))
    }

    /// What becomes of it where it cannot be undone.
    pub fn manner(&self) -> &Manner {
        &self.manner
    }

    /// By what it is judged, where that may change between two calls.
    pub fn definition(&self) -> Option<Digest> {
        self.definition
    }

    pub(super) fn declared(&self) -> &Declared {
        &self.declared
    }

    /// What it is, by the words that answers have for it.
    pub(super) fn labels(&self) -> &[(&'static str, String)] {
        &self.labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_judged_by_its_name_and_by_what_stands_behind_it() {
        let plain = Subject::of_tool("tidy", Policy::default());
        assert_eq!(plain.judged().effect, Effect::Write);
        assert_eq!(plain.probing(["fs", "delete-all"]).judged().verb, Some("delete"));
        let action = Subject::of_action("tool", "mail", Some("send"), Policy::default());
        assert_eq!(action.judged().verb, Some("send"));
        assert_eq!(action.labels(), [("tool", "mail".to_owned()), ("action", "send".to_owned())]);
        assert_eq!(Subject::of_action("agent", "wire", None, Policy::default()).judged().verb, Some("wire"));
    }

    #[test]
    fn each_call_runs_unasked_from_a_level_on() {
        let tool = |name: &str, said| Subject::of_tool(name, Policy { said, ..Policy::default() });
        let none = Latitude::default();
        for (subject, level) in [
            (tool("list-archive", None), Some(Level::L0)),
            (tool("item_status", None), Some(Level::L0)),
            (tool("status", Some(Effect::Write)), Some(Level::L1)),
            (tool("wipe", Some(Effect::Read)), Some(Level::L0)),
            (tool("tidy", None), Some(Level::L1)),
            (tool("get-delete", None), Some(Level::L3)),
            (tool("tidy", Some(Effect::Irreversible)), Some(Level::L3)),
            (tool("wipe", None).in_manner(Manner::Never), None),
            (Subject::of_action("tool", "list", Some("tidy"), Policy::default()), Some(Level::L1)),
            (Subject::of_action("tool", "list", None, Policy::default()), Some(Level::L0)),
        ] {
            assert_eq!(subject.unasked_from(&none), level, "{subject:?}");
        }
        let mail = Subject::of_action("tool", "mail", Some("send-note"), Policy::default());
        for (name, level) in [
            ("mail", Level::L2),
            ("mail:send-note", Level::L2),
            ("send-note", Level::L2),
            ("send", Level::L2),
            ("mail:send", Level::L3),
            ("wire:send-note", Level::L3),
            ("delete", Level::L3),
            ("note", Level::L3),
        ] {
            let latitude = Latitude { level: Level::L2, allow: vec![name.to_owned()] };
            assert_eq!(mail.unasked_from(&latitude), Some(level), "{name}");
        }
    }
}
