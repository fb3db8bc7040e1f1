//! Writing to people and to programs: standard output and standard error, which may be closed.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use twodoor::protocol::json::{is_invisible, visible};
use twodoor::protocol::{Block, Body, CatalogParts, Piece, ResourceContents};
use twodoor::surface::frozen::Frozen;
use twodoor::surface::{LoadedSurface, Problems, Surface, did_you_mean, render, render_all};

/// Writes to standard output. A reader that has gone away is not an error; a write that is lost otherwise ends us with 1.
pub(crate) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            err(&format!("error: standard output cannot be written: {error}\n"));
            std::process::exit(1);
        }
        Ok(()) | Err(_) => {}
    }
}

/// Writes to standard error.
pub(crate) fn err(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Says what is wrong and how to mend it.
pub(crate) fn error(problem: &str, remedy: &str) {
    err(&format!("error: {}\n  help: {}\n", lines(problem), visible(remedy.chars())));
}

/// Whether standard error takes colour.
pub(crate) fn colour_on_stderr() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Whether standard output takes colour.
pub(crate) fn colour_on_stdout() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Loads a surface; if it is refused, every problem is shown on standard error and the exit code is given back.
pub(crate) fn load(path: &Path) -> Result<LoadedSurface, ExitCode> {
    Surface::load(path).map_err(|problems| {
        problems_on_stderr(&problems);
        super::exit::surface()
    })
}

/// Shows problems to a person.
pub(crate) fn problems_on_stderr(problems: &Problems) {
    err(&render(problems, colour_on_stderr()));
}

/// The problems of a surface and its lock; of a frozen version also which it is, and what is to be done.
pub(crate) fn refusal(all: &[&Problems], frozen: Option<&Frozen>, colour: bool) -> String {
    let problems = render_all(all, colour);
    match frozen.filter(|_| all.iter().any(|problems| problems.has_errors())) {
        None => problems,
        Some(frozen) => {
            let behind = |rule: &str| rule.starts_with("target") || rule == "registry";
            let behind = all.iter().flat_map(|problems| problems.list()).any(|problem| behind(problem.rule));
            let help = if behind { format!("  help: {}\n", lines(&frozen.remedy())) } else { String::new() };
            format!("error: this cannot be served: {}\n{help}\n{problems}", lines(&frozen.named()))
        }
    }
}

/// Waits for something and, on a terminal, counts the seconds once it takes more than one.
pub(crate) async fn with_progress<T>(doing: &str, work: impl Future<Output = T>) -> T {
    let terminal = std::io::stderr().is_terminal();
    let mut work = std::pin::pin!(work);
    let mut seconds = 0u32;
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                if terminal && seconds > 0 {
                    err("\r\x1b[K");
                }
                return done;
            }
            () = tokio::time::sleep(std::time::Duration::from_secs(1)) => {
                seconds += 1;
                if terminal {
                    err(&format!("\r{doing}, {seconds} s"));
                }
            }
        }
    }
}

/// The name that was probably meant, else all of them.
pub(crate) fn meant(typed: &str, names: &[String], all: &str) -> String {
    match did_you_mean(typed, names.iter().map(String::as_str)) {
        Some(name) => format!("did you mean {name}?"),
        None if names.is_empty() => "it takes none".to_owned(),
        None => format!("{all} {}", names.join(", ")),
    }
}

/// A text as it stands, but for what a terminal would obey or hide.
pub(crate) fn lines(text: &str) -> String {
    text.trim_end().lines().map(|line| visible(line.chars())).collect::<Vec<_>>().join("\n")
}

/// A text with a line end behind it, if it is any.
pub(crate) fn ended(text: &str) -> String {
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("{text}{end}")
}

/// A block of content; of what is no text, what it is.
pub(crate) fn block(block: &Block) -> String {
    match &block.piece {
        Piece::Text(text) => text.clone(),
        Piece::Image { data, mime_type } | Piece::Audio { data, mime_type } => {
            format!("[{mime_type}, {} bytes]", data.len())
        }
        Piece::Resource(ResourceContents { uri, body: Body::Text(text), .. }) => format!("[{uri}]\n{text}"),
        Piece::Resource(ResourceContents { uri, body: Body::Blob(bytes), .. }) => {
            format!("[{uri}, {} bytes]", bytes.len())
        }
        Piece::Link(link) => format!("[{}]", link.uri),
    }
}

/// How much of everything a surface declares.
pub(crate) fn declared(parts: &CatalogParts) -> String {
    let counted = [
        (parts.tools.len(), "tool"),
        (parts.resources.len(), "resource"),
        (parts.templates.len(), "template"),
        (parts.prompts.len(), "prompt"),
        (parts.skills.len(), "skill"),
    ];
    let some: Vec<String> = counted.iter().filter(|(n, _)| *n > 0).map(|(n, thing)| count(*n, thing)).collect();
    some.join(", ")
}

/// A number of things.
pub(crate) fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// An argument vector as a person would type it; what a terminal would obey or hide is escaped.
pub(crate) fn quoted(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let escaped = |c: char| c.is_control() || is_invisible(c);
    let escape = |c: char| match c {
        '\\' | '\'' => format!("\\{c}"),
        c if escaped(c) => format!("\\U{:08x}", u32::from(c)),
        c => c.to_string(),
    };
    let quote = |element: &String| {
        if !element.is_empty() && element.chars().all(plain) {
            element.clone()
        } else if element.chars().any(escaped) {
            format!("$'{}'", element.chars().map(escape).collect::<String>())
        } else {
            format!("'{}'", element.replace('\'', "'\\''"))
        }
    };
    argv.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn an_argument_vector_is_shown_as_a_shell_would_read_it() {
        let argv = ["git", "log", "", "a b", "it's", "--max-count=20", "$(id)"].map(str::to_owned);
        assert_eq!(quoted(&argv), r"git log '' 'a b' 'it'\''s' --max-count=20 '$(id)'");
        let argv = ["\x1b[2J", "it's\na\\", "\u{202e}x"].map(str::to_owned);
        assert_eq!(quoted(&argv), r"$'\U0000001b[2J' $'it\'s\U0000000aa\\' $'\U0000202ex'");
    }
}
