//! The rest of the world: resources, templates, prompts, and tools that log, ask and answer in every way.

use serde_json::{Value, json};
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{
    Annotations, Ask, Audience, Block, Caller, CatalogParts, Completes, Completing, Completion, Content, Found, Icon,
    InputKind, InputRequest, Invocation, Json, LogLevel, Notice, Outcome, PromptArgument, PromptMessage, PromptParts,
    Prompted, Reference, ResourceContents, ResourceLink, ResourceParts, Role, SkillFile, SkillParts, TemplateParts,
    ToolParts,
};

use super::world::{schema, tool};

fn json_of(value: Value) -> Json {
    Json::parse(value.to_string().as_bytes(), &JsonLimits::default()).unwrap()
}

fn icon() -> Icon {
    Icon {
        src: "https://example.org/icon.png".to_owned(),
        mime_type: Some("image/png".to_owned()),
        sizes: vec!["48x48".to_owned()],
        theme: Some("dark".to_owned()),
    }
}

fn audience() -> Audience {
    Audience {
        audience: vec![Role::User, Role::Assistant],
        priority: Some(0.5),
        last_modified: Some("2025-01-12T15:00:58Z".to_owned()),
    }
}

fn resource(uri: &str, name: &str) -> ResourceParts {
    ResourceParts { uri: uri.to_owned(), name: name.to_owned(), ..ResourceParts::default() }
}

fn argument(name: &str, required: bool, completes: Completes) -> PromptArgument {
    PromptArgument { name: name.to_owned(), required, completes, ..PromptArgument::default() }
}

fn prompt_of(name: &str, arguments: Vec<PromptArgument>) -> PromptParts {
    PromptParts { name: name.to_owned(), arguments, ..PromptParts::default() }
}

/// Adds all of it.
pub(super) fn extend(parts: &mut CatalogParts) {
    parts.logging = true;
    parts.tools.extend(tools());
    parts.resources = vec![
        ResourceParts {
            title: Some("Today".to_owned()),
            description: Some("What was noted today.".to_owned()),
            mime_type: Some("text/plain".to_owned()),
            size: Some(5),
            audience: audience(),
            icons: vec![icon()],
            meta: Some(json_of(json!({"org.example/shelf": 3}))),
            ..resource("notes:today", "today")
        },
        ResourceParts { mime_type: Some("image/png".to_owned()), ..resource("notes:picture", "picture") },
        resource("notes:all/", "all"),
        resource("notes:gone", "gone"),
        resource("notes:broken", "broken"),
        resource("notes:private", "private"),
    ];
    parts.templates = vec![
        TemplateParts {
            uri_template: "notes:day/{day}".to_owned(),
            name: "day".to_owned(),
            title: Some("A day".to_owned()),
            description: Some("What was noted on a day.".to_owned()),
            mime_type: Some("text/plain".to_owned()),
            audience: audience(),
            icons: vec![icon()],
            meta: Some(json_of(json!({"org.example/shelf": 4}))),
            completes: vec![("day".to_owned(), Completes::Of((1..=150).map(|day| format!("day-{day:03}")).collect()))],
        },
        TemplateParts {
            uri_template: "notes:by/{author}/{+path}".to_owned(),
            name: "by".to_owned(),
            completes: vec![("path".to_owned(), Completes::Backend)],
            ..TemplateParts::default()
        },
    ];
    parts.prompts = vec![
        PromptParts {
            title: Some("Greet".to_owned()),
            description: Some("Greets somebody.".to_owned()),
            icons: vec![icon()],
            meta: Some(json_of(json!({"org.example/shelf": 5}))),
            ..prompt_of(
                "greet",
                vec![
                    PromptArgument {
                        title: Some("Name".to_owned()),
                        description: Some("Whom.".to_owned()),
                        ..argument("name", true, Completes::Of(["Ann", "Anna", "Bob"].map(str::to_owned).to_vec()))
                    },
                    argument("tone", false, Completes::Backend),
                ],
            )
        },
        prompt_of("plain", Vec::new()),
        prompt_of("gallery", Vec::new()),
        prompt_of("interview", Vec::new()),
        prompt_of("broken", Vec::new()),
    ];
}

fn tools() -> Vec<ToolParts> {
    let object =
        |properties: Value| schema(json!({"type": "object", "properties": properties, "additionalProperties": false}));
    let kinds = json!({"enum": ["form", "url", "sample", "sample-tools", "roots"]});
    vec![
        ToolParts {
            title: Some("Talk".to_owned()),
            annotations: Annotations {
                read_only: Some(true),
                destructive: Some(false),
                idempotent: Some(true),
                open_world: Some(false),
            },
            icons: vec![icon()],
            meta: Some(json_of(json!({"org.example/shelf": 6}))),
            ..tool("talk", "Logs once at every level.")
        },
        tool("blocks", "Returns a block of every kind."),
        ToolParts {
            input_schema: object(json!({"ask": {"type": "array", "items": kinds}})),
            ..tool("survey", "Asks the client several things at once.")
        },
        tool("twice", "Asks the client twice, one thing after the other."),
        tool("forever", "Asks the client and is never satisfied."),
        tool("double", "Asks the client two things under one key."),
        tool("again", "Wants to be called again before it answers."),
        ToolParts { input_schema: object(json!({"uri": {"type": "string"}})), ..tool("touch", "Changes a resource.") },
        ToolParts {
            output_schema: Some(schema(json!({"type": "object", "required": ["sides"]}))),
            ..tool("misshapen", "Returns what its own schema does not allow.")
        },
        ToolParts {
            output_schema: Some(schema(json!({"type": "object"}))),
            ..tool("narrated", "Returns a structured value and a text about it.")
        },
    ]
}

/// Adds a skill of four files, one of which is no text.
pub(super) fn add_skill(parts: &mut CatalogParts) {
    let manifest = "---\nname: greet\ndescription: Greets people.\n---\nSay hello.\n";
    let file = |path: &str, mime_type: &str, bytes: &'static [u8]| SkillFile {
        path: path.to_owned(),
        mime_type: Some(mime_type.to_owned()),
        bytes: bytes.into(),
    };
    parts.skills.push(SkillParts {
        uri: "skill://team/greet".to_owned(),
        frontmatter: json_of(json!({"name": "greet", "description": "Greets people."})),
        files: vec![
            file("SKILL.md", "text/markdown", manifest.as_bytes()),
            file("templates/formal.md", "text/markdown", b"Dear"),
            file("templates/hand.png", "image/png", b"\x89PNG\xff"),
            file("templates/of old/thee.md", "text/markdown", b"Hail"),
        ],
    });
}

/// Adds one definition to a list.
pub(super) fn add(list: &str, parts: &mut CatalogParts) {
    match list {
        "tools" => parts.tools.push(tool("extra", "One more.")),
        "resources" => parts.resources.push(resource("notes:extra", "extra")),
        "templates" => parts.templates.push(TemplateParts {
            uri_template: "extra:{name}".to_owned(),
            name: "extra".to_owned(),
            ..TemplateParts::default()
        }),
        "prompts" => parts.prompts.push(prompt_of("extra", Vec::new())),
        other => panic!("no such list: {other}"),
    }
}

/// One block of every kind, each with all that a block may have.
fn blocks() -> Vec<Block> {
    let dressed =
        |block: Block| Block { audience: audience(), meta: Some(json_of(json!({"org.example/shelf": 7}))), ..block };
    let contents = ResourceContents {
        meta: Some(json_of(json!({"org.example/shelf": 8}))),
        ..ResourceContents::text("notes:today", Some("text/plain"), "hello")
    };
    vec![
        dressed(Block::text("a text")),
        dressed(Block::image(&b"picture"[..], "image/png")),
        dressed(Block::audio(&b"sound"[..], "audio/wav")),
        dressed(Block::resource(contents)),
        Block::resource(ResourceContents::blob("notes:picture", Some("image/png"), &b"picture"[..])),
        dressed(Block::link(ResourceLink {
            uri: "notes:today".to_owned(),
            name: "today".to_owned(),
            title: Some("Today".to_owned()),
            description: Some("What was noted today.".to_owned()),
            mime_type: Some("text/plain".to_owned()),
            size: Some(5),
        })),
    ]
}

pub(super) fn read(uri: &str, found: &Found, invocation: &Invocation) -> Outcome {
    let plain = Some("text/plain");
    match (uri, found) {
        ("notes:today", _) => Outcome::Read(vec![ResourceContents::text(uri, plain, "hello")]),
        ("notes:picture", _) => Outcome::Read(vec![ResourceContents {
            meta: Some(json_of(json!({"org.example/shelf": 9}))),
            ..ResourceContents::blob(uri, Some("image/png"), &b"\x89PNG\x00\xff"[..])
        }]),
        ("notes:all/", _) => Outcome::Read(vec![
            ResourceContents::text("notes:all/one", plain, "1"),
            ResourceContents::text("notes:all/two", None, ""),
        ]),
        ("notes:gone", _) => Outcome::NotFound,
        ("notes:broken", _) => Outcome::Failed(Content::text("the shelf fell down")),
        ("notes:private", _) => match said(invocation, "name") {
            None => asks(vec![question("name", "form")], None),
            Some(name) => Outcome::Read(vec![ResourceContents::text(uri, plain, format!("for {name} alone"))]),
        },
        (_, Found::Template { variables, .. }) => match variables.as_slice() {
            [(_, day)] if day == "never" => Outcome::NotFound,
            variables => {
                let told: Vec<_> = variables.iter().map(|(name, value)| format!("{name} is {value}")).collect();
                Outcome::Read(vec![ResourceContents::text(uri, plain, told.join(", "))])
            }
        },
        (other, Found::Resource(_)) => Outcome::Read(vec![ResourceContents::text(other, None, "extra")]),
    }
}

pub(super) fn prompt(name: &str, arguments: &[(Box<str>, String)], invocation: &Invocation) -> Outcome {
    let argument = |name: &str| arguments.iter().find(|(key, _)| &**key == name).map(|(_, value)| value.as_str());
    let prompted = |messages: Vec<PromptMessage>| {
        Outcome::Prompted(Prompted { description: Some(format!("The prompt {name}.")), messages })
    };
    match name {
        "greet" => {
            let known: Vec<&str> = arguments.iter().map(|(key, _)| &**key).collect();
            prompted(vec![
                PromptMessage::user(Block::text(format!(
                    "Greet {} {}.",
                    argument("name").unwrap_or("nobody"),
                    argument("tone").unwrap_or("plainly")
                ))),
                PromptMessage::assistant(Block::text(format!("I was told {}.", known.join(" and ")))),
            ])
        }
        "gallery" => prompted(blocks().into_iter().map(PromptMessage::user).collect()),
        "interview" => match said(invocation, "name") {
            None => asks(vec![question("name", "form")], Some(json!({"asked": "name"}))),
            Some(name) => prompted(vec![PromptMessage::user(Block::text(format!("I am {name}.")))]),
        },
        "broken" => Outcome::Failed(Content::text("the words are lost")),
        _ => Outcome::Prompted(Prompted {
            description: None,
            messages: vec![PromptMessage::user(Block::text("Say something."))],
        }),
    }
}

/// Completes by what is known of the other arguments.
pub(super) fn complete(completing: &Completing) -> Outcome {
    let known = completing.context.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
    let of = match &completing.of {
        Reference::Prompt(name) => format!("prompt {name}"),
        Reference::Template(uri) => format!("template {uri}"),
    };
    let typed = &completing.typed;
    match typed.as_str() {
        "many" => Outcome::Completed(Completion {
            values: (0..101).map(|number| format!("many-{number}")).collect(),
            total: None,
            more: false,
        }),
        "broken" => Outcome::Failed(Content::text("the index is lost")),
        _ => Outcome::Completed(Completion {
            values: vec![format!("{of}, {}, {typed}, {known}", completing.argument)],
            total: Some(7),
            more: true,
        }),
    }
}

/// What the client answered to a form under a key, if it did.
fn said(invocation: &Invocation, key: &str) -> Option<String> {
    let answer: Value = invocation.answer(key)?.parse().ok()?;
    match answer["action"].as_str()? {
        "accept" => Some(answer["content"]["name"].as_str()?.to_owned()),
        other => Some(format!("nobody ({other})")),
    }
}

fn asks(requests: Vec<InputRequest>, state: Option<Value>) -> Outcome {
    Outcome::InputRequired(Ask { requests, state })
}

fn question(key: &str, kind: &str) -> InputRequest {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "Who are you?"}}]);
    let (kind, params) = match kind {
        "url" => (InputKind::ElicitUrl, json!({"message": "Who are you?", "url": "https://example.org/who"})),
        "sample" => (InputKind::Sample, json!({"messages": messages, "maxTokens": 10})),
        "sample-tools" => (
            InputKind::SampleWithTools,
            json!({
                "messages": messages,
                "maxTokens": 10,
                "tools": [{"name": "look", "inputSchema": {"type": "object"}}],
                "toolChoice": {"mode": "auto"}
            }),
        ),
        "roots" => (InputKind::Roots, json!({})),
        _ => (
            InputKind::ElicitForm,
            json!({
                "message": "Who are you?",
                "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
            }),
        ),
    };
    InputRequest { key: key.to_owned(), kind, params }
}

pub(super) fn call(name: &str, invocation: &Invocation, caller: &dyn Caller) -> Outcome {
    let argument = |name: &str| -> Option<Value> { invocation.operation.arguments()?.get(name)?.parse().ok() };
    let text = |text: String| Outcome::Complete(Content::text(text));
    match name {
        "talk" => {
            for level in LogLevel::ALL {
                let logger = (level != LogLevel::Info).then(|| "talk".to_owned());
                let data = if level == LogLevel::Error { json!({"why": [1, null]}) } else { json!(level.name()) };
                caller.notify(Notice::Log { level, logger, data });
            }
            text("said".to_owned())
        }
        "blocks" => Outcome::Complete(Content::blocks(blocks())),
        "survey" => {
            let wanted: Vec<String> =
                argument("ask").and_then(|wanted| serde_json::from_value(wanted).ok()).unwrap_or_default();
            let open: Vec<_> = wanted.iter().filter(|kind| invocation.answer(kind).is_none()).collect();
            if open.is_empty() {
                let answers = wanted.iter().filter_map(|kind| invocation.answer(kind).map(|a| (kind, a)));
                let told: Vec<_> = answers.map(|(kind, answer)| format!("{kind}: {}", answer.as_str())).collect();
                return text(told.join("\n"));
            }
            asks(wanted.iter().map(|kind| question(kind, kind)).collect(), None)
        }
        "twice" => {
            let first = invocation.state.as_ref().and_then(|state| state["first"].as_str()).map(str::to_owned);
            match (first, said(invocation, "first"), said(invocation, "second")) {
                (Some(first), _, Some(second)) => text(format!("{first}, then {second}")),
                (Some(first), _, None) => asks(vec![question("second", "form")], Some(json!({"first": first}))),
                (None, Some(first), _) => asks(vec![question("second", "form")], Some(json!({"first": first}))),
                (None, None, _) => asks(vec![question("first", "form")], Some(json!({}))),
            }
        }
        "forever" => asks(vec![question("name", "form")], Some(json!({"asked": true}))),
        "double" => asks(vec![question("name", "form"), question("name", "roots")], None),
        "again" => match invocation.state.as_ref().and_then(Value::as_u64).unwrap_or_default() {
            2 => text("the third time".to_owned()),
            times => asks(Vec::new(), Some(json!(times + 1))),
        },
        "touch" => {
            let uri = argument("uri").and_then(|uri| uri.as_str().map(str::to_owned)).unwrap_or_default();
            caller.notify(Notice::Updated { uri });
            text("touched".to_owned())
        }
        "misshapen" => Outcome::Complete(Content::structured(json!({"corners": 3}))),
        "narrated" => Outcome::Complete(Content {
            blocks: vec![Block::text("It has three sides.")],
            structured: Some(json!({"sides": 3})),
        }),
        other => panic!("no such tool: {other}"),
    }
}
