//! The question that a person is asked, and what was answered.
//!
//! Promises: every word of it is ours or the surface's; what the caller gave stands in it as JSON text
//! on lines of its own, cleaned and cut, so that no argument can pass for a word of ours.

use serde_json::{Value, json};

use super::bound::{Bound, LIMITS};
use super::subject::Subject;
use crate::protocol::json::shortened;
use crate::protocol::{Arguments, InputKind, InputRequest, Invocation, Json};
use crate::surface::effect::Judged;

/// The key of the question, and of its one field.
pub(super) const APPROVE: &str = "approve";

/// Most characters of one argument's value, and most arguments, that a client shows.
const IN_FORM: Room = Room { value: 200, lines: 20 };

/// How much of the arguments is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    value: usize,
    lines: usize,
}

/// How much is shown where a person asks for it.
pub(super) const IN_RECORD: Room = Room { value: 2000, lines: 50 };

/// The question for the client's form.
pub(super) fn form(bound: &Bound, subject: &Subject, judged: &Judged, arguments: &Arguments) -> InputRequest {
    let message = format!("{}\n{}", heading(bound, subject, judged), shown(arguments, bound, IN_FORM));
    let approve = json!({
        "type": "boolean",
        "title": "Run it once",
        "description": "Yes lets this one call run, with these arguments and no others.",
        "default": false,
    });
    let schema = json!({ "type": "object", "properties": { APPROVE: approve }, "required": [APPROVE] });
    InputRequest {
        key: APPROVE.to_owned(),
        kind: InputKind::ElicitForm,
        params: json!({ "message": message, "requestedSchema": schema }),
    }
}

/// What is about to happen, in a sentence or two.
pub(super) fn heading(bound: &Bound, subject: &Subject, judged: &Judged) -> String {
    let what: Vec<String> =
        subject.labels().iter().map(|(label, name)| format!("{label} \"{}\"", shortened(name, 128))).collect();
    let class = judged.blast_class.map(|class| format!(" ({})", class.name())).unwrap_or_default();
    let why = match judged.effect.is_reversible() {
        true => "A rule of the surface wants a person to look at it first.".to_owned(),
        false => format!("It cannot be undone{class}: {}.", judged.reason()),
    };
    format!(
        "The surface \"{}\" {} is about to run: {}. {why}",
        shortened(&bound.surface, 128),
        shortened(&bound.version, 32),
        what.join(", ")
    )
}

/// The arguments, one a line.
pub(super) fn shown(arguments: &Arguments, bound: &Bound, room: Room) -> String {
    let all: Vec<(&str, &crate::protocol::RawJson)> = arguments.iter().collect();
    if all.is_empty() {
        return "It is given no arguments.".to_owned();
    }
    let mut cut = all.len() > room.lines;
    let mut text = "Its arguments:".to_owned();
    for (key, value) in all.iter().take(room.lines) {
        // Decoded and written again, so that no character hides behind an escape.
        let value = Json::parse(value.as_bytes(), &LIMITS).map_or_else(|_| value.as_str().to_owned(), |v| v.to_text());
        cut |= value.chars().nth(room.value).is_some();
        text.push_str(&format!("\n  {}: {}", shortened(key, 64), shortened(&value, room.value)));
    }
    if cut {
        let bytes = arguments.text().as_bytes().len();
        text.push_str(&format!("\nNot all of it is shown: {bytes} bytes, {}.", bound.arguments));
    }
    text
}

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Yes,
    No,
    /// Nothing that can be read as an answer: it is asked again.
    Nothing,
}

/// Reads the answer to the question (2026-07-28 client/elicitation, Response Actions).
pub(super) fn answer(invocation: &Invocation) -> Said {
    let Some(Ok(answer)) = invocation.answer(APPROVE).map(|answer| answer.parse::<Value>()) else {
        return Said::Nothing;
    };
    let said = answer.get("content").and_then(|content| content.get(APPROVE)).and_then(Value::as_bool);
    match (answer.get("action").and_then(Value::as_str), said) {
        (Some("accept"), Some(true)) => Said::Yes,
        (Some("accept"), Some(false)) | (Some("decline" | "cancel"), _) => Said::No,
        _ => Said::Nothing,
    }
}
