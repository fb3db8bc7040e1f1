//! A disk for tests that can fail at any step and forgets at a crash what nobody synced.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::{Disk, Lock, Wait};

/// What happens at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The machine stops: this step may be done in part, and no other is.
    Crash,
    /// This step alone fails, done in part.
    Once(ErrorKind),
    /// This step and all after it fail, done in part.
    Forever(ErrorKind),
}

/// See the module. Cloning shares it.
#[derive(Clone)]
pub(crate) struct ModelDisk(Arc<Mutex<State>>);

#[derive(Clone, Default)]
struct State {
    names: BTreeMap<PathBuf, Node>,
    synced: BTreeMap<PathBuf, Node>,
    /// What was done to names and not synced, in its order, with the folder it was done in.
    pending: Vec<(PathBuf, Step)>,
    files: Vec<Bytes>,
    locked: BTreeSet<PathBuf>,
    steps: usize,
    fault: Option<(usize, Fault)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Node {
    Folder,
    File(usize),
}

#[derive(Clone, Default)]
struct Bytes {
    now: Vec<u8>,
    synced: Option<Vec<u8>>,
}

#[derive(Clone)]
enum Step {
    Put(PathBuf, Node),
    Take(PathBuf),
    Move(PathBuf, PathBuf, Node),
}

fn apply(names: &mut BTreeMap<PathBuf, Node>, step: &Step) {
    match step {
        Step::Put(path, node) => {
            names.insert(path.clone(), *node);
        }
        Step::Take(path) => {
            names.remove(path);
        }
        Step::Move(from, to, node) => {
            names.remove(from);
            names.insert(to.clone(), *node);
        }
    }
}

fn missing() -> io::Error {
    ErrorKind::NotFound.into()
}

impl ModelDisk {
    /// An empty folder on an empty disk.
    pub(crate) fn new(root: &Path) -> Self {
        let names = BTreeMap::from([(root.to_owned(), Node::Folder)]);
        Self(Arc::new(Mutex::new(State { synced: names.clone(), names, ..State::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From the `n`-th step from now on, counted from 0, this happens.
    pub(crate) fn fail(&self, n: usize, fault: Fault) {
        let mut state = self.lock();
        state.fault = Some((state.steps + n, fault));
    }

    /// All is well again.
    pub(crate) fn mend(&self) {
        self.lock().fault = None;
    }

    /// Whether the step that was to fail was never come to.
    pub(crate) fn was_spared(&self) -> bool {
        let state = self.lock();
        state.fault.is_none_or(|(at, _)| state.steps <= at)
    }

    /// The disk after a loss of power: of what was not synced some is there, by the bits of `luck`.
    pub(crate) fn crash(&self, mut luck: u64) -> Self {
        let state = self.lock().clone();
        let mut coin = || {
            // An xorshift generator: the same luck gives the same disk.
            luck ^= luck << 13;
            luck ^= luck >> 7;
            luck ^= luck << 17;
            luck
        };
        let mut names = state.synced;
        for (_, step) in &state.pending {
            if coin() % 2 == 0 {
                apply(&mut names, step);
            }
        }
        let orphan = |path: &Path, names: &BTreeMap<PathBuf, Node>| {
            path.ancestors()
                .skip(1)
                .any(|above| names.keys().any(|k| above.starts_with(k)) && !names.contains_key(above))
        };
        let lost: Vec<PathBuf> = names.keys().filter(|path| orphan(path, &names)).cloned().collect();
        names.retain(|path, _| !lost.contains(path));
        let files = state.files.into_iter().map(|file| {
            let now = match (file.synced, coin() % 3) {
                (Some(synced), _) => synced,
                (None, 0) => Vec::new(),
                (None, 1) => file.now[..usize::try_from(coin()).unwrap_or(0) % (file.now.len() + 1)].to_vec(),
                (None, _) => file.now,
            };
            Bytes { synced: Some(now.clone()), now }
        });
        let files = files.collect();
        Self(Arc::new(Mutex::new(State { synced: names.clone(), names, files, ..State::default() })))
    }

    /// Puts a file there that nobody of ours wrote.
    pub(crate) fn plant(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.lock();
        state.files.push(Bytes { now: bytes.to_vec(), synced: Some(bytes.to_vec()) });
        let node = Node::File(state.files.len() - 1);
        state.names.insert(path.to_owned(), node);
        state.synced.insert(path.to_owned(), node);
    }

    /// Every file and its bytes.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.lock();
        let file = |(path, node): (&PathBuf, &Node)| match node {
            Node::File(index) => Some((path.clone(), state.files[*index].now.clone())),
            Node::Folder => None,
        };
        state.names.iter().filter_map(file).collect()
    }

    /// One step: `work` is told whether to do it in part only.
    fn step<T>(&self, work: impl FnOnce(&mut State, bool) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.lock();
        let at = state.steps;
        state.steps += 1;
        let broken = || io::Error::other("the machine has stopped");
        match state.fault {
            Some((when, Fault::Crash)) if at > when => Err(broken()),
            Some((when, Fault::Crash)) if at == when => work(&mut state, true).and(Err(broken())),
            Some((when, Fault::Once(kind))) if at == when => work(&mut state, true).and(Err(kind.into())),
            Some((when, Fault::Forever(kind))) if at >= when => work(&mut state, true).and(Err(kind.into())),
            _ => work(&mut state, false),
        }
    }
}

impl State {
    fn done(&mut self, folder: Option<&Path>, step: Step) {
        apply(&mut self.names, &step);
        self.pending.push((folder.unwrap_or(Path::new("/")).to_owned(), step));
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        match self.names.get(path) {
            Some(Node::File(index)) => Ok(*index),
            Some(Node::Folder) => Err(ErrorKind::IsADirectory.into()),
            None => Err(missing()),
        }
    }

    fn within(&self, folder: &Path) -> Vec<PathBuf> {
        self.names.keys().filter(|path| path.parent() == Some(folder)).cloned().collect()
    }
}

impl Disk for ModelDisk {
    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let state = self.lock();
        if state.names.get(folder) != Some(&Node::Folder) {
            return Err(missing());
        }
        Ok(state.within(folder).iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect())
    }

    fn distrusts(&self, _: &Path) -> io::Result<Option<&'static str>> {
        Ok(None)
    }

    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        let state = self.lock();
        state.file(file).map(|index| state.files[index].now.clone())
    }

    fn write_new(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        self.step(|state, partly| {
            if state.names.contains_key(file) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            if state.names.get(file.parent().unwrap()) != Some(&Node::Folder) {
                return Err(missing());
            }
            let now = if partly { bytes[..bytes.len() / 2].to_vec() } else { bytes.to_vec() };
            state.files.push(Bytes { now, synced: None });
            let node = Node::File(state.files.len() - 1);
            state.done(file.parent(), Step::Put(file.to_owned(), node));
            Ok(())
        })
    }

    fn sync_file(&self, file: &Path) -> io::Result<()> {
        self.step(|state, partly| {
            let index = state.file(file)?;
            if !partly {
                state.files[index].synced = Some(state.files[index].now.clone());
            }
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|state, partly| {
            let node = Node::File(state.file(from)?);
            if !partly {
                state.done(from.parent(), Step::Move(from.to_owned(), to.to_owned(), node));
            }
            Ok(())
        })
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        self.step(|state, partly| {
            state.file(file)?;
            if !partly {
                state.done(file.parent(), Step::Take(file.to_owned()));
            }
            Ok(())
        })
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.step(|state, _| {
            if state.names.contains_key(folder) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            state.done(folder.parent(), Step::Put(folder.to_owned(), Node::Folder));
            Ok(())
        })
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.step(|state, partly| {
            if !state.within(folder).is_empty() {
                return Err(ErrorKind::DirectoryNotEmpty.into());
            }
            if !partly {
                state.done(folder.parent(), Step::Take(folder.to_owned()));
            }
            Ok(())
        })
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.step(|state, partly| {
            if !partly {
                let (mine, others) = std::mem::take(&mut state.pending).into_iter().partition(|(of, _)| of == folder);
                state.pending = others;
                let mine: Vec<(PathBuf, Step)> = mine;
                mine.iter().for_each(|(_, step)| apply(&mut state.synced, step));
            }
            Ok(())
        })
    }

    fn lock(&self, file: &Path, wait: Wait) -> io::Result<Option<Box<dyn Lock>>> {
        loop {
            let mut state = ModelDisk::lock(self);
            if state.names.get(file.parent().unwrap()) != Some(&Node::Folder) {
                return Err(missing());
            }
            if !state.names.contains_key(file) {
                state.files.push(Bytes::default());
                let node = Node::File(state.files.len() - 1);
                state.done(file.parent(), Step::Put(file.to_owned(), node));
            }
            if state.locked.insert(file.to_owned()) {
                return Ok(Some(Box::new(ModelLock(self.clone(), file.to_owned()))));
            }
            drop(state);
            match wait {
                Wait::Yes => std::thread::yield_now(),
                Wait::No => return Ok(None),
            }
        }
    }
}

struct ModelLock(ModelDisk, PathBuf);

impl Lock for ModelLock {}

impl Drop for ModelLock {
    fn drop(&mut self) {
        self.0.lock().locked.remove(&self.1);
    }
}
