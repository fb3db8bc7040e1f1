//! The state folder of a served surface: where it is, and who keeps tasks in it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use twodoor::core::Tasks;
use twodoor::core::tasks::Audience;
use twodoor::protocol::limits::TaskLimits;
use twodoor::protocol::{Catalog, Invoke, Principal, TaskView};
use twodoor::transport::Hub;

use super::{exit, show};

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

/// Opens the tasks of a surface; what is wrong is shown.
pub(crate) fn open(
    folder: Option<&Path>,
    surface: &str,
    catalog: &Catalog,
    invoke: Arc<dyn Invoke>,
    hub: &Hub,
) -> Result<Tasks, ExitCode> {
    let Some(folder) = folder.map(Path::to_owned).or_else(|| default_folder(surface, |name| std::env::var_os(name)))
    else {
        show::error("there is no home to keep tasks in: HOME is not set", "give a folder with --state");
        return Err(exit::state());
    };
    let opened = Tasks::open(&folder, catalog, invoke, Listeners(hub.clone()), TaskLimits::default());
    opened.map_err(|error| {
        show::error(&error.to_string(), error.remedy());
        exit::state()
    })
}

/// Where state is kept if nobody says where (XDG Base Directory Specification: relative paths are ignored).
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
