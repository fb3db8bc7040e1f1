//! Hears of changes to the files of a surface.
//!
//! Promises: whatever makes a path lead to something else is heard of: the file is written, replaced by a
//! rename, removed, back again; a folder or a link on the way to it is replaced. What is heard is a hint that
//! something may differ, and may come more than once. A watch knows the folders that stood when it began, so
//! whoever heard of a change begins another before reading. Used by the command line.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use notify::event::{AccessKind, AccessMode, Event, EventKind};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher as _};

/// What a surface is made of on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watched {
    /// Files of which the lists are made; of a folder, all that is beneath it.
    pub listing: Vec<PathBuf>,
    /// Files that are read when a resource is, with the resource's URI.
    pub contents: Vec<(PathBuf, String)>,
}

/// What may not be what it was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touched {
    /// What the lists are made of.
    Listing,
    /// The resource of this URI.
    Contents(String),
}

/// Why nothing is heard.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be watched", folder.display())]
pub struct WatchError {
    /// The folder.
    pub folder: PathBuf,
    /// Why.
    #[source]
    pub source: notify::Error,
}

/// Hears until it is dropped.
#[derive(Debug)]
pub struct Watch {
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Begins to hear; `tell` is called on a thread of the watch and must not block.
    pub fn begin(watched: &Watched, tell: impl Fn(Touched) + Clone + Send + 'static) -> Result<Self, WatchError> {
        /// A folder that is replaced while its watch is set up makes one more round; one that always is, none.
        const ROUNDS: usize = 3;
        let mut entries = Entries::of(watched);
        let mut round = 1;
        loop {
            let watch = Self::over(entries.clone(), tell.clone())?;
            let again = Entries::of(watched);
            if again == entries || round == ROUNDS {
                return Ok(watch);
            }
            entries = again;
            round += 1;
        }
    }

    fn over(entries: Entries, tell: impl Fn(Touched) + Send + 'static) -> Result<Self, WatchError> {
        let Entries { required, mut folders, trees, .. } = entries.clone();
        let failed = |folder: &Path| {
            let folder = folder.to_owned();
            move |source| WatchError { folder, source }
        };
        let first = required.iter().next().cloned().unwrap_or_default();
        // A link to a large part of the file system must not make us watch that.
        let config = Config::default().with_follow_symlinks(false);
        let heard = move |event: notify::Result<Event>| entries.hear(event, &tell);
        let mut watcher = RecommendedWatcher::new(heard, config).map_err(failed(&first))?;
        for folder in &required {
            watcher.watch(folder, RecursiveMode::NonRecursive).map_err(failed(folder))?;
            folders.remove(folder);
        }
        for folder in &folders {
            // One that we may not list, or that is gone: what is beneath it is heard of as far as it can be.
            let _ = watcher.watch(folder, RecursiveMode::NonRecursive);
        }
        for tree in &trees {
            watcher.watch(tree, RecursiveMode::Recursive).map_err(failed(tree))?;
        }
        Ok(Self { _watcher: watcher })
    }
}

/// What is watched, and what a change of it concerns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entries {
    /// By absolute path without links: the entry of a folder that some watched path leads through.
    concerned: BTreeMap<PathBuf, BTreeSet<Touched>>,
    /// Folders whose entries these are.
    folders: BTreeSet<PathBuf>,
    /// Those of them without which a file's own changes are not heard of.
    required: BTreeSet<PathBuf>,
    /// Folders of which all that is beneath them concerns the listing.
    trees: BTreeSet<PathBuf>,
}

impl Entries {
    fn of(watched: &Watched) -> Self {
        let mut all = Self::default();
        for path in &watched.listing {
            let end = all.lead_to(path, &Touched::Listing);
            if end.is_dir() {
                all.trees.insert(end);
            }
        }
        for (path, uri) in &watched.contents {
            all.lead_to(path, &Touched::Contents(uri.clone()));
        }
        all
    }

    /// Takes in every entry on the way to a path, and says where it ends.
    fn lead_to(&mut self, path: &Path, touched: &Touched) -> PathBuf {
        /// The kernel follows 40 links of one path.
        const LINKS: usize = 40;
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut at = PathBuf::from("/");
        let mut rest = names(&absolute);
        let mut links = 0;
        while let Some(step) = rest.pop_front() {
            let Step::Into(name) = step else {
                at.pop();
                continue;
            };
            let entry = at.join(name);
            self.concerned.entry(entry.clone()).or_default().insert(touched.clone());
            self.folders.insert(at.clone());
            let last = rest.is_empty();
            match fs::read_link(&entry) {
                Ok(target) if links < LINKS => {
                    links += 1;
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    names(&target).into_iter().rev().for_each(|step| rest.push_front(step));
                }
                _ => {
                    if last && at.is_dir() {
                        self.required.insert(at.clone());
                    }
                    at = entry;
                }
            }
        }
        at
    }

    fn hear(&self, event: notify::Result<Event>, tell: &impl Fn(Touched)) {
        let all = || self.concerned.values().flatten().collect::<BTreeSet<_>>();
        let touched = match event {
            // Our own reading would be heard of otherwise.
            Ok(Event { kind: EventKind::Access(kind), .. }) if kind != AccessKind::Close(AccessMode::Write) => return,
            Ok(event) if event.need_rescan() => all(),
            Ok(event) => event.paths.iter().flat_map(|path| self.concerning(path)).collect(),
            Err(_) => all(),
        };
        touched.into_iter().cloned().for_each(tell);
    }

    fn concerning(&self, path: &Path) -> impl Iterator<Item = &Touched> {
        let beneath = self.trees.iter().any(|tree| path.starts_with(tree));
        self.concerned.get(path).into_iter().flatten().chain(beneath.then_some(&Touched::Listing))
    }
}

/// A step on the way along a path.
enum Step {
    Into(OsString),
    Up,
}

fn names(path: &Path) -> VecDeque<Step> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(Step::Into(name.to_owned())),
        Component::ParentDir => Some(Step::Up),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(step).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;

    struct Folder {
        root: tempfile::TempDir,
        tell: Sender<Touched>,
        told: Receiver<Touched>,
    }

    impl Folder {
        fn new() -> Self {
            let (tell, told) = channel();
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("inner")).unwrap();
            fs::write(root.path().join("inner/a.yaml"), "one").unwrap();
            Self { root, tell, told }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn watch(&self, listing: &[&str], contents: &[&str]) -> Watch {
            let watched = Watched {
                listing: listing.iter().map(|name| self.path(name)).collect(),
                contents: contents.iter().map(|name| (self.path(name), format!("file:{name}"))).collect(),
            };
            let tell = self.tell.clone();
            Watch::begin(&watched, move |touched| drop(tell.send(touched))).unwrap()
        }

        /// Waits until this was heard; what else was heard before it is given back.
        fn hears(&self, touched: &Touched) -> BTreeSet<Touched> {
            let mut others = BTreeSet::new();
            loop {
                match self.told.recv_timeout(Duration::from_secs(20)) {
                    Ok(heard) if heard == *touched => return others,
                    Ok(heard) => others.insert(heard),
                    Err(error) => panic!("{touched:?} was never heard: {error}"),
                };
            }
        }
    }

    #[test]
    fn a_file_is_heard_of_whatever_happens_to_it_or_to_the_way_there() {
        type Change = fn(&Folder);
        let changes: [(&str, Change); 7] = [
            ("written", |f| fs::write(f.path("inner/a.yaml"), "two").unwrap()),
            ("replaced", |f| {
                fs::write(f.path("inner/a.tmp"), "two").unwrap();
                fs::rename(f.path("inner/a.tmp"), f.path("inner/a.yaml")).unwrap();
            }),
            ("removed", |f| fs::remove_file(f.path("inner/a.yaml")).unwrap()),
            ("moved away", |f| fs::rename(f.path("inner/a.yaml"), f.path("a.yaml")).unwrap()),
            ("its folder replaced", |f| {
                fs::create_dir(f.path("other")).unwrap();
                fs::write(f.path("other/a.yaml"), "two").unwrap();
                fs::rename(f.path("inner"), f.path("old")).unwrap();
                fs::rename(f.path("other"), f.path("inner")).unwrap();
            }),
            ("its folder removed", |f| fs::remove_dir_all(f.path("inner")).unwrap()),
            ("its mode changed", |f| {
                let mut mode = fs::metadata(f.path("inner/a.yaml")).unwrap().permissions();
                mode.set_readonly(true);
                fs::set_permissions(f.path("inner/a.yaml"), mode).unwrap();
            }),
        ];
        for (what, change) in changes {
            let folder = Folder::new();
            let _watch = folder.watch(&["inner/a.yaml"], &[]);
            change(&folder);
            assert!(folder.hears(&Touched::Listing).is_empty(), "{what}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_heard_of_when_it_comes() {
        let folder = Folder::new();
        let _watch = folder.watch(&["inner/new.yaml", "gone/b.yaml"], &[]);
        fs::write(folder.path("inner/new.yaml"), "one").unwrap();
        folder.hears(&Touched::Listing);
        while folder.told.try_recv().is_ok() {}
        fs::create_dir(folder.path("gone")).unwrap();
        folder.hears(&Touched::Listing);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_on_the_way_that_is_pointed_elsewhere_is_heard_of() {
        use std::os::unix::fs::symlink;
        let folder = Folder::new();
        symlink("inner", folder.path("current")).unwrap();
        symlink("current/a.yaml", folder.path("a.yaml")).unwrap();
        let _watch = folder.watch(&["a.yaml"], &[]);
        fs::create_dir(folder.path("next")).unwrap();
        symlink("next", folder.path("current.tmp")).unwrap();
        fs::rename(folder.path("current.tmp"), folder.path("current")).unwrap();
        folder.hears(&Touched::Listing);
        while folder.told.try_recv().is_ok() {}
        fs::write(folder.path("inner/a.yaml"), "two").unwrap();
        folder.hears(&Touched::Listing);
    }

    #[test]
    fn reading_and_what_lies_beside_are_not_heard_of() {
        let folder = Folder::new();
        let _watch = folder.watch(&["inner/a.yaml"], &["inner/notes.txt"]);
        fs::read(folder.path("inner/a.yaml")).unwrap();
        fs::write(folder.path("inner/beside.yaml"), "x").unwrap();
        fs::write(folder.path("outside.yaml"), "x").unwrap();
        // Events come in order: had the above been heard of, it would come first.
        fs::write(folder.path("inner/notes.txt"), "x").unwrap();
        assert!(folder.hears(&Touched::Contents("file:inner/notes.txt".to_owned())).is_empty());
    }

    #[test]
    fn the_contents_of_a_resource_are_told_by_its_uri_alone() {
        let folder = Folder::new();
        fs::write(folder.path("inner/b.txt"), "one").unwrap();
        let _watch = folder.watch(&["surface.yaml"], &["inner/a.yaml", "inner/b.txt"]);
        fs::write(folder.path("inner/b.txt"), "two").unwrap();
        assert!(folder.hears(&Touched::Contents("file:inner/b.txt".to_owned())).is_empty());
        while folder.told.try_recv().is_ok() {}
        fs::write(folder.path("inner/a.yaml"), "two").unwrap();
        folder.hears(&Touched::Contents("file:inner/a.yaml".to_owned()));
    }

    #[test]
    fn all_that_is_beneath_a_listed_folder_is_heard_of() {
        let folder = Folder::new();
        fs::create_dir(folder.path("inner/deep")).unwrap();
        let _watch = folder.watch(&["inner"], &[]);
        fs::write(folder.path("inner/deep/new"), "x").unwrap();
        folder.hears(&Touched::Listing);
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_in_a_circle_end() {
        use std::os::unix::fs::symlink;
        let folder = Folder::new();
        symlink("b.yaml", folder.path("a.yaml")).unwrap();
        symlink("a.yaml", folder.path("b.yaml")).unwrap();
        let _watch = folder.watch(&["a.yaml"], &[]);
        fs::remove_file(folder.path("b.yaml")).unwrap();
        folder.hears(&Touched::Listing);
    }
}
