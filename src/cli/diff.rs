//! `twodoor diff`: what changed from one list of tools to another, and what version that demands.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use semver::Version;
use serde_json::{Value, json};
use twodoor::protocol::json::visible;
use twodoor::protocol::{Bump, Change, Class, Comparison, compare};
use twodoor::surface::version;

use super::listed::{self, Listed, Place, Stop};
use super::{exit, show, target};

/// Shows every change between two lists of tools, what it means, and the version that it demands
#[derive(clap::Args)]
#[command(
    after_help = "OLD and NEW are each a surface file, a lock, a saved tools/list answer, a URL, REVISION:PATH in git, or a \
    command line in one word; a command may also follow --, then it is NEW. Without OLD it is the lock of NEW.\n\n\
    Changes and the version that they demand:\n  \
    breaking       a caller that relied on OLD may fail: major\n  \
    additive       a caller that relied on OLD can go on: minor\n  \
    wording        what a model reads: patch\n  \
    hints, order   what it need not go by: patch\n\n\
    Exits with 0 if the lists are the same, with 1 if they differ, with 2 if that cannot be told.\n\n\
    Examples:\n  twodoor diff ops.yaml\n  twodoor diff --since origin/main ops.yaml\n  twodoor diff HEAD~1:ops.yaml ops.yaml\n  \
    twodoor diff ops.lock http://127.0.0.1:8484/mcp\n  twodoor diff before.json -- npx some-server"
)]
pub(crate) struct Diff {
    /// OLD and NEW, or NEW alone
    #[arg(value_name = "OLD NEW", num_args = 0..=2)]
    lists: Vec<String>,
    /// A command that serves the new list over stdio
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Compare a surface file with itself at this git revision
    #[arg(long, value_name = "REVISION", conflicts_with = "command")]
    since: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub(crate) fn run(self) -> ExitCode {
        let (old, new) = match self.places() {
            Ok(places) => places,
            Err(stop) => {
                stop.show();
                return exit::usage();
            }
        };
        let read = target::attended("reading both lists", async {
            // One after the other: a program that locks something at its start must not meet itself.
            let old = old.list(None).await?;
            Ok::<_, Stop>((old, new.list(None).await?))
        });
        match read {
            Some(Ok((old, new))) => Report::of(old, new).show(self.json),
            Some(Err(stop)) => {
                stop.show();
                exit::usage()
            }
            None => {
                show::error("the comparison was interrupted", "run it again, and let it end");
                exit::usage()
            }
        }
    }

    fn places(&self) -> Result<(Place, Place), Stop> {
        let read = |word: &String| Place::read("diff", word);
        let file = |word: Option<&String>| PathBuf::from(word.map_or(super::DEFAULT_SURFACE, String::as_str));
        let surplus = |problem: &str| {
            Err(Stop::Said(
                problem.to_owned(),
                "give OLD and NEW, or NEW alone; `twodoor diff --help` has examples".to_owned(),
            ))
        };
        match (self.lists.as_slice(), self.command.as_slice(), &self.since) {
            ([] | [_], [], Some(revision)) => {
                let path = file(self.lists.first());
                Ok((Place::since(revision, &path)?, Place::File(path)))
            }
            (_, _, Some(_)) => surplus("--since takes one file"),
            ([old, new], [], None) => Ok((read(old)?, read(new)?)),
            ([old], [_, ..], None) => Ok((read(old)?, Place::command("diff", &self.command)?)),
            ([] | [_], [], None) => {
                let path = file(self.lists.first());
                let is_surface = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
                if !is_surface {
                    return surplus("there is one thing to compare, and it is no surface file with a lock");
                }
                Ok((listed::lock_of(&path)?, Place::File(path)))
            }
            ([], [_, ..], None) => surplus("a command has nothing to be compared with"),
            _ => surplus("there are three things to compare"),
        }
    }
}

/// Most changes that are shown to a person.
const SHOWN: usize = 100;

struct Report {
    old: Listed,
    new: Listed,
    same: bool,
    /// `None` where the definitions of one side are not known.
    changes: Option<Comparison>,
    versions: Option<(Version, Version)>,
}

impl Report {
    fn of(old: Listed, new: Listed) -> Self {
        let agree = |a: Option<_>, b: Option<_>| a.is_some() && a == b;
        let same =
            agree(old.digest.sorted_keys, new.digest.sorted_keys) || agree(old.digest.rfc8785, new.digest.rfc8785);
        let changes = match (&old.tools, &new.tools) {
            (Some(old), Some(new)) => Some(compare(old, new)),
            _ => None,
        };
        let version = |listed: &Listed| listed.version.as_deref().and_then(|text| Version::parse(text).ok());
        let versions = version(&old).zip(version(&new));
        Self { old, new, same, changes, versions }
    }

    fn bump(&self) -> Option<Bump> {
        self.changes.as_ref().filter(|_| !self.same).and_then(Comparison::bump)
    }

    /// The lowest version that will do, and whether the new one does.
    fn demanded(&self) -> Option<(Version, bool)> {
        let (bump, (old, new)) = self.bump().zip(self.versions.as_ref())?;
        Some((version::demanded(old, bump), version::satisfies(old, new, bump)))
    }

    fn show(&self, as_json: bool) -> ExitCode {
        if as_json {
            show::out(&format!("{:#}\n", self.json()));
        } else {
            show::out(&self.text());
        }
        if self.same { ExitCode::SUCCESS } else { exit::differs() }
    }

    fn json(&self) -> Value {
        let side = |listed: &Listed| {
            let digest = |digest: Option<twodoor::protocol::Digest>| digest.map(|digest| digest.to_string());
            json!({
                "from": listed.from, "name": listed.name, "version": listed.version,
                "tools": listed.tools.as_ref().map(Vec::len),
                "digest": { "sortedKeys": digest(listed.digest.sorted_keys), "rfc8785": digest(listed.digest.rfc8785) },
            })
        };
        let demanded = self.demanded();
        let changes = self.changes.as_ref().filter(|_| !self.same);
        json!({
            "verdict": if self.same { "same" } else { "different" },
            "old": side(&self.old), "new": side(&self.new),
            "class": changes.and_then(Comparison::class), "bump": self.bump(),
            "demanded": demanded.as_ref().map(|(version, _)| version.to_string()),
            "satisfied": demanded.as_ref().map(|(_, satisfied)| satisfied),
            "changes": changes.map(changes_as_json),
            "more": changes.map(Comparison::dropped),
        })
    }

    fn text(&self) -> String {
        if self.same {
            return format!("same: {}\n", self.new.shown_digest());
        }
        let mut text = match &self.changes {
            Some(changes) => changes_as_text(changes, show::colour_on_stdout()),
            None => "the lists differ; in what cannot be told, since one side is a digest alone\n".to_owned(),
        };
        text.push_str(&format!("- {}\n+ {}\n", side(&self.old), side(&self.new)));
        if let Some(bump) = self.bump() {
            let verdict = match (self.demanded(), &self.versions) {
                (Some((_, true)), Some((old, new))) => format!(": {old} -> {new} is one"),
                (Some((demanded, false)), Some((old, new))) => {
                    format!(": from {old} to {demanded} or above, and the new version is {new}")
                }
                _ => String::new(),
            };
            text.push_str(&format!("demands a {} version{verdict}\n", bump.name()));
        }
        text
    }
}

fn side(listed: &Listed) -> String {
    let said = [listed.name.as_deref(), listed.version.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
    visible(format!("{}{said}: {}", listed.from, listed.shown_digest()).chars())
}

/// Changes for programs; each with the part of a version that it moves.
pub(crate) fn changes_as_json(changes: &Comparison) -> Vec<Value> {
    let one = |change: &Change| {
        let mut value = serde_json::to_value(change).unwrap_or_default();
        if let Some(members) = value.as_object_mut() {
            members.insert("bump".to_owned(), change.class.bump().name().into());
        }
        value
    };
    changes.changes().iter().map(one).collect()
}

/// Changes for a person, and how many there are of each class.
pub(crate) fn changes_as_text(changes: &Comparison, colour: bool) -> String {
    let mut text = String::new();
    for change in changes.changes().iter().take(SHOWN) {
        let painted = match (colour, change.class) {
            (true, Class::Breaking) => format!("\x1b[31m{:<8}\x1b[0m", change.class.name()),
            (true, Class::Wording) => format!("\x1b[33m{:<8}\x1b[0m", change.class.name()),
            _ => format!("{:<8}", change.class.name()),
        };
        let place = [change.tool.as_str(), change.pointer.as_str()].into_iter().filter(|part| !part.is_empty());
        let place: Vec<&str> = place.collect();
        let place = if place.is_empty() { String::new() } else { format!("  {}", place.join(" ")) };
        text.push_str(&format!("{painted}{place}  {}\n", change.what));
        for (sign, value) in [('-', &change.old), ('+', &change.new)] {
            if let Some(value) = value {
                text.push_str(&format!("  {sign} {value}\n"));
            }
        }
    }
    let more = changes.changes().len().saturating_sub(SHOWN) + changes.dropped();
    if more > 0 {
        text.push_str(&format!("and {more} more\n"));
    }
    let counts = Class::ALL.into_iter().filter(|class| changes.count(*class) > 0);
    let counts: Vec<String> = counts.map(|class| format!("{} {}", changes.count(class), class.name())).collect();
    if counts.is_empty() { text } else { format!("{text}{}\n", counts.join(", ")) }
}
