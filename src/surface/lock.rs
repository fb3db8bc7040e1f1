//! The lock beside a surface file: the digests that were reviewed.
//!
//! Promises: where a lock stands, what is served has its digest for every revision; one that cannot be
//! read refuses as one that differs does; where one is demanded, its absence refuses too. For `NAME.yaml` the lock is `NAME.lock` in the same folder: YAML,
//! or JSON, with `version: 1`, the `digest`, and `revisions` where a revision has another. Used by the
//! command line.

use std::path::{Path, PathBuf};

use super::fields::Fields;
use super::lint::{unknown_key, value_kind};
use super::problem::{Findings, Problems, Rule};
use super::source::{self, Source, Span};
use super::tree::{self, Value};
use crate::protocol::{Catalog, Digest, Revision};

/// The lock's own version is not known.
pub(crate) const VERSION: Rule = Rule::error("lock-version", "a surface's lock says `version: 1`");
/// Not a digest.
pub(crate) const DIGEST: Rule = Rule::error("lock-digest", "a lock's digest is `sha256:` and 64 hex digits");
/// What is there is not what was reviewed.
pub(crate) const DIFFERS: Rule = Rule::error("lock-differs", "where a lock stands, the tools have its digest");

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

/// Where the lock of a surface file stands.
pub fn path_of(surface: &Path) -> PathBuf {
    surface.with_extension("lock")
}

/// Holds a catalog against the lock of its surface file.
pub fn check(surface: &Path, catalog: &Catalog, mode: Mode) -> Result<(), Problems> {
    if mode == Mode::Ignored {
        return Ok(());
    }
    let path = path_of(surface);
    if std::fs::symlink_metadata(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        if mode == Mode::IfThere {
            return Ok(());
        }
        let mut findings = Findings::new(Source::new(path, String::new()));
        let message = format!("{} has no lock", surface.display());
        let remedy = format!("read what it publishes, then run `twodoor lock {}`", surface.display());
        findings.report(&MISSING, Span::START, message, remedy);
        return Err(findings.into_problems());
    }
    let mut findings = match source::open(&path) {
        Ok(opened) => opened.findings,
        Err(findings) => return Err(findings.into_problems()),
    };
    compare(surface, catalog, &mut findings);
    if findings.has_errors() { Err(findings.into_problems()) } else { Ok(()) }
}

/// The text of the lock that holds for a catalog.
pub fn text(catalog: &Catalog) -> String {
    let digest = catalog.digest(Revision::MODERN);
    let mut text = format!("version: 1\ndigest: {digest}\n");
    let others = Revision::ALL.into_iter().filter(|revision| catalog.digest(*revision) != digest);
    for (index, revision) in others.enumerate() {
        if index == 0 {
            text.push_str("revisions:\n");
        }
        text.push_str(&format!("  \"{}\": {}\n", revision.name(), catalog.digest(revision)));
    }
    text
}

fn compare(surface: &Path, catalog: &Catalog, findings: &mut Findings) {
    const REMEDY: &str = "write it with `twodoor digest --lock`, after reading what changed";
    if findings.source().text().trim().is_empty() {
        findings.report(&VERSION, Span::START, "the lock is empty", REMEDY);
        return;
    }
    let Some(root) = tree::parse(findings) else { return };
    let known = ["version", "digest", "revisions"];
    let Some(fields) = Fields::of(&root, Span::START, "a lock", &known, findings) else { return };
    for key in ["version", "digest"] {
        fields.require(key, REMEDY, findings);
    }
    if let Some(version) = fields.get("version")
        && !matches!(&version.node.value, Value::Number(text) if &**text == "1")
    {
        let message = format!("the lock's version is {}", findings.source().slice(version.node.span));
        findings.report(&VERSION, version.node.span, message, format!("write 1; or {REMEDY}"));
    }
    let mut read = |key: &str, node: &tree::Node| {
        let Some(text) = node.as_text() else {
            value_kind::report(key, node, "text", findings);
            return None;
        };
        match text.parse::<Digest>() {
            Ok(digest) => Some((digest, node.span)),
            Err(error) => {
                findings.report(&DIGEST, node.span, error.to_string(), REMEDY);
                None
            }
        }
    };
    let all = fields.get("digest").and_then(|entry| read("digest", &entry.node));
    let mut own = Vec::new();
    if let Some(revisions) = fields.get("revisions") {
        let names = Revision::ALL.map(Revision::name);
        for entry in revisions.node.as_map().unwrap_or_default() {
            own.push((entry.key.value.as_str(), read(&entry.key.value, &entry.node)));
        }
        if revisions.node.as_map().is_none() {
            value_kind::report("revisions", &revisions.node, "a mapping of revisions to digests", findings);
        }
        for entry in revisions.node.as_map().unwrap_or_default() {
            if !names.contains(&entry.key.value.as_str()) {
                unknown_key::report(entry, "`revisions`", &names, findings);
            }
        }
    }
    // A lock that is broken says nothing of the tools.
    if findings.has_errors() {
        return;
    }
    for revision in Revision::ALL {
        let locked = own.iter().find(|(name, _)| *name == revision.name()).map_or(all, |(_, locked)| *locked);
        let found = catalog.digest(revision);
        if let Some((digest, span)) = locked
            && digest != found
        {
            let surface = surface.display();
            let remedy = format!(
                "read what changed; to accept it run `twodoor digest {surface} --lock`, else restore the surface file"
            );
            findings.report(&DIFFERS, span, format!("the tools of {surface} have the digest {found}"), remedy);
        }
    }
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
        compare(Path::new(SURFACE), catalog, &mut findings);
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
        let without: String = lock.lines().take(2).map(|line| format!("{line}\n")).collect();
        assert_eq!(rules(&without, &divergent), ["lock-differs"]);
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
            (good.replace("version: 1", "version: 2"), "lock-version"),
            (good.replace("version: 1", "version: \"1\""), "lock-version"),
            (good.replace("sha256:", "sha512:"), "lock-digest"),
            (good.replace(&digest, "1"), "value-kind"),
            (format!("{good}{good}"), "yaml-duplicate-key"),
            (format!("{good}tools: []\n"), "unknown-key"),
            (format!("{good}revisions: [1]\n"), "value-kind"),
            (format!("{good}revisions: {{ soon: \"{digest}\" }}\n"), "unknown-key"),
        ] {
            assert!(rules(&lock, &catalog).contains(&rule), "{lock}: {:?}", rules(&lock, &catalog));
        }
    }
}
