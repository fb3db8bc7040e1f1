//! What `capabilities` answers: four doors, the narrowest first.
//!
//! Promises: an answer about one action holds that action alone, its argument names verbatim and the call that runs it; an
//! answer that would be larger than the limit becomes names, by its bytes and nothing else. Reads nothing but a listing.

use super::listing::{Listed, Runs};
use super::search::{self, Findable, Query};
use super::validate;
use super::words::{Object, summary};
use crate::protocol::Json;
use crate::protocol::json::shortened;
use crate::surface::effect::{BlastClass, classify};
use crate::surface::manifest::{CapabilityKind, Manifest, ManifestAction, ManifestArg, State};

/// Bytes of a capability's full answer beyond which it becomes names, where nothing is said.
pub const MAX_BYTES: usize = 40_000;

const SHORT_DESCRIPTION: usize = 100;
const LONG_DESCRIPTION: usize = 240;
const ECHOED_CHARACTERS: usize = 100;

/// What is asked of `capabilities`. Empty texts count as absent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'q> {
    /// The kind that the answer is confined to.
    pub kind: Option<CapabilityKind>,
    /// The capability.
    pub name: Option<&'q str>,
    /// The action.
    pub action: Option<&'q str>,
    /// Keywords.
    pub search: Option<&'q str>,
    /// Whether the list is to have longer descriptions, and examples.
    pub full: bool,
    /// Most matches of a search.
    pub limit: Option<usize>,
}

/// How answers name what runs a capability, and how large they may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manner {
    /// The tool of this surface that runs tools.
    pub run_tool: String,
    /// The tool of this surface that runs agents.
    pub run_agent: String,
    /// The tool of this surface that this answers.
    pub capabilities: String,
    /// The tool of this surface that reads skills.
    pub get_skill: String,
    /// Bytes of a full answer beyond which it becomes names; 0 for never.
    pub max_bytes: usize,
}

impl Manner {
    /// The tool that runs capabilities of a kind.
    pub fn runner(&self, kind: CapabilityKind) -> &str {
        match kind {
            CapabilityKind::Agent => &self.run_agent,
            CapabilityKind::Tool | CapabilityKind::Skill => &self.run_tool,
        }
    }

    /// The question that tells of one action, in words.
    pub fn how_to_ask(&self, name: &str, action: &str) -> String {
        let call = Object::new().with("name", name).with("action", action).into_json().to_text();
        format!("{} {call}", self.capabilities)
    }
}

/// An answer, and whether it is one to a wrong question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The value.
    pub value: Json,
    /// Whether it is an error.
    pub is_error: bool,
}

impl Answer {
    /// An answer.
    pub fn of(value: Object) -> Self {
        Self { value: value.into_json(), is_error: false }
    }

    /// An answer to a wrong question.
    pub fn wrong(value: Object) -> Self {
        Self { value: value.into_json(), is_error: true }
    }
}

/// Answers a question.
pub fn answer(question: Question<'_>, listed: &[Listed], manner: &Manner) -> Answer {
    let said = |text: Option<&'_ str>| text.is_some_and(|text| !text.is_empty());
    let name = question.name.filter(|_| said(question.name));
    match (question.search.filter(|_| said(question.search)), name, question.action.filter(|_| said(question.action))) {
        (Some(words), name, _) => find(words, name, &question, listed),
        (None, None, Some(action)) => find(action, None, &question, listed),
        (None, Some(name), action) => match look_up(name, question.kind, listed) {
            Some(runs) => match action {
                Some(action) => one_action(&runs.manifest, action, manner),
                None => whole(runs, manner),
            },
            None => unknown(name, question.kind, listed, manner),
        },
        (None, None, None) => index(&question, listed),
    }
}

/// The capability of a name that can be run: tools before agents.
pub fn look_up<'l>(name: &str, kind: Option<CapabilityKind>, listed: &'l [Listed]) -> Option<&'l Runs> {
    let runs = listed.iter().filter_map(|listed| match listed {
        Listed::Runs(runs) => Some(runs),
        Listed::Skill(_) => None,
    });
    runs.filter(|runs| runs.manifest.name == name && kind.is_none_or(|kind| kind == runs.manifest.kind))
        .min_by_key(|runs| runs.manifest.kind)
}

/// What is told where no capability has a name.
pub fn unknown(name: &str, kind: Option<CapabilityKind>, listed: &[Listed], manner: &Manner) -> Answer {
    let known: Vec<&str> = listed
        .iter()
        .filter(|listed| match kind {
            Some(kind) => listed.kind() == kind,
            None => listed.kind() != CapabilityKind::Skill,
        })
        .map(Listed::name)
        .collect();
    let shown = shortened(name, ECHOED_CHARACTERS);
    let is_skill = listed.iter().any(|listed| listed.kind() == CapabilityKind::Skill && listed.name() == name);
    let (message, hint) = if is_skill && kind.is_none_or(|kind| kind == CapabilityKind::Skill) {
        (
            format!("{shown:?} is a skill, which is read and not run"),
            format!("Read it with {} {}.", manner.get_skill, Object::new().with("name", name).into_json().to_text()),
        )
    } else {
        let what = kind.map_or("capability", CapabilityKind::name);
        (
            format!("no {what} has the name {shown:?}"),
            format!("Ask {} without arguments for all names, or with `search` for a keyword.", manner.capabilities),
        )
    };
    let near = super::suggest::near(name, known).into_iter().map(|near| near.name).collect::<Vec<_>>();
    let error = Object::new().with("code", "unknown_capability").with("message", message);
    Answer::wrong(Object::new().with("error", error).with("did_you_mean", near).with("hint", hint))
}

fn find(words: &str, name: Option<&str>, question: &Question<'_>, listed: &[Listed]) -> Answer {
    if words.trim().is_empty() {
        let error = Object::new()
            .with("code", "usage")
            .with("message", "search needs at least one keyword: give a noun, a verb, or both");
        return Answer::wrong(Object::new().with("error", error));
    }
    let scope = listed.iter().filter(|listed| name.is_none_or(|name| listed.name() == name));
    let among: Vec<Findable<'_>> = match question.kind {
        Some(CapabilityKind::Skill) => scope.filter_map(findable_skill).collect(),
        kind => scope.filter(|listed| kind.is_none_or(|kind| kind == listed.kind())).flat_map(findable).collect(),
    };
    let limit = question.limit.unwrap_or(search::LIMIT).clamp(1, search::LIMIT_AT_MOST);
    Answer::of(search::search(Query { text: words, name, limit }, &among))
}

fn findable_skill(listed: &Listed) -> Option<Findable<'_>> {
    let Listed::Skill(skill) = listed else { return None };
    let (capability, description) = (skill.name.as_str(), skill.description.as_str());
    Some(Findable { kind: CapabilityKind::Skill, capability, action: None, description })
}

fn findable(listed: &Listed) -> Vec<Findable<'_>> {
    let Listed::Runs(Runs { manifest, .. }) = listed else { return Vec::new() };
    let found = |action, description| Findable { kind: manifest.kind, capability: &manifest.name, action, description };
    if manifest.actions.is_empty() {
        return vec![found(None, &manifest.description)];
    }
    manifest.actions.iter().map(|action| found(Some(&action.name), &action.description)).collect()
}

fn index(question: &Question<'_>, listed: &[Listed]) -> Answer {
    let most = if question.full { LONG_DESCRIPTION } else { SHORT_DESCRIPTION };
    let told = listed.iter().filter(|listed| question.kind.is_none_or(|kind| kind == listed.kind())).map(|listed| {
        let (description, routing, ready) = match listed {
            Listed::Runs(runs) => (&runs.manifest.description, &runs.manifest.routing, runs.is_ready()),
            Listed::Skill(skill) => (&skill.description, &skill.routing, true),
        };
        let told = Object::new()
            .with("kind", listed.kind().name())
            .with("name", listed.name())
            .with("description", summary(description, most))
            .with("primary_action", routing.primary_action.as_deref())
            .with("ready", ready);
        told.with_some("example", routing.example.as_deref().filter(|_| question.full))
    });
    let told: Vec<Object> = told.collect();
    Answer::of(Object::new().with("count", told.len()).with("capabilities", told))
}

fn one_action(manifest: &Manifest, typed: &str, manner: &Manner) -> Answer {
    let called = match validate::action(manifest, Some(typed)) {
        Ok(called) => called,
        Err(misuse) => {
            let near = misuse.schema;
            let hint = format!("Ask again with one of these, or {} with `search`.", manner.capabilities);
            return Answer::of(near.with("hint", hint));
        }
    };
    let Some(action) = called.action else { return Answer::of(Object::new()) };
    let described = Object::new()
        .with("name", action.name.as_str())
        .with("description", action.description.as_str())
        .with("args", args(&action.args));
    let described = effects(described, manifest, Some(action))
        .with_some("examples", some(&action.examples))
        .with_some("output_schema", action.output_schema.as_deref());
    let told = Object::new()
        .with("kind", manifest.kind.name())
        .with("name", manifest.name.as_str())
        .with("action", described)
        .with("call", call(manifest, Some(&action.name), &action.args, manner))
        .with("hint", "Argument names stand as they have to be sent. Leave out what is not required and not needed.");
    Answer::of(Object::new().with("capability", told))
}

fn whole(runs: &Runs, manner: &Manner) -> Answer {
    let manifest = &runs.manifest;
    let actions: Vec<Object> = manifest
        .actions
        .iter()
        .map(|action| {
            let told = Object::new()
                .with("name", action.name.as_str())
                .with("description", action.description.as_str())
                .with("args", args(&action.args));
            effects(told, manifest, Some(action))
        })
        .collect();
    let drives = (manifest.kind == CapabilityKind::Agent).then(|| manifest.drives.clone());
    let mut told = head(runs).with("max_concurrent", manifest.max_concurrent).with("tools", drives);
    if manifest.actions.is_empty() {
        told = effects(told, manifest, None)
            .with("args", args(&manifest.args))
            .with_some("examples", some(&manifest.examples))
            .with_some("output_schema", manifest.output_schema.as_deref())
            .with("call", call(manifest, None, &manifest.args, manner));
    }
    let full = Object::new().with("capability", told.with("actions", actions)).into_json();
    let (size, limit) = (full.to_text().len(), manner.max_bytes);
    if limit == 0 || size <= limit || manifest.actions.is_empty() {
        return Answer { value: full, is_error: false };
    }
    let names: Vec<&str> = manifest.actions.iter().map(|action| action.name.as_str()).collect();
    let reason = format!("the whole description is {size} bytes long, more than the {limit} that are sent");
    let told = head(runs).with("truncated", true).with("reason", reason).with("action_count", names.len());
    let names_size = serde_json::to_string(&names).map_or(usize::MAX, |text| text.len());
    let told = if names_size > limit {
        let hint = format!(
            "Even the names are too many. Look for keywords: {} {}.",
            manner.capabilities,
            Object::new().with("name", manifest.name.as_str()).with("search", "KEYWORDS").into_json().to_text()
        );
        told.with("hint", hint)
    } else {
        let hint = format!("Ask for one action: {}.", manner.how_to_ask(&manifest.name, "ACTION"));
        told.with("hint", hint).with("actions", names)
    };
    Answer::of(Object::new().with("capability", told))
}

/// With what it does: what cannot be undone is asked about before it runs.
fn effects(told: Object, manifest: &Manifest, action: Option<&ManifestAction>) -> Object {
    let names = std::iter::once(manifest.name.as_str()).chain(action.map(|action| action.name.as_str()));
    let judged = classify(names, action.map(ManifestAction::policy).unwrap_or_default());
    told.with("effects", judged.effect.name()).with_some("blast_class", judged.blast_class.map(BlastClass::name))
}

fn head(runs: &Runs) -> Object {
    let told = Object::new()
        .with("kind", runs.manifest.kind.name())
        .with("name", runs.manifest.name.as_str())
        .with("description", runs.manifest.description.as_str())
        .with("ready", runs.is_ready())
        .with("missing_secrets", runs.readiness.missing_secrets.clone());
    if runs.manifest.kind != CapabilityKind::Agent {
        return told;
    }
    let status = runs.readiness.tool_status.iter().map(|tool| {
        let status = Object::new()
            .with("present", tool.present)
            .with("ready", tool.ready)
            .with("missing_secrets", tool.missing_secrets.clone());
        (tool.name.clone(), status.into_json())
    });
    told.with("own_ready", runs.readiness.own == State::Ready).with("tool_status", Json::Object(status.collect()))
}

fn args(args: &[ManifestArg]) -> Vec<Object> {
    let told = |arg: &ManifestArg| {
        Object::new()
            .with("name", arg.name.as_str())
            .with("type", arg.kind.name())
            .with("required", arg.required)
            .with("description", arg.description.as_str())
            .with_some("default", arg.default.clone().filter(|default| *default != Json::Null))
            .with_some("schema", arg.schema.clone())
    };
    args.iter().map(told).collect()
}

fn some(examples: &[Json]) -> Option<Vec<Json>> {
    (!examples.is_empty()).then(|| examples.to_vec())
}

/// The call that runs it, with a stand-in for each argument that it needs.
fn call(manifest: &Manifest, action: Option<&str>, args: &[ManifestArg], manner: &Manner) -> Object {
    let mut stand_ins = Object::new();
    for arg in args.iter().filter(|arg| arg.required) {
        stand_ins.put(&arg.name, format!("<{}>", arg.kind.name()));
    }
    let call = Object::new()
        .with(manifest.kind.name(), manifest.name.as_str())
        .with_some("action", action)
        .with("args", stand_ins);
    Object::new().with(manner.runner(manifest.kind), call)
}

#[cfg(test)]
mod tests;
