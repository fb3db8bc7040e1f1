//! Resources, templates and prompts of surface files: what clients see of them, and what they are given.

// Helpers of tests fail by panicking, as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tokio::time::{Duration, timeout};
use twodoor::core::Router;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::{
    Audience, Block, Body, Caller, Catalog, ClientCapabilities, Completes, Completing, Invocation, Invoke as _, Notice,
    Operation, Outcome, Piece, Principal, Reference, Revision, Role,
};
use twodoor::surface::LoadedSurface;

mod folder;

use folder::{Folder, load};

/// Somebody who stays.
struct Peer;

impl Caller for Peer {
    fn notify(&self, _: Notice) {}
    fn is_gone(&self) -> bool {
        false
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// A surface as it is served.
struct Served {
    catalog: Arc<Catalog>,
    router: Router,
}

impl Served {
    fn new(loaded: LoadedSurface) -> Self {
        let router =
            Router::new(loaded.tools).with_resources(loaded.resources, loaded.templates).with_prompts(loaded.prompts);
        Self { catalog: Arc::new(Catalog::build(loaded.parts).unwrap()), router }
    }

    async fn carry_out(&self, operation: Operation) -> Outcome {
        let invocation = Invocation {
            catalog: Arc::clone(&self.catalog),
            operation,
            answers: Vec::new(),
            state: None,
            principal: Principal::LOCAL,
            revision: Revision::MODERN,
            client: ClientCapabilities::default(),
        };
        let outcome = timeout(Duration::from_secs(60), self.router.invoke(Arc::new(invocation), Arc::new(Peer))).await;
        outcome.expect("it does not hang")
    }

    /// Reads as the protocol does: what the catalog does not know is not found.
    async fn read(&self, uri: &str) -> Outcome {
        match self.catalog.find(uri) {
            Some(found) => self.carry_out(Operation::Read { uri: uri.into(), found }).await,
            None => Outcome::NotFound,
        }
    }

    /// `TYPE TEXT`, or how it went otherwise.
    async fn told(&self, uri: &str) -> String {
        match self.read(uri).await {
            Outcome::Read(contents) => {
                assert_eq!((contents.len(), contents[0].uri.as_str()), (1, uri));
                let mime_type = contents[0].mime_type.clone().unwrap_or_default();
                match &contents[0].body {
                    Body::Text(text) => format!("{mime_type} {text}"),
                    Body::Blob(bytes) => format!("{mime_type} {} bytes", bytes.len()),
                }
            }
            Outcome::NotFound => "not found".to_owned(),
            Outcome::Failed(content) => format!("failed: {}", content.plain_text()),
            other => panic!("{other:?}"),
        }
    }

    async fn prompt(&self, name: &str, arguments: &[(&str, &str)]) -> Outcome {
        let arguments = arguments.iter().map(|(name, value)| ((*name).into(), (*value).to_owned())).collect();
        self.carry_out(Operation::Prompt { name: name.into(), arguments }).await
    }

    async fn said(&self, name: &str, arguments: &[(&str, &str)]) -> Vec<String> {
        match self.prompt(name, arguments).await {
            Outcome::Prompted(prompted) => {
                prompted.messages.iter().map(|m| format!("{}: {}", m.role.name(), shown(&m.block))).collect()
            }
            Outcome::Refused(why) => vec![format!("refused: {why}")],
            Outcome::Failed(content) => vec![format!("failed: {}", content.plain_text())],
            other => panic!("{other:?}"),
        }
    }

    async fn suggested(&self, template: &str, argument: &str, typed: &str) -> Vec<String> {
        let completing = Completing {
            of: Reference::Template(template.into()),
            argument: argument.into(),
            typed: typed.to_owned(),
            context: Vec::new(),
        };
        match self.carry_out(Operation::Complete(completing)).await {
            Outcome::Completed(completion) => completion.values,
            other => panic!("{other:?}"),
        }
    }
}

fn shown(block: &Block) -> String {
    match &block.piece {
        Piece::Text(text) => text.clone(),
        Piece::Image { data, mime_type } | Piece::Audio { data, mime_type } => {
            format!("{} bytes of {mime_type}", data.len())
        }
        Piece::Resource(contents) => match &contents.body {
            Body::Text(text) => format!("[{}] {text}", contents.uri),
            Body::Blob(bytes) => format!("[{}] {} bytes", contents.uri, bytes.len()),
        },
        Piece::Link(link) => format!("-> {} ({})", link.uri, link.name),
    }
}

fn serve(folder: &Folder, text: &str) -> Served {
    Served::new(load(&folder.file("surface.yaml", format!("surface: s\nversion: 1.0.0\nroot: in\n{text}"))))
}

/// A folder `in` beside a secret.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(&format!("read-{name}"));
    fs::create_dir_all(folder.0.join("in/docs/guide")).unwrap();
    fs::create_dir_all(folder.0.join("in/docs/.git")).unwrap();
    folder.file("secret", "secret");
    for (path, text) in [
        ("in/README.md", "# Read\r\nme\u{e0041}\n"),
        ("in/docs/a.md", "a"),
        ("in/docs/b b.txt", "b"),
        ("in/docs/guide/c.md", "c"),
        ("in/docs/.env", "TOKEN=secret"),
        ("in/docs/.git/config", "secret"),
    ] {
        folder.file(path, text);
    }
    symlink("../../secret", folder.0.join("in/docs/out.md")).unwrap();
    symlink("../..", folder.0.join("in/docs/up")).unwrap();
    folder
}

#[tokio::test]
async fn every_kind_of_resource_is_listed_and_read() {
    let folder = folder("kinds");
    let served = serve(
        &folder,
        "resources:
  readme:
    title: Read me
    description: First.
    file: README.md
    audience: user
    priority: 0.5
    icons: [{src: \"https://example.com/a.png\"}]
    meta: {com.example/x: 1}
  docs: { uri: \"docs:\", folder: docs, match: [\"*.md\", \"guide/*\"] }
  motd: { text: \"Hello {you}\", mime_type: text/x-greeting }
  status: { run: [printf, \"one\\ntwo\"], timeout: 5s }
  data: { run: [printf, '{{\"b\": 1}}'], output: json }
  long: { run: [printf, abcdefgh], cap: 4 }
  none: { run: [sh, -c, exit 3], missing_codes: [3] }
  bad: { run: [sh, -c, \"echo why >&2; exit 4\"] }
  slow: { run: [sleep, 30], timeout: 50ms }
",
    );
    let catalog = &served.catalog;
    let listed: Vec<_> =
        catalog.resources().iter().map(|r| (r.uri.as_str(), r.name.as_str(), r.mime_type.as_deref())).collect();
    assert_eq!(
        listed,
        [
            ("s:///readme", "readme", Some("text/markdown")),
            ("docs:a.md", "a.md", Some("text/markdown")),
            ("docs:guide/c.md", "guide/c.md", Some("text/markdown")),
            ("s:///motd", "motd", Some("text/x-greeting")),
            ("s:///status", "status", Some("text/plain")),
            ("s:///data", "data", Some("application/json")),
            ("s:///long", "long", Some("text/plain")),
            ("s:///none", "none", Some("text/plain")),
            ("s:///bad", "bad", Some("text/plain")),
            ("s:///slow", "slow", Some("text/plain")),
        ]
    );
    let first = &catalog.resources()[0];
    let audience = Audience { audience: vec![Role::User], priority: Some(0.5), last_modified: None };
    assert_eq!(
        (first.title.as_deref(), first.description.as_deref(), &first.audience),
        (Some("Read me"), Some("First."), &audience)
    );
    assert_eq!(first.icons[0].src, "https://example.com/a.png");
    assert_eq!(first.meta.as_ref().unwrap().to_text(), r#"{"com.example/x":1}"#);
    let templates: Vec<&str> = catalog.templates().map(|t| t.uri_template.as_str()).collect();
    assert_eq!(templates, ["docs:{+path}"]);
    fs::write(folder.0.join("in/docs/late.md"), "late").unwrap();
    for (uri, told) in [
        ("s:///readme", "text/markdown # Read\nme\n"),
        ("docs:a.md", "text/markdown a"),
        ("docs:guide/c.md", "text/markdown c"),
        ("docs:late.md", "text/markdown late"),
        ("docs:guide%2Fc.md", "text/markdown c"),
        ("docs:b%20b.txt", "not found"),
        ("s:///motd", "text/x-greeting Hello {you}"),
        ("s:///status", "text/plain one\ntwo"),
        ("s:///data", "application/json {\"b\":1}"),
        ("s:///long", "text/plain abcd\n[cut: 4 of 8 bytes shown; long takes no argument that narrows it]\n"),
        ("s:///none", "not found"),
        ("s:///bad", "failed: sh failed with exit code 4\nstderr:\nwhy"),
        ("s:///slow", "failed: slow did not end within 0.05 s and was stopped: try again later"),
        ("s:///gone", "not found"),
    ] {
        assert_eq!(served.told(uri).await, told, "{uri}");
    }
}

#[tokio::test]
async fn no_address_leads_out_of_the_folder_or_to_what_is_out_of_sight() {
    let folder = folder("out");
    let served = serve(
        &folder,
        "resources:\n  docs: { uri: \"docs:\", folder: docs }\ntemplates:\n  one: { uri: \"one:{x}\", file: \"docs/{x}\" }
  deep: { uri: \"deep:{+x}\", file: \"{x}\" }\n",
    );
    assert_eq!(served.told("docs:a.md").await, "text/markdown a");
    assert_eq!(served.told("one:a.md").await, "text/markdown a");
    assert_eq!(served.told("deep:docs/guide/c.md").await, "text/markdown c");
    let long = "a/".repeat(4000);
    let name = "n".repeat(300);
    for path in [
        "..",
        "../secret",
        "../../secret",
        "guide/../../../secret",
        "%2e%2e%2fsecret",
        "%2e%2e/%2e%2e/secret",
        "..%2f..%2fsecret",
        "%252e%252e%252fsecret",
        "..%5c..%5csecret",
        "..\\..\\secret",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        "//etc/passwd",
        "file:///etc/passwd",
        "out.md",
        "up/secret",
        "up",
        ".env",
        "%2eenv",
        "./a.md",
        ".git/config",
        "guide/../.env",
        "a.md%00.txt",
        "a.md%",
        "%ff%fe",
        "a.md/below",
        "guide",
        "guide/",
        "",
        "a.md#x",
        "a.md?x",
        &name,
        &long,
        &"x".repeat(64 * 1024),
    ] {
        for base in ["docs:", "one:", "deep:docs/", "deep:"] {
            assert_eq!(served.told(&format!("{base}{path}")).await, "not found", "{base}{path}");
        }
    }
    // A variable of one segment stays one, however the slash is written.
    assert_eq!(served.told("one:guide%2Fc.md").await, "not found");
    assert_eq!(served.told("docs:guide%2Fc.md").await, "text/markdown c");
    for typed in ["", "..", "../", "/", "/etc/", ".", ".git/", "up/", "guide/../../"] {
        let suggested = served.suggested("docs:{+path}", "path", typed).await;
        let expected: &[&str] = if typed.is_empty() { &["a.md", "b b.txt", "guide/"] } else { &[] };
        assert_eq!(suggested, expected, "{typed}");
    }
    assert_eq!(served.suggested("docs:{+path}", "path", "guide/").await, ["guide/c.md"]);
    assert_eq!(served.suggested("one:{x}", "x", "A").await, ["a.md"]);
}

#[tokio::test]
async fn what_is_no_plain_file_any_more_is_never_waited_for() {
    let folder = folder("special");
    let inside = folder.0.join("in");
    let names =
        ["fifo", "socket", "folder", "gone", "link", "device", "empty", "binary", "nul", "large", "exact", "closed"];
    for name in names {
        fs::write(inside.join(name), "x").unwrap();
    }
    let lines: String = names.iter().map(|name| format!("  {name}: {{ file: {name}, cap: 1KiB }}\n")).collect();
    let served = serve(&folder, &format!("resources:\n{lines}"));
    for name in ["fifo", "socket", "folder", "gone", "link", "device"] {
        assert_eq!(served.told(&format!("s:///{name}")).await, "text/plain x");
        fs::remove_file(inside.join(name)).unwrap();
    }
    assert!(Command::new("mkfifo").arg(inside.join("fifo")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(inside.join("socket")).unwrap();
    fs::create_dir(inside.join("folder")).unwrap();
    symlink("../secret", inside.join("link")).unwrap();
    symlink("/dev/zero", inside.join("device")).unwrap();
    fs::write(inside.join("empty"), "").unwrap();
    fs::write(inside.join("binary"), [0xff, 0x00, 0xfe]).unwrap();
    fs::write(inside.join("nul"), "a\0b").unwrap();
    fs::write(inside.join("large"), "x".repeat(1025)).unwrap();
    fs::write(inside.join("exact"), "x".repeat(1024)).unwrap();
    fs::set_permissions(inside.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    for (name, told) in [
        ("fifo", "not found"),
        ("socket", "not found"),
        ("folder", "not found"),
        ("gone", "not found"),
        ("link", "not found"),
        ("device", "not found"),
        ("empty", "text/plain "),
        ("binary", "application/octet-stream 3 bytes"),
        ("nul", "application/octet-stream 3 bytes"),
        (
            "large",
            "failed: the file has 1025 bytes, more than the 1024 that are read: the operator can raise its `cap`",
        ),
    ] {
        assert_eq!(served.told(&format!("s:///{name}")).await, told, "{name}");
    }
    assert!(served.told("s:///exact").await.ends_with('x'));
    let closed = served.told("s:///closed").await;
    // Whoever runs as the superuser is let in.
    assert!(
        closed == "text/plain x" || closed.starts_with("failed: the file cannot be read by this server"),
        "{closed}"
    );
    fs::remove_dir_all(&inside).unwrap();
    for name in names {
        let told = served.told(&format!("s:///{name}")).await;
        assert!(told == "not found" || told.starts_with("failed"), "{told}");
        assert!(!told.contains("read-special"), "a path of ours is told: {told}");
    }
}

#[tokio::test]
async fn a_template_is_read_for_the_values_that_fit() {
    let folder = folder("values");
    fs::create_dir_all(folder.0.join("in/notes")).unwrap();
    for day in ["2026-01-05", "2026-01-06"] {
        folder.file(&format!("in/notes/{day}.md"), day);
    }
    folder.file("in/notes/other.md", "other");
    let served = serve(
        &folder,
        "templates:
  day:
    uri: \"day:{day}\"
    args: { day: { pattern: \"^[0-9-]+$\" } }
    file: \"notes/{day}.md\"
  sum:
    uri: \"sum:{a}/{b}\"
    args: { a: { type: integer, minimum: 0, complete: [\"1\", \"2\"] }, b: { type: integer, enum: [3, 4] } }
    run: [expr, \"{a}\", +, \"{b}\"]
  size:
    uri: \"size:{+path}\"
    args: { path: { as: path } }
    run: [wc, -c, --, \"{path}\"]
    missing_codes: [1]
  hello: { uri: \"hello:{name}\", text: \"Hello {name}, {{you}}\" }
",
    );
    for (uri, told) in [
        ("day:2026-01-05", "text/markdown 2026-01-05"),
        ("day:2026-01-07", "not found"),
        ("day:other", "not found"),
        ("sum:1/3", "text/plain 4\n"),
        ("sum:1/5", "not found"),
        ("sum:-1/3", "not found"),
        ("sum:x/3", "not found"),
        ("sum:1,\"c\":2/3", "not found"),
        ("size:docs/a.md", "text/plain 1 docs/a.md\n"),
        ("size:gone", "not found"),
        ("size:../../secret", "not found"),
        ("size:docs/out.md", "not found"),
        ("size:--help", "text/plain"),
        ("hello:%7Bname%7D", "text/plain Hello {name}, {you}"),
        ("hello:a%0Ab", "text/plain Hello a\nb, {you}"),
        ("hello:%1B%5B2J", "text/plain Hello [2J, {you}"),
    ] {
        let found = served.told(uri).await;
        if uri == "size:--help" {
            // A path is what follows `--`, and there is none of that name.
            assert_eq!(found, "not found");
            continue;
        }
        assert_eq!(found, told, "{uri}");
    }
    assert_eq!(served.suggested("day:{day}", "day", "").await, ["2026-01-05", "2026-01-06"]);
    let completes: Vec<Completes> =
        served.catalog.templates().flat_map(|t| t.completes.iter().map(|(_, completes)| completes.clone())).collect();
    let of = |values: [&str; 2]| Completes::Of(values.map(str::to_owned).to_vec());
    assert_eq!(completes, [Completes::Backend, of(["1", "2"]), of(["3", "4"]), Completes::Nothing, Completes::Nothing]);
}

#[tokio::test]
async fn a_prompt_says_what_was_written_with_the_values_in_it() {
    let folder = folder("prompts");
    folder.file("in/ask.md", "Ask {who} about {{braces}}.");
    folder.file("in/dot.png", [0x89, b'P', b'N', b'G']);
    let served = serve(
        &folder,
        "resources:
  docs: { uri: \"docs:\", folder: docs }
  motd: { text: Hello }
prompts:
  review:
    title: Review
    description: Reviews.
    args:
      path: { description: Which., required: true, complete: [a.md] }
      tone: { enum: [kind, strict], default: kind }
      note: { maxLength: 20 }
    text: \"Review {path} in a {tone} tone.{note}\"
  ask: { args: { who: }, file: ask.md }
  all:
    args: { path: { required: true } }
    messages:
      - { role: assistant, text: \"Look.\" }
      - { resource: \"docs:{path}\" }
      - { link: \"s:///motd\" }
      - { image: dot.png }
",
    );
    let review = &served.catalog.prompts()[0];
    assert_eq!((review.title.as_deref(), review.description.as_deref()), (Some("Review"), Some("Reviews.")));
    let arguments: Vec<_> = review.arguments.iter().map(|a| (a.name.as_str(), a.required, &a.completes)).collect();
    let (path, tones) = (Completes::Of(vec!["a.md".into()]), Completes::Of(vec!["kind".into(), "strict".into()]));
    assert_eq!(arguments, [("path", true, &path), ("tone", false, &tones), ("note", false, &Completes::Nothing)]);
    for (arguments, said) in [
        (&[("path", "a")][..], "user: Review a in a kind tone."),
        (&[("path", "{tone}{{"), ("tone", "strict")], "user: Review {tone}{{ in a strict tone."),
        (&[("path", ""), ("note", " x\u{1b}y")], "user: Review  in a kind tone. xy"),
    ] {
        assert_eq!(served.said("review", arguments).await, [said]);
    }
    for bad in
        [&[("path", "a"), ("tone", "rude")][..], &[("path", "a"), ("note", "a note that is longer than it may be")]]
    {
        assert!(served.said("review", bad).await[0].starts_with("refused: the arguments of review do not fit:"));
    }
    assert_eq!(served.said("ask", &[("who", "Ann")]).await, ["user: Ask Ann about {braces}."]);
    assert_eq!(served.said("ask", &[]).await, ["user: Ask  about {braces}."]);
    assert_eq!(
        served.said("all", &[("path", "guide/c.md")]).await,
        ["assistant: Look.", "user: [docs:guide/c.md] c", "user: -> s:///motd (motd)", "user: 4 bytes of image/png"]
    );
    for path in ["../README.md", ".env", "gone", "%2e%2e/README.md", "/etc/passwd", "out.md", "a.md#x"] {
        let said = served.said("all", &[("path", path)]).await;
        assert!(said[0].starts_with("refused: there is no resource docs:"), "{path}: {said:?}");
    }
    fs::write(folder.0.join("in/ask.md"), "Now {who}!").unwrap();
    assert_eq!(served.said("ask", &[("who", "Ann")]).await, ["user: Now Ann!"]);
    fs::write(folder.0.join("in/ask.md"), "A { brace").unwrap();
    assert!(matches!(served.prompt("ask", &[]).await, Outcome::Defect { .. }));
    fs::remove_file(folder.0.join("in/ask.md")).unwrap();
    assert_eq!(
        served.said("ask", &[]).await,
        ["failed: a file of this prompt cannot be read: the operator's log has the cause"]
    );
}

#[tokio::test]
async fn a_value_that_is_asked_for_often_does_not_fill_the_memory() {
    let folder = folder("amplified");
    let text = "{a}".repeat(10_000);
    let served = serve(
        &folder,
        &format!("prompts:\n  p: {{ args: {{ a: }}, messages: [{{ text: \"{text}\" }}, {{ text: \"{text}\" }}] }}\n"),
    );
    assert_eq!(served.said("p", &[("a", "x")]).await.len(), 2);
    for value in ["x".repeat(1_000_000), "x".repeat(100)] {
        assert!(served.said("p", &[("a", &value)]).await[0].starts_with("refused: the prompt would be longer than"));
    }
}

#[tokio::test]
async fn the_notes_example_works() {
    let example = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/notes.yaml"));
    assert!(example.warnings.is_empty(), "{}", example.warnings);
    let served = Served::new(example);
    assert!(served.told("notes:///welcome").await.starts_with("text/markdown # Notes"));
    assert_eq!(served.told("notes:day/2026-01-05").await, served.told("notes:all/days/2026-01-05.md").await);
    assert_eq!(served.told("notes:day/2026-01-04").await, "not found");
    assert!(served.told("notes:///count").await.trim_end().ends_with('4'));
    assert_eq!(served.suggested("notes:day/{day}", "day", "2026-01-").await, ["2026-01-05", "2026-01-06"]);
    let said = served.said("review", &[("day", "2026-01-06"), ("tone", "strict")]).await;
    assert!(said[0].starts_with("user: Review the note of 2026-01-06 in a strict tone."), "{said:?}");
    assert!(said[1].contains("Buy hinges"), "{said:?}");
}
