//! `server.json`: what a registry of MCP servers is told of a surface.
//!
//! Promises: what others wrote into the file stays, byte for byte; only what the surface is the source of is written
//! anew: the schema, the version of server and packages, the digest and the surface's version under the publisher's key,
//! and title, description and website where the file has none. What comes out was held against the registry's rules.
//! Used by the command line, which reads and writes the files.

mod rules;

use serde_json::Value;

use super::json_text::{Flaw, JsonText, Ordered, Step};
use crate::protocol::{CatalogParts, Digest};

/// The only key of `_meta` that a registry keeps (registry, official requirements, Publisher-Provided Metadata).
pub(super) const PUBLISHER: &str = "io.modelcontextprotocol.registry/publisher-provided";

/// What a surface file cannot know of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stated {
    /// The server's name: a domain backwards, a slash, a name.
    pub name: Option<String>,
    /// For people.
    pub title: Option<String>,
    /// At most 100 characters.
    pub description: Option<String>,
    /// A page about it.
    pub website: Option<String>,
    /// Where its source is.
    pub repository: Option<String>,
    /// Packages that have it.
    pub packages: Vec<Package>,
    /// URLs at which it is served.
    pub remotes: Vec<String>,
}

/// A package that a server can be had in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The kind of registry: `npm`, `pypi`, `cargo`, `nuget`, `oci`, `mcpb`.
    pub kind: String,
    /// Its name there; of an image its reference, of a bundle its URL.
    pub identifier: String,
    /// Its version, where it was said.
    pub version: Option<String>,
    /// SHA-256 of its file.
    pub sha256: Option<String>,
}

impl std::str::FromStr for Package {
    type Err = String;

    /// `TYPE:IDENTIFIER[@VERSION]`, `oci:IMAGE:TAG`, `mcpb:URL#SHA256`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no package: write TYPE:IDENTIFIER, such as npm:@you/tools, oci:ghcr.io/you/tools:1.0.0 or mcpb:URL#SHA256"
            )
        };
        let (kind, rest) =
            text.split_once(':').filter(|(kind, rest)| !kind.is_empty() && !rest.is_empty()).ok_or_else(wrong)?;
        let package = |identifier: &str, version: Option<&str>, sha256: Option<&str>| Self {
            kind: kind.to_owned(),
            identifier: identifier.to_owned(),
            version: version.map(str::to_owned),
            sha256: sha256.map(str::to_owned),
        };
        match kind {
            "oci" => Ok(package(rest, None, None)),
            "mcpb" => Ok(match rest.rsplit_once('#') {
                Some((url, sha256)) => package(url, None, Some(sha256)),
                None => package(rest, None, None),
            }),
            // The name of an npm package may begin with the sign.
            "npm" | "pypi" | "cargo" | "nuget" => {
                Ok(match rest.rsplit_once('@').filter(|(name, _)| !name.is_empty()) {
                    Some((name, version)) => package(name, Some(version), None),
                    None => package(rest, None, None),
                })
            }
            _ => Err(format!("{kind:?} is no kind of package: use npm, pypi, cargo, nuget, oci or mcpb")),
        }
    }
}

/// Something that keeps a registry from taking the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// JSON pointer into the file.
    pub place: String,
    /// What was found.
    pub problem: String,
    /// How to mend it.
    pub remedy: String,
}

/// A value that is another than in the file that was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// JSON pointer into the file.
    pub place: String,
    /// What was there.
    pub from: Option<Value>,
    /// What is to be there.
    pub to: Option<Value>,
}

/// A `server.json` as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The file.
    pub bytes: Vec<u8>,
    /// What is another than before; empty if the file is current.
    pub differences: Vec<Difference>,
    /// What a registry would refuse.
    pub troubles: Vec<Trouble>,
}

/// The `server.json` of a surface, made of the one that is there, if any.
pub fn server_json(
    found: Option<&[u8]>,
    stated: &Stated,
    surface: &CatalogParts,
    digest: Digest,
) -> Result<Exported, Flaw> {
    let mut file = JsonText::read(found.unwrap_or_default())?;
    if let Some(flaw) = file.beyond_plain() {
        return Err(flaw);
    }
    let before = file.value();
    write(&mut file, &before, stated, surface, digest)?;
    let after = file.value();
    let mut differences = Vec::new();
    compare(&before, &after, String::new(), &mut differences);
    // A file that says the same is not written anew.
    let bytes = match found {
        Some(found) if differences.is_empty() => found.to_vec(),
        _ => file.bytes(),
    };
    Ok(Exported { bytes, differences, troubles: rules::check(&after) })
}

fn write(
    file: &mut JsonText,
    before: &Value,
    stated: &Stated,
    surface: &CatalogParts,
    digest: Digest,
) -> Result<(), Flaw> {
    let identity = &surface.identity;
    let mut set = |path: &[Step<'_>], value: Ordered| -> Result<(), Flaw> {
        let now = file.value();
        let there = path.iter().try_fold(&now, |value, step| match step {
            Step::Key(key) => value.get(*key),
            Step::Item(index) => value.get(*index),
        });
        if there != Some(&value.value()) {
            file.set(path, &value)?;
        }
        Ok(())
    };
    let has = |key: &str| before.get(key).is_some();
    let chosen = |stated: &Option<String>, own: &Option<String>, key: &str| {
        stated.clone().or_else(|| own.clone().filter(|_| !has(key)))
    };
    set(&[Step::Key("$schema")], rules::schema().into())?;
    if let Some(name) = &stated.name {
        set(&[Step::Key("name")], name.as_str().into())?;
    }
    for (key, value) in [
        ("title", chosen(&stated.title, &identity.title, "title")),
        ("description", chosen(&stated.description, &identity.description, "description")),
        ("websiteUrl", chosen(&stated.website, &identity.website, "websiteUrl")),
    ] {
        if let Some(value) = value {
            set(&[Step::Key(key)], value.into())?;
        }
    }
    if let Some(url) = &stated.repository {
        let source =
            if url.contains("//gitlab.com/") || url.contains("//www.gitlab.com/") { "gitlab" } else { "github" };
        set(&[Step::Key("repository"), Step::Key("url")], url.as_str().into())?;
        set(&[Step::Key("repository"), Step::Key("source")], source.into())?;
    }
    set(&[Step::Key("version")], identity.version.as_str().into())?;
    packages(file, stated, &identity.version)?;
    remotes(file, stated)?;
    let prefix = surface.digest_key.split('/').next().unwrap_or_default();
    let version_key = format!("{prefix}/surfaceVersion");
    let added = [(surface.digest_key.as_str(), digest.to_string()), (&version_key, identity.version.clone())];
    for (key, value) in added {
        let now = file.value();
        let path = [Step::Key("_meta"), Step::Key(PUBLISHER), Step::Key(key)];
        let there = now.get("_meta").and_then(|meta| meta.get(PUBLISHER)).and_then(|added| added.get(key));
        if there.and_then(Value::as_str) != Some(&value) {
            file.set(&path, &value.into())?;
        }
    }
    Ok(())
}

fn packages(file: &mut JsonText, stated: &Stated, version: &str) -> Result<(), Flaw> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    for package in &stated.packages {
        let now = file.value();
        let there = now.get("packages").and_then(Value::as_array).cloned().unwrap_or_default();
        let of_kind: Vec<usize> = there
            .iter()
            .enumerate()
            .filter(|(_, other)| text(other, "registryType") == package.kind)
            .map(|(i, _)| i)
            .collect();
        let same = |index: &&usize| {
            let other = there.get(**index).map(|other| text(other, "identifier")).unwrap_or_default();
            match package.kind.as_str() {
                "oci" => image(&other) == image(&package.identifier),
                // Another version of a bundle has another URL.
                "mcpb" => of_kind.len() == 1 || other == package.identifier,
                _ => other == package.identifier,
            }
        };
        let named_by_reference = ["oci", "mcpb"].contains(&package.kind.as_str());
        let own = (!named_by_reference).then(|| package.version.clone().unwrap_or_else(|| version.to_owned()));
        if let Some(index) = of_kind.iter().find(same) {
            let at = |key| [Step::Key("packages"), Step::Item(*index), Step::Key(key)];
            let values = [
                ("identifier", Some(&package.identifier)),
                ("version", own.as_ref()),
                ("fileSha256", package.sha256.as_ref()),
            ];
            for (key, value) in values {
                if let Some(value) = value
                    && there.get(*index).map(|other| text(other, key)).as_ref() != Some(value)
                {
                    file.set(&at(key), &value.as_str().into())?;
                }
            }
            continue;
        }
        let mut members =
            vec![("registryType", package.kind.as_str().into()), ("identifier", package.identifier.as_str().into())];
        if let Some(own) = &own {
            members.push(("version", own.as_str().into()));
        }
        if let Some(sha256) = &package.sha256 {
            members.push(("fileSha256", sha256.as_str().into()));
        }
        members.push(("transport", Ordered::map([("type", "stdio".into())])));
        append(file, "packages", Ordered::map(members))?;
    }
    // Both versions are the surface's, but where a package was said to have another: then the check says so.
    let now = file.value();
    for (index, package) in now.get("packages").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let said = stated.packages.iter().any(|said| {
            said.version.is_some()
                && said.kind == text(package, "registryType")
                && said.identifier == text(package, "identifier")
        });
        let versioned = package.get("version").is_some_and(Value::is_string);
        if versioned && !said && text(package, "version") != version && text(package, "registryType") != "oci" {
            file.set(&[Step::Key("packages"), Step::Item(index), Step::Key("version")], &version.into())?;
        }
    }
    Ok(())
}

fn remotes(file: &mut JsonText, stated: &Stated) -> Result<(), Flaw> {
    for url in &stated.remotes {
        let now = file.value();
        let there = now.get("remotes").and_then(Value::as_array).into_iter().flatten();
        if there.into_iter().any(|remote| remote.get("url").and_then(Value::as_str) == Some(url)) {
            continue;
        }
        let remote = Ordered::map([("type", "streamable-http".into()), ("url", url.as_str().into())]);
        append(file, "remotes", remote)?;
    }
    Ok(())
}

fn append(file: &mut JsonText, key: &str, value: Ordered) -> Result<(), Flaw> {
    if file.value().get(key).is_some() {
        file.push(&[Step::Key(key)], &value)?;
    } else {
        file.set(&[Step::Key(key)], &Ordered::List(vec![value]))?;
    }
    Ok(())
}

/// An image without its tag and its digest.
fn image(reference: &str) -> &str {
    let named = reference.split('@').next().unwrap_or_default();
    match named.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => named,
    }
}

fn compare(from: &Value, to: &Value, place: String, found: &mut Vec<Difference>) {
    if from == to {
        return;
    }
    match (from, to) {
        (Value::Object(old), Value::Object(new)) => {
            let keys: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let place = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
                match (old.get(key), new.get(key)) {
                    (Some(old), Some(new)) => compare(old, new, place, found),
                    (from, to) => found.push(Difference { place, from: from.cloned(), to: to.cloned() }),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(old, new, format!("{place}/{index}"), found);
            }
        }
        (from, to) => {
            let from = Some(from.clone()).filter(|from| !from.is_null());
            found.push(Difference { place, from, to: Some(to.clone()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn surface() -> CatalogParts {
        let mut parts = CatalogParts::new("tools", "1.2.0");
        parts.identity.title = Some("Tools".to_owned());
        parts.identity.description = Some("Looks at a folder.".to_owned());
        parts
    }

    fn digest() -> Digest {
        format!("sha256:{}", "0".repeat(64)).parse().unwrap()
    }

    fn stated() -> Stated {
        Stated { name: Some("io.github.you/tools".to_owned()), ..Stated::default() }
    }

    fn export(found: Option<&str>, stated: &Stated) -> Exported {
        server_json(found.map(str::as_bytes), stated, &surface(), digest()).unwrap()
    }

    fn value(exported: &Exported) -> Value {
        serde_json::from_slice(&exported.bytes).unwrap()
    }

    #[test]
    fn a_new_file_says_what_the_surface_and_the_options_say() {
        let stated = Stated {
            repository: Some("https://github.com/you/tools".to_owned()),
            packages: vec!["npm:@you/tools".parse().unwrap(), "oci:ghcr.io/you/tools:1.2.0".parse().unwrap()],
            remotes: vec!["https://example.com/mcp".to_owned()],
            ..stated()
        };
        let exported = export(None, &stated);
        assert_eq!(exported.troubles, []);
        let expected = json!({
            "$schema": rules::schema(),
            "name": "io.github.you/tools",
            "title": "Tools",
            "description": "Looks at a folder.",
            "repository": { "url": "https://github.com/you/tools", "source": "github" },
            "version": "1.2.0",
            "packages": [
                { "registryType": "npm", "identifier": "@you/tools", "version": "1.2.0", "transport": { "type": "stdio" } },
                { "registryType": "oci", "identifier": "ghcr.io/you/tools:1.2.0", "transport": { "type": "stdio" } },
            ],
            "remotes": [{ "type": "streamable-http", "url": "https://example.com/mcp" }],
            "_meta": { PUBLISHER: { "dev.twodoor/toolsDigest": digest().to_string(), "dev.twodoor/surfaceVersion": "1.2.0" } },
        });
        assert_eq!(value(&exported), expected);
        let text = String::from_utf8(exported.bytes.clone()).unwrap();
        assert!(text.starts_with("{\n  \"$schema\"") && text.ends_with("}\n"), "{text}");
        let again = export(Some(&text), &Stated::default());
        assert_eq!((again.bytes, again.differences), (exported.bytes, vec![]));
    }

    #[test]
    fn what_others_wrote_stays_and_only_the_surfaces_own_is_written_anew() {
        let found = "{\n\t\"version\": \"1.1.0\",\n\t\"name\": \"io.github.you/tools\",\n\t\"title\": \"Kept\",\n\t\"description\": \"Kept too.\",\
            \n\t\"extra\": [1.50, {}],\n\t\"packages\": [\n\t\t{ \"registryType\": \"pypi\", \"identifier\": \"tools\", \"version\": \"1.1.0\",\
            \"transport\": {\"type\": \"stdio\"}, \"runtimeHint\": \"uvx\" }\n\t],\n\t\"_meta\": {\"mine\": 1}\n}\n";
        let exported = export(Some(found), &Stated::default());
        assert_eq!(exported.troubles, []);
        let text = String::from_utf8(exported.bytes.clone()).unwrap();
        for kept in [
            "\"title\": \"Kept\"",
            "[1.50, {}]",
            "\"runtimeHint\": \"uvx\" }",
            "\t\"description\": \"Kept too.\"",
            "\"mine\": 1",
        ] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
        assert!(!text.contains("1.1.0"), "{text}");
        let places: Vec<_> = exported.differences.iter().map(|difference| difference.place.as_str()).collect();
        assert_eq!(
            places,
            [
                "/$schema",
                "/_meta/io.modelcontextprotocol.registry~1publisher-provided",
                "/packages/0/version",
                "/version"
            ]
        );
    }

    #[test]
    fn options_replace_what_the_file_says() {
        let first =
            export(None, &Stated { packages: vec!["oci:ghcr.io/you/tools:1.1.0".parse().unwrap()], ..stated() });
        let text = String::from_utf8(first.bytes).unwrap();
        let stated = Stated {
            title: Some("Other".to_owned()),
            packages: vec!["oci:ghcr.io/you/tools:1.2.0".parse().unwrap()],
            ..Stated::default()
        };
        let second = value(&export(Some(&text), &stated));
        assert_eq!(second["title"], "Other");
        assert_eq!(
            second["packages"],
            json!([{ "registryType": "oci", "identifier": "ghcr.io/you/tools:1.2.0", "transport": { "type": "stdio" } }])
        );
    }

    #[test]
    fn a_file_that_a_registry_would_refuse_is_told_so() {
        let place =
            |exported: &Exported| exported.troubles.iter().map(|trouble| trouble.place.clone()).collect::<Vec<_>>();
        assert_eq!(place(&export(None, &Stated::default())), [""]);
        let other = Stated { packages: vec!["npm:tools@3.0.0".parse().unwrap()], ..stated() };
        assert_eq!(place(&export(None, &other)), ["/packages/0/version"]);
    }

    #[test]
    fn a_file_that_is_no_plain_json_is_refused_with_its_place() {
        for (found, line) in
            [("{\n// x\n}", 2), ("{", 1), ("[]", 1), ("{\n\"version\": 1,\n\"version\": 2}", 3), ("{\"_meta\": []}", 1)]
        {
            let flaw = server_json(Some(found.as_bytes()), &stated(), &surface(), digest()).unwrap_err();
            assert_eq!(flaw.line, line, "{found}: {flaw:?}");
        }
    }

    #[test]
    fn a_package_is_named_by_kind_and_identifier() {
        let package = |text: &str| text.parse::<Package>().map(|p| (p.kind, p.identifier, p.version, p.sha256));
        let said = |kind: &str, identifier: &str, version: Option<&str>, sha256: Option<&str>| {
            Ok((kind.to_owned(), identifier.to_owned(), version.map(str::to_owned), sha256.map(str::to_owned)))
        };
        assert_eq!(package("npm:@you/tools"), said("npm", "@you/tools", None, None));
        assert_eq!(package("npm:@you/tools@1.0.0"), said("npm", "@you/tools", Some("1.0.0"), None));
        assert_eq!(package("pypi:tools@1.0.0"), said("pypi", "tools", Some("1.0.0"), None));
        assert_eq!(package("oci:ghcr.io/y/t@sha256:0"), said("oci", "ghcr.io/y/t@sha256:0", None, None));
        assert_eq!(package("mcpb:https://e.com/t.mcpb#ab"), said("mcpb", "https://e.com/t.mcpb", None, Some("ab")));
        for bad in ["", "npm", "npm:", ":x", "gem:x"] {
            assert!(package(bad).is_err(), "{bad}");
        }
        assert_eq!(
            ["a/b:1", "a:5000/b", "a/b@sha256:1", "a/b:1@sha256:2"].map(image),
            ["a/b", "a:5000/b", "a/b", "a/b"]
        );
    }
}
