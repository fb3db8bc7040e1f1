//! `twodoor import openapi`: operations of an OpenAPI document as tools.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use twodoor::import::openapi::{self, Choice, DOCUMENT_BYTES, Document, Operation};

use super::write::Out;
use super::{nothing, patterns};
use crate::cli::{exit, show};

/// Makes tools of the operations of an OpenAPI document, 3.0 or 3.1
#[derive(clap::Args)]
#[command(after_help = "References out of the document are not followed, and the server is not asked.\n\n\
    Examples:\n  twodoor import openapi petstore.yaml --out pets.yaml\n  twodoor import openapi big.json --list\n  \
    twodoor import openapi big.json --only issues --only 'GET /repos/*' --server https://api.example.com")]
pub(super) struct Openapi {
    /// The document, JSON or YAML; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The server to ask, in the place of the document's own
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Take only operations with this tag, or whose name, path or `METHOD /path` fits this pattern; may be repeated
    #[arg(long, value_name = "TAG|PATTERN")]
    only: Vec<String>,
    /// Print the operations and make nothing
    #[arg(long, conflicts_with_all = ["out", "force", "server"])]
    list: bool,
    #[command(flatten)]
    out: Out,
}

impl Openapi {
    pub(super) fn run(self) -> ExitCode {
        if let Err(refused) = self.out.check() {
            return refused;
        }
        let patterns = match patterns(&self.only) {
            Ok(patterns) => patterns,
            Err(refused) => return refused,
        };
        let bytes = match read(&self.file) {
            Ok(bytes) => bytes,
            Err(why) => {
                show::error(&why, "give an OpenAPI document that can be read");
                return exit::usage();
            }
        };
        let document = match Document::read(bytes) {
            Ok(document) => document,
            Err(error) => return nothing(&error),
        };
        let mut operations = openapi::operations(&document);
        let found = operations.len();
        if !self.only.is_empty() {
            operations.retain(|operation| {
                self.only
                    .iter()
                    .zip(&patterns)
                    .any(|(tag, pattern)| operation.is_chosen(tag, &|text| pattern.is_match(text)))
            });
        }
        if operations.is_empty() {
            let only = if found > 0 {
                format!("none of its {found} operations is chosen")
            } else {
                "it has no operation".to_owned()
            };
            show::error(&only, "see what there is: twodoor import openapi FILE --list");
            return exit::differs();
        }
        if self.list {
            list(&operations);
            return ExitCode::SUCCESS;
        }
        let choice = Choice { operations: &operations, server: self.server.as_deref() };
        match openapi::surface(&document, choice, &self.out.folder()) {
            Ok(imported) => self.out.write(&imported),
            Err(error) => nothing(&error),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let source: Box<dyn std::io::Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(|error| format!("{name}: {error}"))?)
    };
    let mut bytes = Vec::new();
    let most = u64::try_from(DOCUMENT_BYTES).unwrap_or(u64::MAX);
    source.take(most + 1).read_to_end(&mut bytes).map_err(|error| format!("{name}: {error}"))?;
    Ok(bytes)
}

fn list(operations: &[Operation]) {
    for operation in operations {
        let Operation { method, path, id, tags, summary, .. } = operation;
        let words = [id.clone().unwrap_or_default(), tags.join(", "), summary.clone()];
        let line = format!("{:<7}{path}  {}", method.to_ascii_uppercase(), words.join("  "));
        show::out(&format!("{}\n", show::lines(line.replace(['\n', '\r'], " ").trim_end())));
    }
}
