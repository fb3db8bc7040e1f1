//! Program text is never made of the caller's text: no quoting makes that safe.

use super::program_placeholder::{base_name, executes_next, runs_another};
use crate::surface::declaration::Template;
use crate::surface::file::{SurfaceFile, ToolEntry};
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::{At, Span};
use crate::surface::template;

pub(crate) const RULE: Rule =
    Rule::error("dynamic-script", "no placeholder stands in a script, nor chooses which script runs");

/// A program that reads program text from its arguments.
struct Interpreter {
    names: &'static [&'static str],
    /// Options that a script follows; single letters may be clustered.
    script_options: &'static [&'static str],
    /// Options that another value follows.
    value_options: &'static [&'static str],
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "su"],
        script_options: &["-c", "--command"],
        value_options: &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"],
    },
    Interpreter {
        names: &["python", "python2", "python3", "pypy", "pypy3"],
        script_options: &["-c"],
        value_options: &["-W", "-X"],
    },
    Interpreter { names: &["perl"], script_options: &["-e", "-E"], value_options: &["-I"] },
    Interpreter { names: &["ruby"], script_options: &["-e"], value_options: &["-I", "-r"] },
    Interpreter {
        names: &["node", "nodejs", "deno", "bun"],
        script_options: &["-e", "-p", "--eval", "--print", "eval"],
        value_options: &["-r", "--require", "--import"],
    },
    Interpreter { names: &["php"], script_options: &["-r", "--run"], value_options: &["-d"] },
    Interpreter { names: &["lua", "luajit", "Rscript", "osascript"], script_options: &["-e"], value_options: &["-l"] },
    Interpreter {
        names: &["pwsh", "powershell", "pwsh.exe", "powershell.exe"],
        script_options: &["-c", "-Command", "-EncodedCommand"],
        value_options: &["-ExecutionPolicy"],
    },
    Interpreter { names: &["cmd", "cmd.exe"], script_options: &["/c", "/C", "/k", "/K"], value_options: &[] },
    Interpreter {
        names: &["awk", "gawk", "mawk", "nawk"],
        script_options: &["-e", "--source"],
        value_options: &["-v", "-F", "--assign", "--field-separator"],
    },
    Interpreter { names: &["sed", "gsed"], script_options: &["-e", "--expression"], value_options: &["-l"] },
];

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for (tool, interpreter, rest) in file.tools.iter().flat_map(interpreters) {
        if let Some(span) = dynamic(interpreter, &rest) {
            let remedy = "write the script out and hand values over as its arguments: [sh, -c, 'grep -- \"$1\" log', sh, \"{text}\"]";
            let message = format!("in {:?} the caller's text becomes part of a script, or chooses it", tool.name.value);
            findings.report(&RULE, span, message, remedy);
        }
    }
}

type Elements<'f> = Vec<&'f At<Template>>;

/// Every place of an argument vector where an interpreter is run, with what follows it.
fn interpreters<'f>(tool: &'f ToolEntry<'_>) -> Vec<(&'f ToolEntry<'f>, &'static Interpreter, Elements<'f>)> {
    let elements: Elements<'f> = tool.templates().collect();
    // Behind a program that runs others, any word may be one: its options are not known here.
    let anywhere = runs_another(tool);
    let before = std::iter::once(None).chain(elements.iter().map(|e| template::literal(&e.value)));
    let named = elements.iter().zip(before).enumerate().filter_map(|(index, (element, before))| {
        let is_program = anywhere || index == 0 || before.is_some_and(executes_next);
        let name = base_name(template::literal(&element.value).filter(|_| is_program)?);
        let interpreter = INTERPRETERS.iter().find(|i| i.names.contains(&name))?;
        Some((tool, interpreter, elements.iter().skip(index + 1).copied().collect()))
    });
    named.collect()
}

/// Where the caller's text is, or chooses, a script. What follows the script is its arguments.
fn dynamic(interpreter: &Interpreter, rest: &Elements<'_>) -> Option<Span> {
    let mut after_option: Option<bool> = None;
    let mut had_script = false;
    for element in rest {
        let literal = template::literal(&element.value);
        let text = literal.unwrap_or_else(|| template::leading(&element.value));
        let follows = after_option.take();
        if follows == Some(true) && !(interpreter.is_option(text) && literal.is_some()) {
            if literal.is_none() {
                return Some(element.span);
            }
            had_script = true;
            continue;
        }
        if follows == Some(false) {
            continue;
        }
        let glued = interpreter.takes_script(text)
            || interpreter.script_options.iter().any(|option| text.starts_with(option) && !option.starts_with("--"))
            || interpreter.script_options.iter().any(|option| text.starts_with(&format!("{option}=")));
        if literal.is_none() && glued {
            return Some(element.span);
        }
        if interpreter.takes_script(text) {
            after_option = Some(true);
        } else if interpreter.value_options.contains(&text) {
            after_option = Some(false);
        } else if !interpreter.is_option(text) {
            // The first operand is the script, or names its file, unless an option gave it.
            return literal.is_none().then_some(element.span).filter(|_| !had_script);
        }
        // The script of `sh -c -e SCRIPT` follows the second option.
        if follows == Some(true) && after_option.is_none() {
            after_option = Some(true);
        }
    }
    None
}

impl Interpreter {
    fn is_option(&self, text: &str) -> bool {
        (text.starts_with(['-', '+']) && text.len() > 1) || self.script_options.contains(&text)
    }

    /// Whether an option is followed by a script, `-lc` and `-ne` included.
    fn takes_script(&self, text: &str) -> bool {
        let letters = text.strip_prefix('-').filter(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_alphabetic()));
        self.script_options.iter().any(|option| {
            let letter = option.strip_prefix('-').filter(|o| o.len() == 1);
            *option == text || matches!((letters, letter), (Some(letters), Some(letter)) if letters.contains(letter))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn the_callers_text_never_becomes_program_text() {
        let run = |run: &str| tool(&format!("args: {{x: {{type: string}}}}\nrun: {run}"));
        for bad in [
            "[sh, -c, \"{x}\"]",
            "[sh, -c, \"grep {x} log\"]",
            "[/bin/bash, -lc, \"{x}\"]",
            "[bash, -o, pipefail, -c, \"{x}\"]",
            "[bash, -c, -o, pipefail, \"{x}\"]",
            "[bash, -c, -e, \"{x}\"]",
            "[sh, \"{x}\"]",
            "[bash, --, \"{x}\"]",
            "[env, sh, -c, \"{x}\"]",
            "[busybox, sh, -c, \"{x}\"]",
            "[python3, -c, \"{x}\"]",
            "[python3, \"-c{x}\"]",
            "[bash, \"-lc{x}\"]",
            "[node, \"--eval={x}\"]",
            "[perl, -ne, \"{x}\"]",
            "[awk, \"{x}\"]",
            "[awk, -v, a=1, \"{x}\"]",
            "[sed, -n, \"{x}\"]",
            "[sed, -e, \"s/a/{x}/\"]",
            "[sed, \"s/a/{x}/\", log]",
            "[cmd, /c, \"{x}\"]",
            "[bash, -ce, \"{x}\"]",
            "[find, ., -exec, sh, -c, \"{x}\", ;]",
            "[sudo, -u, other, sh, -c, \"{x}\"]",
        ] {
            breaks(super::RULE, &run(bad));
        }
        for good in [
            "[sh, -c, 'grep -- \"$1\" log', sh, \"{x}\"]",
            "[bash, -ec, 'true', bash, \"{x}\"]",
            "[python3, tool.py, \"{x}\"]",
            "[python3, -m, json.tool, \"{x}\"]",
            "[awk, -v, \"a={x}\", '{{print a}}']",
            "[sed, -n, -e, 1p, --, \"{x}\"]",
            "[sed, 1q, --, \"{x}\"]",
            "[grep, -e, \"{x}\"]",
            "[grep, sh, \"{x}\"]",
        ] {
            keeps(super::RULE, &run(good));
        }
    }
}
