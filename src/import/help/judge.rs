//! What names and words of a help text tell of a value: its type, and whether a person has to decide about it first.
//!
//! Promises: guesses by words alone, and only towards caution. A word that is not known here tells nothing.

use super::{Metavar, Opt};
use crate::import::name;
use crate::protocol::Json;

/// The type that a value's name tells; says whether it is a path.
pub(super) fn typed(value: &Metavar, schema: &mut Vec<(&'static str, Json)>) -> bool {
    let lower = value.name.to_ascii_lowercase();
    let lower = lower.trim_start_matches(['<', '=']).trim_end_matches('>');
    let words = name::split(lower);
    let is_plain = !lower.contains([':', '=', '|', ',']);
    let is = |known: &[&str]| {
        known.contains(&lower)
            || (is_plain && words.len() == 2 && words.last().is_some_and(|word| known.contains(&word.as_str())))
    };
    let text = |text: &str| Json::String(text.to_owned());
    if !value.choices.is_empty() {
        schema.push(("type", text("string")));
        schema.push(("enum", Json::Array(value.choices.iter().map(|choice| text(choice)).collect())));
    } else if is(&[
        "n", "num", "number", "int", "integer", "count", "uint", "int32", "int64", "uint16", "uint32", "cols",
        "columns", "lines", "depth", "levels", "port", "seconds", "secs", "millis", "nr",
    ]) {
        schema.push(("type", text("integer")));
    } else if is(&["float", "double", "float64", "float32", "real"]) {
        schema.push(("type", text("number")));
    } else if is(&[
        "file",
        "files",
        "path",
        "paths",
        "dir",
        "dirs",
        "directory",
        "folder",
        "filename",
        "pathname",
        "filepath",
        "infile",
        "outfile",
    ]) {
        schema.push(("type", text("string")));
        schema.push(("as", text("path")));
        return true;
    } else {
        schema.push(("type", text("string")));
    }
    false
}

/// Words of options that a person has to decide about, and what is to be decided.
const RISKS: &[(&[&str], &str)] = &[
    (
        &[
            "exec",
            "execdir",
            "ok",
            "okdir",
            "command",
            "cmd",
            "shell",
            "eval",
            "hook",
            "hooks",
            "pager",
            "editor",
            "script",
            "plugin",
            "program",
            "filter",
            "rsh",
            "ssh",
            "browser",
            "preprocessor",
            "diff-program",
            "expression",
            "entrypoint",
        ],
        "decide: it may run code.",
    ),
    (
        &["password", "passwd", "token", "secret", "apikey", "credential", "credentials", "passphrase", "pin"],
        "decide: it holds a secret; give that by `env`.",
    ),
    (
        &["interactive", "prompt", "edit", "ask", "tty", "stdin", "watch", "follow", "wait", "patch"],
        "decide: it may wait for somebody to type, or never end.",
    ),
    (
        &[
            "force",
            "yes",
            "assume-yes",
            "no-verify",
            "insecure",
            "delete",
            "purge",
            "overwrite",
            "hard",
            "unlink",
            "remove",
        ],
        "decide: it removes a safeguard, or what was there.",
    ),
    (
        &["config", "configuration", "include", "load", "import", "require", "preload", "env", "environment", "set"],
        "decide: it may change what the program does, or load code.",
    ),
];

/// Words of options with a value that is written to.
const WRITES: &[&str] = &[
    "output",
    "out",
    "outfile",
    "log",
    "logfile",
    "dump",
    "write",
    "save",
    "dest",
    "destination",
    "trace",
    "fls",
    "fprint",
    "fprintf",
    "fprint0",
    "o",
];

/// Why an option is switched off until somebody decides.
pub(super) fn risk(option: &Opt, name: &str) -> Option<&'static str> {
    let words = name::split(name);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str())) || known.contains(&name);
    let kind = RISKS.iter().find(|(known, _)| has(known)).map(|(_, why)| *why);
    let about = option.about.to_ascii_lowercase();
    let value_is = |names: &[&str]| {
        option.value.as_ref().is_some_and(|value| names.contains(&value.name.to_ascii_lowercase().as_str()))
    };
    let writes = option.value.as_ref().is_some_and(|value| value.choices.is_empty())
        && has(WRITES)
        && (value_is(&["file", "path", "dir", "directory", "folder", "filename", "output"])
            || !about.contains("format"));
    kind.or_else(|| value_is(&["command", "cmd", "program"]).then_some("decide: it may run code."))
        .or_else(|| writes.then_some("decide: it writes where it is told."))
}
