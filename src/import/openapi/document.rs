//! An OpenAPI document as a tree, whose references lead within it and nowhere else.
//!
//! Promises: reading is bounded in size, depth and, aliases written out, in memory; nothing is fetched; a reference that leads
//! outside, to nothing or round in a circle is told as such.

use crate::import::sheet::ImportError;
use crate::protocol::Json;
use crate::protocol::json::{JsonError, JsonLimits, shortened};
use crate::surface::draft;

/// Longest document that is read.
pub const DOCUMENT_BYTES: usize = 32 * 1024 * 1024;
/// What its tree may count for, aliases written out.
const TREE_BYTES: usize = 128 * 1024 * 1024;
/// Most references that lead from one to the next.
const HOPS: usize = 32;

const REMEDY: &str = "give an OpenAPI document of version 3.0 or 3.1, in JSON or YAML";

/// A document.
#[derive(Debug, Clone)]
pub struct Document {
    root: Json,
    pub(super) remarks: Vec<String>,
}

impl Document {
    /// Reads JSON or YAML.
    pub fn read(bytes: Vec<u8>) -> Result<Self, ImportError> {
        if bytes.len() > DOCUMENT_BYTES {
            let most = DOCUMENT_BYTES / (1024 * 1024);
            return Err(ImportError::unreadable(
                format!("the document is larger than {most} MiB"),
                "cut it into parts",
            ));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| ImportError::unreadable("the document is not UTF-8", "save it as UTF-8"))?;
        let text = text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned);
        let mut remarks = Vec::new();
        let limits = JsonLimits { depth: 100, keys: 200_000, items: 200_000 };
        let strict = text.trim_start().starts_with('{').then(|| Json::parse(text.as_bytes(), &limits));
        let root = match strict {
            Some(Ok(root)) => root,
            // What stands twice is told and passed over, as in YAML, which JSON is too: one key does not spoil the rest.
            Some(Err(error)) if !matches!(error, JsonError::Duplicate(_)) => {
                return Err(ImportError::unreadable(format!("the document is not strict JSON: {error}"), REMEDY));
            }
            Some(Err(_)) | None => {
                let (root, passed_over) = draft::read(text, TREE_BYTES).map_err(|problems| {
                    let first = draft::first_error(&problems);
                    let why = first.map_or_else(String::new, |p| format!("line {}: {}", p.line, p.message));
                    ImportError::unreadable(format!("the document is not YAML that can be read: {why}"), REMEDY)
                })?;
                // Numbers as keys are customary for responses, which matter little here.
                let told = passed_over.list().iter().filter(|problem| problem.rule != "yaml-key");
                remarks.extend(told.take(5).map(|problem| format!("line {}: {}", problem.line, problem.message)));
                root
            }
        };
        let version = root.get("openapi").map(|version| match version {
            Json::String(text) => text.clone(),
            other => other.to_text(),
        });
        match version.as_deref() {
            Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => Ok(Self { root, remarks }),
            Some(version) => {
                let shown = shortened(version, 20);
                Err(ImportError::unreadable(format!("the document is of OpenAPI {shown}"), REMEDY))
            }
            None if root.get("swagger").is_some() => {
                Err(ImportError::unreadable("the document is of Swagger 2.0", "convert it to OpenAPI 3 first"))
            }
            None => Err(ImportError::unreadable("the document does not say `openapi`", REMEDY)),
        }
    }

    /// A member of the document.
    pub(super) fn get(&self, key: &str) -> Option<&Json> {
        self.root.get(key)
    }

    /// Where a reference such as `#/components/schemas/Pet` leads.
    pub(super) fn at(&self, reference: &str) -> Option<&Json> {
        let pointer = reference.strip_prefix('#')?;
        pointer.split('/').skip(1).try_fold(&self.root, |at, step| {
            let step = percent_decoded(step)?.replace("~1", "/").replace("~0", "~");
            match at {
                Json::Array(items) => items.get(step.parse::<usize>().ok()?),
                _ => at.get(&step),
            }
        })
    }

    /// The node itself, or what its reference leads to.
    pub(super) fn resolve<'d>(&'d self, node: &'d Json) -> Result<&'d Json, String> {
        let mut node = node;
        for _ in 0..HOPS {
            let Some(reference) = node.get("$ref").and_then(Json::as_str) else { return Ok(node) };
            let shown = shortened(reference, 80);
            node = self.at(reference).ok_or_else(|| match reference.starts_with('#') {
                true => format!("the reference {shown} leads to nothing"),
                false => format!("the reference {shown} leads out of the document and is not followed"),
            })?;
        }
        Err("references lead round in a circle".to_owned())
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let pair = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
