//! `twodoor verify`: whether a server delivers what was reviewed.
//!
//! Promises: what counts is the digest that is recomputed here from the list as delivered, all pages; what a server
//! publishes about itself is remarked on and decides nothing.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};
use twodoor::client::Target;
use twodoor::protocol::digest::{self, Foreign};
use twodoor::protocol::json::visible;
use twodoor::protocol::{CatalogParts, Comparison, Digest, Era, Json, Revision, compare};
use twodoor::surface::lock::Lock;

use super::listed::{self, Held, Place, Received, Stop};
use super::{diff, exit, show, target};

/// Holds the tools of a server against what was reviewed
#[derive(clap::Args)]
#[command(
    after_help = "TARGET is a URL, or a command line in one word; a command may also follow --. EXPECTED is sha256:… and 64 hex \
    digits, a registry's server.json, a lock, a surface file, or a saved tools/list answer.\n\n\
    Exits with 0 if the tools are the same, with 1 if they drifted, with 2 if that cannot be told. The digest is recomputed \
    from the list as delivered; what the server says of itself decides nothing.\n\n\
    Examples:\n  twodoor verify http://127.0.0.1:8484/mcp ops.lock\n  twodoor verify \"npx some-server\" sha256:…\n  \
    twodoor verify server.json -- twodoor serve ops.yaml"
)]
pub(crate) struct Verify {
    /// TARGET and EXPECTED; EXPECTED alone if a command follows --
    #[arg(value_name = "TARGET EXPECTED", num_args = 1..=2, required = true)]
    words: Vec<String>,
    /// A command that serves stdio
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Which door to open
    #[arg(long, value_enum, default_value_t = Doors::Auto)]
    era: Doors,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Doors {
    /// The modern door, and the legacy door of a server that has no other
    Auto,
    /// The modern door
    Modern,
    /// The legacy door
    Legacy,
}

impl Doors {
    fn era(self) -> Option<Era> {
        match self {
            Self::Auto => None,
            Self::Modern => Some(Era::Modern),
            Self::Legacy => Some(Era::Legacy),
        }
    }
}

impl Verify {
    pub(crate) fn run(self) -> ExitCode {
        let (server, expected) = match self.read() {
            Ok(read) => read,
            Err(stop) => {
                stop.show();
                return exit::usage();
            }
        };
        let received = target::attended("listing the tools", listed::receive(&server, self.era.era()));
        match received {
            Some(Ok(received)) => Report::of(server.shown(), &expected, received).show(self.json),
            Some(Err(stop)) => {
                stop.show();
                exit::usage()
            }
            None => {
                show::error("the verification was interrupted", "run it again, and let it end");
                exit::usage()
            }
        }
    }

    fn read(&self) -> Result<(Target, Expected), Stop> {
        let usage =
            |problem: &str| Stop::Said(problem.to_owned(), "give TARGET EXPECTED, or EXPECTED -- COMMAND".to_owned());
        let (server, expected) = match (self.words.as_slice(), self.command.as_slice()) {
            ([word, expected], []) => (Place::read("verify", word)?, expected),
            ([expected], [_, ..]) => (Place::command("verify", &self.command)?, expected),
            ([_], []) => return Err(usage("there is nothing to hold the server against")),
            _ => return Err(usage("there are two servers")),
        };
        match server {
            Place::Server(server) => Ok((server, Expected::read(expected)?)),
            _ => Err(usage("TARGET is no server: a URL, or a command line in one word")),
        }
    }
}

/// What was reviewed.
enum Expected {
    Digests(Vec<Digest>),
    Lock(Lock),
    Surface(Box<CatalogParts>),
    List(Vec<Json>),
}

impl Expected {
    fn read(word: &str) -> Result<Self, Stop> {
        if word.starts_with("sha256:") {
            let digest = word.parse::<Digest>();
            return digest.map(|digest| Self::Digests(vec![digest])).map_err(|error| {
                Stop::Said(error.to_string(), "copy it whole, as `twodoor digest` prints it".to_owned())
            });
        }
        Ok(match listed::hold(Path::new(word))? {
            Held::Entry(digests) => Self::Digests(digests),
            Held::Lock(lock) => Self::Lock(lock),
            Held::Surface(parts) => Self::Surface(parts),
            Held::List(tools) => Self::List(tools),
        })
    }

    /// The definitions as peers of a revision should receive them, where they are known.
    fn tools(&self, revision: Revision) -> Option<Vec<Json>> {
        match self {
            Self::Digests(_) => None,
            Self::Lock(lock) => {
                let same = lock.digest(revision) == lock.digest(Revision::MODERN);
                lock.tools.clone().filter(|_| same)
            }
            Self::Surface(parts) => Some(parts.tools.iter().map(|tool| tool.definition(revision)).collect()),
            Self::List(tools) => Some(tools.clone()),
        }
    }

    /// The digests that will do, in each form.
    fn digests(&self, revision: Revision) -> Vec<Foreign> {
        let both = |digest: &Digest| Foreign { sorted_keys: Some(*digest), rfc8785: Some(*digest) };
        match self {
            Self::Digests(digests) => digests.iter().map(both).collect(),
            Self::Lock(lock) => vec![both(&lock.digest(revision))],
            Self::Surface(_) | Self::List(_) => {
                vec![digest::of_foreign(&Json::Array(self.tools(revision).unwrap_or_default()))]
            }
        }
    }
}

struct Report {
    target: String,
    revision: Revision,
    expected: Vec<Foreign>,
    received: Foreign,
    /// In which form the digests are the same.
    sorted_keys: bool,
    rfc8785: bool,
    changes: Option<Comparison>,
    remarks: Vec<String>,
}

impl Report {
    fn of(target: String, expected: &Expected, received: Received) -> Self {
        let Received { listed, revision, remarks, .. } = received;
        let digests = expected.digests(revision);
        let agree = |a: Option<Digest>, b: Option<Digest>| a.is_some() && a == b;
        let sorted_keys = digests.iter().any(|digest| agree(digest.sorted_keys, listed.digest.sorted_keys));
        let rfc8785 = digests.iter().any(|digest| agree(digest.rfc8785, listed.digest.rfc8785));
        let changes = match (sorted_keys || rfc8785, expected.tools(revision), &listed.tools) {
            (false, Some(old), Some(new)) => Some(compare(&old, new)),
            _ => None,
        };
        Self { target, revision, expected: digests, received: listed.digest, sorted_keys, rfc8785, changes, remarks }
    }

    fn same(&self) -> bool {
        self.sorted_keys || self.rfc8785
    }

    /// The canonical form in which the digests are the same, where the other differs.
    fn form(&self) -> Option<&'static str> {
        match (self.sorted_keys, self.rfc8785) {
            (true, false) => Some("sorted keys"),
            (false, true) => Some("RFC 8785"),
            _ => None,
        }
    }

    fn show(&self, as_json: bool) -> ExitCode {
        // A list without any digest is neither the same nor another.
        let known = self.received.sorted_keys.is_some() || self.received.rfc8785.is_some();
        if as_json {
            show::out(&format!("{:#}\n", self.json(known)));
        } else {
            show::out(&self.text(known));
        }
        match (known, self.same()) {
            (false, _) => exit::usage(),
            (true, true) => ExitCode::SUCCESS,
            (true, false) => exit::differs(),
        }
    }

    fn json(&self, known: bool) -> Value {
        let digest = |digest: &Foreign| {
            let text = |digest: Option<Digest>| digest.map(|digest| digest.to_string());
            json!({ "sortedKeys": text(digest.sorted_keys), "rfc8785": text(digest.rfc8785) })
        };
        json!({
            "target": self.target, "revision": self.revision.name(),
            "verdict": if !known { "cannot-tell" } else if self.same() { "same" } else { "drift" },
            "form": self.form(),
            "expected": self.expected.iter().map(digest).collect::<Vec<_>>(), "digest": digest(&self.received),
            "class": self.changes.as_ref().and_then(Comparison::class),
            "bump": self.changes.as_ref().and_then(Comparison::bump),
            "changes": self.changes.as_ref().map(diff::changes_as_json),
            "more": self.changes.as_ref().map(Comparison::dropped),
            "remarks": self.remarks,
        })
    }

    fn text(&self, known: bool) -> String {
        let mut text = String::new();
        for remark in &self.remarks {
            text.push_str(&format!("note: {}\n", visible(remark.chars())));
        }
        if let Some(changes) = &self.changes {
            text.push_str(&diff::changes_as_text(changes, show::colour_on_stdout()));
        }
        let received = listed::shown(self.received);
        let (target, revision) = (visible(self.target.chars()), self.revision.name());
        if !known {
            return format!("{text}cannot tell: the list of {target} ({revision}) has {received}\n");
        }
        if self.same() {
            let form = self.form().map(|form| format!(", in the form of {form} alone")).unwrap_or_default();
            return format!("{text}same: {target} ({revision}) delivers {received}{form}\n");
        }
        for expected in &self.expected {
            text.push_str(&format!("- {}\n", listed::shown(*expected)));
        }
        format!("{text}+ {received}\ndrift: {target} ({revision}) does not deliver what was expected\n")
    }
}
