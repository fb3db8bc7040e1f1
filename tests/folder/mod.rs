//! A folder for the surface files of one test, and their loading.

use std::fs;
use std::path::{Path, PathBuf};

use twodoor::surface::{LoadedSurface, Surface, render};

/// A folder of one test, removed at its end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("twodoor-test-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder.canonicalize().unwrap())
    }

    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The surface of a file that must load.
pub(crate) fn load(path: &Path) -> LoadedSurface {
    Surface::load(path).unwrap_or_else(|problems| panic!("{}", render(&problems, false)))
}
