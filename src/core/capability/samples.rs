//! Manifests that tests are written with.

use std::path::PathBuf;

use crate::surface::manifest::{
    ArgType, ArgvStyle, CapabilityKind, Manifest, ManifestAction, ManifestArg, Routing, Runtime,
};

pub(super) fn arg(name: &str, kind: ArgType, required: bool) -> ManifestArg {
    ManifestArg {
        name: name.to_owned(),
        kind,
        required,
        description: format!("The {name}."),
        default: None,
        schema: None,
        stdin: false,
    }
}

pub(super) fn action(name: &str, args: Vec<ManifestArg>) -> ManifestAction {
    ManifestAction {
        name: name.to_owned(),
        description: format!("Does {name}."),
        args,
        effects: None,
        blast_class: None,
        output_schema: None,
        examples: Vec::new(),
    }
}

pub(super) fn tool(name: &str, actions: Vec<ManifestAction>) -> Manifest {
    Manifest {
        kind: CapabilityKind::Tool,
        name: name.to_owned(),
        description: format!("Works with {name}."),
        version: "0.1.0".to_owned(),
        runtime: Runtime::Exec,
        entrypoint: PathBuf::from("/bin/true"),
        folder: PathBuf::from("/"),
        argv_style: ArgvStyle::Eq,
        max_concurrent: 8,
        args: Vec::new(),
        actions,
        secrets: Vec::new(),
        routing: Routing::default(),
        drives: Vec::new(),
        output_schema: None,
        examples: Vec::new(),
    }
}

/// The contract's sample.
pub(super) fn xlsx() -> Manifest {
    let path = || arg("path", ArgType::String, true);
    let most = || arg("max-results", ArgType::Integer, false);
    tool(
        "xlsx",
        vec![
            action("list-sheets", vec![path()]),
            action("read-sheet", vec![path(), arg("sheet", ArgType::String, false), most()]),
            action("dump", vec![path(), arg("save", ArgType::String, false), most()]),
        ],
    )
}
