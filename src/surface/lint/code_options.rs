//! Programs that are no interpreters, and yet run the values of some options: part of `dynamic-script`.

use super::dynamic_script::Elements;
use super::program_placeholder::is_one_of;
use crate::surface::source::Span;
use crate::surface::template;

/// Where the options of a row stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Anywhere,
    /// Before the first operand. These options take a value there, which is no operand.
    First(&'static [&'static str]),
    /// Behind this operand, a subcommand.
    After(&'static str),
}

use Scope::{After, Anywhere, First};

/// Programs, and options whose value they run, or load code by. A word stands for itself: `bisect run`.
const ROWS: &[(&[&str], Scope, &[&str])] = &[
    (&["env"], First(ASSIGNING_VALUES), &["-S", "--split-string"]),
    (&["git"], First(&["-C", "--git-dir", "--work-tree", "--namespace"]), &["-c", "--config-env", "--exec-path"]),
    (&["git"], Anywhere, &["--upload-pack", "--receive-pack", "--exec", "--extcmd", "--open-files-in-pager"]),
    (&["git"], After("clone"), &["-c", "-u", "--config", "--template"]),
    (&["git"], After("grep"), &["-O"]),
    (&["git"], After("rebase"), &["-x"]),
    (&["git"], After("difftool"), &["-x"]),
    (&["git"], After("bisect"), &["run"]),
    (&["git"], After("submodule"), &["foreach"]),
    (
        &["tar", "gtar", "bsdtar"],
        Anywhere,
        &[
            "-I",
            "-F",
            "--to-command",
            "--use-compress-program",
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
    ),
    (&["script", "scriptlive", "flock", "runuser", "expect"], Anywhere, &["-c", "--command"]),
    (&["find", "fd", "fdfind"], Anywhere, &["-exec", "-execdir", "-ok", "-okdir", "--exec", "--exec-batch"]),
    (&["fd", "fdfind"], Anywhere, &["-x", "-X"]),
    (&["rsync"], Anywhere, &["-e", "--rsh", "--rsync-path"]),
    (&["ssh", "scp", "sftp"], First(&["-i", "-l", "-p", "-P", "-J"]), &["-o", "-F"]),
    (&["scp", "sftp"], Anywhere, &["-S", "-D"]),
    (&["vi", "vim", "nvim", "view", "ex"], Anywhere, &["-c", "-S", "-u", "--cmd", "+"]),
    (&["emacs"], Anywhere, &["-l", "-f", "--eval", "--load", "--funcall"]),
    (&["make", "gmake"], Anywhere, &["-f", "--eval", "--file", "--makefile"]),
    (&["gdb", "lldb"], Anywhere, &["-x", "-ex", "-o", "--command", "--eval-command", "--one-line"]),
    (&["man"], Anywhere, &["-P", "--pager"]),
    (&["sort"], Anywhere, &["--compress-program"]),
    (&["split"], Anywhere, &["--filter"]),
    (&["zip"], Anywhere, &["-TT", "--unzip-command"]),
    (&["tcpdump"], Anywhere, &["-z"]),
];

/// Programs that take `NAME=value` before the program that they run: a variable such as `LD_PRELOAD`
/// or `BASH_ENV` chooses code, and there is no list of them all.
const ASSIGNING: &[&str] = &["env", "sudo"];

/// Their options that take a value.
const ASSIGNING_VALUES: &[&str] =
    &["-u", "-C", "-g", "-h", "-p", "-D", "-U", "--unset", "--chdir", "--user", "--group"];

/// Programs that hand their operands, from this one on, to a shell.
const SHELLING: &[(&[&str], usize, &[&str])] = &[
    (&["ssh"], 1, &["-i", "-l", "-p", "-J", "-o", "-F", "-b", "-c", "-D", "-L", "-R", "-W", "-S", "-E"]),
    (&["watch"], 0, &["-n", "--interval"]),
];

/// Where the caller's text is, or chooses, code that a program runs.
pub(super) fn dynamic(program: &str, rest: &Elements<'_>) -> Option<Span> {
    let rows = ROWS.iter().filter(|(names, ..)| is_one_of(program, names));
    let in_option = rows.filter_map(|(_, scope, options)| option_value(*scope, options, rest)).next();
    in_option.or_else(|| assignment(program, rest)).or_else(|| operand(program, rest))
}

fn option_value(scope: Scope, options: &[&str], rest: &Elements<'_>) -> Option<Span> {
    let mut within = !matches!(scope, After(_));
    let mut is_code = false;
    let mut is_value = false;
    for element in rest {
        let literal = template::literal(&element.value);
        let text = literal.unwrap_or_else(|| template::leading(&element.value));
        if std::mem::take(&mut is_value) {
            continue;
        }
        if std::mem::take(&mut is_code) {
            match literal {
                None => return Some(element.span),
                Some(_) => continue,
            }
        }
        if !within {
            within = matches!(scope, After(word) if word == text);
        } else if literal.is_none() {
            if options.iter().any(|option| is_glued(option, text)) {
                return Some(element.span);
            }
        } else if options.iter().any(|option| is_option(option, text)) {
            is_code = true;
        } else if let First(values) = scope {
            is_value = values.contains(&text);
            if !text.starts_with('-') && !text.contains('=') {
                return None;
            }
        }
    }
    None
}

/// Whether an element is the option: itself, shortened as `getopt_long` lets it be, or in a cluster.
fn is_option(option: &str, text: &str) -> bool {
    let clustered = || {
        let letter = option.strip_prefix('-').filter(|o| o.len() == 1);
        let letters = text.strip_prefix('-').filter(|t| t.bytes().all(|b| b.is_ascii_alphabetic()));
        matches!((letter, letters), (Some(letter), Some(letters)) if letters.ends_with(letter))
    };
    option == text || is_shortened(option, text) || clustered()
}

fn is_shortened(option: &str, text: &str) -> bool {
    option.starts_with("--") && text.len() > 4 && option.starts_with(text)
}

/// Whether the option's value follows in the same element.
fn is_glued(option: &str, text: &str) -> bool {
    match text.split_once('=') {
        Some((name, _)) if option.starts_with("--") => option == name || is_shortened(option, name),
        _ if option.starts_with("--") => false,
        _ => text.starts_with(option) || is_option(option, text),
    }
}

fn assignment(program: &str, rest: &Elements<'_>) -> Option<Span> {
    is_one_of(program, ASSIGNING).then_some(())?;
    operands(rest, ASSIGNING_VALUES)
        .map_while(|(text, is_literal, span)| text.contains('=').then_some((is_literal, span)))
        .find_map(|(is_literal, span)| (!is_literal).then_some(span))
}

fn operand(program: &str, rest: &Elements<'_>) -> Option<Span> {
    let (_, from, values) = SHELLING.iter().find(|(names, ..)| is_one_of(program, names))?;
    operands(rest, values).skip(*from).find_map(|(_, is_literal, span)| (!is_literal).then_some(span))
}

/// What is neither an option nor an option's value: the text before a placeholder, and whether that is all.
fn operands<'f>(rest: &Elements<'f>, values: &'static [&'static str]) -> impl Iterator<Item = (&'f str, bool, Span)> {
    let mut is_value = false;
    rest.clone().into_iter().filter_map(move |element| {
        let literal = template::literal(&element.value);
        let text = literal.unwrap_or_else(|| template::leading(&element.value));
        let is_operand = !std::mem::take(&mut is_value) && !text.starts_with('-');
        is_value = !is_operand && values.contains(&text);
        is_operand.then_some((text, literal.is_some(), element.span))
    })
}

#[cfg(test)]
mod tests {
    use super::super::dynamic_script::RULE;
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn no_option_that_is_run_holds_the_callers_text() {
        let run = |run: &str| tool(&format!("args: {{x: {{type: string}}}}\nrun: {run}"));
        for bad in [
            "[env, -S, \"sh -c {x}\"]",
            "[env, \"-S{x}\"]",
            "[env, -i, -vS, \"{x}\"]",
            "[env, \"--split-string={x}\"]",
            "[env, \"LD_PRELOAD={x}\", ls]",
            "[env, -u, HOME, A=1, \"BASH_ENV={x}\", ls]",
            "[timeout, 5, env, \"LD_PRELOAD={x}\", ls]",
            "[sudo, -u, other, \"LD_PRELOAD={x}\", ls]",
            "[git, -c, \"alias.x={x}\", x]",
            "[git, -C, sub, -c, a=b, -c, \"{x}\", log]",
            "[git, \"--config-env={x}\", log]",
            "[git, \"--exec-path={x}\", log]",
            "[git, fetch, \"--upload-pack={x}\", origin]",
            "[git, fetch, \"--upload-p={x}\", origin]",
            "[git, clone, -c, \"{x}\", url]",
            "[git, rebase, -x, \"{x}\"]",
            "[git, bisect, run, \"{x}\"]",
            "[tar, -xf, a.tar, \"--to-command={x}\"]",
            "[tar, -xf, a.tar, \"--use-compress-program={x}\"]",
            "[tar, -xf, a.tar, \"--use-compress={x}\"]",
            "[tar, -cI, \"{x}\", -f, a.tar, .]",
            "[tar, -xf, a.tar, --checkpoint=1, \"--checkpoint-action={x}\"]",
            "[tar, -xf, a.tar, --checkpoint=1, \"--checkpoint-action=exec={x}\"]",
            "[script, -c, \"{x}\", /dev/null]",
            "[script, -qc, \"{x}\", /dev/null]",
            "[find, ., -exec, \"./{x}\", ;]",
            "[fd, a, -x, \"{x}\"]",
            "[rsync, -ave, \"{x}\", a, b]",
            "[ssh, -o, \"ProxyCommand={x}\", host]",
            "[ssh, -p, 22, host, ls, \"{x}\"]",
            "[watch, -n, 1, ls, \"{x}\"]",
            "[flock, a, -c, \"{x}\"]",
        ] {
            breaks(RULE, &run(bad));
        }
        for good in [
            "[env, A=1, ls, \"B={x}\"]",
            "[git, switch, -c, \"{x}\"]",
            "[git, -c, core.pager=cat, log, \"--author={x}\"]",
            "[git, log, \"--max-count={x}\", --, \"{x}\"]",
            "[git, grep, -e, \"{x}\"]",
            "[tar, -tf, \"{x}\"]",
            "[tar, -xf, a.tar, \"--directory={x}\"]",
            "[find, ., -name, \"{x}\"]",
            "[find, ., -name, \"{x}\", -exec, ls, \"{{}}\", ;]",
            "[rsync, -a, \"{x}\", b]",
            "[sort, -k, \"{x}\"]",
        ] {
            keeps(RULE, &run(good));
        }
    }
}
