//! Problems as people read them: the place, the line, what is marked in it, and the remedy.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::problem::{Problem, Problems, Severity};
use crate::protocol::json::visible;

/// Longest line that is shown; a longer one is named by its place alone.
const LINE_BYTES: usize = 500;

/// The problems as text, each with its line, and a count at the end; empty if there is none.
pub fn render(problems: &Problems, colour: bool) -> String {
    render_all(&[problems], colour)
}

/// The same of several files that are one matter, such as a surface and its lock, with one count.
pub fn render_all(all: &[&Problems], colour: bool) -> String {
    if all.iter().all(|problems| problems.is_empty()) {
        return String::new();
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut out = String::new();
    for problems in all {
        for problem in problems.list() {
            out.push_str(&renderer.render(&[group(problem, problems)]));
            out.push_str("\n\n");
        }
    }
    out.push_str(&summary(all));
    out
}

fn group<'p>(problem: &'p Problem, problems: &'p Problems) -> Group<'p> {
    let level = if problem.severity == Severity::Error { Level::ERROR } else { Level::WARNING };
    let path = shown(&problem.file.display().to_string());
    let title = level.primary_title(shown(&problem.message)).id(problem.rule);
    let (_, start, line) = problems.source.line(problem.bytes.start);
    let place = problem.bytes.start.saturating_sub(start)..problem.bytes.end.saturating_sub(start);
    let group = if line.is_empty() || line.len() > LINE_BYTES {
        // An arrow would point at nothing.
        let Problem { line, column, .. } = problem;
        let whole = problems.source.text().is_empty();
        let group = Group::with_title(title);
        if whole && problem.message.contains(&path) {
            group
        } else {
            let place = if whole { path } else { format!("{path}:{line}:{column}") };
            group.element(Level::NOTE.message(format!("in {place}")))
        }
    } else {
        let snippet = Snippet::source(line).line_start(problem.line).path(path);
        title.element(snippet.annotation(AnnotationKind::Primary.span(place)))
    };
    let group = group.element(Level::HELP.message(shown(&problem.remedy)));
    match &problem.suggestion {
        Some(meant) => group.element(Level::HELP.message(format!("did you mean {}?", shown(meant)))),
        None => group,
    }
}

/// A name from a file or of one, which the terminal must not take for a command.
fn shown(text: &str) -> String {
    visible(text.chars())
}

fn summary(all: &[&Problems]) -> String {
    let count = |severity| all.iter().flat_map(|problems| problems.list()).filter(|p| p.severity == severity).count();
    let of = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let mut parts = Vec::new();
    if errors > 0 {
        parts.push(of(errors, "error"));
    }
    if warnings > 0 {
        parts.push(of(warnings, "warning"));
    }
    let dropped: usize = all.iter().map(|problems| problems.dropped()).sum();
    if dropped > 0 {
        parts.push(format!("{dropped} more not shown"));
    }
    format!("{}\n", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::surface::problem::{Findings, Rule};
    use crate::surface::source::{Source, Span};

    #[test]
    fn what_a_file_holds_or_is_called_is_no_command_to_the_terminal() {
        let name = PathBuf::from("a\x1b[2J\nb\u{202e}.yaml");
        let mut findings = Findings::new(Source::new(name, "x\x1b[2J: 1\n".to_owned()));
        findings.report(&Rule::error("r", "t"), Span::START, "no \x1b[2J".to_owned(), "write \x1b[2J");
        let problems = findings.into_problems();
        for text in [render(&problems, false), problems.to_string()] {
            assert!(text.contains(r"a\u{1b}[2J\u{a}b\u{202e}.yaml"), "{text}");
            assert!(!text.contains(['\x1b', '\u{202e}']), "{text:?}");
        }
    }
}
