//! What is run, as one digest: what a call was judged by, and what an approval of it is of.
//!
//! Promises: whatever in a manifest could make another deed of a call changes the digest. What a program file holds is
//! no part of it. Reads nothing but what it is given.

use super::validate::Called;
use super::words::{Object, Word};
use crate::protocol::digest::{self, Digest};
use crate::surface::manifest::{Manifest, ManifestAction, ManifestArg, ManifestSecret};

/// The digest of the action of a call, with what of its capability decides what runs.
pub fn definition(called: Called<'_>) -> Digest {
    // Each field is named, so that one which is added is thought of.
    let Manifest {
        kind,
        name,
        description: _,
        version: _,
        runtime,
        entrypoint,
        folder: _,
        argv_style,
        max_concurrent: _,
        args: of_all,
        actions: _,
        secrets,
        routing: _,
        drives,
        output_schema: _,
        examples: _,
    } = called.manifest;
    let told = Object::new()
        .with("kind", kind.name())
        .with("name", name.as_str())
        .with("runtime", format!("{runtime:?}"))
        .with("entrypoint", entrypoint.to_string_lossy().into_owned())
        .with("argv_style", format!("{argv_style:?}"))
        .with("args", args(of_all))
        .with("action", called.action.map(action))
        .with("secrets", secrets.iter().map(secret).collect::<Vec<_>>())
        .with("drives", drives.clone());
    digest::of_bytes(told.into_json().to_text().as_bytes())
}

fn action(action: &ManifestAction) -> Object {
    let ManifestAction { name, description, args: own, effects, blast_class, output_schema: _, examples: _ } = action;
    Object::new()
        .with("name", name.as_str())
        .with("description", description.as_str())
        .with("args", args(own))
        .with("effects", effects.map(|effects| format!("{effects:?}")))
        .with("blast_class", blast_class.clone())
}

fn args(args: &[ManifestArg]) -> Vec<Object> {
    let told = |arg: &ManifestArg| {
        let ManifestArg { name, kind, required, description, default, schema, stdin } = arg;
        Object::new()
            .with("name", name.as_str())
            .with("type", kind.name())
            .with("required", *required)
            .with("description", description.as_str())
            .with("default", default.clone().map(Word::from))
            .with("schema", schema.clone().map(Word::from))
            .with("stdin", *stdin)
    };
    args.iter().map(told).collect()
}

fn secret(secret: &ManifestSecret) -> Object {
    let ManifestSecret { name, description: _, optional } = secret;
    Object::new().with("name", name.as_str()).with("optional", *optional)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::capability::{samples, validate};
    use crate::surface::manifest::{ArgType, ArgvStyle, Effects, Runtime};

    #[test]
    fn whatever_makes_another_deed_makes_another_digest_and_nothing_else_does() {
        let of = |change: &dyn Fn(&mut Manifest)| {
            let mut manifest = samples::xlsx();
            change(&mut manifest);
            definition(validate::action(&manifest, Some("dump")).unwrap())
        };
        let plain = of(&|_| {});
        let others: [&dyn Fn(&mut Manifest); 10] = [
            &|manifest| manifest.runtime = Runtime::Python,
            &|manifest| manifest.entrypoint = "/bin/false".into(),
            &|manifest| manifest.argv_style = ArgvStyle::Space,
            &|manifest| manifest.drives = vec!["mail".into()],
            &|manifest| {
                manifest.secrets = vec![ManifestSecret { name: "k".into(), description: String::new(), optional: true }]
            },
            &|manifest| manifest.actions[2].effects = Some(Effects::Write),
            &|manifest| manifest.actions[2].description = "Sends it.".into(),
            &|manifest| manifest.actions[2].blast_class = Some("money-out".into()),
            &|manifest| manifest.actions[2].args.push(samples::arg("to", ArgType::String, false)),
            &|manifest| manifest.actions[2].args[0].stdin = true,
        ];
        let digests: std::collections::HashSet<_> =
            others.iter().map(|other| of(other).to_string()).chain([plain.to_string()]).collect();
        assert_eq!(digests.len(), others.len() + 1);
        let same: [&dyn Fn(&mut Manifest); 3] = [
            &|manifest| manifest.description = "Other words.".into(),
            &|manifest| manifest.routing.triggers = vec!["sheet".into()],
            &|manifest| manifest.actions[0].effects = Some(Effects::Irreversible),
        ];
        assert!(same.iter().all(|same| of(same) == plain));
    }
}
