//! What `capabilities` answers: four doors, the narrowest first.
//!
//! Promises: an answer about one action holds that action alone, its argument names verbatim and the call that runs it; an
//! answer that would be larger than the limit becomes names, by its bytes and nothing else. Reads nothing but a listing.

use super::listing::{Listed, Runs};
use super::search::{self, Findable, Query};
use super::validate;
use super::words::{Object, beginning};
use crate::protocol::Json;
use crate::protocol::json::shortened;
use crate::surface::manifest::{CapabilityKind, Manifest, ManifestArg, State};

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
            .with("description", beginning(description, most))
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
        .with("args", args(&action.args))
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
            Object::new()
                .with("name", action.name.as_str())
                .with("description", action.description.as_str())
                .with("args", args(&action.args))
        })
        .collect();
    let drives = (manifest.kind == CapabilityKind::Agent).then(|| manifest.drives.clone());
    let mut told = head(runs).with("tools", drives);
    if manifest.actions.is_empty() {
        told = told
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
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::core::capability::samples;
    use crate::surface::manifest::{ArgType, Readiness, Routing, SkillManifest};

    fn manner(max_bytes: usize) -> Manner {
        Manner {
            run_tool: "run_tool".into(),
            run_agent: "start_agent".into(),
            capabilities: "capabilities".into(),
            get_skill: "get_skill".into(),
            max_bytes,
        }
    }

    fn ready() -> Readiness {
        Readiness { ready: true, own: State::Ready, missing_secrets: Vec::new(), tool_status: Vec::new() }
    }

    fn runs(manifest: Manifest) -> Listed {
        Listed::Runs(Runs { manifest: Arc::new(manifest), readiness: ready() })
    }

    fn listed() -> Vec<Listed> {
        let mut agent = samples::tool("reporter", vec![samples::action("write-report", Vec::new())]);
        agent.kind = CapabilityKind::Agent;
        agent.drives = vec!["xlsx".into()];
        agent.description = "é".repeat(300);
        let mut unready = samples::tool("mail", vec![samples::action("send-message", Vec::new())]);
        unready.routing.primary_action = Some("send-message".into());
        unready.routing.example = Some("Write to Ann".into());
        let mut same_name = agent.clone();
        same_name.name = "xlsx".into();
        vec![
            runs(samples::xlsx()),
            Listed::Runs(Runs {
                manifest: Arc::new(unready),
                readiness: Readiness {
                    ready: false,
                    own: State::NeedsCredentials,
                    missing_secrets: vec!["mail:token".into()],
                    tool_status: Vec::new(),
                },
            }),
            runs(same_name),
            runs(agent),
            Listed::Skill(Arc::new(SkillManifest {
                name: "sheets-well-read".into(),
                description: "How to read a sheet.".into(),
                version: None,
                routing: Routing::default(),
                folder: "/".into(),
            })),
        ]
    }

    fn asked(question: Question<'_>) -> (bool, String) {
        let answer = answer(question, &listed(), &manner(MAX_BYTES));
        (answer.is_error, answer.value.to_text())
    }

    fn named(name: &str) -> Question<'_> {
        Question { name: Some(name), ..Question::default() }
    }

    #[test]
    fn nothing_asked_lists_everything_in_registry_order_with_short_descriptions() {
        let (is_error, text) = asked(Question::default());
        assert!(!is_error);
        assert!(text.starts_with(r#"{"count":5,"capabilities":[{"kind":"tool","name":"xlsx","description":"Works with xlsx.","primary_action":null,"ready":true},{"kind":"tool","name":"mail","description":"Works with mail.","primary_action":"send-message","ready":false}"#), "{text}");
        assert!(text.contains(&format!("\"{}\"", "é".repeat(100))) && !text.contains("example"));
        let (_, full) = asked(Question { full: true, ..Question::default() });
        assert!(full.contains(&format!("\"{}\"", "é".repeat(240))) && full.contains(r#""example":"Write to Ann""#));
        let (_, skills) = asked(Question { kind: Some(CapabilityKind::Skill), ..Question::default() });
        assert!(skills.starts_with(r#"{"count":1,"capabilities":[{"kind":"skill","name":"sheets-well-read""#));
    }

    #[test]
    fn a_name_and_an_action_tell_that_action_alone_and_the_call_that_runs_it() {
        let (is_error, text) = asked(Question { action: Some("read-sheet"), ..named("xlsx") });
        assert!(!is_error && text.len() < 2000, "{} bytes", text.len());
        assert_eq!(
            text,
            concat!(
                r#"{"capability":{"kind":"tool","name":"xlsx","action":{"name":"read-sheet","description":"Does read-sheet.","args":["#,
                r#"{"name":"path","type":"string","required":true,"description":"The path."},"#,
                r#"{"name":"sheet","type":"string","required":false,"description":"The sheet."},"#,
                r#"{"name":"max-results","type":"integer","required":false,"description":"The max-results."}]},"#,
                r#""call":{"run_tool":{"tool":"xlsx","action":"read-sheet","args":{"path":"<string>"}}},"#,
                r#""hint":"Argument names stand as they have to be sent. Leave out what is not required and not needed."}}"#
            )
        );
    }

    #[test]
    fn an_agents_action_names_the_runner_of_agents_as_this_surface_calls_it() {
        let (_, text) = asked(Question { action: Some("write-report"), ..named("reporter") });
        assert!(text.contains(r#""call":{"start_agent":{"agent":"reporter","action":"write-report","args":{}}}"#));
    }

    #[test]
    fn an_unknown_action_is_answered_and_is_no_error() {
        let (is_error, text) = asked(Question { action: Some("sheet-read"), ..named("xlsx") });
        assert!(!is_error);
        assert!(text.contains(r#""of":"xlsx","kind":"tool","unknown_action":"sheet-read","action_count":3,"did_you_mean":["read-sheet""#), "{text}");
        assert!(text.contains(r#""hint":"#));
    }

    #[test]
    fn a_name_alone_tells_everything_and_a_tool_comes_before_an_agent() {
        let (_, text) = asked(named("xlsx"));
        assert!(text.starts_with(r#"{"capability":{"kind":"tool","name":"xlsx","description":"Works with xlsx.","ready":true,"missing_secrets":[],"tools":null,"actions":[{"name":"list-sheets""#), "{text}");
        let (_, agent) = asked(Question { kind: Some(CapabilityKind::Agent), ..named("xlsx") });
        assert!(agent.contains(r#""kind":"agent""#) && agent.contains(r#""tools":["xlsx"]"#));
        let (_, unready) = asked(named("mail"));
        assert!(unready.contains(r#""ready":false,"missing_secrets":["mail:token"]"#));
    }

    #[test]
    fn a_name_that_nothing_has_is_an_error_with_what_was_meant() {
        let (is_error, text) = asked(named("xlxs"));
        assert!(is_error && text.contains(r#""did_you_mean":["xlsx"#), "{text}");
        let (is_error, text) = asked(named("sheets-well-read"));
        assert!(is_error && text.contains("is a skill") && text.contains("get_skill"), "{text}");
        let long = "x".repeat(1_000_000);
        let (_, text) = asked(named(&long));
        assert!(text.len() < 1000, "{}", text.len());
    }

    #[test]
    fn search_wins_over_a_name_and_an_action_without_a_name_is_a_search() {
        let (_, text) = asked(Question { search: Some("sheets"), action: Some("dump"), ..named("xlsx") });
        assert!(text.starts_with(r#"{"query":"sheets","count":1"#), "{text}");
        let (_, text) = asked(Question { action: Some("dump"), ..Question::default() });
        assert!(text.contains(r#""kind":"tool","name":"xlsx","action":"dump""#), "{text}");
        let (_, text) = asked(Question { search: Some(""), ..named("xlsx") });
        assert!(text.starts_with(r#"{"capability""#), "an empty text is no search");
        let (_, text) =
            asked(Question { search: Some("sheet"), kind: Some(CapabilityKind::Skill), ..Question::default() });
        assert!(text.contains("sheets-well-read"), "{text}");
    }

    #[test]
    fn a_search_of_blanks_alone_needs_a_keyword() {
        let (is_error, text) = asked(Question { search: Some(" \t "), ..Question::default() });
        assert!(is_error && text.contains("at least one keyword"));
    }

    #[test]
    fn a_limit_is_kept_between_one_and_fifty() {
        for (limit, count) in [(Some(1), 1), (Some(0), 1), (Some(2), 2), (Some(1000), 2), (None, 2)] {
            let (_, text) = asked(Question { search: Some("sheet"), limit, ..Question::default() });
            assert!(text.starts_with(&format!(r#"{{"query":"sheet","count":{count}"#)), "{text}");
        }
    }

    fn big() -> Listed {
        let action =
            |n: usize| samples::action(&format!("action-{n:03}"), vec![samples::arg("path", ArgType::String, true)]);
        runs(samples::tool("big", (0..379).map(action).collect()))
    }

    fn sized(max_bytes: usize, question: Question<'_>) -> (usize, Json) {
        let value = answer(question, &[big()], &manner(max_bytes)).value;
        (value.to_text().len(), value.get("capability").unwrap().clone())
    }

    #[test]
    fn an_answer_over_the_limit_becomes_names_with_both_numbers_and_one_byte_less_does_not() {
        let (whole, full) = sized(0, named("big"));
        assert!(full.get("truncated").is_none(), "0 is never");
        assert!(sized(whole, named("big")).1.get("truncated").is_none());
        let (bytes, cut) = sized(whole - 1, named("big"));
        assert!(bytes < whole);
        let reason = cut.get("reason").unwrap().as_str().unwrap();
        assert!(reason.contains(&whole.to_string()) && reason.contains(&(whole - 1).to_string()), "{reason}");
        assert_eq!(cut.get("action_count"), Some(&Json::Number("379".into())));
        let Some(Json::Array(names)) = cut.get("actions") else { panic!() };
        assert_eq!((names.len(), names[0].as_str()), (379, Some("action-000")));
        for key in ["kind", "name", "description", "ready", "missing_secrets", "hint"] {
            assert!(cut.get(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_degraded_answer_and_one_action_stay_small() {
        assert!(sized(MAX_BYTES, named("big")).0 < 60_000);
        let one = Question { action: Some("action-100"), ..named("big") };
        assert!(sized(MAX_BYTES, one).0 < 2000);
    }

    #[test]
    fn where_even_the_names_are_too_many_they_are_left_out_and_search_is_named() {
        let (bytes, cut) = sized(1000, named("big"));
        assert!(bytes < 1000 && cut.get("actions").is_none());
        assert!(
            cut.get("hint").unwrap().as_str().unwrap().contains(r#"capabilities {"name":"big","search":"KEYWORDS"}"#)
        );
    }

    #[test]
    fn the_size_is_in_bytes_and_not_in_characters() {
        let mut manifest = samples::tool("t", vec![samples::action("a", Vec::new())]);
        manifest.description = "€".repeat(400);
        let listed = [runs(manifest)];
        let text = answer(named("t"), &listed, &manner(0)).value.to_text();
        assert!(text.chars().count() < 700 && text.len() > 1200);
        assert!(answer(named("t"), &listed, &manner(1200)).value.to_text().contains("truncated"));
    }
}
