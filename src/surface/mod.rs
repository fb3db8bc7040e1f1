//! Surfaces: what is declared in files, checked before anything is served.
//!
//! Promises: a surface that loads is whole; one that does not is answered with every problem at
//! once, each at its line and column with a remedy. Reading follows no link out of its folder and
//! blocks on nothing. Used by the command line, and by `core`, which runs what is declared.

mod address;
mod arguments;
pub mod builtin;
pub mod callers;
pub mod declaration;
mod declare;
pub mod draft;
pub mod effect;
pub mod export;
mod fields;
mod file;
pub mod frozen;
pub mod json_text;
pub mod level;
mod lint;
mod listing;
mod load;
pub mod lock;
pub mod manifest;
pub mod mark;
mod matching;
mod media;
pub mod outward;
mod parts;
mod problem;
mod quantity;
mod render;
mod resolve;
pub mod rules;
mod scalar;
mod skills;
mod source;
mod target;
mod template;
mod tree;
mod url;
pub mod version;
mod watch;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use crate::protocol::{Catalog, CatalogParts, Changed, Published};

pub(crate) use arguments::can_say;
pub use declare::DEFAULT_CAP;
pub use lint::rules;
pub(crate) use lint::similar_names::folded;
pub use load::LoadedSurface;
pub use problem::{Problem, Problems, Rule, Severity, did_you_mean};
pub use render::{render, render_all};
pub use watch::{Touched, Watch, WatchError, Watched};

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

    /// What a surface file says it publishes, whether or not this machine could serve it: programs are not looked for.
    /// Refused is what cannot be read without doubt.
    pub fn declared(path: &Path) -> Result<CatalogParts, Problems> {
        match source::open(path) {
            Ok(opened) => load::declared(opened.findings, &load::Host::new(opened.folder)),
            Err(findings) => Err(findings.into_problems()),
        }
    }

    /// The same of the text of a surface file that would stand at this path.
    pub fn declared_in(path: &Path, text: Vec<u8>) -> Result<CatalogParts, Problems> {
        let findings =
            source::decode(path, text).map(problem::Findings::new).map_err(problem::Findings::into_problems)?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        load::declared(findings, &load::Host::new(folder))
    }

    /// What is to be watched of a surface file that was not read yet.
    pub fn watched(path: &Path) -> Watched {
        load::watched(path)
    }

    /// Puts another catalog in force, and says what differs from the one before, on which calls that began end.
    pub fn publish(&self, catalog: Catalog) -> Changed {
        let catalog = Arc::new(catalog);
        let old = {
            let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, Arc::clone(&catalog))
        };
        // Outside the lock: the last to hold a catalog drops what is behind it.
        Changed::between(&old, &catalog)
    }
}

impl Published for Surface {
    fn current(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ToolParts;

    fn catalog(tool: &str) -> Catalog {
        Catalog::build(CatalogParts { tools: vec![ToolParts::new(tool)], ..CatalogParts::new("s", "1.0.0") }).unwrap()
    }

    #[test]
    fn what_is_behind_a_catalog_is_dropped_with_the_last_that_holds_it() {
        let behind = Arc::new("old");
        let surface = Surface::new(catalog("a").with_behind(Arc::clone(&behind)));
        let call = surface.current();
        let changed = surface.publish(catalog("b").with_behind(Arc::new("new")));
        assert_eq!(changed, Changed { tools: true, ..Changed::default() });
        assert_eq!(call.behind::<Arc<&str>>().map(|found| **found), Some("old"));
        assert_eq!(surface.current().behind::<Arc<&str>>().map(|found| **found), Some("new"));
        assert!(surface.current().behind::<String>().is_none());
        assert_eq!(Arc::strong_count(&behind), 2);
        drop(call);
        assert_eq!(Arc::strong_count(&behind), 1);
    }

    #[test]
    fn the_same_catalog_again_differs_in_nothing() {
        let surface = Surface::new(catalog("a"));
        assert!(surface.publish(catalog("a")).is_none());
    }
}
