//! Whole surface files: what they become, and every problem of a bad one in its place.

// Helpers of tests fail by panicking, as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use twodoor::protocol::{Catalog, Json, Revision, TaskSupport};
use twodoor::surface::declaration::{ArgumentKind, Element, Feed, Output, Piece, Template, Variable};
use twodoor::surface::{Problems, Surface, render};

mod folder;

use folder::{Folder, load};

fn problems(folder: &Folder, text: impl AsRef<[u8]>) -> Problems {
    match Surface::load(&folder.file("surface.yaml", text)) {
        Ok(loaded) => loaded.warnings,
        Err(problems) => problems,
    }
}

fn ids(problems: &Problems) -> Vec<(&'static str, usize)> {
    problems.list().iter().map(|p| (p.rule, p.line)).collect()
}

#[test]
fn log_messages_are_offered_where_a_tool_talks_and_nowhere_else() {
    let folder = Folder::new("talk");
    let surface = |talk: &str| {
        format!(
            "surface: s\nversion: 1.0.0\ntools:\n  a: {{description: A., run: [ls]}}\n  b: {{description: B., run: [ls]{talk}}}\n"
        )
    };
    for (talk, talks) in [("", false), (", talk: false", false), (", talk: true", true)] {
        let loaded = load(&folder.file("surface.yaml", surface(talk)));
        assert_eq!(loaded.tools.iter().map(|tool| tool.command().unwrap().talk).collect::<Vec<_>>(), [false, talks]);
        assert_eq!(Catalog::build(loaded.parts).unwrap().logs(), talks);
    }
    assert_eq!(ids(&problems(&folder, surface(", talk: 3"))), [("value-kind", 5)]);
}

#[test]
fn scopes_are_asked_for_and_change_nothing_that_is_published() {
    let folder = Folder::new("scopes");
    let surface = |more: &str| {
        folder.file(
            "surface.yaml",
            format!("surface: s\nversion: 1.0.0\ntools:\n  a:\n    description: A.\n    run: [ls]\n{more}"),
        )
    };
    let plain = load(&surface(""));
    let scoped = load(&surface("    scopes: [read, \"files:write\"]\n"));
    assert_ne!(plain, scoped, "a reload has to take it");
    let (plain, scoped) = (Catalog::build(plain.parts).unwrap(), Catalog::build(scoped.parts).unwrap());
    assert_eq!(scoped.tool("a").unwrap().scopes, ["read", "files:write"]);
    for revision in Revision::ALL {
        assert_eq!(plain.digest(revision), scoped.digest(revision));
    }
    for (scopes, expected) in [
        ("'a b'", vec![("scope", 7)]),
        ("[read, '']", vec![("scope", 7)]),
        ("['\"']", vec![("scope", 7)]),
        ("[1]", vec![("value-kind", 7)]),
        ("{read: true}", vec![("value-kind", 7)]),
    ] {
        let found = Surface::load(&surface(&format!("    scopes: {scopes}\n"))).unwrap_err();
        assert_eq!(ids(&found), expected, "{found}");
    }
}

#[test]
fn a_file_becomes_what_is_published_and_what_is_run() {
    let folder = Folder::new("whole");
    fs::create_dir_all(folder.0.join("sub")).unwrap();
    let path = folder.file(
        "repo.yaml",
        r#"surface: repo
version: 1.2.0
title: Repository
instructions: Read-only views of one git repository.
digest_key: com.example/toolsDigest
ttl: 5m
tools:
  log:
    title: Log
    description: Latest commits, newest first; narrow with path or author.
    read_only: true
    args:
      path:   { type: string, description: Only this file or folder, as: path }
      author: { type: string, required: true, header: Author }
      count:  { type: integer, minimum: 1, maximum: 200, default: 20 }
    run: [ls, --no-pager, "--max-count={count}", [--author, "x{author}"], "{{x}}", 5, --, "{path}"]
    cwd: sub
    env: [HOME, {TZ: UTC}]
    timeout: 10s
    cap: 16KiB
    exit_codes: [0, 1]
    meta: {com.example/x: {b: 1, a: 2}}
  echo:
    description: Gives back what it is given.
    reversible: false
    idempotent: true
    inputSchema: {type: object, properties: {text: {type: string, default: a}, at: {type: string}}, required: [text]}
    as: {text: data, at: path}
    run: [cat, --, "{at}"]
    stdin: "{text}"
    output: json
    outputSchema: {type: object}
  bare:
    description: Takes nothing.
    run: [ls]
"#,
    );
    let loaded = load(&path);
    assert_eq!((loaded.name.as_str(), loaded.version.to_string().as_str()), ("repo", "1.2.0"));
    assert_eq!((&loaded.path, &loaded.root), (&path, &folder.0));
    let parts = &loaded.parts;
    assert_eq!((parts.digest_key.as_str(), parts.cache.ttl_ms), ("com.example/toolsDigest", 300_000));
    assert_eq!(parts.instructions.as_deref(), Some("Read-only views of one git repository."));
    let schemas: Vec<String> = parts.tools.iter().map(|t| t.input_schema.to_text()).collect();
    assert_eq!(
        schemas,
        [
            concat!(
                r#"{"type":"object","properties":{"path":{"type":"string","description":"Only this file or folder"},"#,
                r#""author":{"type":"string","x-mcp-header":"Author"},"#,
                r#""count":{"type":"integer","minimum":1,"maximum":200,"default":20}},"#,
                r#""required":["author"],"additionalProperties":false}"#
            ),
            r#"{"type":"object","properties":{"text":{"type":"string","default":"a"},"at":{"type":"string"}},"required":["text"]}"#,
            r#"{"type":"object","additionalProperties":false}"#,
        ]
    );
    let hints: Vec<_> = parts
        .tools
        .iter()
        .map(|t| {
            (t.annotations.read_only, t.annotations.destructive, t.annotations.idempotent, t.annotations.open_world)
        })
        .collect();
    assert_eq!(
        hints,
        [(Some(true), Some(false), None, None), (None, Some(true), Some(true), None), (None, None, None, None)]
    );
    assert_eq!(parts.tools[0].deadline, Some(Duration::from_secs(10)));
    assert_eq!(parts.tools[0].meta.as_ref().unwrap().to_text(), r#"{"com.example/x":{"b":1,"a":2}}"#);

    let run = loaded.tools[0].command().unwrap();
    let literal = |text: &str| Template(vec![Piece::Literal(text.to_owned())]);
    let with =
        |text: &str, name: &str| Template(vec![Piece::Literal(text.to_owned()), Piece::Argument(name.to_owned())]);
    let Element::One(program) = &run.argv[0] else { panic!("a group") };
    let [Piece::Literal(program)] = program.0.as_slice() else { panic!("no literal") };
    assert!(Path::new(program).is_absolute() && program.ends_with("/ls"));
    assert_eq!(
        run.argv[1..],
        [
            Element::One(literal("--no-pager")),
            Element::One(with("--max-count=", "count")),
            Element::Group(vec![literal("--author"), with("x", "author")]),
            Element::One(literal("{x}")),
            Element::One(literal("5")),
            Element::One(literal("--")),
            Element::One(Template(vec![Piece::Argument("path".to_owned())])),
        ]
    );
    assert_eq!(run.cwd, folder.0.join("sub"));
    assert_eq!(run.env, [Variable::Inherited("HOME".to_owned()), Variable::Literal("TZ".to_owned(), "UTC".to_owned())]);
    assert_eq!((run.cap, run.exit_codes.as_slice(), run.output), (16 * 1024, &[0, 1][..], Output::Text));
    let kinds: Vec<_> = run.arguments.iter().map(|a| (a.name.as_str(), a.kind, a.default.clone())).collect();
    assert_eq!(kinds[0], ("path", ArgumentKind::Path, None));
    assert_eq!(kinds[2], ("count", ArgumentKind::Value, Some(Json::Number("20".into()))));
    let echo = loaded.tools[1].command().unwrap();
    let fed = Some(Feed::Argument("text".to_owned()));
    assert_eq!((&echo.stdin, echo.output, echo.cap), (&fed, Output::Json, 60_000));
    assert_eq!(echo.cwd, folder.0);
    assert_eq!(echo.arguments[0].kind, ArgumentKind::Data);
    assert_eq!(echo.arguments[1].kind, ArgumentKind::Path);
    let ids: Vec<_> = ids(&loaded.warnings);
    assert_eq!(ids, []);
}

#[test]
fn every_problem_of_a_bad_file_is_found_at_once_in_its_place() {
    let folder = Folder::new("bad");
    let text = "\
surface: workspace
version: 1.2
instruction: Typo.
root: nowhere
tools:
  Read_File:
    description: Reads a file.
    args:
      path: {type: string, as: pth}
      count: {type: integer, minimum: 0.5, default: many}
      spare: {type: string}
      token: {type: string, header: Auth Token}
    run: [cat, --, \"{paht}\", \"x{path}{count}\"]
    timeout: 2h
  read_file:
    read_only: true
    reversible: false
    outputSchema: {$ref: http://example.com/x}
    run: [sh, -c, \"cat {path}\"]
    read_only: true
";
    let problems = problems(&folder, text);
    let found: Vec<_> = problems.list().iter().map(|p| (p.line, p.column, p.end_column, p.rule)).collect();
    assert_eq!(
        found,
        [
            (1, 10, 19, "reserved-name"),
            (2, 10, 13, "version"),
            (3, 1, 12, "unknown-key"),
            (4, 7, 14, "folder"),
            (9, 32, 35, "value-kind"),
            (10, 39, 42, "portable-json"),
            (10, 53, 57, "default-value"),
            (11, 7, 12, "unused-argument"),
            (12, 37, 47, "x-mcp-header"),
            (12, 37, 47, "secret-header"),
            (13, 21, 27, "unknown-placeholder"),
            (13, 38, 45, "two-placeholders"),
            (14, 14, 16, "duration"),
            (15, 3, 12, "similar-names"),
            (15, 3, 12, "missing-description"),
            (17, 17, 22, "contradiction"),
            (18, 5, 17, "output-schema"),
            (18, 5, 17, "divergent"),
            (18, 26, 46, "schema-ref"),
            (19, 19, 31, "dynamic-script"),
            (19, 24, 30, "unknown-placeholder"),
            (20, 5, 14, "yaml-duplicate-key"),
        ],
        "{}",
        render(&problems, false)
    );
    assert!(problems.has_errors());
}

#[test]
fn a_problem_is_shown_with_its_line_a_caret_its_rule_and_its_remedy() {
    let folder = Folder::new("shown");
    let problems =
        problems(&folder, "surface: s\nversion: 1.2\ntools:\n  t: {description: Größe, run: [ls], descripton: x}\n");
    let shown = render(&problems, false).replace(&folder.0.display().to_string(), "FOLDER");
    let expected = r#"error[version]: "1.2" is not a semantic version: unexpected end of input while parsing minor version number
 --> FOLDER/surface.yaml:2:10
  |
2 | version: 1.2
  |          ^^^
  |
  = help: write MAJOR.MINOR.PATCH, such as 1.0.0
  = help: did you mean 1.2.0?

error[unknown-key]: a tool has no key "descripton"
 --> FOLDER/surface.yaml:4:38
  |
4 |   t: {description: Größe, run: [ls], descripton: x}
  |                                      ^^^^^^^^^^
  |
  = help: correct its name, or leave it out
  = help: did you mean description?

2 errors
"#;
    assert_eq!(shown, expected);
    assert!(render(&problems, true).contains("\u{1b}["));
    let json = serde_json::to_value(&problems).unwrap();
    assert_eq!(
        json[1],
        serde_json::json!({
            "file": folder.0.join("surface.yaml").display().to_string(), "line": 4, "column": 38, "end_column": 48,
            "severity": "error", "rule": "unknown-key", "message": "a tool has no key \"descripton\"",
            "remedy": "correct its name, or leave it out", "suggestion": "description",
        })
    );
}

#[test]
fn what_is_shown_of_a_hostile_file_has_no_control_characters() {
    let folder = Folder::new("terminal");
    let text = "surface: s\u{1b}[2J\u{202e}\nversion: 1.0.0\n\"ke\\ey\\u202e\": \"\\e[31m\"\ntools: {\"a\\e\": {run: [\"{\\e}\"]}}\n";
    for text in [text.to_owned(), text.replace(['\u{1b}', '\u{202e}'], "")] {
        let shown = render(&problems(&folder, &text), false);
        assert!(shown.contains("hidden-characters"), "{shown}");
        assert!(!shown.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{shown:?}");
    }
}

#[test]
fn hostile_files_are_refused_quickly_with_the_place_named() {
    let folder = Folder::new("hostile");
    let good = "surface: s\nversion: 1.0.0\ntools:\n  t: {description: x, run: [ls]}\n";
    let mut bomb = format!("{good}a: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for n in 1..30 {
        bomb.push_str(&format!("b{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(",")));
    }
    let many_keys: String = (0..20_000).map(|n| format!("k{n}: 1\n")).collect();
    let one_line = format!("{{{}}}", (0..50_000).map(|n| format!("k{n}: 1")).collect::<Vec<_>>().join(", "));
    let table: Vec<(&str, Vec<u8>, &str)> = vec![
        ("alias bomb", bomb.into_bytes(), "yaml-size"),
        ("flow depth", format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes(), "yaml-depth"),
        (
            "block depth",
            (0..1000).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>().into_bytes(),
            "yaml-depth",
        ),
        ("braces", "{".repeat(100_000).into_bytes(), "yaml-depth"),
        ("dashes", "- ".repeat(100_000).into_bytes(), "yaml-depth"),
        ("duplicate", format!("{good}version: 2.0.0\n").into_bytes(), "yaml-duplicate-key"),
        ("tag", format!("{good}title: !!python/object/apply:os.system [ls]\n").into_bytes(), "yaml-tag"),
        ("merge", format!("{good}<<: {{title: x}}\n").into_bytes(), "yaml-merge-key"),
        ("nul", format!("{good}title: a\0b\n").into_bytes(), "hidden-characters"),
        ("late mark", format!("{good}title: \u{feff}x\n").into_bytes(), "hidden-characters"),
        ("not utf-8", [good.as_bytes(), b"title: \xc3\x28\n"].concat(), "file-utf8"),
        ("utf-16", good.encode_utf16().flat_map(u16::to_le_bytes).collect(), "hidden-characters"),
        ("two documents", format!("{good}---\n{good}").into_bytes(), "yaml-document"),
        ("many keys", format!("{good}{many_keys}").into_bytes(), "unknown-key"),
        ("one line", one_line.into_bytes(), "unknown-key"),
        ("a list", b"- a\n".to_vec(), "value-kind"),
        ("a text", vec![b'a'; 1024 * 1024], "value-kind"),
        ("too large", vec![b'a'; 1024 * 1024 + 1], "file-size"),
        ("nothing", Vec::new(), "yaml-syntax"),
    ];
    for (name, text, rule) in table {
        let before = cpu_time();
        let problems = problems(&folder, text);
        assert!(problems.list().iter().any(|p| p.rule == rule), "{name}: {problems}");
        assert!(problems.has_errors());
        let _ = render(&problems, false);
        let took = cpu_time() - before;
        assert!(took < Duration::from_secs(10), "{name} took {took:?}");
    }
}

/// What this thread has computed so far: other than the time of day, it does not pass while the machine does something else.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

#[test]
fn a_byte_order_mark_and_carriage_returns_change_nothing() {
    let folder = Folder::new("breaks");
    let good = "surface: s\nversion: 1.0.0\ntools:\n  t:\n    description: |\n      one\n      two\n    run: [ls]\n";
    let digest = |text: &str| {
        let loaded = load(&folder.file("surface.yaml", text));
        Catalog::build(loaded.parts).unwrap().digest(Revision::MODERN)
    };
    assert_eq!(digest(good), digest(&format!("\u{feff}{good}")));
    assert_eq!(digest(good), digest(&good.replace('\n', "\r\n")));
    let bad = format!("\u{feff}{}", good.replace("run:", "rnu:").replace('\n', "\r\n"));
    let problems = problems(&folder, bad);
    assert!(ids(&problems).contains(&("unknown-key", 8)), "{problems}");
    assert!(render(&problems, false).contains("8 |     rnu: [ls]\n  |     ^^^\n"));
}

#[test]
fn the_catalogs_own_problems_point_into_the_file() {
    let folder = Folder::new("catalog");
    let text = "\
surface: s
version: 1.0.0
digest_key: nokey
tools:
  bad name:
    description: x
    run: [ls]
  b:
    description: x
    inputSchema:
      type: object
      properties:
        x: {$ref: \"http://127.0.0.1:1/x\"}
        y: {type: number, x-mcp-header: Y}
        z: {maximum: 1.5}
    run: [ls, \"a{x}\", \"b{y}\", \"c{z}\"]
  c:
    description: x
    inputSchema: {type: array}
    run: [ls]
  d:
    description: x
    args: {p: {type: string, pattern: \"(a\"}}
    run: [ls, \"a{p}\"]
";
    let problems = problems(&folder, text);
    assert_eq!(
        ids(&problems),
        [
            ("digest-key", 3),
            ("tool-name", 5),
            ("schema-ref", 13),
            ("x-mcp-header", 14),
            ("portable-json", 15),
            ("input-root", 19),
            ("schema-valid", 23),
        ],
        "{problems}"
    );
}

#[test]
fn every_problem_of_resources_templates_and_prompts_is_reported_at_its_place() {
    let folder = Folder::new("entries");
    fs::create_dir_all(folder.0.join("docs")).unwrap();
    folder.file("docs/a.md", "a");
    folder.file("ask.md", "Ask {who}.");
    let text = "\
surface: s
version: 1.0.0
icons: [{src: icon.png}]
website: 5
resources:
  a: {uri: nothing, text: x}
  b: {uri: \"b:x\", text: x, priority: 2}
  c: {uri: \"b:x\", file: dosc/a.md}
  d: {folder: docs, match: \"[\"}
  e: {uri: \"s:///d/a.md\", text: x, audience: me}
  f: {uri: \"https://example.com\", run: [no-such-program-here]}
  g: {text: x, timeout: 5s, descripton: x}
templates:
  h: {uri: \"h:{x\", text: \"{x}\"}
  i: {uri: \"h:{x}\", args: {y: {type: strnig}}, text: \"{z}\"}
  j: {uri: \"h:{x}\", file: \"../{x}\"}
  k: {uri: \"k:{x}\", run: [ls, \"{x}\"], timeout: 2m}
  l: {uri: \"l:{x}\", run: [sh, -c, \"ls {x}\"]}
prompts:
  bad name: {text: x}
  m: {args: {x: {enum: [a], default: b}, y: {complete: 5}}, text: \"{x}\"}
  n: {args: {whom: {}}, file: ask.md}
  o: {messages: [{role: me, text: x}, {resource: \"s:///none\"}, {image: ask.md}]}
  p: {args: {x: {pattern: \"(\"}}, text: \"{x}\"}
";
    let problems = problems(&folder, text);
    let found: Vec<_> = problems.list().iter().map(|p| (p.line, p.column, p.rule)).collect();
    assert_eq!(
        found,
        [
            (3, 15, "icon"),
            (4, 10, "value-kind"),
            (6, 12, "resource-uri"),
            (7, 38, "priority"),
            (8, 12, "resource-uri-unique"),
            (8, 25, "missing-source"),
            (9, 28, "glob"),
            (10, 12, "resource-uri-unique"),
            (10, 46, "value-kind"),
            (11, 12, "fetched-uri"),
            (11, 41, "program"),
            (12, 16, "unknown-key"),
            (12, 29, "unknown-key"),
            (14, 12, "uri-template"),
            (15, 12, "unused-argument"),
            (15, 28, "variable"),
            (15, 38, "value-kind"),
            (15, 55, "unknown-placeholder"),
            (16, 12, "uri-template-unique"),
            (16, 27, "source-path"),
            (17, 32, "option-value"),
            (17, 48, "duration"),
            (18, 35, "dynamic-script"),
            (20, 3, "prompt-name"),
            (21, 38, "default-value"),
            (21, 42, "unused-argument"),
            (21, 56, "value-kind"),
            (22, 31, "prompt-file"),
            (23, 25, "value-kind"),
            (23, 72, "media-type"),
            (24, 14, "schema-valid")
        ],
        "{}",
        render(&problems, false)
    );
}

#[test]
fn a_surface_of_resources_alone_is_legal() {
    let folder = Folder::new("alone");
    let text = "surface: s\nversion: 1.0.0\ndescription: D\nwebsite: https://example.com\nicons: [{src: \"https://example.com/a.png\", sizes: any}]\nresources: {a: {text: x}}\n";
    let loaded = load(&folder.file("surface.yaml", text));
    assert!(loaded.warnings.is_empty() && loaded.tools.is_empty());
    let identity = &loaded.parts.identity;
    assert_eq!(
        (identity.description.as_deref(), identity.website.as_deref()),
        (Some("D"), Some("https://example.com"))
    );
    assert_eq!(identity.icons[0].sizes, ["any"]);
    assert_eq!(Catalog::build(loaded.parts).unwrap().resources()[0].uri, "s:///a");
}

#[test]
fn a_tool_says_how_its_calls_may_become_tasks() {
    let folder = Folder::new("tasks");
    let tool = |task: &str| format!("surface: s\nversion: 1.0.0\ntools: {{t: {{description: x, run: [ls]{task}}}}}\n");
    for (task, expected) in [
        ("", TaskSupport::Forbidden),
        (", task: forbidden", TaskSupport::Forbidden),
        (", task: optional", TaskSupport::Optional),
        (", task: required", TaskSupport::Required),
    ] {
        assert_eq!(load(&folder.file("surface.yaml", tool(task))).parts.tools[0].task, expected);
    }
    let bad = problems(&folder, tool(", task: optionl"));
    assert_eq!((bad.list()[0].rule, bad.list()[0].suggestion.as_deref()), ("value-kind", Some("optional")));
}

#[cfg(unix)]
#[test]
fn what_is_no_plain_file_is_refused_without_blocking() {
    let folder = Folder::new("fifo");
    let fifo = folder.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [fifo.as_path(), Path::new("/dev/zero"), Path::new("/dev/stdin"), folder.0.as_path()] {
        let problems = Surface::load(path).unwrap_err();
        assert!(problems.list()[0].rule.starts_with("file-"), "{problems}");
        assert!(render(&problems, false).contains(&path.display().to_string()));
    }
}

#[test]
fn a_remedy_says_what_to_write() {
    let folder = Folder::new("remedies");
    let remedies = |text: &str| -> Vec<String> {
        problems(&folder, text).list().iter().map(|p| format!("{}: {}", p.message, p.remedy)).collect()
    };
    let tool = |more: &str| format!("surface: s\nversion: 1.0.0\ntools:\n  t:\n    description: x\n    {more}\n");
    let number = "args: {n: {type: number, minimum: 0.5}}\n    run: [ls, \"x{n}\"]";
    let variable = twodoor::core::process::CALL_VARIABLE;
    for (more, said) in [
        ("run: [ls -l]".to_owned(), "write [ls, -l]"),
        ("run: []".to_owned(), "`run` is empty: name a program"),
        ("run: [no such program]".to_owned(), "install it"),
        (number.to_owned(), "use a whole number, or leave the bound out"),
        (format!("run: [ls]\n    env: [{variable}]"), "set by the server"),
    ] {
        let found = remedies(&tool(&more));
        assert!(found.len() == 1 && found[0].contains(said), "{more}: {found:?}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn a_damaged_file_is_answered_and_every_problem_lies_in_it(
        at in 0usize..5000,
        cut in proptest::bool::ANY,
        change in "[ -~\\n\\t\u{e9}]{0,3}",
    ) {
        let text = include_str!("../examples/git.yaml");
        let at = text.floor_char_boundary(at.min(text.len()));
        let (before, after) = text.split_at(at);
        let damaged = format!("{before}{change}{}", if cut { "" } else { after });
        let folder = Folder::new("damaged");
        let problems = problems(&folder, &damaged);
        let lines = damaged.lines().count().max(1) + 1;
        for problem in problems.list() {
            proptest::prop_assert!((1..=lines).contains(&problem.line), "{problem:?}");
            proptest::prop_assert!(damaged.get(problem.bytes.clone()).is_some(), "{problem:?}");
        }
        let _ = render(&problems, true);
    }
}
