//! The tools that are built in: their definitions as data.
//!
//! Promises: names, inputs and hints are the contract's; a tool that runs what it is told is never said to read only.
//! The words are ours and may be replaced by a surface file. Published by `parts`, carried out by `core::capability`.

use std::time::Duration;

use crate::protocol::limits::DEADLINE_AT_MOST;
use crate::protocol::{Annotations, Json};

/// A built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// Finds capabilities, step by step.
    Capabilities,
    /// Runs an action of a tool, unless it cannot be undone.
    RunTool,
    /// Runs an action of a tool; a person is asked where it cannot be undone.
    RunToolConfirmed,
    /// Runs an action of an agent, unless it cannot be undone.
    RunAgent,
    /// Runs an action of an agent; a person is asked where it cannot be undone.
    RunAgentConfirmed,
    /// Reads a skill.
    GetSkill,
}

/// What a built-in tool is published as, but for its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// For people.
    pub title: &'static str,
    /// For models.
    pub description: &'static str,
    /// JSON Schema of the arguments.
    pub input_schema: Json,
    /// Hints, all four.
    pub annotations: Annotations,
}

impl Builtin {
    /// All of them, in the order of an operator surface.
    pub const ALL: [Self; 6] = [
        Self::Capabilities,
        Self::RunTool,
        Self::RunToolConfirmed,
        Self::RunAgent,
        Self::RunAgentConfirmed,
        Self::GetSkill,
    ];

    /// Its name in a surface file, and the name under which it is usually published.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capabilities => "capabilities",
            Self::RunTool => "run_tool",
            Self::RunToolConfirmed => "run_tool_confirmed",
            Self::RunAgent => "run_agent",
            Self::RunAgentConfirmed => "run_agent_confirmed",
            Self::GetSkill => "get_skill",
        }
    }

    /// The built-in tool of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.name() == name)
    }

    /// Whether it runs a program.
    pub fn runs(self) -> bool {
        !matches!(self, Self::Capabilities | Self::GetSkill)
    }

    /// Whether it may ask a person about what cannot be undone.
    pub fn is_confirmed(self) -> bool {
        matches!(self, Self::RunToolConfirmed | Self::RunAgentConfirmed)
    }

    /// What asks a person where this one refuses.
    pub fn confirmed(self) -> Self {
        match self {
            Self::RunTool => Self::RunToolConfirmed,
            Self::RunAgent => Self::RunAgentConfirmed,
            other => other,
        }
    }

    /// How long what it runs may take where nothing is said.
    pub fn timeout(self) -> Duration {
        match self {
            Self::RunAgent | Self::RunAgentConfirmed => Duration::from_secs(120),
            _ => Duration::from_secs(60),
        }
    }

    /// How long a call waits at most while a capability has as many runs as it may.
    pub const WAIT: Duration = Duration::from_secs(10);

    /// How long a call of it may take, which is longer than what it runs and waits for, so that the answer says what was
    /// too slow.
    pub fn deadline(self, timeout: Option<Duration>) -> Duration {
        /// For stopping a program that does not want to end.
        const GRACE: Duration = Duration::from_secs(10);
        let timeout = timeout.unwrap_or_else(|| self.timeout());
        timeout.saturating_add(Self::WAIT.min(timeout)).saturating_add(GRACE).min(DEADLINE_AT_MOST)
    }

    /// Its definition.
    pub fn definition(self) -> Definition {
        let (title, description) = self.words();
        Definition { title, description, input_schema: self.input_schema(), annotations: self.annotations() }
    }

    fn annotations(self) -> Annotations {
        let runs = self.runs();
        Annotations { read_only: Some(!runs), destructive: Some(runs), idempotent: Some(!runs), open_world: Some(runs) }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Capabilities => (
                "Find capabilities",
                "Finds the command-line capabilities of this project: tools, agents and skills. Ask the narrowest question that \
                 you can. With `search`: the actions that have these keywords. With `name` and `action`: the arguments of that \
                 one action, and the call that runs it. With `name` alone: everything that a capability does. Without \
                 arguments: a list of all of them. Argument names in an answer are sent exactly as they stand there.",
            ),
            Self::RunTool => (
                "Run a tool",
                "Runs one action of a command-line tool that is registered in this project's `tools/` folder, as `capabilities` \
                 describes it. What cannot be undone is not run here: the answer then names the tool that asks a person first. \
                 The result is one JSON object with `ok`, `data` and `error`.",
            ),
            Self::RunToolConfirmed => (
                "Run a tool with a person's agreement",
                "Runs one action of a command-line tool that is registered in this project's `tools/` folder, also one that \
                 cannot be undone: for that a person is asked first. Call it with the very arguments that were refused with \
                 `approval_required`. The result is one JSON object with `ok`, `data` and `error`.",
            ),
            Self::RunAgent => (
                "Run an agent",
                "Runs one action of an agent that is registered in this project's `agents/` folder and drives several of its \
                 tools, as `capabilities` describes it. What cannot be undone is not run here: the answer then names the tool \
                 that asks a person first. The result is one JSON object with `ok`, `data` and `error`.",
            ),
            Self::RunAgentConfirmed => (
                "Run an agent with a person's agreement",
                "Runs one action of an agent that is registered in this project's `agents/` folder, also one that cannot be \
                 undone: for that a person is asked first. Call it with the very arguments that were refused with \
                 `approval_required`. The result is one JSON object with `ok`, `data` and `error`.",
            ),
            Self::GetSkill => (
                "Read a skill",
                "Reads a skill of this project: what it teaches, and the list of its files. With `resource` it reads one of these \
                 files instead, by the path in that list.",
            ),
        }
    }

    fn input_schema(self) -> Json {
        let name_of = |what: &str| text(&format!("The {what}'s name, as `capabilities` tells it"));
        let action = || text("The action, as `capabilities` tells it; left out for a capability without actions");
        let args = || of_type("object", "The action's arguments by their names, exactly as `capabilities` tells them");
        match self {
            Self::Capabilities => object(
                &[],
                vec![
                    (
                        "kind",
                        with(
                            text("Tells of this kind alone"),
                            "enum",
                            Json::Array(["tool", "agent", "skill"].map(string).to_vec()),
                        ),
                    ),
                    ("name", text("One capability, by its name")),
                    ("action", text("One action of it")),
                    ("search", text("Keywords, such as a noun and a verb")),
                    ("full", of_type("boolean", "Longer descriptions, and examples, in the list of all")),
                    (
                        "limit",
                        with(
                            with(
                                of_type("integer", "Most matches of a search; 20 if left out"),
                                "minimum",
                                number("1"),
                            ),
                            "maximum",
                            number("50"),
                        ),
                    ),
                ],
            ),
            Self::RunTool | Self::RunToolConfirmed => {
                object(&["tool"], vec![("tool", name_of("tool")), ("action", action()), ("args", args())])
            }
            Self::RunAgent | Self::RunAgentConfirmed => {
                object(&["agent"], vec![("agent", name_of("agent")), ("action", action()), ("args", args())])
            }
            Self::GetSkill => object(
                &["name"],
                vec![
                    ("name", name_of("skill")),
                    ("resource", text("A file of it, by its path in the skill's list, such as references/a.md")),
                ],
            ),
        }
    }
}

fn string(text: &str) -> Json {
    Json::String(text.to_owned())
}

fn number(digits: &str) -> Json {
    Json::Number(digits.into())
}

fn of_type(kind: &str, description: &str) -> Json {
    Json::Object(vec![("type".to_owned(), string(kind)), ("description".to_owned(), string(description))])
}

fn text(description: &str) -> Json {
    of_type("string", description)
}

fn with(schema: Json, key: &str, value: Json) -> Json {
    let Json::Object(mut members) = schema else { return schema };
    members.push((key.to_owned(), value));
    Json::Object(members)
}

fn object(required: &[&str], properties: Vec<(&str, Json)>) -> Json {
    let properties = properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut members = vec![("type".to_owned(), string("object")), ("properties".to_owned(), Json::Object(properties))];
    if !required.is_empty() {
        let required = required.iter().map(|name| string(name)).collect();
        members.push(("required".to_owned(), Json::Array(required)));
    }
    members.push(("additionalProperties".to_owned(), Json::Bool(false)));
    Json::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Catalog, CatalogParts, ToolParts};

    fn properties(builtin: Builtin) -> Vec<String> {
        let schema = builtin.definition().input_schema;
        let members = schema.get("properties").and_then(Json::as_object).unwrap().to_vec();
        members.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn the_six_have_the_contracts_names_and_inputs_in_its_order() {
        let names = Builtin::ALL.map(Builtin::name);
        assert_eq!(
            names,
            ["capabilities", "run_tool", "run_tool_confirmed", "run_agent", "run_agent_confirmed", "get_skill"]
        );
        for (builtin, inputs, required) in [
            (Builtin::Capabilities, &["kind", "name", "action", "search", "full", "limit"][..], None),
            (Builtin::RunTool, &["tool", "action", "args"], Some("tool")),
            (Builtin::RunToolConfirmed, &["tool", "action", "args"], Some("tool")),
            (Builtin::RunAgent, &["agent", "action", "args"], Some("agent")),
            (Builtin::RunAgentConfirmed, &["agent", "action", "args"], Some("agent")),
            (Builtin::GetSkill, &["name", "resource"], Some("name")),
        ] {
            assert_eq!(properties(builtin), inputs);
            let schema = builtin.definition().input_schema;
            let expected = required.map(|name| Json::Array(vec![string(name)]));
            assert_eq!(schema.get("required"), expected.as_ref());
            assert_eq!(Builtin::parse(builtin.name()), Some(builtin));
        }
        assert_eq!(Builtin::parse("run_tools"), None);
    }

    #[test]
    fn all_four_hints_are_said_and_what_takes_an_action_is_never_a_reader() {
        for builtin in Builtin::ALL {
            let definition = builtin.definition();
            let inputs = properties(builtin);
            let has = |name: &str| inputs.iter().any(|input| input == name);
            let dispatches = has("action") && (has("tool") || has("agent"));
            let hints = definition.annotations;
            let said = [hints.read_only, hints.destructive, hints.idempotent, hints.open_world];
            assert_eq!(said, [!dispatches, dispatches, !dispatches, dispatches].map(Some), "{}", builtin.name());
            assert!(!definition.title.is_empty() && definition.description.len() < 1000);
        }
    }

    #[test]
    fn the_definitions_make_a_catalog() {
        let tools = Builtin::ALL.map(|builtin| {
            let definition = builtin.definition();
            let mut parts = ToolParts::new(builtin.name());
            parts.input_schema = definition.input_schema;
            parts.annotations = definition.annotations;
            parts
        });
        let parts = CatalogParts { tools: tools.to_vec(), ..CatalogParts::new("operator", "1.0.0") };
        assert!(Catalog::build(parts).is_ok());
    }
}
