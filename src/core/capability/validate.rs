//! A call held against its manifest, before anything is started.
//!
//! Promises: what passes names one action, or none of a capability without actions, and only arguments that it declares,
//! of their types, all required ones among them; what does not says what would. Starts and reads nothing.

use super::argv::is_flag;
use super::suggest;
use super::words::Object;
use crate::protocol::RawJson;
use crate::protocol::json::{Kind, shortened};
use crate::protocol::schema::{Schema, Violation};
use crate::surface::manifest::{ArgType, Manifest, ManifestAction, ManifestArg};

/// Longest name of a peer's that an answer repeats, characters.
const ECHOED_CHARACTERS: usize = 100;
/// Most wrong arguments that one answer tells of.
const TOLD_AT_MOST: usize = 10;

/// What a call is about, found in the manifest.
#[derive(Debug, Clone, Copy)]
pub struct Called<'m> {
    /// The capability.
    pub manifest: &'m Manifest,
    /// The action; `None` for a capability without actions.
    pub action: Option<&'m ManifestAction>,
}

impl<'m> Called<'m> {
    /// The arguments that are declared.
    pub fn args(self) -> &'m [ManifestArg] {
        self.action.map_or(&self.manifest.args, |action| &action.args)
    }
}

/// A call that does not fit: what is wrong, and what would fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Misuse {
    /// What is wrong, each in a sentence.
    pub message: String,
    /// What would fit.
    pub schema: Object,
    /// Whether all is of its name and type, and only values do not fit the schema of their argument.
    pub is_of_values: bool,
}

/// Finds the action.
pub fn action<'m>(manifest: &'m Manifest, typed: Option<&str>) -> Result<Called<'m>, Misuse> {
    if manifest.actions.is_empty() {
        return match typed {
            None => Ok(Called { manifest, action: None }),
            Some(typed) => Err(Misuse {
                message: format!(
                    "unknown action {:?}: {} has no actions, call it without one",
                    shortened(typed, ECHOED_CHARACTERS),
                    manifest.name
                ),
                schema: unknown_action(manifest, Some(typed)).with("valid_args", valid_args(&manifest.args)),
                is_of_values: false,
            }),
        };
    }
    let found = typed.and_then(|typed| manifest.actions.iter().find(|action| action.name == typed));
    found.map(|action| Called { manifest, action: Some(action) }).ok_or_else(|| {
        let message = match typed {
            Some(typed) => format!("unknown action {:?} of {}", shortened(typed, ECHOED_CHARACTERS), manifest.name),
            None => format!("unknown action: {} has {} actions, name one", manifest.name, manifest.actions.len()),
        };
        Misuse { message, schema: unknown_action(manifest, typed), is_of_values: false }
    })
}

/// Checks the arguments of a call; an argument that is null counts as not given.
pub fn arguments<'a>(
    called: Called<'_>,
    given: impl IntoIterator<Item = (&'a str, &'a RawJson)>,
) -> Result<(), Misuse> {
    let declared = called.args();
    let names: Vec<&str> = declared.iter().map(|arg| arg.name.as_str()).collect();
    let (mut wrong, mut misfits) = (Vec::new(), Vec::new());
    let mut unknown = Vec::new();
    let mut more = 0;
    let mut present = Vec::new();
    for (name, value) in given {
        match declared.iter().find(|arg| arg.name == name) {
            // Beyond those that are told nothing is compared: a peer chooses how many there are.
            None if unknown.len() == TOLD_AT_MOST => more += 1,
            None => {
                let meant = suggest::of_argument(name, &names);
                let shown = shortened(name, ECHOED_CHARACTERS);
                wrong.push(match meant.as_slice() {
                    [] => format!("unrecognized arguments: {shown:?} is not one of this action"),
                    [first, ..] => format!("unrecognized arguments: {shown:?}, did you mean {first:?}"),
                });
                unknown.push(Object::new().with("name", shown).with("did_you_mean", meant));
            }
            Some(_) if value.kind() == Kind::Null => {}
            Some(arg) => {
                present.push(name);
                match wrong_type(arg, value) {
                    Some(said) => wrong.push(said),
                    None => misfits.extend(misfit(arg, value)),
                }
            }
        }
    }
    let missing: Vec<&str> = declared
        .iter()
        .filter(|arg| arg.required && arg.default.is_none() && !present.contains(&arg.name.as_str()))
        .map(|arg| arg.name.as_str())
        .collect();
    if !missing.is_empty() {
        wrong.push(format!("arguments are required: {}", missing.join(", ")));
    }
    let unusable = declared.iter().find(|arg| !is_flag(&arg.name) && present.contains(&arg.name.as_str()));
    wrong.extend(unusable.map(|arg| format!("argument {:?} cannot be a flag: its manifest is wrong", arg.name)));
    if wrong.is_empty() && misfits.is_empty() {
        return Ok(());
    }
    let is_of_values = wrong.is_empty();
    wrong.append(&mut misfits);
    more += wrong.len().saturating_sub(TOLD_AT_MOST);
    wrong.truncate(TOLD_AT_MOST);
    if more > 0 {
        wrong.push(format!("and {more} more"));
    }
    let mut schema = known_action(called);
    if !unknown.is_empty() {
        schema.put("unknown_args", unknown);
    }
    if !missing.is_empty() {
        schema.put("missing_args", missing);
    }
    Err(Misuse { message: wrong.join("; "), schema, is_of_values })
}

/// Where a value does not fit the schema that its argument has.
fn misfit(arg: &ManifestArg, value: &RawJson) -> Option<String> {
    let whole = format!("argument {:?}", arg.name);
    // It was checked when the manifest was read.
    let Ok(schema) = Schema::compile(arg.schema.as_ref()?) else {
        return Some(format!("{whole} cannot be checked: the schema in its manifest is wrong"));
    };
    let Ok(value) = serde_json::from_slice(value.as_bytes()) else {
        return Some(format!("{whole} cannot be read"));
    };
    let violations =
        schema.violations(&value).into_iter().map(|Violation { pointer, problem }| match pointer.as_str() {
            "" => problem,
            place => format!("at {place} {problem}"),
        });
    let violations: Vec<String> = violations.collect();
    (!violations.is_empty()).then(|| format!("{whole} does not fit its schema: {}", violations.join(", ")))
}

/// The name of the one argument that is the same but for `_` and `-`, if the name itself is none.
pub fn twin<'m>(called: Called<'m>, name: &str) -> Option<&'m str> {
    let declared = called.args();
    if declared.iter().any(|arg| arg.name == name) {
        return None;
    }
    let plain = |name: &str| name.replace('_', "-");
    let wanted = plain(name);
    let mut twins = declared.iter().filter(|arg| plain(&arg.name) == wanted);
    let twin = twins.next()?;
    twins.next().is_none().then_some(twin.name.as_str())
}

fn wrong_type(arg: &ManifestArg, value: &RawJson) -> Option<String> {
    let (kind, text) = (value.kind(), value.as_str());
    let fits = match arg.kind {
        ArgType::String => kind == Kind::String,
        ArgType::Integer => kind == Kind::Number && !text.contains(['.', 'e', 'E']),
        ArgType::Number => kind == Kind::Number,
        ArgType::Boolean => kind == Kind::Bool,
        ArgType::Array => kind == Kind::Array,
        ArgType::Object => kind == Kind::Object,
    };
    let sent = match kind {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number if text.contains(['.', 'e', 'E']) => "a number with a fraction or an exponent",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    };
    (!fits).then(|| format!("argument {:?} has to be of type {}, not {sent}", arg.name, arg.kind.name()))
}

/// What is told where an action is not known.
pub fn unknown_action(manifest: &Manifest, typed: Option<&str>) -> Object {
    let names: Vec<&str> = manifest.actions.iter().map(|action| action.name.as_str()).collect();
    Object::new()
        .with("of", manifest.name.as_str())
        .with("kind", manifest.kind.name())
        .with("unknown_action", typed.map(|typed| shortened(typed, ECHOED_CHARACTERS)))
        .with("action_count", names.len())
        .with("did_you_mean", suggest::of_action(typed.unwrap_or_default(), &names))
}

/// What is told of the arguments of an action that is known.
pub fn known_action(called: Called<'_>) -> Object {
    Object::new()
        .with("of", called.manifest.name.as_str())
        .with("kind", called.manifest.kind.name())
        .with("action", called.action.map(|action| action.name.as_str()))
        .with("valid_args", valid_args(called.args()))
}

fn valid_args(args: &[ManifestArg]) -> Vec<Object> {
    let told = |arg: &ManifestArg| {
        Object::new().with("name", arg.name.as_str()).with("type", arg.kind.name()).with("required", arg.required)
    };
    args.iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::capability::samples;
    use crate::protocol::Json;

    fn refused(action_name: &str, given: &str) -> (String, String) {
        let manifest = samples::xlsx();
        let called = action(&manifest, Some(action_name)).unwrap();
        let given = RawJson::encode(&serde_json::from_str::<serde_json::Value>(given).unwrap()).members().unwrap();
        let misuse = arguments(called, given.iter().map(|(name, value)| (&**name, value))).unwrap_err();
        (misuse.message, misuse.schema.into_json().to_text())
    }

    #[test]
    fn an_unknown_action_is_answered_with_those_that_were_meant() {
        let manifest = samples::xlsx();
        let misuse = action(&manifest, Some("sheets-list")).unwrap_err();
        assert!(misuse.message.contains("unknown action \"sheets-list\""));
        assert_eq!(
            misuse.schema.into_json().to_text(),
            r#"{"of":"xlsx","kind":"tool","unknown_action":"sheets-list","action_count":3,"did_you_mean":["list-sheets","read-sheet"]}"#
        );
        let none = action(&manifest, None).unwrap_err();
        assert!(none.schema.into_json().to_text().contains(r#""unknown_action":null,"action_count":3"#));
    }

    #[test]
    fn a_capability_without_actions_takes_none() {
        let mut flat = samples::xlsx();
        flat.args = std::mem::take(&mut flat.actions).remove(1).args;
        assert!(action(&flat, None).is_ok());
        let misuse = action(&flat, Some("read")).unwrap_err();
        assert!(misuse.message.contains("has no actions"), "{}", misuse.message);
        assert!(misuse.schema.into_json().to_text().contains(r#""valid_args":[{"name":"path""#));
    }

    #[test]
    fn an_unknown_argument_is_answered_with_its_twin_and_all_valid_ones() {
        let (message, schema) = refused("read-sheet", r#"{"path":"x","max_results":3}"#);
        assert!(message.contains("unrecognized arguments: \"max_results\", did you mean \"max-results\""), "{message}");
        assert_eq!(
            schema,
            concat!(
                r#"{"of":"xlsx","kind":"tool","action":"read-sheet","valid_args":[{"name":"path","type":"string","required":true},"#,
                r#"{"name":"sheet","type":"string","required":false},{"name":"max-results","type":"integer","required":false}],"#,
                r#""unknown_args":[{"name":"max_results","did_you_mean":["max-results"]}]}"#
            )
        );
    }

    #[test]
    fn a_missing_argument_is_named_and_null_counts_as_missing() {
        for given in ["{}", r#"{"path":null}"#, r#"{"sheet":"a"}"#] {
            let (message, schema) = refused("read-sheet", given);
            assert_eq!(message, "arguments are required: path");
            assert!(schema.contains(r#""missing_args":["path"]"#));
        }
    }

    #[test]
    fn a_wrong_type_is_said_with_the_right_one() {
        for (given, expected) in [
            (r#"{"path":1}"#, "argument \"path\" has to be of type string, not a number"),
            (r#"{"path":["a"]}"#, "not an array"),
            (r#"{"path":"x","max-results":"3"}"#, "argument \"max-results\" has to be of type integer, not a string"),
            (r#"{"path":"x","max-results":2.5}"#, "not a number with a fraction or an exponent"),
            (r#"{"path":"x","max-results":true}"#, "not a boolean"),
            (r#"{"path":{}}"#, "not an object"),
        ] {
            let (message, _) = refused("read-sheet", given);
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_value_is_held_against_the_schema_of_its_argument() {
        let mut manifest = samples::xlsx();
        let schema = serde_json::json!({"type": "integer", "minimum": 1, "maximum": 9});
        manifest.actions[1].args[2].schema = Some(Json::from(&schema));
        let called = action(&manifest, Some("read-sheet")).unwrap();
        let checked = |given: serde_json::Value| {
            let given = RawJson::encode(&given).members().unwrap();
            arguments(called, given.iter().map(|(name, value)| (&**name, value)))
        };
        assert!(checked(serde_json::json!({"path": "x", "max-results": 9})).is_ok());
        let misuse = checked(serde_json::json!({"path": "x", "max-results": 10})).unwrap_err();
        assert!(
            misuse.is_of_values && misuse.message.contains("argument \"max-results\" does not fit its schema: 10 is"),
            "{}",
            misuse.message
        );
        assert!(misuse.schema.into_json().to_text().contains(r#""valid_args":[{"name":"path""#));
        let misuse = checked(serde_json::json!({"max-results": 10})).unwrap_err();
        assert!(
            !misuse.is_of_values && misuse.message.starts_with("arguments are required: path; "),
            "{}",
            misuse.message
        );
    }

    #[test]
    fn what_a_program_has_a_default_for_may_be_left_out() {
        let mut manifest = samples::xlsx();
        manifest.actions[1].args[0].default = Some(Json::String("a.xlsx".into()));
        assert!(arguments(action(&manifest, Some("read-sheet")).unwrap(), []).is_ok());
    }

    #[test]
    fn a_twin_is_the_only_name_that_is_the_same_but_for_its_dashes() {
        let mut manifest = samples::xlsx();
        let called = action(&manifest, Some("read-sheet")).unwrap();
        assert_eq!(twin(called, "max_results"), Some("max-results"));
        assert_eq!(
            (twin(called, "max-results"), twin(called, "maxresults"), twin(called, "Max_results")),
            (None, None, None)
        );
        manifest.actions[1].args.push(samples::arg("a-b_c", ArgType::String, false));
        manifest.actions[1].args.push(samples::arg("a_b-c", ArgType::String, false));
        let called = action(&manifest, Some("read-sheet")).unwrap();
        assert_eq!((twin(called, "a-b-c"), twin(called, "a_b_c")), (None, None), "it could be either");
    }

    #[test]
    fn a_flood_of_wrong_arguments_is_counted_and_cut() {
        let given: serde_json::Map<String, serde_json::Value> =
            (0..5000).map(|n| (format!("x{n}{}", "y".repeat(100)), n.into())).collect();
        let (message, schema) = refused("dump", &serde_json::Value::Object(given).to_string());
        assert!(message.contains("and 4991 more") && message.len() < 5000 && schema.len() < 8000, "{message}");
    }
}
