//! Servers that a command line names: by URL, or by a command that serves stdio.
//!
//! Promises: a program is started from words, never through a shell; whatever way a command ends, the programs
//! that it started are ended.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use twodoor::client::{HttpTarget, Pipes, Program, Target};
use twodoor::core::process::{self, Capture, Environment, Exit, Stderr};
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::shortened;

use super::show;
use super::signals::Signals;

/// Does something with servers and ends the programs that were started for it; `None` if a signal came first.
pub(crate) fn attended<T>(doing: &str, work: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let _ = process::become_subreaper();
        let mut signals = Signals::catch();
        let done = tokio::select! {
            done = show::with_progress(doing, work) => Some(done),
            () = signals.next() => None,
        };
        let _ = process::settle(process::GRACE).await;
        done
    })
}

/// The server that words name, or what is wrong with them and how to mend it; `command` is who asks.
pub(crate) fn read(command: &str, words: &[OsString]) -> Result<Target, (String, String)> {
    let Some((first, rest)) = words.split_first() else {
        return Err(("no server is named".to_owned(), "give a URL or a command line".to_owned()));
    };
    if is_url(first) {
        if let Some(word) = rest.first() {
            let word = shortened(&word.to_string_lossy(), 64);
            let remedy = "a URL stands alone; options go before it".to_owned();
            return Err((format!("\"{word}\" stands behind the URL"), remedy));
        }
        let target = HttpTarget::new(&first.to_string_lossy(), &[]);
        return target
            .map(Target::Http)
            .map_err(|problem| (problem.in_full(), "give a URL such as http://127.0.0.1:8484/mcp".to_owned()));
    }
    let program = process::Program::find_ours(first)
        .map_err(|error| (format!("{}: {error}", first.display()), instead(command, first, rest)))?;
    Ok(Target::Program(started(program, first, rest)))
}

/// Whether a word is a URL.
pub(crate) fn is_url(word: &OsStr) -> bool {
    word.to_str().is_some_and(|text| text.starts_with("http://") || text.starts_with("https://"))
}

/// What to type instead of a target that is neither a URL nor a program.
fn instead(command: &str, first: &OsStr, rest: &[OsString]) -> String {
    let text = first.to_string_lossy();
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let host = text.split('/').next().unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port);
    let is_address =
        host == "localhost" || port.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
    let url = format!("http://{text}");
    if rest.is_empty() && words.len() > 1 {
        format!("give the command as separate words: twodoor {command} -- {}", show::quoted(&words))
    } else if is_address && HttpTarget::new(&url, &[]).is_ok() {
        format!("did you mean {url}?")
    } else {
        "give a URL, or a program that is on your PATH".to_owned()
    }
}

/// How long a server may take to end by itself once its input has ended, before it is stopped.
const END_WITHIN: Duration = Duration::from_secs(3);

fn started(program: process::Program, first: &OsStr, rest: &[OsString]) -> Program {
    let words = std::iter::once(first).chain(rest.iter().map(OsString::as_os_str));
    let shown = show::quoted(&words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>());
    let arguments = rest.to_vec();
    let connect = move || -> BoxFuture<'static, std::io::Result<Pipes>> {
        let piped = process::spawn_piped(program.clone(), arguments.clone(), Environment::Inherited, Stderr::Piped);
        let pipes = piped.map_err(std::io::Error::other).map(|mut piped| {
            let stderr = piped.stderr.take();
            let said = tokio::spawn(async move {
                let mut capture = Capture::new(0, SAID_BYTES);
                if let Some(stderr) = stderr {
                    capture.fill(stderr).await;
                }
                capture
            });
            Pipes {
                reader: Box::new(piped.stdout),
                writer: Box::new(piped.stdin),
                end: Box::new(move || Box::pin(end(piped.group, said))),
            }
        });
        Box::pin(std::future::ready(pipes))
    };
    Program { shown, connect: Arc::new(connect) }
}

/// Bytes kept of what a server writes to standard error: its end, where the reason stands.
const SAID_BYTES: usize = 4096;

/// Ends a server whose input has ended, and says what was unusual about its end and what it said last.
async fn end(group: process::Group, said: JoinHandle<Capture>) -> Option<String> {
    let ended = match group.end_within(END_WITHIN).await {
        Exit::Code(0) | Exit::Unknown => None,
        Exit::Code(code) => Some(format!("the program ended with code {code}")),
        Exit::Signal(signal) => Some(format!("the program did not end by itself and was ended by signal {signal}")),
    };
    // What outlives the program may hold its standard error open.
    let said = tokio::time::timeout(process::ABANDON_PIPES, said).await;
    let said = said.ok().and_then(Result::ok).and_then(|capture| last_lines(&capture.end(SAID_BYTES)));
    let said = said.map(|said| format!("its standard error ends with: {said}"));
    let parts: Vec<String> = ended.into_iter().chain(said).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The last lines of a server's text as one, safe to show.
fn last_lines(bytes: &[u8]) -> Option<String> {
    const LINES: usize = 6;
    const CHARACTERS: usize = 200;
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.contains(char::is_alphanumeric)).collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    let shown: Vec<String> = last.iter().map(|line| shortened(line, CHARACTERS)).collect();
    (!shown.is_empty()).then(|| shown.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_type_instead_is_said() {
        let remedy = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            read("probe", &words).unwrap_err()
        };
        assert_eq!(remedy(&["localhost:8484/mcp"]).1, "did you mean http://localhost:8484/mcp?");
        assert_eq!(remedy(&["127.0.0.1:8484"]).1, "did you mean http://127.0.0.1:8484?");
        let separate = "give the command as separate words: twodoor probe -- no-such-server serve x";
        assert_eq!(remedy(&["no-such-server serve x"]).1, separate);
        assert!(remedy(&["no-such-server"]).1.contains("on your PATH"));
        let (problem, remedy) = remedy(&["http://127.0.0.1:1/mcp", "--verbose"]);
        assert!(problem.contains("\"--verbose\" stands behind the URL") && remedy.contains("before it"));
    }

    #[test]
    fn the_last_lines_are_one_safe_line() {
        let shown = last_lines(b"a\nb\n\nc\r\nd\ne\nf\n\x1b[2Jg\n");
        assert_eq!(shown.as_deref(), Some("b | c | d | e | f | \\u{1b}[2Jg"));
        assert_eq!(last_lines(b" \n"), None);
        let long = last_lines("x".repeat(5000).as_bytes()).unwrap();
        assert_eq!(long.chars().count(), 201);
    }
}
