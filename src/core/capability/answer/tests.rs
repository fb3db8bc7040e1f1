//! The doors, against a small registry and a large one.

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
    assert!(text.contains(&format!("\"{}…\"", "é".repeat(99))) && !text.contains("example"));
    let (_, full) = asked(Question { full: true, ..Question::default() });
    assert!(full.contains(&format!("\"{}…\"", "é".repeat(239))) && full.contains(r#""example":"Write to Ann""#));
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
            r#"{"name":"max-results","type":"integer","required":false,"description":"The max-results."}],"effects":"write"},"#,
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
    assert!(
        text.contains(
            r#""of":"xlsx","kind":"tool","unknown_action":"sheet-read","action_count":3,"did_you_mean":["read-sheet""#
        ),
        "{text}"
    );
    assert!(text.contains(r#""hint":"#));
}

#[test]
fn a_name_alone_tells_everything_and_a_tool_comes_before_an_agent() {
    let (_, text) = asked(named("xlsx"));
    assert!(text.starts_with(r#"{"capability":{"kind":"tool","name":"xlsx","description":"Works with xlsx.","ready":true,"missing_secrets":[],"max_concurrent":8,"tools":null,"actions":[{"name":"list-sheets""#), "{text}");
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
    let (_, text) = asked(Question { search: Some("sheet"), kind: Some(CapabilityKind::Skill), ..Question::default() });
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
    assert!(cut.get("hint").unwrap().as_str().unwrap().contains(r#"capabilities {"name":"big","search":"KEYWORDS"}"#));
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
