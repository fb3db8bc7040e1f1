//! `twodoor export`: what others are told of a surface, in the files that they read.

use std::path::PathBuf;
use std::process::ExitCode;

use twodoor::protocol::{Catalog, Revision};
use twodoor::surface::export::{Difference, Exported, Package, Stated, server_json};

use super::own_file::{OwnFile, Privacy};
use super::{DEFAULT_SURFACE, exit, show};

/// Writes the server.json with which a registry of MCP servers lists a surface
#[derive(clap::Args)]
#[command(
    after_help = "What the surface file cannot know, the name in the registry, packages, addresses, is said once by options; from then on it \
    is kept in the file. Written anew are the schema, the versions of the server and of its packages (the surface's), the \
    digest of the tools and the surface's version beneath _meta; title, description and website if the file has none. \
    The whole file is held against the registry's rules, offline, before it is written.\n\n\
    With --check nothing is written: exits with 0 if the file is current, 1 if it is not, 2 if that cannot be told.\n\n\
    Examples:\n  twodoor export server.json hello.yaml --name io.github.you/hello --description \"Looks at one folder.\" --package npm:@you/hello\n  \
    twodoor export server.json hello.yaml --name com.example/hello --remote https://mcp.example.com/mcp\n  \
    twodoor export server.json hello.yaml --check"
)]
pub(crate) struct Export {
    /// What to write
    what: What,
    /// The surface file
    #[arg(value_name = "SURFACE", default_value = DEFAULT_SURFACE)]
    surface: PathBuf,
    /// The file; - is standard output, and no file is read
    #[arg(long, value_name = "FILE", default_value = "server.json")]
    out: PathBuf,
    /// Say whether the file is current, and write nothing
    #[arg(long)]
    check: bool,
    /// The server's name in the registry: a domain of yours backwards, a slash, a name
    #[arg(long)]
    name: Option<String>,
    /// A title of at most 100 characters
    #[arg(long)]
    title: Option<String>,
    /// A description of at most 100 characters
    #[arg(long)]
    description: Option<String>,
    /// A page about it
    #[arg(long, value_name = "URL")]
    website: Option<String>,
    /// Where its source is, on GitHub or GitLab
    #[arg(long, value_name = "URL")]
    repository: Option<String>,
    /// A package that has it: npm:NAME, pypi:NAME, cargo:NAME, nuget:NAME, oci:IMAGE:TAG, mcpb:URL#SHA256
    #[arg(long = "package", value_name = "TYPE:IDENTIFIER")]
    packages: Vec<Package>,
    /// A URL at which it is served over Streamable HTTP
    #[arg(long = "remote", value_name = "URL")]
    remotes: Vec<String>,
}

/// The files that can be written.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    #[value(name = "server.json")]
    ServerJson,
}

impl Export {
    pub(crate) fn run(self) -> ExitCode {
        match self.what {
            What::ServerJson => self.server_json(),
        }
    }

    fn server_json(self) -> ExitCode {
        let loaded = match show::load(&self.surface) {
            Ok(loaded) => loaded,
            Err(refused) => return refused,
        };
        let parts = loaded.parts;
        let Ok(catalog) = Catalog::build(parts.clone()) else { return exit::surface() };
        let digest = catalog.digest(Revision::MODERN);
        let stated = Stated {
            name: self.name,
            title: self.title,
            description: self.description,
            website: self.website,
            repository: self.repository,
            packages: self.packages,
            remotes: self.remotes,
        };
        let to_stdout = self.out.as_os_str() == "-";
        let own = if to_stdout { Ok(None) } else { OwnFile::read(&self.out, None).map(Some) };
        let own = match own {
            Ok(own) => own,
            Err((problem, remedy)) => {
                show::error(&problem, &remedy);
                return exit::usage();
            }
        };
        if self.check && to_stdout {
            show::error(
                "--check looks at a file, and --out - names none",
                "name the file, or leave --out out: server.json",
            );
            return exit::usage();
        }
        let out = self.out.display();
        let found = own.as_ref().and_then(OwnFile::bytes);
        if self.check && found.is_none() {
            show::error(&format!("{out} is not there, so nothing can be told of it"), "write it: leave --check out");
            return exit::usage();
        }
        let exported = match server_json(found, &stated, &parts, digest) {
            Ok(exported) => exported,
            Err(flaw) => {
                show::error(
                    &format!("{out}:{}:{}: {}", flaw.line, flaw.column, flaw.problem),
                    "mend the file first: it is left as it is",
                );
                return exit::usage();
            }
        };
        if Revision::ALL.iter().any(|revision| catalog.digest(*revision) != digest) {
            show::err("note: a tool is divergent: the digest is that of the newest revision\n");
        }
        if self.check {
            return check(&exported, &out.to_string());
        }
        if !exported.troubles.is_empty() {
            troubles(&exported);
            match to_stdout {
                true => show::err("nothing was written: standard output gets the file once it would be taken\n"),
                false => show::err(&format!("{out} is left as it is\n")),
            }
            return exit::usage();
        }
        let Some(own) = own else {
            show::out(&String::from_utf8_lossy(&exported.bytes));
            return ExitCode::SUCCESS;
        };
        if exported.differences.is_empty() {
            show::out(&format!("current: {out}\n"));
            return ExitCode::SUCCESS;
        }
        if let Err((problem, remedy)) = own.replace(&exported.bytes, Privacy::Open) {
            show::error(&problem, &remedy);
            return exit::differs();
        }
        exported.differences.iter().for_each(|difference| show::out(&line(difference)));
        show::out(&format!("written: {out}\n"));
        ExitCode::SUCCESS
    }
}

fn check(exported: &Exported, out: &str) -> ExitCode {
    exported.differences.iter().for_each(|difference| show::out(&line(difference)));
    troubles(exported);
    if exported.differences.is_empty() && exported.troubles.is_empty() {
        show::out(&format!("current: {out}\n"));
        return ExitCode::SUCCESS;
    }
    show::out(&format!("stale: {out}\n"));
    exit::differs()
}

fn line(difference: &Difference) -> String {
    let said =
        |value: &Option<serde_json::Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let place = if difference.place.is_empty() { "/" } else { &difference.place };
    format!(
        "{}: {} -> {}\n",
        show::lines(place),
        show::lines(&said(&difference.from)),
        show::lines(&said(&difference.to))
    )
}

fn troubles(exported: &Exported) {
    for trouble in &exported.troubles {
        let place = if trouble.place.is_empty() { "/" } else { &trouble.place };
        show::error(&format!("{place}: {}", trouble.problem), &trouble.remedy);
    }
}
