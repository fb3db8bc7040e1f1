//! Every transcript of `tests/wire/`, played every way that it can be; `BLESS=1` rewrites what the server says.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use support::play::{bless, failures, open, play};
use support::transcript::{Client, Legacy, Said, Transcript, Way, read_all};
use support::world::PATIENCE;
use twodoor::protocol::{Era, Revision};

static TRANSCRIPTS: LazyLock<Vec<Transcript>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let only = std::env::var("ONLY").unwrap_or_default();
    let runtime = runtime();
    let named = |t: &Transcript| only.split(',').any(|only| t.name().contains(only));
    let chosen = |all: Vec<Transcript>| all.into_iter().filter(named).collect();
    let transcripts: Vec<Transcript> = chosen(read_all(&root));
    if std::env::var_os("BLESS").is_none() {
        return transcripts;
    }
    for transcript in transcripts.iter().filter(|t| t.pending.is_none()) {
        bless(transcript, runtime.handle()).unwrap_or_else(|problem| panic!("{}: {problem}", transcript.name()));
    }
    chosen(read_all(&root))
});

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn play_all(way: Way) {
    let runtime = runtime();
    let played = TRANSCRIPTS.iter().filter(|t| t.ways.contains(&way));
    let failed: Vec<String> = played.flat_map(|t| failures(t, way, runtime.handle())).collect();
    assert!(failed.is_empty(), "{} transcripts differ\n\n{}\n", failed.len(), failed.join("\n\n"));
}

#[test]
fn every_transcript_holds_in_memory() {
    play_all(Way::Memory);
}

#[test]
fn every_transcript_holds_over_pipes() {
    play_all(Way::Pipes);
}

#[test]
fn every_transcript_holds_over_the_binarys_streams() {
    play_all(Way::Binary);
}

#[test]
fn every_transcript_holds_over_http() {
    play_all(Way::Http);
}

#[test]
fn every_legacy_transcript_holds_over_http_with_sse() {
    play_all(Way::Sse);
}

/// Rows and rules that must not be dropped: `(prefix, numbers)`. Not here: what no line on the wire can show, or what
/// other tests show. Of section 9: 22 and 44 are about definitions, 45 and 46 about authorization (`tests/spec9.rs`).
const ROWS: [(&str, &[u32]); 11] = [
    ("S", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]),
    (
        "H",
        &[
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
            30, 31, 32, 33,
        ],
    ),
    ("J", &[1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 17]),
    ("P", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15]),
    ("HDR-", &[6, 7, 8, 9, 10, 11, 12, 13, 14]),
    ("MAT-", &[1, 2, 4, 5, 6, 9, 10, 11, 12, 13, 14, 18]),
    (
        "MOD-",
        &[
            1, 4, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 34, 36,
            37, 38, 39, 40, 41, 44, 45, 46, 47, 48, 49, 50,
        ],
    ),
    ("TOOL-", &[5, 6, 7, 8, 10, 11, 13, 14]),
    ("HTL-", &[1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 15, 16, 19, 20, 21]),
    ("TSK-", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 17, 18]),
    (
        "9.",
        &[
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 30,
            31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 47, 48, 49, 50,
        ],
    ),
];

#[test]
fn every_row_is_cited_by_a_transcript() {
    if std::env::var_os("ONLY").is_some() {
        return;
    }
    let cited: BTreeSet<&str> = TRANSCRIPTS.iter().flat_map(|t| &t.rows).map(String::as_str).collect();
    let name = |prefix: &str, number: &u32| {
        if prefix.ends_with('-') { format!("{prefix}{number:02}") } else { format!("{prefix}{number}") }
    };
    let rows = ROWS.iter().flat_map(|(prefix, numbers)| numbers.iter().map(|number| name(prefix, number)));
    let missing: Vec<_> = rows.filter(|row| !cited.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "no transcript cites {missing:?}");
    // An invented citation would look like a check that is not there.
    let known = [
        "S", "H", "J", "P", "X", "9.", "HDR-", "NEG-", "MAT-", "MOD-", "HTC-", "HTL-", "HTM-", "STD-", "SSE-", "TOOL-",
        "TSK-", "TSKD-", "EXT-",
    ];
    let is_row = |row: &str| {
        known.iter().any(|prefix| {
            row.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let invented: Vec<_> = cited.iter().filter(|row| !is_row(row)).collect();
    assert!(invented.is_empty(), "no such rows: {invented:?}");
}

fn transcript(text: &str) -> Transcript {
    Transcript::read(Path::new("inline/test.txt"), &format!("Inline.\nrows: S5\nspec: none\n{text}")).unwrap()
}

#[test]
fn a_transcript_that_does_not_hold_is_reported_with_what_was_expected_and_what_came() {
    let runtime = runtime();
    let ping = r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let table = [
        (format!("{ping}\n< {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{}}}}"), "expected:   < {"),
        (format!("{ping}\n< {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"x\":\"$any\"}}}}"), "got:        < {"),
        (ping.to_owned(), "unexpected: < {"),
        (
            format!("session: 2025-11-25\n{ping}\n{ping}\n< {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}"),
            "unexpected: < {",
        ),
    ];
    for (text, report) in table {
        let transcript = transcript(&text);
        for way in [Way::Memory, Way::Pipes, Way::Sse] {
            let told = play(&transcript, way, Legacy::Sessions, runtime.handle()).expect_err(&text);
            assert!(told.contains(report) && told.contains(ping) && told.contains("inline/test.txt"), "{told}");
        }
    }
    let statuses = [
        ("< 401\n< {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"$any\"}", "expected:   < 401"),
        ("< 400\n", "expected:   < 400"),
        ("< 400 sid=$any\n< {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"$any\"}", "got:        < 400"),
        ("< 400 stream\n< {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"$any\"}", "got:        < 400"),
    ];
    for (said, report) in statuses {
        let transcript = transcript(&format!("> POST\n{ping}\n{said}"));
        let told = play(&transcript, Way::Http, Legacy::Sessions, runtime.handle()).expect_err(said);
        assert!(told.contains(report), "{told}");
    }
    let right = transcript(&format!("> POST\n{ping}\n< 400\n< {{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"$any\"}}"));
    assert_eq!(play(&right, Way::Http, Legacy::Sessions, runtime.handle()), Ok(()));
}

/// What a client of a revision receives as its opening and as its list of tools.
fn opening_and_list(way: Way, revision: Revision, runtime: &tokio::runtime::Handle) -> (String, String) {
    let any = transcript(r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let mut player = open(&any, way, Legacy::Sessions, runtime);
    let mut ask = |text: String| {
        player.play(&Client::Send(text)).unwrap();
        match player.listen(PATIENCE) {
            Said::Message(text) => text,
            other => panic!("{other}"),
        }
    };
    let claim = format!(
        r#""params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}"#
    );
    let (open, list) = match revision.era() {
        Era::Modern => (
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover",{claim}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list",{claim}}}"#),
        ),
        Era::Legacy => (
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
            ),
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#.to_owned(),
        ),
    };
    let both = (ask(open), ask(list));
    assert!(player.finish().unwrap().is_empty());
    both
}

#[derive(serde::Deserialize)]
struct List {
    result: ListResult,
}

#[derive(serde::Deserialize)]
struct ListResult {
    tools: Box<RawValue>,
}

#[test]
fn clients_of_every_revision_receive_the_same_bytes_and_the_digest_of_what_they_received() {
    let runtime = runtime();
    for way in Way::ALL {
        let mut received = BTreeSet::new();
        for revision in Revision::ALL.into_iter().filter(|r| way != Way::Sse || r.era() == Era::Legacy) {
            let (opening, list) = opening_and_list(way, revision, runtime.handle());
            let digest = |text: &str| {
                let value: Value = serde_json::from_str(text).unwrap();
                value["result"]["_meta"]["dev.twodoor/toolsDigest"].as_str().map(str::to_owned)
            };
            let tools = serde_json::from_str::<List>(&list).unwrap().result.tools;
            // The map of the JSON library is sorted, and its text is compact: the sorted-key form.
            let canonical = serde_json::from_str::<Value>(tools.get()).unwrap().to_string();
            let hex: String = Sha256::digest(canonical.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
            let recomputed = Some(format!("sha256:{hex}"));
            assert_eq!(digest(&opening), recomputed, "{revision} over {}: {opening}", way.name());
            assert_eq!(digest(&list), recomputed, "{revision} over {}", way.name());
            received.insert(tools.get().to_owned());
        }
        assert_eq!(received.len(), 1, "over {}, the tools differ by revision: {received:#?}", way.name());
    }
}
