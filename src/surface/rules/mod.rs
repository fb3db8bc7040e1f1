//! Rules over the arguments of calls: the first that matches decides, and where none does, the call is denied.
//!
//! Promises: an expression was compiled and looked through when the surface was loaded; what one costs is
//! bounded by its size and that of the arguments; whatever goes wrong at a call, it is not let through.

mod expression;

use std::sync::Arc;

pub(crate) use expression::Unfit;
use expression::{Expression, Given};

use crate::protocol::digest::{self, Digest};
use crate::protocol::{Arguments, Json};

/// Longest arguments that rules look at, bytes; longer ones match no rule.
const ARGUMENTS_AT_MOST: usize = 64 * 1024;

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ruling {
    /// The call may go on to the question whether it can be undone.
    Allow,
    /// A person is asked.
    Ask,
    /// The call does not run.
    Deny,
}

impl Ruling {
    /// The key that says so.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRule {
    /// What it says of a call that it matches.
    pub ruling: Ruling,
    /// The tools that it is about; all of them if absent.
    pub tools: Option<Vec<String>>,
    /// What whoever is denied is told.
    pub message: Option<String>,
    expression: Arc<Expression>,
}

impl CallRule {
    /// Compiles a rule. The error says what is wrong with its expression, and where.
    pub(crate) fn compile(
        ruling: Ruling,
        source: &str,
        tools: Option<Vec<String>>,
        message: Option<String>,
    ) -> Result<Self, Unfit> {
        Ok(Self { ruling, tools, message, expression: Arc::new(Expression::compile(source)?) })
    }

    /// Its expression.
    pub fn source(&self) -> &str {
        self.expression.source()
    }

    fn is_about(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool))
    }
}

/// The rules of a surface, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRules {
    list: Arc<[CallRule]>,
    digest: Digest,
}

/// What is declared of the arguments of a tool, as far as rules see it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Declared {
    /// The values of arguments that are not given.
    pub defaults: Vec<(String, Json)>,
    /// The arguments that are paths beneath a root, seen as short as they can be written.
    pub paths: Vec<String>,
}

/// What the rules come to for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruled {
    /// What is decided.
    pub ruling: Ruling,
    /// Which rule decided, counted from 1; none if none matched.
    pub rule: Option<usize>,
    /// What whoever is denied is told.
    pub message: String,
    /// What went wrong with a rule, for the log.
    pub failed: Option<String>,
}

impl Ruled {
    /// The rules could not be asked, which denies.
    pub fn broken() -> Self {
        let message = "the rules of the surface cannot be asked".to_owned();
        Self { ruling: Ruling::Deny, rule: None, message, failed: Some("the evaluation broke down".to_owned()) }
    }
}

impl CallRules {
    /// These rules.
    pub fn new(list: Vec<CallRule>) -> Self {
        let text = |text: &str| Json::String(text.to_owned());
        let each = |rule: &CallRule| {
            let tools = match &rule.tools {
                Some(tools) => Json::Array(tools.iter().map(|tool| text(tool)).collect()),
                None => Json::Null,
            };
            Json::Array(vec![text(rule.ruling.name()), text(rule.source()), tools])
        };
        let digest = digest::of_bytes(Json::Array(list.iter().map(each).collect()).to_text().as_bytes());
        Self { list: list.into(), digest }
    }

    /// The rules.
    pub fn list(&self) -> &[CallRule] {
        &self.list
    }

    /// The digest of what they say.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What some rule may say of a call of that tool, beside that none matches.
    pub fn may_say(&self, tool: &str) -> Vec<Ruling> {
        self.list.iter().filter(|rule| rule.is_about(tool)).map(|rule| rule.ruling).collect()
    }

    /// Decides a call of a caller.
    pub fn decide(&self, tool: &str, caller: &str, arguments: &Arguments, declared: &Declared) -> Ruled {
        let denied = |rule: Option<usize>, message: &str, failed: Option<String>| Ruled {
            ruling: Ruling::Deny,
            rule,
            message: message.to_owned(),
            failed,
        };
        if arguments.text().as_bytes().len() > ARGUMENTS_AT_MOST {
            return denied(None, "the arguments are too long to be judged by the rules of the surface", None);
        }
        let mut given = None;
        for (index, rule) in self.list.iter().enumerate().filter(|(_, rule)| rule.is_about(tool)) {
            let number = index + 1;
            let given = given.get_or_insert_with(|| Given::new(tool, caller, arguments, declared));
            match rule.expression.matches(given) {
                Ok(false) => {}
                Ok(true) => {
                    let told = rule.message.clone();
                    let message = told.unwrap_or_else(|| format!("rule {number} of the surface denies it"));
                    return Ruled { ruling: rule.ruling, rule: Some(number), message, failed: None };
                }
                Err(problem) => {
                    let message = format!("rule {number} of the surface cannot judge these arguments");
                    return denied(Some(number), &message, Some(problem));
                }
            }
        }
        denied(None, "no rule of the surface allows it", None)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::RawJson;
    use crate::protocol::json::JsonLimits;

    fn rules(list: &[(Ruling, &str)]) -> CallRules {
        let compile = |(ruling, source): &(Ruling, &str)| CallRule::compile(*ruling, source, None, None).unwrap();
        CallRules::new(list.iter().map(compile).collect())
    }

    fn decide(rules: &CallRules, arguments: &Value) -> (Ruling, Option<usize>) {
        let text = RawJson::new(Bytes::from(arguments.to_string()), &JsonLimits::default()).unwrap();
        let ruled = rules.decide("tool", "ann", &Arguments::new(text).unwrap(), &Declared::default());
        (ruled.ruling, ruled.rule)
    }

    #[test]
    fn the_first_that_matches_decides_and_where_none_does_the_call_is_denied() {
        use Ruling::{Allow, Ask, Deny};
        let list = rules(&[
            (Deny, "args.path.startsWith('secrets/')"),
            (Ask, "has(args.amount) && args.amount > 100"),
            (Allow, "has(args.amount) && args.amount > 10"),
        ]);
        for (arguments, decided) in [
            (json!({ "path": "secrets/x", "amount": 500 }), (Deny, Some(1))),
            (json!({ "path": "x", "amount": 500 }), (Ask, Some(2))),
            (json!({ "path": "x", "amount": 100.5 }), (Ask, Some(2))),
            (json!({ "path": "x", "amount": u64::MAX }), (Ask, Some(2))),
            (json!({ "path": "x", "amount": 50 }), (Allow, Some(3))),
            (json!({ "path": "x" }), (Deny, None)),
            (json!({}), (Deny, Some(1))),
            (json!({ "path": 3 }), (Deny, Some(1))),
            (json!({ "path": "x", "amount": "much" }), (Deny, Some(2))),
        ] {
            assert_eq!(decide(&list, &arguments), decided, "{arguments}");
        }
        assert_eq!(decide(&rules(&[]), &json!({})), (Deny, None));
    }

    #[test]
    fn a_rule_is_about_its_tools_and_knows_who_calls_and_the_defaults() {
        let compile = |source: &str, tools: Option<&[&str]>| {
            let tools = tools.map(|tools| tools.iter().map(ToString::to_string).collect());
            CallRule::compile(Ruling::Allow, source, tools, None).unwrap()
        };
        let decide = |rule: CallRule| {
            let arguments = Arguments::new(RawJson::empty_object()).unwrap();
            let defaults = vec![("count".to_owned(), Json::Number("20".into()))];
            let declared = Declared { defaults, ..Declared::default() };
            CallRules::new(vec![rule]).decide("tool", "ann", &arguments, &declared).ruling
        };
        assert_eq!(decide(compile("true", Some(&["other"]))), Ruling::Deny);
        assert_eq!(decide(compile("tool == 'tool' && caller == 'ann'", Some(&["tool"]))), Ruling::Allow);
        assert_eq!(decide(compile("args.count == 20", None)), Ruling::Allow);
    }

    #[test]
    fn a_path_is_seen_as_short_as_it_can_be_written() {
        let list = rules(&[(Ruling::Deny, "args.path.startsWith('secrets/')"), (Ruling::Allow, "true")]);
        let declared = Declared { paths: vec!["path".to_owned()], ..Declared::default() };
        for (path, ruling) in [
            ("secrets/x", Ruling::Deny),
            ("./secrets/x", Ruling::Deny),
            ("secrets//x", Ruling::Deny),
            ("././/secrets/./x/", Ruling::Deny),
            ("secret", Ruling::Allow),
            ("a/secrets/x", Ruling::Allow),
        ] {
            let text = RawJson::new(Bytes::from(json!({ "path": path }).to_string()), &JsonLimits::default()).unwrap();
            assert_eq!(list.decide("t", "ann", &Arguments::new(text).unwrap(), &declared).ruling, ruling, "{path}");
        }
    }

    #[test]
    fn other_rules_have_another_digest() {
        let (one, other) = (rules(&[(Ruling::Allow, "true")]), rules(&[(Ruling::Ask, "true")]));
        assert_ne!(one.digest(), other.digest());
        assert_eq!(one, rules(&[(Ruling::Allow, "true")]));
        assert_ne!(one, other);
    }

    #[test]
    fn arguments_that_are_too_long_match_nothing() {
        let long = json!({ "a": "x".repeat(ARGUMENTS_AT_MOST) });
        assert_eq!(decide(&rules(&[(Ruling::Allow, "true")]), &long), (Ruling::Deny, None));
    }
}
