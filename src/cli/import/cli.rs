//! `twodoor import cli`: the subcommands of a program as tools, by what its help says.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::Instant;
use twodoor::core::process::{self, Capture, Ended, Environment, Launch};
use twodoor::import::help::{self, Found, HELP_BYTES, Help, Program};
use twodoor::surface::declaration::Variable;

use super::nothing;
use super::write::Out;
use crate::cli::{exit, show, target};

/// Makes tools of a program and its subcommands, by what --help says
#[derive(clap::Args)]
#[command(
    after_help = "The program is run with --help, then -h, then help, and so is each subcommand that its help names: with a minimal \
    environment, nothing to read, and 10 s for each. Do not import a program that acts whatever it is told. \
    Words that begin with - stand behind --.\n\n\
    Examples:\n  twodoor import cli git log --out log.yaml\n  twodoor import cli docker --depth 1\n  \
    twodoor import cli --out json.yaml -- python3 -m json.tool"
)]
pub(super) struct Cli {
    /// The program, and the subcommand to begin with
    #[arg(value_name = "PROGRAM", required = true, num_args = 1..)]
    program: Vec<OsString>,
    /// How many levels of subcommands to read
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=5))]
    depth: u8,
    #[command(flatten)]
    out: Out,
}

/// How long one help may take, and all of them.
const ONE: Duration = Duration::from_secs(10);
const ALL: Duration = Duration::from_secs(180);
/// Most times that the program is run.
const RUNS: usize = 300;

impl Cli {
    pub(super) fn run(self) -> ExitCode {
        if let Err(refused) = self.out.check() {
            return refused;
        }
        let Some((first, words)) = self.program.split_first() else { return exit::usage() };
        let found = process::Program::find_ours(first);
        let program = match found {
            Ok(program) => program,
            Err(error) => {
                show::error(
                    &format!("{}: {error}", first.display()),
                    "give a program that is on your PATH, or its path",
                );
                return exit::usage();
            }
        };
        let words: Option<Vec<String>> = words.iter().map(|word| word.to_str().map(str::to_owned)).collect();
        let (Some(words), Some(declared)) = (words, self.out.declared(first, program.path())) else {
            show::error("the command line is not UTF-8", "a surface file is text: rename what it names");
            return exit::usage();
        };
        let depth = usize::from(self.depth);
        let mut reader = Reader { program, runs: 0, until: Instant::now(), left_out: Vec::new() };
        let read = target::attended("reading help", async {
            reader.until = Instant::now() + ALL;
            reader.read(&words, depth).await
        });
        let Some(read) = read else {
            show::error("the import was interrupted", "run it again, and let it end");
            return exit::usage();
        };
        let Some((about, version, found)) = read else {
            let name = reader.program.name();
            let why = reader.left_out.first().map(|why| format!(" ({why})")).unwrap_or_default();
            show::error(
                &format!("{name} says nothing that reads like help, by --help, -h and help{why}"),
                "write its surface file by hand: docs/surface-file.md",
            );
            return exit::differs();
        };
        if let [only] = found.as_slice()
            && only.help.is_mere_prose()
        {
            show::error(
                &format!("{}: no options found in its help, nor arguments", reader.program.name()),
                "write its surface file by hand: docs/surface-file.md",
            );
            return exit::differs();
        }
        let run = std::iter::once(declared).chain(words).collect();
        let program = Program { name: reader.program.name(), run, version, about, found, left_out: reader.left_out };
        match help::surface(&program, &self.out.folder()) {
            Ok(imported) => self.out.write(&imported),
            Err(error) => nothing(&error),
        }
    }
}

/// Runs the program for its help.
struct Reader {
    program: process::Program,
    runs: usize,
    until: Instant,
    left_out: Vec<String>,
}

type Read = (String, Option<String>, Vec<Found>);

impl Reader {
    async fn read(&mut self, prefix: &[String], depth: usize) -> Option<Read> {
        let top = self.help(prefix, &[]).await.filter(Help::is_useful)?;
        let version = self.version().await;
        let about = top.about.clone();
        let mut leaves = Vec::new();
        let mut queue = VecDeque::from([Found { words: Vec::new(), help: top, about: String::new() }]);
        while let Some(found) = queue.pop_front() {
            if found.help.commands.is_empty() || found.words.len() >= depth {
                if !found.help.commands.is_empty() && depth > 0 {
                    let of = found.words.join(" ");
                    self.left_out.push(format!("the subcommands of {of:?}, beyond --depth {depth}"));
                }
                leaves.push(found);
                continue;
            }
            for command in found.help.commands.iter().filter(|command| !is_idle(&command.name)) {
                let mut words = found.words.clone();
                words.push(command.name.clone());
                if self.runs >= RUNS || Instant::now() >= self.until {
                    if self.left_out.len() < 20 {
                        self.left_out.push(format!("{}, beyond {RUNS} runs or {} s", words.join(" "), ALL.as_secs()));
                    }
                    continue;
                }
                let help = self.help(prefix, &words).await.unwrap_or_default();
                // Who prints the same for every word knows no help of its own.
                let is_same = help.usages == found.help.usages && help.commands == found.help.commands;
                let help = if is_same && !help.commands.is_empty() { Help::default() } else { help };
                queue.push_back(Found { words, help, about: command.about.clone() });
            }
        }
        Some((about, version, leaves))
    }

    /// The help of a subcommand, by the first way of asking that gives any.
    async fn help(&mut self, prefix: &[String], words: &[String]) -> Option<Help> {
        let mut named = vec![self.program.name()];
        named.extend(prefix.iter().chain(words).cloned());
        let plain: Vec<String> = prefix.iter().chain(words).cloned().collect();
        let with = |word: &str| [plain.as_slice(), &[word.to_owned()]].concat();
        let asked = [prefix, &["help".to_owned()], words].concat();
        let mut best = None;
        for arguments in [with("--help"), with("-h"), asked] {
            if self.runs >= RUNS || Instant::now() >= self.until {
                break;
            }
            let Some(text) = self.run(arguments).await else { continue };
            let help = help::parse(&text, &named);
            if help.is_useful() {
                return Some(help);
            }
            best = best.or(Some(help).filter(|help| !help.about.is_empty()));
        }
        best
    }

    /// The first line of what `--version` says, without what names a place on this machine.
    async fn version(&mut self) -> Option<String> {
        let text = self.run(vec!["--version".to_owned()]).await?;
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.contains(['/', '\\'])).collect();
        let words = if words.last() == Some(&"from") { words.get(..words.len() - 1)? } else { &words };
        let said = twodoor::protocol::json::shortened(&words.join(" "), 80);
        said.chars().any(|c| c.is_ascii_digit()).then_some(said)
    }

    /// What the program prints.
    async fn run(&mut self, arguments: Vec<String>) -> Option<String> {
        self.runs += 1;
        let shown = std::iter::once(self.program.name()).chain(arguments.iter().cloned()).collect::<Vec<_>>();
        let variables =
            [("COLUMNS", "100"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("MANPAGER", "cat"), ("TERM", "dumb")];
        let variables = variables.map(|(name, value)| Variable::Literal(name.to_owned(), value.to_owned()));
        let launch = Launch {
            program: self.program.clone(),
            arguments: arguments.into_iter().map(OsString::from).collect(),
            cwd: None,
            environment: Environment::Minimal(variables.to_vec()),
            input: None,
        };
        let ended = process::run(launch, tokio::time::sleep(ONE)).await;
        match ended {
            Ok(Ended::Itself(run)) => {
                let out = text(run.stdout.head());
                Some(if out.trim().is_empty() { text(&end(&run.stderr)) } else { out })
            }
            Ok(Ended::Stopped) => {
                self.left_out.push(format!("{}: it did not end within {} s", show::quoted(&shown), ONE.as_secs()));
                None
            }
            Err(error) => {
                self.left_out.push(format!("{}: {error}", show::quoted(&shown)));
                None
            }
        }
    }
}

fn end(capture: &Capture) -> Vec<u8> {
    capture.end(process::STDERR_BYTES)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..bytes.len().min(HELP_BYTES)).unwrap_or_default()).into_owned()
}

/// Subcommands that tell of others, or serve a shell.
fn is_idle(name: &str) -> bool {
    matches!(name, "help" | "completion" | "completions" | "__complete" | "autocomplete" | "version")
}
