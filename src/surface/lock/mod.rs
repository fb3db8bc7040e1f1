//! The lock beside a surface file: the tools that were reviewed, and their digests.
//!
//! Promises: where a lock stands, what is served has its digest for every revision; one that cannot be
//! read refuses as one that differs does; where one is demanded, its absence refuses too. For `NAME.yaml` the
//! lock is `NAME.lock` in the same folder: YAML, or JSON, with `version`, the `digest`, and `revisions` where a
//! revision has another; from version 2 on also the surface's name and version and the definitions themselves.
//! Used by the command line.

mod read;
mod write;

use std::path::{Path, PathBuf};

use super::frozen::Frozen;
use super::load::LoadedSurface;
use super::problem::{Findings, Problems, Rule};
use super::source::{self, Source, Span};
use super::{tree, version};
use crate::protocol::{Catalog, Class, Comparison, Revision, compare};

pub use read::Lock;
pub use write::text;

/// The lock's own version is not known.
pub(crate) const VERSION: Rule = Rule::error("lock-version", "a surface's lock says `version: 2`, or 1");
/// Left by a merge.
pub(crate) const CONFLICT: Rule = Rule::error("lock-conflict", "a lock has no conflict that a merge left in it");
/// Not a digest.
pub(crate) const DIGEST: Rule =
    Rule::error("lock-digest", "a lock's digest is `sha256:` and 64 hex digits, and that of the tools in it");
/// What is there is not what was reviewed.
pub(crate) const DIFFERS: Rule = Rule::error("lock-differs", "where a lock stands, the tools have its digest");
/// The version did not go up.
pub(crate) const BUMP: Rule =
    Rule::error("version-bump", "tools that differ from the lock have the version that the change demands");
/// A lock was demanded.
pub(crate) const MISSING: Rule =
    Rule::error("lock-missing", "with `--locked`, and beside a frozen surface, a lock stands");

/// How strictly a surface is held to its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// To the lock, where one stands.
    #[default]
    IfThere,
    /// To the lock, and one must stand: `--locked`, and every frozen version.
    Required,
    /// To none: `--unlocked`.
    Ignored,
}

const REMEDY: &str = "write it with `twodoor lock`, after reading what changed";

/// Most changes that a refusal names.
const CHANGES_NAMED: usize = 5;

/// Where the lock of a surface file stands.
pub fn path_of(surface: &Path) -> PathBuf {
    surface.with_extension("lock")
}

/// Whether anything stands where the lock of a surface file would.
pub fn stands(surface: &Path) -> bool {
    let found = std::fs::symlink_metadata(path_of(surface));
    !found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Holds a catalog against the lock of its surface file.
pub fn check(surface: &Path, catalog: &Catalog, mode: Mode) -> Result<(), Problems> {
    if mode == Mode::Ignored || (mode == Mode::IfThere && !stands(surface)) {
        return Ok(());
    }
    let path = path_of(surface);
    if !stands(surface) {
        let mut findings = Findings::new(Source::new(path, String::new()));
        let message = format!("{} has no lock", surface.display());
        let remedy = format!("read what it publishes, then run `twodoor lock {}`", surface.display());
        findings.report(&MISSING, Span::START, message, remedy);
        return Err(findings.into_problems());
    }
    let mut findings = match source::open_as(&path, REMEDY) {
        Ok(opened) => opened.findings,
        Err(findings) => return Err(findings.into_problems()),
    };
    hold(surface, catalog, &mut findings);
    if findings.has_errors() { Err(findings.into_problems()) } else { Ok(()) }
}

fn hold(surface: &Path, catalog: &Catalog, findings: &mut Findings) {
    let Some(lock) = Lock::of(findings) else { return };
    let remedy = remedy(surface, &lock, catalog);
    let surface = surface.display();
    let changed = lock.changes(catalog).map(|changes| format!(": {}", summary(&changes))).unwrap_or_default();
    for revision in Revision::ALL {
        let found = catalog.digest(revision);
        if lock.digest(revision) != found {
            let message = format!("the tools of {surface} have the digest {found}{changed}");
            findings.report(&DIFFERS, lock.span(revision), message, remedy.as_str());
        }
    }
}

/// What to do where the tools are not those of the lock: what is frozen stays, anything else goes on under the version
/// that the change demands.
fn remedy(surface: &Path, lock: &Lock, catalog: &Catalog) -> String {
    if let Ok(Some(frozen)) = Frozen::of(surface) {
        let (surface, base) = (surface.display(), frozen.base.display());
        return format!(
            "restore {surface}, of which only what its tools lead to may change; freeze other tools under another label \
             (`twodoor freeze {base} --as LABEL`)"
        );
    }
    let surface = surface.display();
    let read = format!("read what changed (`twodoor diff {surface}`)");
    let restore = "else restore the surface file";
    match (lock.version.as_ref(), lock.demand(catalog)) {
        (Some(before), Some(Demand { lowest, class })) => format!(
            "{read}; to accept it raise `version` from {before} to {lowest} or above, since the change is {class}, and then run \
             `twodoor lock {surface}`; {restore}"
        ),
        _ => format!("{read}; to accept it run `twodoor lock {surface}`; {restore}"),
    }
}

/// A version that a change demands, and the surface does not have.
struct Demand {
    lowest: semver::Version,
    class: &'static str,
}

impl Lock {
    /// What changed since, if the lock holds the definitions and they differ.
    pub fn changes(&self, catalog: &Catalog) -> Option<Comparison> {
        let changes = compare(self.tools.as_ref()?, &catalog.definitions(Revision::MODERN));
        (!changes.is_none()).then_some(changes)
    }

    fn demand(&self, catalog: &Catalog) -> Option<Demand> {
        let (before, changes) = (self.version.as_ref()?, self.changes(catalog)?);
        let now = semver::Version::parse(&catalog.identity().version).ok()?;
        let bump = changes.bump().filter(|bump| !version::satisfies(before, &now, *bump))?;
        Some(Demand { lowest: version::demanded(before, bump), class: changes.class().map_or("", Class::name) })
    }
}

/// How many changes of each class there are, and the gravest of them.
pub fn summary(changes: &Comparison) -> String {
    let counts = Class::ALL.into_iter().filter(|class| changes.count(*class) > 0);
    let counts: Vec<String> = counts.map(|class| format!("{} {}", changes.count(class), class.name())).collect();
    let mut named: Vec<_> = changes.changes().iter().collect();
    named.sort_by_key(|change| std::cmp::Reverse(change.class));
    let named: Vec<String> = named
        .into_iter()
        .take(CHANGES_NAMED)
        .map(|change| {
            format!(
                "{}{}{} ({})",
                change.tool,
                if change.pointer.is_empty() { "" } else { " " },
                change.pointer,
                change.what
            )
            .trim_start()
            .to_owned()
        })
        .collect();
    let all = changes.changes().len() <= CHANGES_NAMED && changes.dropped() == 0;
    format!("{}: {}{}", counts.join(", "), named.join(", "), if all { "" } else { ", …" })
}

/// Whether a surface that differs from its lock has the version that the change demands. A lock that cannot be read,
/// or does not say what it was written for, demands none.
pub fn check_version(loaded: &LoadedSurface, catalog: &Catalog) -> Result<(), Problems> {
    if !stands(&loaded.path) {
        return Ok(());
    }
    let Ok(lock) = Lock::read(&path_of(&loaded.path)) else { return Ok(()) };
    let (Some(before), Some(changes)) = (&lock.version, lock.changes(catalog)) else { return Ok(()) };
    let Some(Demand { lowest, class }) = lock.demand(catalog) else { return Ok(()) };
    let mut findings = Findings::new(loaded.warnings.source.clone());
    let root = tree::parse(&mut findings);
    let span = root.as_ref().and_then(|root| root.get("version")).map_or(Span::START, |entry| entry.node.span);
    let message = format!(
        "the tools differ from those locked as {before} and the version is {}: {}",
        loaded.version,
        summary(&changes)
    );
    let surface = loaded.path.display();
    let remedy = format!(
        "the change is {class}: raise the version to {lowest} or above, then run `twodoor lock {surface}`; \
         `twodoor diff {surface}` shows what changed"
    );
    findings.suggest(&BUMP, span, message, remedy, Some(lowest.to_string()));
    Err(findings.into_problems())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CatalogParts, ToolParts};

    const SURFACE: &str = "folder/s.yaml";

    fn catalog(description: &str) -> Catalog {
        let mut tool = ToolParts::new("t");
        tool.description = Some(description.to_owned());
        Catalog::build(CatalogParts { tools: vec![tool], ..CatalogParts::new("s", "1.0.0") }).unwrap()
    }

    fn rules(lock: &str, catalog: &Catalog) -> Vec<&'static str> {
        let mut findings = Findings::new(Source::new(path_of(Path::new(SURFACE)), lock.to_owned()));
        hold(Path::new(SURFACE), catalog, &mut findings);
        findings.into_problems().list().iter().map(|problem| problem.rule).collect()
    }

    #[test]
    fn a_lock_holds_for_the_catalog_it_was_written_for_and_no_other() {
        let (old, new) = (catalog("old"), catalog("new"));
        assert_eq!(rules(&text(&old), &old), [""; 0]);
        assert_eq!(rules(&text(&old), &new), ["lock-differs"]);
        let json = format!("{{\"version\": 1, \"digest\": \"{}\"}}", old.digest(Revision::MODERN));
        assert_eq!(rules(&json, &old), [""; 0]);
    }

    #[test]
    fn a_lock_that_is_demanded_must_stand_and_one_that_is_ignored_is_not_read() {
        let folder = std::env::temp_dir().join(format!("twodoor-lock-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (surface, tools) = (folder.join("s.yaml"), catalog("x"));
        let rule = |mode| check(&surface, &tools, mode).map_err(|problems| problems.list()[0].rule);
        assert_eq!(rule(Mode::IfThere), Ok(()));
        assert_eq!(rule(Mode::Ignored), Ok(()));
        assert_eq!(rule(Mode::Required), Err("lock-missing"));
        std::fs::write(path_of(&surface), text(&catalog("y"))).unwrap();
        assert_eq!(rule(Mode::IfThere), Err("lock-differs"));
        assert_eq!(rule(Mode::Required), Err("lock-differs"));
        assert_eq!(rule(Mode::Ignored), Ok(()));
        std::fs::write(path_of(&surface), text(&tools)).unwrap();
        assert_eq!(rule(Mode::Required), Ok(()));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_divergent_tool_has_a_digest_for_each_revision_that_differs() {
        use crate::protocol::Json;
        let mut tool = ToolParts::new("t");
        tool.divergent = true;
        tool.output_schema = Some(Json::from(&serde_json::json!({ "type": "array" })));
        let parts = CatalogParts { tools: vec![tool], ..CatalogParts::new("s", "1.0.0") };
        let divergent = Catalog::build(parts).unwrap();
        let lock = text(&divergent);
        assert!(lock.contains("revisions:\n  \""), "{lock}");
        assert_eq!(rules(&lock, &divergent), [""; 0]);
        let without: String = lock.lines().take(5).map(|line| format!("{line}\n")).collect();
        assert_eq!(rules(&without, &divergent), ["lock-differs"]);
    }

    #[test]
    fn the_old_form_is_still_read_and_a_refusal_says_what_changed_if_the_lock_knows() {
        let (old, new) = (catalog("old"), catalog("new"));
        let first = format!("version: 1\ndigest: {}\n", old.digest(Revision::MODERN));
        assert_eq!(rules(&first, &old), [""; 0]);
        let refusal = |lock: &str| {
            let mut findings = Findings::new(Source::new("s.lock".into(), lock.to_owned()));
            hold(Path::new(SURFACE), &new, &mut findings);
            findings.into_problems().list()[0].message.clone()
        };
        assert!(refusal(&first).ends_with(&new.digest(Revision::MODERN).to_string()));
        assert!(refusal(&text(&old)).ends_with(": 1 wording: t /description (wording)"), "{}", refusal(&text(&old)));
        let lock = Lock::parse(Path::new("s.lock"), text(&old).into_bytes()).unwrap();
        assert_eq!((lock.surface.as_deref(), lock.version), (Some("s"), Some(semver::Version::new(1, 0, 0))));
        assert_eq!(lock.tools, Some(old.definitions(Revision::MODERN)));
    }

    #[test]
    fn a_lock_that_is_not_one_refuses() {
        let catalog = catalog("x");
        let good = text(&catalog);
        let digest = catalog.digest(Revision::MODERN).to_string();
        for (lock, rule) in [
            (String::new(), "lock-version"),
            ("{}".to_owned(), "missing-key"),
            ("[]".to_owned(), "value-kind"),
            (good.replace("version: 2", "version: 3"), "lock-version"),
            (good.replace("version: 2", "version: \"2\""), "lock-version"),
            (good.replace("version: 2", "version: 1"), "unknown-key"),
            (good.replace("surface_version: 1.0.0", "surface_version: one"), "lock-version"),
            (good.replace("description: x", "description: y"), "lock-digest"),
            (good.replace("tools:\n", "tools: {}\nrevisions:\n"), "value-kind"),
            (good.replace("sha256:", "sha512:"), "lock-digest"),
            (good.replace(&digest, "1"), "value-kind"),
            (format!("{good}{good}"), "yaml-duplicate-key"),
            (format!("{good}callers: []\n"), "unknown-key"),
            (format!("{good}revisions: [1]\n"), "value-kind"),
            (format!("{good}revisions: {{ soon: \"{digest}\" }}\n"), "unknown-key"),
        ] {
            assert!(rules(&lock, &catalog).contains(&rule), "{lock}: {:?}", rules(&lock, &catalog));
        }
    }
}
