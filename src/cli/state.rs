//! The state folder of a served surface: where it is, and who keeps tasks in it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use twodoor::core::gate::Desk;
use twodoor::core::tasks::{Audience, Running};
use twodoor::core::{ByCatalog, Router, Tasks};
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::limits::TaskLimits;
use twodoor::protocol::{Caller, Catalog, Invocation, Invoke, Outcome, Principal, TaskView};
use twodoor::transport::Hub;

/// Whoever listens to the hub hears of tasks.
struct Listeners(Hub);

impl Audience for Listeners {
    fn task(&self, principal: &Principal, task: TaskView) {
        self.0.task(principal, task);
    }

    fn updated(&self, uri: &str) {
        self.0.updated(uri);
    }
}

/// Carries out everything that is asked of a surface; keeps its tasks, once it has any, and what its gate needs.
pub(crate) struct State {
    folder: Option<PathBuf>,
    surface: String,
    hub: Hub,
    running: Running,
    desk: Arc<Desk>,
    tasks: OnceLock<Tasks>,
    sweeping: AtomicBool,
}

impl State {
    /// Nothing is opened yet. Tasks run within `running`, whoever else does.
    pub(crate) fn new(folder: Option<PathBuf>, surface: &str, hub: Hub, running: Running, desk: Arc<Desk>) -> Self {
        let (tasks, sweeping) = (OnceLock::new(), AtomicBool::new(false));
        Self { folder, surface: surface.to_owned(), hub, running, desk, tasks, sweeping }
    }

    /// Opens the folder, if the catalog has tools that make tasks, or that a person may have to approve, and it is not
    /// open; or the problem and its remedy.
    pub(crate) fn open_for(&self, catalog: &Catalog) -> Result<(), (String, &'static str)> {
        let folder = || self.folder.clone().or_else(|| folder_of(&self.surface));
        // Without a folder a person is asked through the client alone.
        if catalog.behind::<Router>().is_some_and(|router| router.is_gated())
            && let Some(folder) = folder()
        {
            self.desk.open(&folder).map_err(|error| (error.to_string(), error.remedy()))?;
        }
        if !catalog.has_tasks() || self.tasks.get().is_some() {
            return Ok(());
        }
        let Some(folder) = folder() else {
            let problem = "there is no home to keep tasks in: HOME is not set".to_owned();
            return Err((problem, "give a folder with --state"));
        };
        let (invoke, listeners) = (Arc::new(ByCatalog), Listeners(self.hub.clone()));
        let (limits, running) = (TaskLimits::default(), self.running.clone());
        let opened = Tasks::open_within(&folder, catalog, invoke, listeners, limits, running);
        let tasks = opened.map_err(|error| (error.to_string(), error.remedy()))?;
        let _ = self.tasks.set(tasks);
        Ok(())
    }

    /// Has what is too old removed from time to time; needs a runtime.
    pub(crate) fn sweep(&self) {
        if let Some(tasks) = self.tasks.get()
            && !self.sweeping.swap(true, Ordering::AcqRel)
        {
            tokio::spawn(tasks.clone().sweep());
        }
    }

    /// Ends the tasks that run.
    pub(crate) async fn stop(&self) {
        if let Some(tasks) = self.tasks.get() {
            tasks.stop().await;
        }
    }
}

impl Invoke for State {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        match self.tasks.get() {
            Some(tasks) => tasks.invoke(invocation, caller),
            None => ByCatalog.invoke(invocation, caller),
        }
    }
}

/// Where the state of a surface is kept if nobody says where.
pub(crate) fn folder_of(surface: &str) -> Option<PathBuf> {
    default_folder(surface, |name| std::env::var_os(name))
}

/// The same for these variables (XDG Base Directory Specification: relative paths are ignored).
fn default_folder(surface: &str, variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    // A surface may be named `..`, which is no name of a folder.
    let name = if surface.starts_with('.') { format!("_{surface}") } else { surface.to_owned() };
    Some(base.join("twodoor").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_kept_beneath_the_users_own_folder_under_the_surfaces_name() {
        let set = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into())
        };
        for (surface, pairs, expected) in [
            ("repo", &[("XDG_STATE_HOME", "/x"), ("HOME", "/h")][..], Some("/x/twodoor/repo")),
            ("repo", &[("HOME", "/h")], Some("/h/.local/state/twodoor/repo")),
            ("repo", &[("XDG_STATE_HOME", "x"), ("HOME", "/h")], Some("/h/.local/state/twodoor/repo")),
            ("..", &[("HOME", "/h")], Some("/h/.local/state/twodoor/_..")),
            ("repo", &[], None),
        ] {
            assert_eq!(default_folder(surface, set(pairs)), expected.map(PathBuf::from));
        }
    }
}
