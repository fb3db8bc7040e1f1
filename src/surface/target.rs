//! What a target leads to in its registry: a decision over what was written and what was read.

use std::path::PathBuf;
use std::sync::Arc;

use super::arguments::ArgumentEntry;
use super::file::TargetEntry;
use super::manifest::{CapabilityKind, Manifest, ManifestAction, ManifestArg, Scan};
use super::problem::Problems;

/// The registry of a surface: a project's folder, links resolved, and what it registers.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) scan: Scan,
}

/// An action of a capability.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim<'r> {
    pub(crate) manifest: &'r Arc<Manifest>,
    /// `None` of a capability without actions.
    pub(crate) action: Option<&'r ManifestAction>,
}

/// Why a target leads nowhere.
#[derive(Debug)]
pub(crate) enum Miss<'r> {
    /// There is no such capability.
    NoCapability,
    /// Its manifest cannot be used.
    Broken(&'r Problems),
    /// It has no such action.
    NoAction(&'r Manifest),
}

impl Project {
    /// What a target leads to.
    pub(crate) fn aim(&self, target: &TargetEntry) -> Result<Aim<'_>, Miss<'_>> {
        let Some(manifest) = self.scan.find(target.kind, &target.name.value) else {
            let kinds = [CapabilityKind::Tool, CapabilityKind::Agent];
            let broken = self.scan.entries.iter().find_map(|entry| match &entry.found {
                Err(problems) if entry.folder == target.name.value && kinds.contains(&entry.kind) => Some(problems),
                _ => None,
            });
            return Err(broken.map_or(Miss::NoCapability, Miss::Broken));
        };
        match &target.action {
            None if manifest.actions.is_empty() => Ok(Aim { manifest, action: None }),
            None => Err(Miss::NoAction(manifest)),
            Some(named) => {
                let action = manifest.action(&named.value);
                action.map(|action| Aim { manifest, action: Some(action) }).ok_or(Miss::NoAction(manifest))
            }
        }
    }
}

impl<'r> Aim<'r> {
    /// The arguments that it takes.
    pub(crate) fn args(self) -> &'r [ManifestArg] {
        match self.action {
            Some(action) => &action.args,
            None => &self.manifest.args,
        }
    }

    /// The argument that one of the surface is passed on as: the one it names, else that of its own name, else the one
    /// whose name has `-` where its own has `_`.
    pub(crate) fn arg(self, argument: &ArgumentEntry) -> Option<&'r ManifestArg> {
        let named = |name: &str| self.args().iter().find(|arg| arg.name == name);
        match &argument.flag {
            Some(flag) => named(&flag.value),
            None => {
                let name = argument.name.value.as_str();
                named(name).or_else(|| self.args().iter().find(|arg| arg.name.replace('-', "_") == name))
            }
        }
    }
}
