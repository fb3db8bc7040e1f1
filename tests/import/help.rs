//! Help texts of every style.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use twodoor::import::help::{self, Found, HELP_BYTES, Program};

use super::{check, compare};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/help")
}

/// A program of one help text; what runs is `true`, which is everywhere.
fn program(name: &str, words: &[&str], text: &str) -> Program {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let named: Vec<String> = std::iter::once(name.to_owned()).chain(words.clone()).collect();
    let help = help::parse(text, &named);
    Program {
        name: name.to_owned(),
        run: vec!["true".to_owned()],
        version: Some(format!("{name} 1.2.3")),
        about: String::new(),
        found: vec![Found { words, help, about: String::new() }],
        left_out: Vec::new(),
    }
}

#[test]
fn every_style_of_help_becomes_a_surface_file_that_can_be_served() {
    for (style, name, words) in [
        ("clap", "shelf", &["lend"][..]),
        ("argparse", "shelf", &[]),
        ("click", "shelf", &["find"]),
        ("cobra", "shelf", &["prune"]),
        ("getopt", "shelf", &[]),
        ("git", "git", &["record"]),
        ("docker", "shelf", &["run"]),
        ("bsd", "shelf", &[]),
        ("words", "find", &[]),
    ] {
        let text = std::fs::read_to_string(folder().join(format!("{style}.txt"))).unwrap();
        let text = if name == "git" { text.replace("usage: shelf", "usage: git") } else { text };
        let imported =
            help::surface(&program(name, words, &text), Path::new("/")).unwrap_or_else(|e| panic!("{style}: {e}"));
        let warnings = check(&imported.text);
        assert!(warnings.is_empty(), "{style}: {warnings:?}\n{}", imported.text);
        compare(&folder().join(format!("{style}.yaml")), &imported.text);
    }
}

#[test]
fn subcommands_are_found_in_every_style() {
    let named = |text: &str| {
        let help = help::parse(text, &["shelf".to_owned()]);
        help.commands.into_iter().map(|command| command.name).collect::<Vec<_>>().join(" ")
    };
    let clap = "Usage: shelf <COMMAND>\n\nCommands:\n  add     Adds\n  rm, r   Removes\n  help    Prints\n\nOptions:\n  -h  Help\n";
    assert_eq!(named(clap), "add rm help");
    let cobra = "Keeps a shelf.\n\nUsage:\n  shelf [command]\n\nAvailable Commands:\n  add         Adds\n  config      Sets\n\nFlags:\n  -h, --help   help\n";
    assert_eq!(named(cobra), "add config");
    let argparse = "usage: shelf [-h] {add,remove} ...\n\npositional arguments:\n  {add,remove}\n    add         adds a book\n    remove      removes one\n\noptions:\n  -h, --help    help\n";
    assert_eq!(named(argparse), "add remove");
    let git = "usage: shelf [--version] <command> [<args>]\n\nstart a shelf (see also: shelf help start)\n   clone     Copies a shelf\n   init      Makes one\n\nlook at it\n   log       Shows the past\n";
    assert_eq!(named(git), "clone init log");
    let docker = "Usage:  shelf [OPTIONS] COMMAND\n\nKeeps shelves\n\nManagement Commands:\n  box*        Boxes (Some Inc.)\n  lid         Lids\n\nCommands:\n  open        Open one\n\nGlobal Options:\n      --config string   Where\n\nRun 'shelf COMMAND --help' for more information.\n";
    assert_eq!(named(docker), "box lid open");
    let click = "Usage: shelf [OPTIONS] COMMAND [ARGS]...\n\n  Keeps a shelf.\n\nOptions:\n  --help  Show this.\n\nCommands:\n  add   Adds a book.\n  list  Lists\n        all of them.\n";
    assert_eq!(named(click), "add list");
    let npm = "shelf <command>\n\nUsage:\n\nshelf install        install all\nshelf test           run\n\nAll commands:\n\n    access, adduser, audit,\n    bugs, ci\n";
    assert_eq!(named(npm), "access adduser audit bugs ci");
}

#[test]
fn what_may_run_code_write_or_ask_waits_for_a_decision() {
    let text = "Usage: shelf [OPTIONS]\n\nOptions:\n  --exec <CMD>  Runs it\n  --output <FILE>  Writes there\n  --interactive  Asks\n  --password <WORD>  Opens\n  --force  Does it\n  --config <FILE>  Reads it\n  --output-format <KIND>  How it looks: a format\n  --title <TITLE>  Of the book\n";
    let imported = help::surface(&program("shelf", &[], text), Path::new("/")).unwrap();
    let offered: Vec<&str> = imported
        .text
        .lines()
        .filter(|line| line.starts_with("      ") && line.contains(": {") && !line.contains('#'))
        .collect();
    assert_eq!(offered.len(), 2, "{}", imported.text);
    assert!(offered[0].contains("output-format") && offered[1].contains("title"));
    for name in ["exec", "output", "interactive", "password", "force", "config"] {
        assert!(imported.text.contains(&format!("      # {name}:")), "{name}\n{}", imported.text);
    }
}

#[test]
fn what_the_rules_refuse_is_switched_off_with_its_reason() {
    let text = "usage: tar [-f FILE] [--use-compress-program=PROG] [--to-command CMD]\n\n  -f, --file=FILE  the archive\n  -I, --use-compress-program=PROG  filter through PROG\n";
    let mut program = program("tar", &[], text);
    program.run = vec!["tar".to_owned()];
    let imported = help::surface(&program, Path::new("/")).unwrap();
    check(&imported.text);
    let line = imported.text.lines().find(|line| line.contains("use-compress-program: ")).unwrap();
    assert!(line.trim_start().starts_with('#'), "{}", imported.text);
    // A program whose operand is a script cannot be offered it.
    let sed = "Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...\n\n  -n, --quiet\n                 suppress printing\n";
    let mut program = self::program("sed", &[], sed);
    program.run = vec!["sed".to_owned()];
    check(&help::surface(&program, Path::new("/")).unwrap().text);
}

#[test]
fn no_value_becomes_part_of_an_expression_of_find() {
    let text = std::fs::read_to_string(folder().join("words.txt")).unwrap();
    let imported = help::surface(&program("find", &[], &text), Path::new("/")).unwrap();
    let run: Vec<&str> = imported.text.lines().skip_while(|line| !line.contains("run:")).collect();
    assert!(!run.iter().any(|line| line.trim() == "- --"), "{}", imported.text);
    assert!(run.iter().any(|line| line.trim() == "# - \"{expression}\""), "{}", imported.text);
}

#[test]
fn names_of_harm_are_irreversible_and_reading_is_for_a_person_to_say() {
    let of = |word: &str| {
        help::surface(&program("shelf", &[word], "Usage: shelf x [OPTIONS]\n"), Path::new("/")).unwrap().text
    };
    assert!(of("delete").contains("\n    reversible: false\n"));
    assert!(of("list").contains("\n    # read_only: true\n") && !of("list").contains("\n    read_only: true\n"));
}

#[test]
fn escapes_and_manual_pages_are_no_facts() {
    let coloured = "\u{1b}[1mUsage:\u{1b}[0m shelf [OPTIONS]\n\nOptions:\n  \u{1b}[32m--title\u{1b}[0m <TITLE>  The t\u{8}title\u{202e}\n";
    let imported = help::surface(&program("shelf", &[], coloured), Path::new("/")).unwrap();
    assert!(imported.text.contains("title: { type: string, description: The title }"), "{}", imported.text);
    let manual = help::parse(
        "SHELF(1)\n\nNAME\n       shelf - keeps books\n\nSYNOPSIS\n       shelf [-a]\n",
        &["shelf".to_owned()],
    );
    assert!(!manual.is_useful());
}

#[test]
fn a_long_text_is_read_to_a_bound() {
    let option = "      --an-option-of-many=VALUE  what it does\n";
    let text = format!("Usage: shelf [OPTION]\n\n{}", option.repeat(HELP_BYTES / option.len() + 1000));
    assert_eq!(help::parse(&text, &["shelf".to_owned()]).options.len(), 1);
    let nested = format!("usage: shelf {}", "[".repeat(100_000));
    assert!(help::parse(&nested, &["shelf".to_owned()]).options.is_empty());
    let deep = format!("usage: shelf {}x{}", "[".repeat(900), "]".repeat(900));
    let _ = help::parse(&deep, &["shelf".to_owned()]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gives_a_surface_that_can_be_served_or_a_reason(
        lines in prop::collection::vec("(  ){0,3}[-a-zA-Z<>\\[\\]{}()|=:,.*#&!%@'\"\u{e9}\u{202e} ]{0,50}", 0..30),
        words in prop::collection::vec("[a-z{}*-]{1,8}", 0..3),
    ) {
        let text = format!("Usage: shelf [OPTIONS] {}\n\nOptions:\n{}", words.join(" "), lines.join("\n"));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let Ok(imported) = help::surface(&program("shelf", &words, &text), Path::new("/")) {
            check(&imported.text);
        }
    }
}
