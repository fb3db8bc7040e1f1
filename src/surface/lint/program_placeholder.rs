//! The caller never chooses which program runs, not even behind one that runs others.

use crate::surface::file::{BackendEntry, ElementEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::Span;
use crate::surface::template;

pub(crate) const RULE: Rule =
    Rule::error("program-placeholder", "what program runs is written, not chosen by the caller");

/// Programs that run another, which follows their options.
const RUNNERS: &[&str] = &[
    "env", "nice", "nohup", "timeout", "stdbuf", "setsid", "sudo", "doas", "chroot", "xargs", "time", "ionice",
    "taskset", "busybox", "toybox", "watch", "strace", "unshare", "nsenter", "flock", "parallel",
];

/// Options of `find` and its like after which a program follows.
const EXECUTING: &[&str] = &["-exec", "-execdir", "-ok", "-okdir", "--exec", "--exec-batch"];

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in file.backends() {
        if let Some((span, message)) = chosen_by_caller(tool) {
            findings.report(&RULE, span, message, "write the program out, and declare one tool for each program");
        }
    }
}

fn chosen_by_caller(tool: &BackendEntry<'_>) -> Option<(Span, &'static str)> {
    match tool.run.first()? {
        ElementEntry::Group(group) => {
            let span = group.first().map_or(tool.name.span, |t| t.span);
            return Some((span, "the program stands in a group, which may be left out"));
        }
        ElementEntry::One(program) if template::literal(&program.value).is_none() => {
            return Some((program.span, "a placeholder chooses the program"));
        }
        ElementEntry::One(_) => {}
    }
    let mut expected = runs_another(tool);
    for element in tool.templates().skip(1) {
        let Some(text) = template::literal(&element.value) else {
            // An option of the runner may take a value; `NAME={value}` is another rule's matter.
            let leading = template::leading(&element.value);
            if expected && !leading.starts_with('-') && !leading.contains('=') {
                return Some((element.span, "a placeholder chooses the program that another one runs"));
            }
            continue;
        };
        if EXECUTING.contains(&text) || (expected && is_runner(text)) {
            expected = true;
        } else if expected {
            expected = text.starts_with('-') || text.contains('=') || text.starts_with(|c: char| c.is_ascii_digit());
        }
    }
    None
}

/// Whether a tool's program runs another one.
fn runs_another(tool: &BackendEntry<'_>) -> bool {
    tool.templates().next().and_then(|t| template::literal(&t.value)).is_some_and(is_runner)
}

/// Whether a program runs another one.
pub(super) fn is_runner(program: &str) -> bool {
    is_one_of(program, RUNNERS)
}

/// Whether a program is one of those names, whatever its folder and its version: `/opt/bin/python3.11`.
pub(super) fn is_one_of(program: &str, names: &[&str]) -> bool {
    let name = base_name(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_'));
    names.iter().any(|known| *known == name || *known == unversioned)
}

/// Whether another program follows an element.
pub(super) fn executes_next(text: &str) -> bool {
    EXECUTING.contains(&text)
}

/// The last part of a path.
fn base_name(text: &str) -> &str {
    text.rsplit(['/', '\\']).next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn the_caller_never_chooses_the_program() {
        let run = |run: &str| tool(&format!("args: {{x: {{type: string}}}}\nrun: {run}"));
        for bad in [
            "[\"{x}\"]",
            "[\"/usr/bin/{x}\"]",
            "[[ls, \"{x}\"]]",
            "[env, \"{x}\"]",
            "[env, \"bin/{x}\"]",
            "[/opt/bin/env-9.1, \"{x}\"]",
            "[find, ., -exec, \"./{x}\", ;]",
            "[/usr/bin/env, -i, A=1, \"{x}\"]",
            "[timeout, 5, \"{x}\"]",
            "[nice, -n, 5, \"{x}\"]",
            "[xargs, -0, \"{x}\"]",
            "[find, ., -exec, \"{x}\", ;]",
            "[sudo, env, \"{x}\"]",
        ] {
            breaks(super::RULE, &run(bad));
        }
        for good in [
            "[ls, \"{x}\"]",
            "[env, ls, \"{x}\"]",
            "[ls, env, \"{x}\"]",
            "[timeout, 5, ls, \"{x}\"]",
            "[env, \"A={x}\", ls]",
        ] {
            keeps(super::RULE, &run(good));
        }
    }
}
