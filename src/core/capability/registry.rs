//! The capabilities of a project as they are now: read again when something changed, with what each lacks.
//!
//! Promises: what cannot be read is an entry with its reason and hides nothing else; what is hidden is found by agents
//! alone; no secret is read but to say whether it is there, or for a program that declares it. Reads files, so it is
//! asked where that may take its time. Used by the operator surface and by curated targets.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::listing::{Listed, Runs};
use super::run;
use super::secrets::Secrets;
use crate::surface::manifest::{
    CapabilityKind, Found, Manifest, Scan, ScanEntry, SkillManifest, State, readiness, scan,
};

/// The variable that says for how many seconds a scan is kept, 0 for not at all.
pub const TTL_VARIABLE: &str = "AAT_REGISTRY_TTL";
/// The variable that names folders of tools which are not listed, in the place of the project's own file.
pub const HIDE_VARIABLE: &str = "AAT_TOOLS_HIDE";

const TTL: Duration = Duration::from_secs(30);

/// How a registry is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// For how long a scan is kept where nothing seems to have changed.
    pub ttl: Duration,
    /// The folders of tools that are hidden; those of the project's own file if absent.
    pub hide: Option<Vec<String>>,
    /// The workspace that programs are told they work in.
    pub workspace: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { ttl: TTL, hide: None, workspace: None }
    }
}

impl Options {
    /// As the variables of an environment say; what is no number counts as nothing.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let seconds = variable(TTL_VARIABLE).and_then(|said| said.trim().parse::<f64>().ok());
        let ttl = seconds.filter(|seconds| seconds.is_finite()).map(|seconds| seconds.clamp(0.0, 86_400.0));
        let hide = variable(HIDE_VARIABLE)
            .map(|said| said.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect());
        let workspace = variable(run::WORKSPACE_VARIABLE).filter(|said| !said.is_empty());
        Self { ttl: ttl.map_or(TTL, Duration::from_secs_f64), hide, workspace }
    }
}

/// The capabilities of one project.
#[derive(Debug)]
pub struct Registry {
    root: PathBuf,
    options: Options,
    secrets: Arc<dyn Secrets>,
    kept: Mutex<Option<(Instant, Arc<Scan>)>>,
}

impl Registry {
    /// A project's registry; fails if there is no such folder.
    pub fn open(root: &Path, options: Options, secrets: Arc<dyn Secrets>) -> std::io::Result<Self> {
        let root = std::fs::canonicalize(root)?;
        // A file is no project, and reading a FIFO would be found out late.
        std::fs::read_dir(&root)?;
        Ok(Self::at(root, options, secrets))
    }

    /// The registry of a folder that was found before, its links resolved; empty while there is none.
    pub fn at(root: PathBuf, options: Options, secrets: Arc<dyn Secrets>) -> Self {
        Self { root, options, secrets, kept: Mutex::new(None) }
    }

    /// The project's folder, links resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The workspace that programs are told they work in: what whoever started this server says, and no call.
    pub fn workspace(&self) -> Option<&str> {
        self.options.workspace.as_deref()
    }

    /// The tool or the agent of that name, tools first; none that is hidden.
    pub fn find(&self, kind: Option<CapabilityKind>, name: &str) -> Option<Runs> {
        let scan = self.current();
        let hidden = self.hidden(&scan);
        let found = Self::entry(&scan, kind, name).filter(|(entry, _)| !is_hidden(entry, hidden.as_deref()));
        found.map(|(_, manifest)| self.capability(&scan, manifest))
    }

    /// The same, hidden ones too: for agents, and for what a reviewed surface publishes by name.
    pub fn resolve(&self, kind: Option<CapabilityKind>, name: &str) -> Option<Runs> {
        let scan = self.current();
        Self::entry(&scan, kind, name).map(|(_, manifest)| self.capability(&scan, manifest))
    }

    /// The skill of that name.
    pub fn skill(&self, name: &str) -> Option<Arc<SkillManifest>> {
        let scan = self.current();
        scan.entries.iter().find_map(|entry| match &entry.found {
            Ok(Found::Skill(skill)) if skill.name == name => Some(Arc::clone(skill)),
            _ => None,
        })
    }

    /// Tools, agents, then skills, each sorted by path; nothing that is hidden or cannot be read.
    pub fn listed(&self) -> Vec<Listed> {
        let scan = self.current();
        let hidden = self.hidden(&scan);
        let entries = scan.entries.iter().filter(|entry| !is_hidden(entry, hidden.as_deref()));
        let listed = entries.filter_map(|entry| match &entry.found {
            Ok(Found::Capability(manifest)) => Some(Listed::Runs(self.capability(&scan, manifest))),
            Ok(Found::Skill(skill)) => Some(Listed::Skill(Arc::clone(skill))),
            Err(_) => None,
        });
        listed.collect()
    }

    /// The secrets that a program is given: each by its variable. An agent is given those of the tools that it drives
    /// too, which it runs itself.
    pub fn secrets(&self, manifest: &Manifest) -> Vec<(String, String)> {
        let scan = self.current();
        let driven = manifest.drives.iter().filter_map(|name| scan.find(Some(CapabilityKind::Tool), name));
        let declared = manifest.secrets.iter().chain(driven.flat_map(|tool| &tool.secrets));
        let mut given: Vec<(String, String)> = Vec::new();
        for secret in declared {
            let variable = secret.variable();
            if given.iter().all(|(known, _)| *known != variable)
                && let Some(value) = self.secrets.value(secret)
            {
                given.push((variable, value));
            }
        }
        given
    }

    fn entry<'s>(
        scan: &'s Scan,
        kind: Option<CapabilityKind>,
        name: &str,
    ) -> Option<(&'s ScanEntry, &'s Arc<Manifest>)> {
        scan.entries.iter().find_map(|entry| match &entry.found {
            Ok(Found::Capability(manifest)) if manifest.name == name && kind.is_none_or(|kind| kind == entry.kind) => {
                Some((entry, manifest))
            }
            _ => None,
        })
    }

    fn capability(&self, scan: &Scan, manifest: &Arc<Manifest>) -> Runs {
        let tool = |name: &str| scan.find(Some(CapabilityKind::Tool), name).map(|manifest| &**manifest);
        let readiness = readiness(manifest, tool, |secret| self.state(secret));
        Runs { manifest: Arc::clone(manifest), readiness }
    }

    fn state(&self, secret: &crate::surface::manifest::ManifestSecret) -> State {
        self.secrets.state(secret)
    }

    /// The folders that are hidden; `None` for all of them, where the file that names them cannot be read.
    fn hidden(&self, scan: &Scan) -> Option<Vec<String>> {
        match &self.options.hide {
            Some(hide) => Some(hide.clone()),
            None => scan.hidden.as_ref().ok().cloned(),
        }
    }

    /// What was read, if it is young and nothing that was looked at has changed; else read now.
    fn current(&self) -> Arc<Scan> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, scan)) = &*kept
            && read.elapsed() < self.options.ttl
            && scan.is_current()
        {
            return Arc::clone(scan);
        }
        let scan = Arc::new(scan(&self.root));
        // What was told of the scan before is not told again of every one after it.
        for problem in new_problems(kept.as_ref().map(|(_, before)| &**before), &scan) {
            tracing::warn!("{problem}");
        }
        *kept = Some((Instant::now(), Arc::clone(&scan)));
        scan
    }
}

/// What cannot be read in a scan, as far as it is not the same as in the one before.
fn new_problems(before: Option<&Scan>, scan: &Scan) -> Vec<String> {
    let told = |scan: &Scan| {
        let broken = scan.entries.iter().filter_map(|entry| {
            let problems = entry.found.as_ref().err()?;
            Some(format!("the {} in {:?} is not listed: {problems}", entry.kind.name(), entry.folder))
        });
        let hidden = scan.hidden.as_ref().err().map(|problems| format!("no tool is listed: {problems}"));
        broken.chain(hidden).collect::<Vec<_>>()
    };
    let known = before.map(told).unwrap_or_default();
    told(scan).into_iter().filter(|problem| !known.contains(problem)).collect()
}

fn is_hidden(entry: &ScanEntry, hidden: Option<&[String]>) -> bool {
    entry.kind == CapabilityKind::Tool && hidden.is_none_or(|hidden| hidden.contains(&entry.folder))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs;

    use super::*;
    use crate::surface::manifest::ManifestSecret;

    #[derive(Debug, Default)]
    struct Vault(HashMap<&'static str, &'static str>);

    impl Secrets for Vault {
        fn value(&self, secret: &ManifestSecret) -> Option<String> {
            self.0.get(secret.name.as_str()).map(|value| (*value).to_owned())
        }

        fn state(&self, secret: &ManifestSecret) -> State {
            match self.value(secret).as_deref() {
                None => State::NeedsCredentials,
                Some("narrow") => State::NeedsScopes,
                Some(_) => State::Ready,
            }
        }
    }

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path.parent().unwrap().join("main.py"), "").unwrap();
        fs::write(path, text).unwrap();
    }

    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(
            root,
            "tools/a/tool.yaml",
            "name: a\ndescription: A.\nsecrets: [{name: key}, {name: more, optional: true}]\n",
        );
        put(root, "tools/b/tool.yaml", "name: bee\ndescription: B.\nsecrets: [{name: \"shared:key\"}]\n");
        put(root, "tools/broken/tool.yaml", "name: broken\n");
        put(root, "agents/x/agent.yaml", "name: x\ndescription: X.\ntools: [a, bee]\n");
        put(root, "skills/s/SKILL.md", "---\nname: s\ndescription: S.\n---\n");
        folder
    }

    fn open(root: &Path, options: Options, vault: &[(&'static str, &'static str)]) -> Registry {
        Registry::open(root, options, Arc::new(Vault(vault.iter().copied().collect()))).unwrap()
    }

    fn names(registry: &Registry) -> Vec<String> {
        registry.listed().iter().map(|listed| listed.name().to_owned()).collect()
    }

    #[test]
    fn everything_is_listed_in_order_and_what_is_broken_hides_nothing() {
        let folder = project();
        let registry = open(folder.path(), Options::default(), &[]);
        assert_eq!(names(&registry), ["a", "bee", "x", "s"]);
        assert!(registry.find(None, "broken").is_none());
        assert!(registry.find(Some(CapabilityKind::Agent), "a").is_none());
        assert!(registry.skill("s").is_some() && registry.skill("a").is_none());
    }

    #[test]
    fn a_hidden_tool_is_neither_listed_nor_found_but_driven() {
        let folder = project();
        let vault = [("key", "1"), ("shared:key", "2")];
        put(folder.path(), "hidden-tools.json", r#"{"hide": ["b"]}"#);
        let registry = open(folder.path(), Options::default(), &vault);
        assert_eq!(names(&registry), ["a", "x", "s"]);
        assert!(registry.find(None, "bee").is_none() && registry.resolve(None, "bee").is_some());
        assert!(registry.find(None, "x").unwrap().readiness.ready);
        let options = Options { hide: Some(vec!["a".to_owned()]), ..Options::default() };
        assert_eq!(names(&open(folder.path(), options, &vault)), ["bee", "x", "s"]);
        put(folder.path(), "hidden-tools.json", r#"{"hide": "b"}"#);
        assert_eq!(names(&registry), ["x", "s"], "what is to be hidden is not known");
    }

    #[test]
    fn readiness_says_what_is_missing() {
        let folder = project();
        let of = |vault: &[(&'static str, &'static str)], name: &str| {
            open(folder.path(), Options::default(), vault).find(None, name).unwrap().readiness
        };
        assert_eq!(of(&[], "a").missing_secrets, ["key"]);
        assert_eq!(of(&[("key", "narrow")], "a").own, State::NeedsScopes);
        assert!(of(&[("key", "1")], "a").ready);
        let agent = of(&[("key", "1")], "x");
        assert_eq!((agent.ready, agent.own), (false, State::Ready));
        assert_eq!(agent.tool_status[1].missing_secrets, ["shared:key"]);
    }

    #[test]
    fn a_program_is_given_the_secrets_it_declares_and_an_agent_those_of_its_tools() {
        let folder = project();
        let registry = open(folder.path(), Options::default(), &[("key", "1"), ("shared:key", "2"), ("else", "3")]);
        let given = |name: &str| registry.secrets(&registry.find(None, name).unwrap().manifest);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(given("a"), [pair("KEY", "1")]);
        assert_eq!(given("x"), [pair("KEY", "1"), pair("SHARED_KEY", "2")]);
    }

    #[test]
    fn a_change_is_seen_within_the_ttl() {
        let folder = project();
        let registry = open(folder.path(), Options { ttl: Duration::from_secs(3600), ..Options::default() }, &[]);
        let description = || registry.find(None, "a").unwrap().manifest.description.clone();
        assert_eq!(description(), "A.");
        put(folder.path(), "tools/a/tool.yaml", "name: a\ndescription: Another.\n");
        assert_eq!(description(), "Another.");
        put(folder.path(), "tools/new/tool.yaml", "name: new\ndescription: N.\n");
        assert!(registry.find(None, "new").is_some());
        fs::remove_dir_all(folder.path().join("tools/a")).unwrap();
        assert!(registry.find(None, "a").is_none());
        put(folder.path(), "tools/broken/tool.yaml", "name: mended\ndescription: M.\n");
        assert!(registry.find(None, "mended").is_some());
    }

    #[test]
    fn a_scan_is_kept_for_the_ttl() {
        let folder = project();
        let registry = open(folder.path(), Options { ttl: Duration::from_secs(3600), ..Options::default() }, &[]);
        let first = registry.current();
        assert!(Arc::ptr_eq(&first, &registry.current()));
        let off = open(folder.path(), Options { ttl: Duration::ZERO, ..Options::default() }, &[]);
        assert!(!Arc::ptr_eq(&off.current(), &off.current()));
    }

    #[test]
    fn what_cannot_be_read_is_told_once_for_as_long_as_it_stays_the_same() {
        let folder = project();
        let first = scan(folder.path());
        let told = new_problems(None, &first);
        assert!(told.len() == 1 && told[0].contains("the tool in \"broken\" is not listed"), "{told:?}");
        assert!(!told[0].contains(&*folder.path().to_string_lossy()));
        assert_eq!(new_problems(Some(&first), &scan(folder.path())), [""; 0]);
        put(folder.path(), "tools/broken/tool.yaml", "name: broken\ndescripton: x\n");
        put(folder.path(), "hidden-tools.json", "{");
        let second = scan(folder.path());
        assert_eq!(new_problems(Some(&first), &second).len(), 2, "another reason, and another file");
        put(folder.path(), "tools/broken/tool.yaml", "name: broken\ndescription: x\n");
        assert_eq!(new_problems(Some(&second), &scan(folder.path())), [""; 0]);
    }

    #[test]
    fn options_are_read_as_the_contract_says() {
        let read = |ttl: Option<&str>, hide: Option<&str>| {
            let said = |name: &str| match name {
                TTL_VARIABLE => ttl,
                HIDE_VARIABLE => hide,
                _ => None,
            };
            Options::read(|name| said(name).map(str::to_owned))
        };
        let workspace =
            |said: &'static str| Options::read(|name| (name == "AAT_WORKSPACE_ID").then(|| said.to_owned()));
        assert_eq!(workspace("w-1").workspace.as_deref(), Some("w-1"));
        assert_eq!(workspace("").workspace, None);
        for (said, seconds) in [
            (None, 30.0),
            (Some("x"), 30.0),
            (Some("nan"), 30.0),
            (Some("0"), 0.0),
            (Some("-3"), 0.0),
            (Some(" 1.5 "), 1.5),
            (Some("1e300"), 86_400.0),
        ] {
            assert_eq!(read(said, None).ttl, Duration::from_secs_f64(seconds), "{said:?}");
        }
        assert_eq!(read(None, None).hide, None);
        assert_eq!(read(None, Some("")).hide, Some(Vec::new()));
        assert_eq!(read(None, Some(" a, ,b ")).hide, Some(vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn there_is_no_registry_without_a_folder() {
        let folder = project();
        let open =
            |path: &str| Registry::open(&folder.path().join(path), Options::default(), Arc::new(Vault::default()));
        assert!(open("none").is_err() && open("skills/s/SKILL.md").is_err() && open("tools").is_ok());
    }
}
