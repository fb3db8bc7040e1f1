//! Two lists of tools compared: every single change, and what it means to whoever relies on the old list.
//!
//! Promises: what is the same in the canonical form of sorted keys is no change; what differs is at least one;
//! what cannot be judged counts as breaking. Linear in the size of both lists, whatever they hold; the number
//! of changes kept is bounded, the class of all of them is not lost. Used by `surface` and the command line
//! for versions and locks, by `client` for the two doors of a server.

mod schema;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::digest::{escape_pointer, python_number, sorted_keys};
use super::json::{Json, shortened};

/// Most changes that are kept; more are counted.
const CHANGES_KEPT: usize = 10_000;
/// Most characters of a pointer, of a name, and of an old or new value.
const POINTER_CHARACTERS: usize = 400;
const NAME_CHARACTERS: usize = 128;
const VALUE_CHARACTERS: usize = 160;

/// What a change means to whoever relies on the old list, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The same in another order.
    Order,
    /// What clients may go by and need not: annotations, icons, `_meta`, header annotations.
    Hints,
    /// What a model reads.
    Wording,
    /// Whoever relied on the old list can go on.
    Additive,
    /// Whoever relied on the old list may fail, or be surprised.
    Breaking,
}

impl Class {
    /// All of them, from the most to the least.
    pub const ALL: [Self; 5] = [Self::Breaking, Self::Additive, Self::Wording, Self::Hints, Self::Order];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Hints => "hints",
            Self::Wording => "wording",
            Self::Additive => "additive",
            Self::Breaking => "breaking",
        }
    }

    /// The part of a version that it makes go up.
    pub const fn bump(self) -> Bump {
        match self {
            Self::Order | Self::Hints | Self::Wording => Bump::Patch,
            Self::Additive => Bump::Minor,
            Self::Breaking => Bump::Major,
        }
    }
}

/// A part of a semantic version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bump {
    /// The last.
    Patch,
    /// The middle.
    Minor,
    /// The first.
    Major,
}

impl Bump {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}

/// What happened to a tool, or to the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The tool is new.
    Added,
    /// The tool is gone.
    Removed,
    /// The tool has another name, and is the same otherwise.
    Renamed,
    /// Something in its definition differs.
    Changed,
    /// The tools that both lists have come in another order.
    Reordered,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What it means.
    pub class: Class,
    /// What happened.
    pub kind: Kind,
    /// The tool's name, shortened; empty for the list.
    pub tool: String,
    /// JSON pointer into the tool's definition, shortened; empty for all of it.
    pub pointer: String,
    /// The change in words.
    pub what: &'static str,
    /// The old value as JSON, shortened, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The new value as JSON, shortened, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// All changes from one list to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    changes: Vec<Change>,
    counts: BTreeMap<Class, usize>,
}

impl Comparison {
    /// The changes: tools in their order, then those that are new; at most 10,000.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// How many there are of a class, those not kept included.
    pub fn count(&self, class: Class) -> usize {
        self.counts.get(&class).copied().unwrap_or_default()
    }

    /// How many there are beyond those kept.
    pub fn dropped(&self) -> usize {
        self.counts.values().sum::<usize>() - self.changes.len()
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.counts.is_empty()
    }

    /// What all of them together mean.
    pub fn class(&self) -> Option<Class> {
        self.counts.keys().next_back().copied()
    }

    /// What the version has to go up by.
    pub fn bump(&self) -> Option<Bump> {
        self.class().map(Class::bump)
    }
}

/// Compares two lists of tools.
pub fn compare(old: &[Json], new: &[Json]) -> Comparison {
    let mut comparer = Comparer::default();
    comparer.lists(old, new);
    comparer.found
}

/// Whether two values have one canonical text in the form of sorted keys.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a == b || python_number(a).is_some_and(|a| Some(a) == python_number(b)),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            if a.len() != b.len() {
                return false;
            }
            if a.iter().zip(b).all(|((a, _), (b, _))| a == b) {
                return a.iter().zip(b).all(|((_, a), (_, b))| same(a, b));
            }
            let by_key: HashMap<&str, &Json> = b.iter().map(|(key, value)| (key.as_str(), value)).collect();
            a.iter().all(|(key, value)| by_key.get(key.as_str()).is_some_and(|other| same(value, other)))
        }
        (a, b) => a == b,
    }
}

fn same_or_absent(a: Option<&Json>, b: Option<&Json>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// The members of two objects: key, old value, new value; those of the old one first.
type Pair<'j> = (&'j str, Option<&'j Json>, Option<&'j Json>);

fn pairs<'j>(old: &'j [(String, Json)], new: &'j [(String, Json)]) -> Vec<Pair<'j>> {
    let index = |members: &'j [(String, Json)]| -> HashMap<&'j str, &'j Json> {
        members.iter().map(|(key, value)| (key.as_str(), value)).collect()
    };
    let (by_old, by_new) = (index(old), index(new));
    let kept = old.iter().map(|(key, value)| (key.as_str(), Some(value), by_new.get(key.as_str()).copied()));
    let added = new.iter().filter(|(key, _)| !by_old.contains_key(key.as_str()));
    kept.chain(added.map(|(key, value)| (key.as_str(), None, Some(value)))).collect()
}

/// A tool's name, and which of several of that name it is.
type Key = (String, usize);
type ByKey<'j> = HashMap<&'j Key, &'j Json>;

/// The names of tools in order; one without a name is called by its place.
pub fn names(tools: &[Json]) -> Vec<String> {
    let name = |(index, tool): (usize, &Json)| {
        let name = tool.get("name").and_then(Json::as_str);
        name.map_or_else(|| format!("(tool {} has no name)", index + 1), str::to_owned)
    };
    tools.iter().enumerate().map(name).collect()
}

fn keyed(tools: &[Json]) -> Vec<(Key, &Json)> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let key = |name: String| {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        (name, *count)
    };
    names(tools).into_iter().map(key).zip(tools).collect()
}

#[derive(Debug, Default)]
struct Comparer {
    found: Comparison,
    /// All changes found so far, those not kept included.
    total: usize,
    tool: String,
    pointer: String,
}

impl Comparer {
    fn add(&mut self, kind: Kind, class: Class, what: &'static str, old: Option<&Json>, new: Option<&Json>) {
        *self.found.counts.entry(class).or_default() += 1;
        self.total += 1;
        if self.found.changes.len() >= CHANGES_KEPT {
            return;
        }
        let (old, new) = excerpts(old, new);
        let (tool, pointer) = (shortened(&self.tool, NAME_CHARACTERS), shortened(&self.pointer, POINTER_CHARACTERS));
        self.found.changes.push(Change { class, kind, tool, pointer, what, old, new });
    }

    fn change(&mut self, class: Class, what: &'static str, old: Option<&Json>, new: Option<&Json>) {
        self.add(Kind::Changed, class, what, old, new);
    }

    /// Goes one step down; the length is what [`Comparer::leave`] goes back to.
    fn enter(&mut self, step: &str) -> usize {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&escape_pointer(step));
        length
    }

    fn leave(&mut self, length: usize) {
        self.pointer.truncate(length);
    }

    fn lists(&mut self, old: &[Json], new: &[Json]) {
        let (old, new) = (keyed(old), keyed(new));
        let by_old: ByKey<'_> = old.iter().map(|(key, tool)| (key, *tool)).collect();
        let by_new: ByKey<'_> = new.iter().map(|(key, tool)| (key, *tool)).collect();
        let renamed = renames(&old, &new, &by_old, &by_new);
        for (key, tool) in &old {
            self.tool.clone_from(&key.0);
            match (by_new.get(key), renamed.get(key)) {
                (Some(other), _) => self.tool(tool, other),
                (None, Some(other)) => {
                    let (old, new) = (Json::String(key.0.clone()), Json::String(other.0.clone()));
                    let length = self.enter("name");
                    self.add(Kind::Renamed, Class::Breaking, "renamed tool", Some(&old), Some(&new));
                    self.leave(length);
                }
                (None, None) => self.add(Kind::Removed, Class::Breaking, "removed tool", None, None),
            }
        }
        let known: HashSet<&Key> = renamed.values().chain(by_old.keys().copied()).collect();
        for (key, _) in new.iter().filter(|(key, _)| !known.contains(key)) {
            self.tool.clone_from(&key.0);
            self.add(Kind::Added, Class::Additive, "new tool", None, None);
        }
        let shared = |here: &[(Key, &Json)], there: &ByKey<'_>| -> Vec<Json> {
            let shared = here.iter().map(|(key, _)| key).filter(|key| there.contains_key(key));
            shared.map(|key| Json::String(key.0.clone())).collect()
        };
        let (before, after) = (shared(&old, &by_new), shared(&new, &by_old));
        if before != after {
            self.tool.clear();
            let (before, after) = (Json::Array(before), Json::Array(after));
            self.add(Kind::Reordered, Class::Order, "tools in another order", Some(&before), Some(&after));
        }
    }

    fn tool(&mut self, old: &Json, new: &Json) {
        let (Json::Object(before), Json::Object(after)) = (old, new) else {
            if !same(old, new) {
                self.change(Class::Breaking, "what is no definition cannot be judged", Some(old), Some(new));
            }
            return;
        };
        for (key, old, new) in pairs(before, after) {
            if same_or_absent(old, new) {
                continue;
            }
            let length = self.enter(key);
            self.member(key, old, new);
            self.leave(length);
        }
    }

    fn member(&mut self, key: &str, old: Option<&Json>, new: Option<&Json>) {
        match (key, old, new) {
            ("title" | "description", _, _) => self.change(Class::Wording, "wording", old, new),
            ("icons" | "_meta", _, _) => self.change(Class::Hints, "hints", old, new),
            ("inputSchema", Some(old), Some(new)) => self.schema(schema::Side::Input, old, new),
            ("outputSchema", Some(old), Some(new)) => self.schema(schema::Side::Output, old, new),
            ("outputSchema", None, _) => self.change(Class::Additive, "new outputSchema", None, new),
            ("outputSchema", _, None) => self.change(Class::Breaking, "removed outputSchema", old, None),
            ("annotations", _, _) => self.annotations(old, new),
            ("execution", _, _) => self.execution(old, new),
            _ => self.change(Class::Breaking, "a member that cannot be judged", old, new),
        }
    }

    fn annotations(&mut self, old: Option<&Json>, new: Option<&Json>) {
        let members = |hints: Option<&'_ Json>| match hints {
            None => Some(Vec::new()),
            Some(hints) => hints.as_object().map(<[_]>::to_vec),
        };
        let (Some(before), Some(after)) = (members(old), members(new)) else {
            self.change(Class::Breaking, "annotations that cannot be judged", old, new);
            return;
        };
        // What is not said is the cautious choice (2025-11-25 schema, ToolAnnotations).
        let says = |hints: &[(String, Json)], key: &str, unsaid: bool| {
            let said = hints.iter().find(|(name, _)| name == key).map(|(_, value)| value);
            said.map_or(unsaid, |said| match said {
                Json::Bool(said) => *said,
                _ => unsaid,
            })
        };
        let read_only = |hints: &[(String, Json)]| says(hints, "readOnlyHint", false);
        let destructive = |hints: &[(String, Json)]| !read_only(hints) && says(hints, "destructiveHint", true);
        let before_after = (read_only(&before) && !read_only(&after), !destructive(&before) && destructive(&after));
        let mut any = false;
        for (key, old, new) in pairs(&before, &after) {
            if same_or_absent(old, new) {
                continue;
            }
            any = true;
            let (class, what) = match (key, before_after) {
                ("title", _) => (Class::Wording, "wording"),
                ("readOnlyHint", (true, _)) => (Class::Breaking, "no longer read-only"),
                // A tool that is no longer read-only is reported as that.
                ("destructiveHint", (false, true)) => (Class::Breaking, "destructive from now on"),
                _ => (Class::Hints, "hints"),
            };
            let length = self.enter(key);
            self.change(class, what, old, new);
            self.leave(length);
        }
        if !any {
            self.change(Class::Hints, "hints", old, new);
        }
    }

    /// A client that knows nothing of tasks cannot call what demands one; one that makes tasks cannot where there are none.
    fn execution(&mut self, old: Option<&Json>, new: Option<&Json>) {
        let support = |execution: Option<&'_ Json>| match execution {
            None => Some("forbidden".to_owned()),
            Some(Json::Object(members)) => match members.as_slice() {
                [] => Some("forbidden".to_owned()),
                [(key, Json::String(support))] if key == "taskSupport" => Some(support.clone()),
                _ => None,
            },
            Some(_) => None,
        };
        let (class, what) = match (support(old).as_deref(), support(new).as_deref()) {
            (Some(old), Some(new)) if old == new => (Class::Hints, "hints"),
            (Some("forbidden" | "required"), Some("optional")) => (Class::Additive, "calls may be tasks or not"),
            _ => (Class::Breaking, "other support of tasks"),
        };
        self.change(class, what, old, new);
    }
}

/// The tools that are gone, each with a new one that is the same but for its name.
fn renames(old: &[(Key, &Json)], new: &[(Key, &Json)], by_old: &ByKey<'_>, by_new: &ByKey<'_>) -> HashMap<Key, Key> {
    let nameless = |tool: &Json| {
        tool.get("name")?;
        let members = tool.as_object()?.iter().filter(|(key, _)| key != "name").cloned();
        sorted_keys(&Json::Object(members.collect()))
    };
    let mut added: HashMap<String, Vec<&Key>> = HashMap::new();
    for (key, tool) in new.iter().rev().filter(|(key, _)| !by_old.contains_key(key)) {
        if let Some(definition) = nameless(tool) {
            added.entry(definition).or_default().push(key);
        }
    }
    let removed = old.iter().filter(|(key, _)| !by_new.contains_key(key));
    removed.filter_map(|(key, tool)| Some((key.clone(), added.get_mut(&nameless(tool)?)?.pop()?.clone()))).collect()
}

/// Both values as JSON, shortened so that the first difference of two texts is seen.
fn excerpts(old: Option<&Json>, new: Option<&Json>) -> (Option<String>, Option<String>) {
    /// Characters that two texts may share before what they share is left out, and how many of those are shown.
    const SHARED: usize = 60;
    const BEFORE: usize = 30;
    let (old, new) = (old.map(Json::to_text), new.map(Json::to_text));
    let shared = match (&old, &new) {
        (Some(old), Some(new)) => old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    let cut = |text: String| {
        if shared <= SHARED || text.chars().nth(VALUE_CHARACTERS).is_none() {
            return shortened(&text, VALUE_CHARACTERS);
        }
        let rest: String = text.chars().skip(shared - BEFORE).collect();
        format!("…{}", shortened(&rest, VALUE_CHARACTERS))
    };
    (old.map(&cut), new.map(cut))
}

#[cfg(test)]
mod tests;
