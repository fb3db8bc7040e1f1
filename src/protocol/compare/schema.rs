//! Two schemas compared by their common keywords.
//!
//! Promises: what a narrower or a wider schema means depends on who has to fit it: a caller its arguments, the
//! server its results. A keyword outside the table is compared as a whole, but for its words. References are
//! not followed, so no schema makes this loop.

use std::collections::BTreeSet;

use super::{Class, Comparer, pairs, same, same_or_absent};
use crate::protocol::digest::sorted_keys;
use crate::protocol::digest::tool::{WORDING, shape};
use crate::protocol::json::Json;
use crate::protocol::schema::{Nested, nested};

/// Whose values have to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The caller's.
    Input,
    /// The server's.
    Output,
}

/// What became of the set of values that fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Narrower,
    Wider,
    Neither,
}

impl Side {
    fn class(self, effect: Effect) -> Class {
        match (self, effect) {
            (Self::Input, Effect::Wider) | (Self::Output, Effect::Narrower) => Class::Additive,
            _ => Class::Breaking,
        }
    }
}

const TRUE: Json = Json::Bool(true);
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

impl Comparer {
    pub(super) fn schema(&mut self, side: Side, old: &Json, new: &Json) {
        let none: &[(String, Json)] = &[];
        let found = self.total;
        match (old, new) {
            (Json::Object(before), Json::Object(after)) => self.keywords(side, before, after),
            (Json::Bool(true), Json::Object(after)) => self.keywords(side, none, after),
            (Json::Object(before), Json::Bool(true)) => self.keywords(side, before, none),
            (Json::Bool(before), Json::Bool(after)) if before == after => return,
            (Json::Bool(false), Json::Bool(_) | Json::Object(_)) => {
                self.effect(side, Effect::Wider, "allowed from now on", Some(old), Some(new));
            }
            (Json::Bool(_) | Json::Object(_), Json::Bool(false)) => {
                self.effect(side, Effect::Narrower, "no longer allowed", Some(old), Some(new));
            }
            _ if same(old, new) => return,
            _ => return self.unjudged(Some(old), Some(new)),
        }
        if self.total == found && (old.as_object().is_none() || new.as_object().is_none()) {
            self.held(Some(old), Some(new));
        }
    }

    fn keywords(&mut self, side: Side, before: &[(String, Json)], after: &[(String, Json)]) {
        let names = |members: &[(String, Json)]| -> BTreeSet<String> {
            let properties = members.iter().find(|(key, _)| key == "properties").and_then(|(_, p)| p.as_object());
            properties.unwrap_or_default().iter().map(|(name, _)| name.clone()).collect()
        };
        let moved: BTreeSet<String> = names(before).symmetric_difference(&names(after)).cloned().collect();
        let demanded =
            texts(after.iter().find(|(key, _)| key == "required").map(|(_, names)| names)).unwrap_or_default();
        for (keyword, old, new) in pairs(before, after) {
            let found = self.total;
            let length = self.enter(keyword);
            match keyword {
                "properties" => self.properties(side, old, new, &demanded),
                "required" if same_or_absent(old, new) => {}
                "required" => self.required(side, old, new, &moved),
                _ => self.keyword(side, keyword, old, new),
            }
            if self.total == found && old.is_some() != new.is_some() && keyword != "required" {
                self.held(old, new);
            }
            self.leave(length);
        }
    }

    /// Other text that means what was meant before.
    fn held(&mut self, old: Option<&Json>, new: Option<&Json>) {
        self.change(Class::Hints, "says what held before", old, new);
    }

    fn effect(&mut self, side: Side, effect: Effect, what: &'static str, old: Option<&Json>, new: Option<&Json>) {
        self.change(side.class(effect), what, old, new);
    }

    fn unjudged(&mut self, old: Option<&Json>, new: Option<&Json>) {
        self.change(Class::Breaking, "changed in a way that cannot be judged", old, new);
    }

    /// `demanded`: the names that are required now.
    fn properties(&mut self, side: Side, old: Option<&Json>, new: Option<&Json>, demanded: &BTreeSet<&str>) {
        let none = Json::Object(Vec::new());
        let (Some(before), Some(after)) = (old.unwrap_or(&none).as_object(), new.unwrap_or(&none).as_object()) else {
            return self.other(old, new);
        };
        for (name, old, new) in pairs(before, after) {
            let length = self.enter(name);
            match (old, new) {
                (Some(old), Some(new)) => self.schema(side, old, new),
                (None, _) if side == Side::Input && demanded.contains(name) => {
                    self.change(Class::Breaking, "new required property", None, new);
                }
                (None, _) => self.change(Class::Additive, "new property", None, new),
                (_, None) => self.change(Class::Breaking, "removed property", old, None),
            }
            self.leave(length);
        }
    }

    fn other(&mut self, old: Option<&Json>, new: Option<&Json>) {
        if !same_or_absent(old, new) {
            self.unjudged(old, new);
        }
    }

    /// `moved`: properties that come or go, which are reported as that.
    fn required(&mut self, side: Side, old: Option<&Json>, new: Option<&Json>, moved: &BTreeSet<String>) {
        let (Some(before), Some(after)) = (texts(old), texts(new)) else { return self.unjudged(old, new) };
        let named = |names: Vec<&&str>| {
            let names: Vec<Json> = names
                .into_iter()
                .filter(|name| !moved.contains(**name))
                .map(|name| Json::String((*name).to_owned()))
                .collect();
            (!names.is_empty()).then_some(Json::Array(names))
        };
        let (added, gone) = (named(after.difference(&before).collect()), named(before.difference(&after).collect()));
        if let Some(added) = &added {
            self.effect(side, Effect::Narrower, "required from now on", None, Some(added));
        }
        if let Some(gone) = &gone {
            self.effect(side, Effect::Wider, "no longer required", Some(gone), None);
        }
        // What comes or goes with its property is reported there.
        if before == after {
            self.change(Class::Order, "in another order", old, new);
        }
    }

    fn keyword(&mut self, side: Side, keyword: &str, old: Option<&Json>, new: Option<&Json>) {
        match keyword {
            "additionalProperties" | "unevaluatedProperties" | "propertyNames" => {
                return self.schema(side, old.unwrap_or(&TRUE), new.unwrap_or(&TRUE));
            }
            "items" if ![old, new].into_iter().flatten().any(|items| matches!(items, Json::Array(_))) => {
                return self.schema(side, old.unwrap_or(&TRUE), new.unwrap_or(&TRUE));
            }
            "$defs" | "definitions" => return self.definitions(old, new),
            _ => {}
        }
        if same_or_absent(old, new) {
            return;
        }
        match keyword {
            _ if WORDING.contains(&keyword) => self.change(Class::Wording, "wording", old, new),
            "deprecated" | "readOnly" | "writeOnly" => self.change(Class::Hints, "hints", old, new),
            _ if keyword.starts_with("x-") => self.change(Class::Hints, "hints", old, new),
            "type" => self.types(side, old, new),
            "enum" => self.choices(side, old, new),
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                self.bound(side, keyword, old, new, Effect::Narrower);
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                self.bound(side, keyword, old, new, Effect::Wider);
            }
            "const" | "pattern" | "format" | "multipleOf" | "contentEncoding" | "contentMediaType" => {
                let (effect, what) = match (old, new) {
                    (None, _) => (Effect::Narrower, "narrower"),
                    (_, None) => (Effect::Wider, "wider"),
                    _ => (Effect::Neither, "other values"),
                };
                self.effect(side, effect, what, old, new);
            }
            "uniqueItems" => match (said(old), said(new)) {
                (Some(false), Some(true)) => self.effect(side, Effect::Narrower, "narrower", old, new),
                (Some(true), Some(false)) => self.effect(side, Effect::Wider, "wider", old, new),
                (Some(_), Some(_)) => self.held(old, new),
                _ => self.unjudged(old, new),
            },
            "default" => match (side, old) {
                (Side::Output, _) => self.change(Class::Hints, "hints", old, new),
                (Side::Input, None) => self.change(Class::Additive, "new default", old, new),
                (Side::Input, Some(_)) => {
                    self.change(Class::Breaking, "what is left out means something else", old, new)
                }
            },
            "$schema"
                if [old, new]
                    .into_iter()
                    .flatten()
                    .all(|dialect| dialect.as_str().map(|d| d.trim_end_matches('#')) == Some(DIALECT)) =>
            {
                self.held(old, new);
            }
            _ => self.whole(keyword, old, new),
        }
    }

    /// What is not looked into: if its words alone differ, each of them; else one change.
    fn whole(&mut self, keyword: &str, old: Option<&Json>, new: Option<&Json>) {
        let wrapped = |value: Option<&Json>| Some(shape(&Json::Object(vec![(keyword.to_owned(), value?.clone())])));
        match (old, new) {
            (Some(old), Some(new)) if same_or_absent(wrapped(Some(old)).as_ref(), wrapped(Some(new)).as_ref()) => {
                self.words_in(keyword, old, new);
            }
            _ => self.unjudged(old, new),
        }
    }

    /// Of two values of a keyword that differ in words alone.
    fn words_in(&mut self, keyword: &str, old: &Json, new: &Json) {
        match (nested(keyword, old), nested(keyword, new)) {
            (Nested::Named(before), Nested::Named(after)) => {
                for (name, old, new) in pairs(before, after) {
                    let length = self.enter(name);
                    if let (Some(old), Some(new)) = (old, new) {
                        self.words(old, new);
                    }
                    self.leave(length);
                }
            }
            (Nested::Listed(before), Nested::Listed(after)) => {
                for (index, (old, new)) in before.iter().zip(after).enumerate() {
                    let length = self.enter(&index.to_string());
                    self.words(old, new);
                    self.leave(length);
                }
            }
            (Nested::One(old, _), Nested::One(new, _)) => self.words(old, new),
            _ => {}
        }
    }

    fn words(&mut self, old: &Json, new: &Json) {
        for (keyword, old, new) in pairs(old.as_object().unwrap_or_default(), new.as_object().unwrap_or_default()) {
            let length = self.enter(keyword);
            match (old, new) {
                _ if WORDING.contains(&keyword) && same_or_absent(old, new) => {}
                _ if WORDING.contains(&keyword) => self.change(Class::Wording, "wording", old, new),
                (Some(old), Some(new)) => self.words_in(keyword, old, new),
                _ => {}
            }
            self.leave(length);
        }
    }

    /// Definitions that references may name: what comes or goes alone changes nothing, unless it can be named otherwise.
    fn definitions(&mut self, old: Option<&Json>, new: Option<&Json>) {
        if same_or_absent(old, new) {
            return;
        }
        let none = Json::Object(Vec::new());
        let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
        let (Some(before), Some(after)) = (old.as_object(), new.as_object()) else {
            return self.unjudged(Some(old), Some(new));
        };
        for (name, old, new) in pairs(before, after) {
            if same_or_absent(old, new) {
                continue;
            }
            let length = self.enter(name);
            match (old, new) {
                (Some(old), Some(new)) if same(&shape(old), &shape(new)) => self.words(old, new),
                (Some(_), Some(_)) => self.unjudged(old, new),
                (one, other) => {
                    let text = one.or(other).map(Json::to_text).unwrap_or_default();
                    if ["\"$id\"", "\"$anchor\"", "\"$dynamicAnchor\""].iter().any(|key| text.contains(key)) {
                        self.unjudged(old, new);
                    } else {
                        self.change(Class::Hints, "a definition that others may refer to", old, new);
                    }
                }
            }
            self.leave(length);
        }
    }

    fn types(&mut self, side: Side, old: Option<&Json>, new: Option<&Json>) {
        let types = |value: Option<&'_ Json>| -> Option<BTreeSet<String>> {
            const ALL: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
            let named: BTreeSet<String> = match value {
                None => ALL.iter().map(|name| (*name).to_owned()).collect(),
                Some(Json::String(name)) => BTreeSet::from([name.clone()]),
                Some(value) => texts(Some(value))?.into_iter().map(str::to_owned).collect(),
            };
            let known = named.iter().all(|name| ALL.contains(&name.as_str()));
            // Every integer is a number.
            let integer = named.contains("number").then(|| "integer".to_owned());
            known.then(|| named.into_iter().chain(integer).collect())
        };
        let (Some(before), Some(after)) = (types(old), types(new)) else { return self.unjudged(old, new) };
        let what = if before.is_subset(&after) {
            "wider type"
        } else if after.is_subset(&before) {
            "narrower type"
        } else {
            "other type"
        };
        self.sets(side, &before, &after, what, old, new);
    }

    fn choices(&mut self, side: Side, old: Option<&Json>, new: Option<&Json>) {
        let choices = |value: &Json| match value {
            Json::Array(items) => items.iter().map(sorted_keys).collect::<Option<BTreeSet<_>>>(),
            _ => None,
        };
        match (old, new) {
            (None, _) => self.effect(side, Effect::Narrower, "narrower", old, new),
            (_, None) => self.effect(side, Effect::Wider, "wider", old, new),
            (Some(before), Some(after)) => match (choices(before), choices(after)) {
                (Some(before), Some(after)) => {
                    let what = if before.is_subset(&after) {
                        "more values"
                    } else if after.is_subset(&before) {
                        "fewer values"
                    } else {
                        "other values"
                    };
                    self.sets(side, &before, &after, what, old, new);
                }
                _ => self.unjudged(old, new),
            },
        }
    }

    fn sets(
        &mut self,
        side: Side,
        before: &BTreeSet<String>,
        after: &BTreeSet<String>,
        what: &'static str,
        old: Option<&Json>,
        new: Option<&Json>,
    ) {
        if before == after {
            return self.change(Class::Order, "the same written otherwise", old, new);
        }
        let effect = if before.is_subset(after) {
            Effect::Wider
        } else if after.is_subset(before) {
            Effect::Narrower
        } else {
            Effect::Neither
        };
        self.effect(side, effect, what, old, new);
    }

    /// A bound; `up` is what it means if it goes up.
    fn bound(&mut self, side: Side, keyword: &str, old: Option<&Json>, new: Option<&Json>, up: Effect) {
        let number = |value: Option<&Json>| match value {
            None if keyword.starts_with("min") && keyword != "minimum" => Some(0.0),
            None if up == Effect::Narrower => Some(f64::NEG_INFINITY),
            None => Some(f64::INFINITY),
            Some(Json::Number(text)) => text.parse::<f64>().ok().filter(|number| number.is_finite()),
            Some(_) => None,
        };
        let (Some(before), Some(after)) = (number(old), number(new)) else { return self.unjudged(old, new) };
        let whole = |value: Option<&Json>| match value {
            Some(Json::Number(text)) => text.parse::<i128>().ok(),
            _ => None,
        };
        let order = match (whole(old), whole(new)) {
            (Some(before), Some(after)) => before.cmp(&after),
            _ => before.partial_cmp(&after).unwrap_or(std::cmp::Ordering::Equal),
        };
        let down = if up == Effect::Narrower { Effect::Wider } else { Effect::Narrower };
        let effect = match order {
            std::cmp::Ordering::Less => up,
            std::cmp::Ordering::Greater => down,
            std::cmp::Ordering::Equal => return self.held(old, new),
        };
        let what = if effect == Effect::Narrower { "narrower" } else { "wider" };
        self.effect(side, effect, what, old, new);
    }
}

/// A list of texts as a set; an absent one is empty, `None` is another kind of value.
fn texts(value: Option<&Json>) -> Option<BTreeSet<&str>> {
    match value {
        None => Some(BTreeSet::new()),
        Some(Json::Array(items)) => items.iter().map(Json::as_str).collect(),
        Some(_) => None,
    }
}

fn said(value: Option<&Json>) -> Option<bool> {
    match value {
        None => Some(false),
        Some(Json::Bool(said)) => Some(*said),
        Some(_) => None,
    }
}
