//! What a registry holds, as discovery sees it.

use std::sync::Arc;

use crate::surface::manifest::{CapabilityKind, Manifest, SkillManifest};

/// One capability that can be listed.
#[derive(Debug, Clone, PartialEq)]
pub enum Listed {
    /// A tool or an agent.
    Runs(Runs),
    /// A skill.
    Skill(Arc<SkillManifest>),
}

/// A tool or an agent, and whether it can run now.
#[derive(Debug, Clone, PartialEq)]
pub struct Runs {
    /// As its manifest states it.
    pub manifest: Arc<Manifest>,
    /// What it lacks, each in a word; empty if it is ready.
    pub missing_secrets: Vec<String>,
    /// The tools that an agent drives and that are not ready themselves.
    pub unready_tools: Vec<String>,
}

impl Runs {
    /// Whether it can run now.
    pub fn is_ready(&self) -> bool {
        self.missing_secrets.is_empty() && self.unready_tools.is_empty()
    }
}

impl Listed {
    /// What it is.
    pub fn kind(&self) -> CapabilityKind {
        match self {
            Self::Runs(runs) => runs.manifest.kind,
            Self::Skill(_) => CapabilityKind::Skill,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Runs(runs) => &runs.manifest.name,
            Self::Skill(skill) => &skill.name,
        }
    }
}
