//! What is added to a failure so that the next call is a right one.
//!
//! Promises: the failure itself is never altered; what is added comes from the manifest alone, and only where the program
//! complained of how it was called.

use super::answer::Manner;
use super::normal::Normal;
use super::run;
use super::validate::{self, Called};
use super::words::Object;

/// What a program that was called wrongly says.
const USAGE: [&str; 4] = ["unknown action", "unrecognized arguments", "arguments are required", "invalid choice"];

/// What helps where there were too many runs at once.
pub const BUSY_HINT: &str = "The call is right. Make it again when other calls of this capability have ended.";

/// The failure with what helps.
pub fn failure(normal: Normal, called: Called<'_>, manner: &Manner) -> Object {
    let schema = normal.message().and_then(|message| schema(message, called));
    let hint = if is_busy(&normal) { BUSY_HINT.to_owned() } else { hint(called, manner) };
    normal.into_object().with("hint", hint).with_some("schema", schema)
}

/// Whether a run was not started because there were too many, which a program cannot say of itself: it has an exit code.
pub fn is_busy(normal: &Normal) -> bool {
    normal.code() == Some(run::BUSY) && normal.returncode.is_none()
}

/// A call that was not made, with what would fit.
pub fn misuse(misuse: validate::Misuse, called: Called<'_>, manner: &Manner) -> Object {
    let hint = hint(called, manner);
    Normal::failed("usage", misuse.message).into_object().with("hint", hint).with("schema", misuse.schema)
}

fn schema(message: &str, called: Called<'_>) -> Option<Object> {
    let message = message.to_lowercase();
    // A remote system's complaint is none about this call.
    if !USAGE.iter().any(|marker| message.contains(marker)) || is_remote(&message) {
        return None;
    }
    Some(match called.action {
        Some(action) if message.contains("unknown action") => {
            validate::unknown_action(called.manifest, Some(&action.name))
        }
        _ => validate::known_action(called),
    })
}

/// `HTTP 404`, `http/1.1 500`, `HTTP error 422`
fn is_remote(message: &str) -> bool {
    message.match_indices("http").any(|(at, _)| {
        let after = message.get(at + 4..).unwrap_or_default();
        let mut words = after.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').filter(|word| !word.is_empty());
        words.by_ref().take(3).any(|word| word.len() == 3 && word.chars().all(|c| c.is_ascii_digit()))
    })
}

fn hint(called: Called<'_>, manner: &Manner) -> String {
    let ask = match called.action {
        Some(action) => manner.how_to_ask(&called.manifest.name, &action.name),
        None => format!(
            "{} {}",
            manner.capabilities,
            Object::new().with("name", called.manifest.name.as_str()).into_json().to_text()
        ),
    };
    format!(
        "This is no problem of access: the capability was reached and says what was wrong. Its arguments: {ask}. Mend the \
         call and try again; do not fall back to a shell."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::capability::samples;

    fn failed(message: &str) -> String {
        let manifest = samples::xlsx();
        let called = validate::action(&manifest, Some("read-sheet")).unwrap();
        let manner = Manner {
            run_tool: "run_tool".into(),
            run_agent: "run_agent".into(),
            capabilities: "capabilities".into(),
            get_skill: "get_skill".into(),
            max_bytes: 0,
        };
        failure(Normal::failed("x", message), called, &manner).into_json().to_text()
    }

    #[test]
    fn a_complaint_about_the_call_gets_the_arguments_that_are_valid() {
        for complaint in [
            "error: unrecognized arguments: --sheet-name",
            "the following arguments are required: --path",
            "argument --max-results: invalid choice: 'x'",
        ] {
            let text = failed(complaint);
            assert!(
                text.contains(
                    r#""schema":{"of":"xlsx","kind":"tool","action":"read-sheet","valid_args":[{"name":"path""#
                ),
                "{text}"
            );
            assert!(text.contains(&serde_json::to_string(complaint).unwrap()), "the complaint itself is not altered");
        }
        let text = failed("Unknown action 'read-sheet'");
        assert!(text.contains(r#""unknown_action":"read-sheet","action_count":3,"did_you_mean":["#), "{text}");
    }

    #[test]
    fn a_remote_complaint_and_any_other_failure_get_no_schema() {
        for other in [
            "HTTP 400: unrecognized arguments",
            "http error 422: invalid choice",
            "HTTP/1.1 404 unknown action",
            "disk full",
        ] {
            let text = failed(other);
            assert!(!text.contains(r#""schema""#), "{text}");
            assert!(text.contains(r#""hint":"This is no problem of access"#));
            assert!(text.contains(r#"capabilities {\"name\":\"xlsx\",\"action\":\"read-sheet\"}"#), "{text}");
        }
    }
}
