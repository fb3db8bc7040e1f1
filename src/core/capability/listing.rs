//! What a registry holds, as discovery sees it.

use std::sync::Arc;

use crate::surface::manifest::{CapabilityKind, Manifest, Readiness, SkillManifest, State};

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
    /// What it lacks.
    pub readiness: Readiness,
}

impl Runs {
    /// Whether it can run now.
    pub fn is_ready(&self) -> bool {
        self.readiness.ready
    }

    /// What it lacks, each in a few words; nothing if it is ready.
    pub fn lacks(&self) -> Vec<String> {
        let Readiness { own, missing_secrets, tool_status, .. } = &self.readiness;
        let mut lacks = Vec::new();
        if !missing_secrets.is_empty() {
            lacks.push(format!("it lacks the secret {}", missing_secrets.join(", ")));
        } else if *own == State::NeedsScopes {
            lacks.push("a secret of it does not reach far enough".to_owned());
        }
        for tool in tool_status.iter().filter(|tool| !tool.ready) {
            lacks.push(match (tool.present, tool.missing_secrets.as_slice()) {
                (false, _) => format!("it drives {}, which is not there", tool.name),
                (true, []) => format!("it drives {}, which is not ready", tool.name),
                (true, missing) => format!("it drives {}, which lacks the secret {}", tool.name, missing.join(", ")),
            });
        }
        lacks
    }

    /// The secrets that are missing, its own and those of the tools that it drives.
    pub fn missing_secrets(&self) -> Vec<&str> {
        let driven = self.readiness.tool_status.iter().flat_map(|tool| &tool.missing_secrets);
        let mut missing: Vec<&str> = Vec::new();
        for secret in self.readiness.missing_secrets.iter().chain(driven) {
            if !missing.contains(&secret.as_str()) {
                missing.push(secret);
            }
        }
        missing
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
