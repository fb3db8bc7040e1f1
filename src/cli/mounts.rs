//! The surfaces of one process: which there are, under which names, and what each is served from.
//!
//! Promises: a file that is refused keeps all from being served, with the problems of every file; no two surfaces
//! have one name; each has sessions, tasks and a watch of its own, and only the limits of the process are shared.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use twodoor::core::gate::{Desk, Stance};
use twodoor::core::tasks::Running;
use twodoor::protocol::limits::TaskLimits;
use twodoor::protocol::{Dispatcher, Limits, Offer};
use twodoor::surface::frozen::{self, File, Frozen, place_of};
use twodoor::surface::{LoadedSurface, Problems, Surface, lock};
use twodoor::transport::http::{Mount, is_path_safe};
use twodoor::transport::{Engine, Hub};

use super::logging::Logging;
use super::reload::{Reading, Ready, Reload, Shown, Watching, warn_unlocked};
use super::state::State;
use super::{exit, show};

/// Most surfaces of one process: each is watched on its own, and Linux gives a user 128 watches (inotify(7)).
const SURFACES_AT_MOST: usize = 100;

/// How surfaces are served, as far as the command line says.
pub(crate) struct Wanted {
    /// The files that were named, in order.
    pub(crate) paths: Vec<PathBuf>,
    /// Whether frozen versions beside them are served too.
    pub(crate) frozen: bool,
    pub(crate) mode: lock::Mode,
    pub(crate) offer: Offer,
    pub(crate) task_list: bool,
    pub(crate) limits: Limits,
    /// Where the first surface keeps its tasks, if somebody says so.
    pub(crate) state: Option<PathBuf>,
    pub(crate) stance: Stance,
    /// Where decisions about calls are written, if not into the state folders.
    pub(crate) audit: Option<PathBuf>,
    pub(crate) watch: bool,
    pub(crate) json: bool,
}

/// A surface that is ready to be served.
pub(crate) struct Mounted {
    pub(crate) mount: Mount,
    pub(crate) reload: Reload,
}

/// One that was read.
struct Read {
    name: String,
    ready: Ready,
    reading: Reading,
    watching: Watching,
}

/// What all surfaces of the process share, beside the limits of transports.
struct Shared {
    /// Held while a surface is read again.
    turn: Arc<tokio::sync::Mutex<()>>,
    running: Running,
}

impl Wanted {
    /// Reads all surfaces and makes them ready; the one that was named first comes first.
    pub(crate) fn build(self, logging: &Logging) -> Result<Vec<Mounted>, ExitCode> {
        let files = frozen::with_versions(&self.paths, self.frozen);
        let files = files.into_iter().collect::<Result<Vec<_>, _>>().map_err(refuse)?;
        if files.len() > SURFACES_AT_MOST {
            let problem = format!("these are {} surfaces, and one process serves {SURFACES_AT_MOST}", files.len());
            show::error(&problem, "serve some of them by another process, or leave frozen ones out by --no-frozen");
            return Err(exit::surface());
        }
        let desks = files.iter().map(|_| self.desk()).collect::<Result<Vec<_>, _>>()?;
        let versions: Vec<Option<Frozen>> = files.iter().map(|(_, frozen)| frozen.clone()).collect();
        let read: Vec<_> = files.into_iter().zip(desks).map(|(file, desk)| self.read(file, desk)).collect();
        let refused = read.iter().zip(&versions).filter_map(|(read, frozen)| Some((read.as_ref().err()?, frozen)));
        let refused: Vec<_> = refused.collect();
        if !refused.is_empty() {
            for (problems, frozen) in refused {
                show::err(&show::refusal(&[problems], frozen.as_ref(), show::colour_on_stderr()));
            }
            return Err(exit::surface());
        }
        let read: Vec<_> = read.into_iter().flatten().collect();
        check_names(&read)?;
        check_bases(&read).map_err(refuse)?;
        let shared = Shared { turn: Arc::default(), running: Running::new(&TaskLimits::default()) };
        let mut mounted: Vec<Mounted> = Vec::new();
        for read in read {
            let first = mounted.first().map(|first| &first.mount.engine);
            let next = self.mount(read, first, logging, &shared)?;
            mounted.push(next);
        }
        Ok(mounted)
    }

    /// What the gate of one surface keeps.
    fn desk(&self) -> Result<Arc<Desk>, ExitCode> {
        let desk = Desk::new(self.stance);
        if let Some(file) = &self.audit {
            desk.audit_to(file).map_err(|error| {
                let remedy = "give --audit a file of this user's own, or one that does not exist yet";
                show::error(&error.to_string(), remedy);
                exit::state()
            })?;
        }
        Ok(Arc::new(desk))
    }

    fn read(&self, (path, frozen): File, desk: Arc<Desk>) -> Result<Read, Problems> {
        // From before the first reading on, so that nothing is missed.
        let watching = Watching::begin(&path, self.watch);
        let reading = Reading { path, offer: self.offer, task_list: self.task_list, mode: self.mode, frozen, desk };
        let ready = reading.read()?;
        Ok(Read { name: reading.name(&ready.loaded), ready, reading, watching })
    }

    fn mount(
        &self,
        Read { name, ready, reading, watching }: Read,
        first: Option<&Engine>,
        logging: &Logging,
        Shared { turn, running }: &Shared,
    ) -> Result<Mounted, ExitCode> {
        let mut key = [0; 32];
        if getrandom::fill(&mut key).is_err() {
            show::error("the system gives no randomness", "start again once it does: sealed state needs a secret key");
            return Err(exit::listen());
        }
        warn_unlocked(&reading.path, ready.unlocked.as_ref());
        let shown = Shown::of(&ready, &reading);
        let kept = reading.frozen.as_ref().map(|_| frozen::digest_of(&reading.path)).transpose().map_err(refuse)?;
        let hub = Hub::new();
        let folder =
            self.state.as_deref().map(|state| if first.is_some() { beside(state, &name) } else { state.to_owned() });
        let state = Arc::new(State::new(folder, &name, hub.clone(), running.clone(), Arc::clone(&reading.desk)));
        state.open_for(&ready.catalog).map_err(|(problem, remedy)| {
            show::error(&problem, remedy);
            exit::state()
        })?;
        let surface = Arc::new(Surface::new(ready.catalog));
        let dispatcher = Arc::new(Dispatcher::new(Arc::<Surface>::clone(&surface), key));
        let engine = Engine::new(dispatcher, Arc::<State>::clone(&state), self.limits.clone()).with_hub(hub.clone());
        let engine = first.map_or_else(|| engine.clone(), |first| engine.clone().beside(first));
        let (loaded, json, voice, turn) = (ready.loaded, self.json, logging.voice(), Arc::clone(turn));
        let reload =
            Reload { reading, kept, turn, state, surface, hub, watching, loaded, shown, voice, json, said: None };
        // The only one needs no other path than `/mcp`.
        let name = Some(name).filter(|name| is_path_safe(name));
        Ok(Mounted { mount: Mount { name, engine }, reload })
    }
}

fn refuse(problems: Problems) -> ExitCode {
    show::problems_on_stderr(&problems);
    exit::surface()
}

/// A folder beside another: what is in a state folder is the store's alone.
fn beside(state: &Path, name: &str) -> PathBuf {
    let mut folder = state.file_name().unwrap_or_default().to_owned();
    folder.push(format!(".{name}"));
    state.with_file_name(folder)
}

/// Each name is found at one path, so no two surfaces can have it.
fn check_names(read: &[Read]) -> Result<(), ExitCode> {
    let mut known: HashMap<&str, &Path> = HashMap::new();
    for Read { name, reading, .. } in read {
        let path = reading.path.as_path();
        if let Some(other) = known.insert(name, path) {
            let problem = format!("{} and {} are both named {name}", other.display(), path.display());
            show::error(&problem, "give one of them another name under `surface:`, or serve it by another process");
            return Err(exit::surface());
        }
        if read.len() > 1 && !is_path_safe(name) {
            let problem = format!("{} is named {name}, which cannot stand in a path", path.display());
            show::error(&problem, "give it another name under `surface:`, or serve it alone");
            return Err(exit::surface());
        }
    }
    Ok(())
}

/// A frozen surface goes by the name of its base, whether that is served here or only stands beside it.
fn check_bases(read: &[Read]) -> Result<(), Problems> {
    for Read { ready, reading, .. } in read {
        let Some(frozen) = &reading.frozen else { continue };
        let base = place_of(&frozen.base);
        let served = read
            .iter()
            .find(|other| place_of(&other.reading.path) == base)
            .map(|other| other.ready.loaded.name.clone());
        // One that cannot be read now says nothing against its versions.
        let of_base = served.or_else(|| Surface::load(&frozen.base).ok().map(|LoadedSurface { name, .. }| name));
        if let Some(of_base) = of_base {
            frozen.check_name(&ready.loaded.name, &of_base)?;
        }
    }
    Ok(())
}
