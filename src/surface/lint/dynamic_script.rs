//! Program text is never made of the caller's text: no quoting makes that safe.

use super::code_options;
use super::program_placeholder::{executes_next, is_one_of, is_runner};
use crate::surface::declaration::Template;
use crate::surface::file::{BackendEntry, SurfaceFile};
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
    /// Options that code to load follows, beside the script.
    loading_options: &'static [&'static str],
    /// Whether it reads its script from standard input where none is given.
    reads_stdin: bool,
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "rbash", "su"],
        script_options: &["-c", "--command"],
        value_options: &["-o", "+o", "-O", "+O"],
        loading_options: &["--rcfile", "--init-file", "--init-command"],
        reads_stdin: true,
    },
    Interpreter {
        names: &["python", "pypy"],
        script_options: &["-c", "-m"],
        value_options: &["-W", "-X"],
        loading_options: &[],
        reads_stdin: true,
    },
    Interpreter {
        names: &["perl"],
        script_options: &["-e", "-E"],
        value_options: &[],
        loading_options: &["-I", "-M", "-m"],
        reads_stdin: true,
    },
    Interpreter {
        names: &["ruby"],
        script_options: &["-e"],
        value_options: &[],
        loading_options: &["-I", "-r"],
        reads_stdin: true,
    },
    Interpreter {
        names: &["node", "nodejs", "deno", "bun"],
        script_options: &["-e", "-p", "--eval", "--print", "eval"],
        value_options: &[],
        loading_options: &["-r", "--require", "--import", "--loader"],
        reads_stdin: true,
    },
    Interpreter {
        names: &["php"],
        script_options: &["-r", "--run"],
        value_options: &[],
        loading_options: &["-d"],
        reads_stdin: true,
    },
    Interpreter {
        names: &["lua", "luajit", "Rscript", "osascript"],
        script_options: &["-e"],
        value_options: &[],
        loading_options: &["-l"],
        reads_stdin: true,
    },
    Interpreter {
        names: &["pwsh", "powershell"],
        script_options: &["-c", "-Command", "-EncodedCommand", "-File"],
        value_options: &["-ExecutionPolicy"],
        loading_options: &[],
        reads_stdin: true,
    },
    Interpreter {
        names: &["cmd"],
        script_options: &["/c", "/C", "/k", "/K"],
        value_options: &[],
        loading_options: &[],
        reads_stdin: true,
    },
    Interpreter {
        names: &["awk", "gawk", "mawk", "nawk"],
        script_options: &["-e", "--source", "-f", "--file"],
        value_options: &["-v", "-F", "--assign", "--field-separator"],
        loading_options: &["-i", "--include", "-l", "--load"],
        reads_stdin: false,
    },
    Interpreter {
        names: &["sed", "gsed"],
        script_options: &["-e", "--expression", "-f", "--file"],
        value_options: &["-l"],
        loading_options: &[],
        reads_stdin: false,
    },
];

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in file.backends() {
        if let Some(span) = programs(tool).into_iter().find_map(|(name, rest)| in_code(tool, name, &rest)) {
            let remedy = "write the script out and hand values over as its arguments: [sh, -c, 'grep -- \"$1\" log', sh, \"{text}\"]";
            let message = format!("in {:?} the caller's text becomes part of a script, or chooses it", tool.name.value);
            findings.report(&RULE, span, message, remedy);
        }
    }
}

pub(super) type Elements<'f> = Vec<&'f At<Template>>;

/// Every place of an argument vector where a program may stand, with what follows it.
fn programs<'f>(tool: &'f BackendEntry<'_>) -> Vec<(&'f str, Elements<'f>)> {
    let elements: Elements<'f> = tool.templates().collect();
    let mut found = Vec::new();
    // Behind a program that runs others, any word may be one: its options are not known here.
    let mut anywhere = false;
    let mut before = None;
    for (index, element) in elements.iter().enumerate() {
        let literal = template::literal(&element.value);
        if let Some(name) = literal.filter(|_| anywhere || index == 0 || before.is_some_and(executes_next)) {
            anywhere |= is_runner(name);
            found.push((name, elements.iter().skip(index + 1).copied().collect()));
        }
        before = literal;
    }
    found
}

/// Where the caller's text is, or chooses, code that a program runs.
fn in_code(tool: &BackendEntry<'_>, name: &str, rest: &Elements<'_>) -> Option<Span> {
    let stdin = tool.stdin.as_ref().map(|stdin| stdin.span);
    let interpreter = INTERPRETERS.iter().find(|i| is_one_of(name, i.names));
    interpreter.and_then(|i| dynamic(i, rest, stdin)).or_else(|| code_options::dynamic(name, rest))
}

/// Names under which a program's script is its standard input.
const STDIN: &[&str] = &["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// What an element of an interpreter's arguments is, by the option before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// An option, or the first operand.
    Anything,
    /// A script, after more options perhaps: `sh -c -e SCRIPT`.
    Script,
    /// Code to load.
    Code,
    /// An option's value, after which a script may still be expected.
    Value { then_script: bool },
}

/// Where the caller's text is, or chooses, a script. What follows the script is its arguments.
/// `stdin` is where the caller's text is given as standard input.
fn dynamic(interpreter: &Interpreter, rest: &Elements<'_>, stdin: Option<Span>) -> Option<Span> {
    let mut expected = Expected::Anything;
    let mut had_script = false;
    for element in rest {
        let literal = template::literal(&element.value);
        let text = literal.unwrap_or_else(|| template::leading(&element.value));
        let is_option = literal.is_some() && interpreter.is_option(text);
        match expected {
            Expected::Value { then_script } => {
                expected = if then_script { Expected::Script } else { Expected::Anything };
                continue;
            }
            Expected::Script | Expected::Code if literal.is_none() => return Some(element.span),
            Expected::Code => {
                expected = Expected::Anything;
                continue;
            }
            Expected::Script if stdin.is_some() && STDIN.contains(&text) => return stdin,
            Expected::Script if !is_option => {
                had_script = true;
                expected = Expected::Anything;
                continue;
            }
            Expected::Script | Expected::Anything => {}
        }
        if literal.is_none() && interpreter.is_glued_to_code(text) {
            return Some(element.span);
        }
        let awaits_script = expected == Expected::Script;
        if interpreter.takes_script(text) {
            expected = Expected::Script;
        } else if interpreter.loading_options.contains(&text) {
            expected = Expected::Code;
        } else if interpreter.value_options.contains(&text) {
            expected = Expected::Value { then_script: awaits_script };
        } else if !interpreter.is_option(text) {
            // The first operand is the script, or names its file, unless an option gave it.
            return match literal {
                _ if had_script => None,
                None => Some(element.span),
                Some(text) => stdin.filter(|_| STDIN.contains(&text)),
            };
        }
        if !had_script && interpreter.reads_stdin && (text == "-" || text == "-s") && stdin.is_some() {
            return stdin;
        }
    }
    stdin.filter(|_| interpreter.reads_stdin && !had_script)
}

impl Interpreter {
    fn is_option(&self, text: &str) -> bool {
        (text.starts_with(['-', '+']) && text.len() > 1) || self.script_options.contains(&text)
    }

    /// Whether a script or code follows in the same element: `-c{x}`, `--eval={x}`.
    fn is_glued_to_code(&self, text: &str) -> bool {
        let options = || self.script_options.iter().chain(self.loading_options);
        self.takes_script(text)
            || options().any(|option| text.starts_with(option) && !option.starts_with("--"))
            || options().any(|option| text.starts_with(&format!("{option}=")))
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
            "[bash, --rcfile, \"{x}\", a.sh]",
            "[node, -r, \"{x}\", a.js]",
            "[node, -r, b.js, \"{x}\"]",
            "[python3, -m, \"{x}\"]",
            "[perl, \"-M{x}\", a.pl]",
            "[awk, -f, \"{x}\", log]",
            "[bash, -ce, \"{x}\"]",
            "[find, ., -exec, sh, -c, \"{x}\", ;]",
            "[sudo, -u, other, sh, -c, \"{x}\"]",
            "[find, ., -exec, env, sh, -c, \"{x}\", ;]",
            "[/usr/bin/python3.11, -c, \"{x}\"]",
            "[perl5.36.0, -e, \"{x}\"]",
            "[bash-5.2, -c, \"{x}\"]",
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

    #[test]
    fn standard_input_is_no_script() {
        let fed =
            |feed: &str, run: &str| tool(&format!("args: {{x: {{type: string}}}}\nstdin: \"{feed}\"\nrun: {run}"));
        breaks(super::RULE, &fed("{*}", "[python3]"));
        keeps(super::RULE, &fed("{*}", "[python3, a.py]"));
        let run = |run: &str| fed("{x}", run);
        for bad in [
            "[sh]",
            "[bash]",
            "[python3]",
            "[python3, \"-\"]",
            "[sh, -s, a]",
            "[sh, -e]",
            "[bash, /dev/stdin]",
            "[env, -i, sh]",
            "[xargs, sh, -c]",
            "[awk, -f, \"-\"]",
            "[perl5.36.0, -w]",
        ] {
            breaks(super::RULE, &run(bad));
        }
        for good in ["[sh, a.sh]", "[sh, -c, cat]", "[python3, -m, json.tool]", "[awk, 1]", "[sed, -n, 1p]", "[cat]"] {
            keeps(super::RULE, &run(good));
        }
    }
}
