//! What is added to a failure so that the next call is a right one.
//!
//! Promises: the failure itself is never altered; what is added comes from the manifest alone, and only where the program
//! complained of how it was called.

use super::answer::Manner;
use super::normal::Normal;
use super::run;
use super::validate::{self, Called};
use super::words::Object;
use crate::protocol::Json;
use crate::surface::manifest::{Manifest, Runtime};

/// What a program that was called wrongly says.
const USAGE: [&str; 4] = ["unknown action", "unrecognized arguments", "arguments are required", "invalid choice"];

/// What helps where there were too many runs at once.
pub const BUSY_HINT: &str = "The call is right. Make it again when other calls of this capability have ended.";

/// The failure with what helps.
pub fn failure(normal: Normal, called: Called<'_>, manner: &Manner) -> Object {
    let schema = normal.message().and_then(|message| schema(message, called));
    let busy = || is_busy(&normal).then(|| BUSY_HINT.to_owned());
    let hint = busy().or_else(|| unequipped(&normal, called.manifest)).unwrap_or_else(|| hint(called, manner));
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

/// How interpreters say that a module is not installed, up to its name.
const ABSENT: [&str; 3] = ["No module named ", "Cannot find module ", "Cannot find package "];

/// What helps where a program cannot run for want of a module: no other arguments do.
pub fn unequipped(normal: &Normal, manifest: &Manifest) -> Option<String> {
    let message = normal.message().unwrap_or_default();
    if is_remote(&message.to_lowercase()) {
        return None;
    }
    let code = normal.error.as_ref().and_then(|error| error.get("code")).and_then(Json::as_str);
    let stated = || (code == Some("not_installed")).then(|| "a module that its message names".to_owned());
    let module = [message, normal.stderr.as_str()].into_iter().find_map(absent_module).or_else(stated)?;
    let folder = manifest.folder.file_name().unwrap_or_default().to_string_lossy();
    let place = format!("{}s/{folder}", manifest.kind.name());
    let how = match manifest.runtime {
        Runtime::Python => format!(
            "beside its manifest in {place} a requirements.txt or pyproject.toml says what it needs; install that into a \
             .venv of that folder or of the project, which is used where it stands"
        ),
        Runtime::Node => format!("the package.json in {place} says what it needs; install that there, with npm"),
        Runtime::Exec => format!("what the program in {place} needs has to be installed where the server runs"),
    };
    Some(format!(
        "The arguments are not at fault: {} needs {module}, which is not installed where it runs. Tell the operator: {how}. \
         Until then every such call fails.",
        manifest.name
    ))
}

/// The module that an interpreter did not find. One that is a file of the program's own goes without its path.
fn absent_module(text: &str) -> Option<String> {
    let after = ABSENT.iter().find_map(|marker| text.rsplit_once(marker)).map(|(_, after)| after)?;
    let is_of_name = |c: &char| c.is_ascii_alphanumeric() || "._-@/".contains(*c);
    let name: String = after.trim_start_matches(['\'', '"']).chars().take_while(is_of_name).take(60).collect();
    match name.chars().next()? {
        '.' | '/' => Some("a file of its own".to_owned()),
        _ => Some(format!("the module {}", name.trim_end_matches('.'))),
    }
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
    fn a_program_without_its_module_is_no_matter_of_the_arguments() {
        let manifest = Manifest { folder: "/p/tools/sheets".into(), runtime: Runtime::Python, ..samples::xlsx() };
        let told = |message: &str, stderr: &str| {
            let normal = Normal { stderr: stderr.to_owned(), ..Normal::failed("no_json", message) };
            unequipped(&normal, &manifest)
        };
        let traceback =
            "Traceback (most recent call last):\n  File \"main.py\"\nModuleNotFoundError: No module named 'openpyxl'";
        for hint in [told(traceback, ""), told("exit code 1", traceback), told("No module named 'openpyxl'", "")] {
            let hint = hint.unwrap();
            assert!(hint.contains("xlsx needs the module openpyxl") && hint.contains("tools/sheets"), "{hint}");
            assert!(hint.contains("requirements.txt") && hint.contains(".venv") && !hint.contains("/p/"), "{hint}");
        }
        let stated = unequipped(&Normal::failed("not_installed", "openpyxl is missing"), &manifest).unwrap();
        assert!(stated.contains("xlsx needs a module that its message names"), "{stated}");
        let own = told("Error: Cannot find module '/home/ann/x.js'", "").unwrap();
        assert!(own.contains("a file of its own") && !own.contains("ann"), "{own}");
        for other in ["HTTP 500: No module named 'x'", "no such file", "No module named "] {
            assert_eq!(told(other, ""), None, "{other}");
        }
        let text = failed(traceback);
        assert!(text.contains("The arguments are not at fault") && !text.contains("Its arguments:"), "{text}");
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
