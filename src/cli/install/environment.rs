//! The variables that a server needs of the environment in which a client starts it: names, never values.

use std::collections::BTreeMap;

use twodoor::surface::LoadedSurface;
use twodoor::surface::declaration::{DeclaredBackend, Source, Variable};
use twodoor::surface::manifest::{CapabilityKind, Manifest, Scan, scan};
use twodoor::surface::outward::{DeclaredHeader, HeaderPiece, UpstreamWay};

/// Those that clients hand on without being told, and programs are started with.
const HANDED_ON: [&str; 8] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];

/// Each variable by its name, and whether the server can do without it.
#[derive(Debug, Default)]
pub(super) struct Needed(BTreeMap<String, bool>);

impl Needed {
    pub(super) fn of(loaded: &LoadedSurface) -> Self {
        let mut needed = Self::default();
        let registry = loaded.registry.as_deref().map(scan);
        for tool in &loaded.tools {
            match &tool.backend {
                DeclaredBackend::Command(run) => needed.inherited(&run.env),
                DeclaredBackend::Http(request) => needed.headers(&request.headers),
                DeclaredBackend::Upstream(of) => match &of.upstream.way {
                    UpstreamWay::Program { env, .. } => needed.inherited(env),
                    UpstreamWay::Url { headers, .. } => needed.headers(headers),
                },
                DeclaredBackend::Target(target) => {
                    let scan = registry.iter();
                    scan.for_each(|scan| needed.named(scan, target.kind, &target.name));
                }
                DeclaredBackend::Builtin(_) => {
                    let all = registry.iter().flat_map(Scan::capabilities);
                    all.for_each(|manifest| needed.secrets(manifest));
                }
            }
        }
        let sources = loaded.resources.iter().map(|resource| &resource.source);
        for source in sources.chain(loaded.templates.iter().map(|template| &template.source)) {
            if let Source::Command(command) = source {
                needed.inherited(&command.run.env);
            }
        }
        needed
    }

    fn add(&mut self, name: &str, optional: bool) {
        if !HANDED_ON.contains(&name) {
            let known = self.0.entry(name.to_owned()).or_insert(optional);
            *known &= optional;
        }
    }

    fn inherited(&mut self, env: &[Variable]) {
        for variable in env {
            if let Variable::Inherited(name) = variable {
                self.add(name, true);
            }
        }
    }

    fn headers(&mut self, headers: &[DeclaredHeader]) {
        for piece in headers.iter().flat_map(|header| &header.value) {
            if let HeaderPiece::Secret(name) = piece {
                self.add(name, false);
            }
        }
    }

    /// Those of a capability, and of the tools that it drives.
    fn named(&mut self, scan: &Scan, kind: CapabilityKind, name: &str) {
        let Some(manifest) = scan.find(Some(kind), name) else { return };
        self.secrets(manifest);
        let driven = manifest.drives.iter().filter_map(|name| scan.find(Some(CapabilityKind::Tool), name));
        driven.for_each(|tool| self.secrets(tool));
    }

    fn secrets(&mut self, manifest: &Manifest) {
        for secret in &manifest.secrets {
            self.add(&secret.variable(), secret.optional);
        }
    }

    /// What to do about them, in a client whose entry has them there.
    pub(super) fn note(&self, place: &str) -> Option<String> {
        let name = |(name, optional): (&String, &bool)| match optional {
            true => format!("{name} (optional)"),
            false => name.clone(),
        };
        let names: Vec<String> = self.0.iter().map(name).collect();
        (!names.is_empty()).then(|| {
            format!(
                "the server reads these variables of its environment, which a client may not hand on by itself: {}; name \
                 them under {place} of the entry, which stays there when this command is run again",
                names.join(", ")
            )
        })
    }
}
