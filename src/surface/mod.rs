//! Surfaces: what is declared in files, checked before anything is served.
//!
//! Promises: a surface that loads is whole; one that does not is answered with every problem at
//! once, each at its line and column with a remedy. Reading follows no link out of its folder and
//! blocks on nothing. Used by the command line, and by `core`, which runs what is declared.

mod address;
mod arguments;
pub mod declaration;
mod declare;
mod fields;
mod file;
mod lint;
mod listing;
mod load;
mod matching;
mod media;
mod parts;
mod problem;
mod quantity;
mod render;
mod resolve;
mod scalar;
mod source;
mod template;
mod tree;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use crate::protocol::{Catalog, Published};

pub use declare::DEFAULT_CAP;
pub use lint::rules;
pub use load::LoadedSurface;
pub use problem::{Problem, Problems, Rule, Severity, did_you_mean};
pub use render::render;

/// The catalog in force; another can be published at any time.
#[derive(Debug)]
pub struct Surface(RwLock<Arc<Catalog>>);

impl Surface {
    /// A surface that begins with a catalog.
    pub fn new(catalog: Catalog) -> Self {
        Self(RwLock::new(Arc::new(catalog)))
    }

    /// Reads and checks a surface file. An error holds every problem of the file, warnings included.
    pub fn load(path: &Path) -> Result<LoadedSurface, Problems> {
        load::load(path)
    }

    /// Puts another catalog in force; calls that began on the one before end on it.
    pub fn publish(&self, catalog: Catalog) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }
}

impl Published for Surface {
    fn current(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}
