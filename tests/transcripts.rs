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

use std::path::Path;
use std::sync::LazyLock;

use support::play::{bless, play};
use support::transcript::{Transcript, Way, read_all};

static TRANSCRIPTS: LazyLock<Vec<Transcript>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let only = std::env::var("ONLY").unwrap_or_default();
    let runtime = runtime();
    let chosen = |all: Vec<Transcript>| all.into_iter().filter(|t| t.name().contains(&only)).collect();
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
    let mut failed = Vec::new();
    for transcript in TRANSCRIPTS.iter().filter(|t| t.ways.contains(&way)) {
        for legacy in &transcript.legacy {
            let played = play(transcript, way, *legacy, runtime.handle());
            match (&transcript.pending, played) {
                (None, Err(report)) => failed.push(report),
                (Some(why), Ok(())) => {
                    failed.push(format!("{} passes now: take out `pending: {why}`", transcript.name()));
                }
                (None, Ok(())) | (Some(_), Err(_)) => {}
            }
        }
    }
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
fn every_transcript_holds_over_http() {
    play_all(Way::Http);
}
