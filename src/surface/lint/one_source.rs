//! What is read has one place that it is read from; two would leave open which counts.

use crate::surface::problem::{Findings, Rule};
use crate::surface::source::Span;
use crate::surface::tree::{Entry, Node};

pub(crate) const RULE: Rule =
    Rule::error("one-source", "a resource, a template, a prompt and a message have exactly one source");

/// A source, and the keys that go with it.
type Sources = [(&'static str, &'static [&'static str])];

/// The one source of an entry, and the keys that the entry may have beside it: those of every source if it is not
/// known which is meant.
pub(crate) fn among(
    entry: &Entry,
    owner: &'static str,
    sources: &Sources,
    keys: &[&'static str],
    findings: &mut Findings,
) -> (Option<&'static str>, Vec<&'static str>) {
    let source = of(&entry.node, entry.key.span, owner, sources, findings);
    let with = sources.iter().filter(|(name, _)| source.is_none_or(|source| source == *name));
    let beside = with.flat_map(|(name, keys)| std::iter::once(name).chain(keys.iter().filter(move |key| *key != name)));
    let mut known: Vec<&str> = keys.to_vec();
    beside.for_each(|key| {
        if !known.contains(key) {
            known.push(key)
        }
    });
    (source, known)
}

/// The one source of a node; none or several are reported.
pub(crate) fn of(
    node: &Node,
    owner: Span,
    name: &'static str,
    sources: &Sources,
    findings: &mut Findings,
) -> Option<&'static str> {
    // What is no mapping is reported where its keys are read.
    node.as_map()?;
    let names: Vec<&str> = sources.iter().map(|(source, _)| *source).collect();
    let mut present = sources.iter().filter_map(|(source, _)| Some((*source, node.get(source)?.key.span)));
    match (present.next(), present.next()) {
        (Some((source, _)), None) => return Some(source),
        (None, _) => {
            let remedy = format!("write one of {}", names.join(", "));
            findings.report(&RULE, owner, format!("{name} has nothing that it is read from"), remedy);
        }
        (Some((first, _)), Some((second, span))) => {
            let message = format!("{name} has both `{first}` and `{second}`");
            findings.report(&RULE, span, message, "leave out one of the two");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, prompt, resource, template};
    use super::super::unknown_key;

    #[test]
    fn there_is_one_source_and_its_keys() {
        for bad in [
            resource("title: x"),
            resource("text: x\nrun: [ls]"),
            resource("file: a\nfolder: b"),
            template("uri: \"s:{x}\""),
            template("uri: \"s:{x}\"\ntext: \"{x}\"\nfile: \"{x}\""),
            prompt("title: x"),
            prompt("text: x\nmessages: [{text: x}]"),
            prompt("messages: [{role: user}]"),
            prompt("messages: [{text: x, file: a}]"),
        ] {
            breaks(super::RULE, &bad);
        }
        for good in [
            resource("text: x"),
            resource("run: [ls]\ncwd: .\nenv: [HOME]\ntimeout: 5s\ncap: 1KiB\nexit_codes: [0]\nmissing_codes: [2]"),
            template("uri: \"s:{x}\"\ntext: \"{x}\""),
            prompt("messages: [{text: x}, {role: assistant, text: y}]"),
        ] {
            keeps(super::RULE, &good);
            assert!(problems(&good).is_empty(), "{}", problems(&good));
        }
        for idle in [
            resource("text: x\ntimeout: 5s"),
            resource("text: x\nmatch: \"*\""),
            resource("run: [ls]\nmatch: \"*\""),
            resource("text: x\nargs: {a: {}}"),
            template("uri: \"s:{x}\"\ntext: \"{x}\"\ncap: 1KiB"),
            template("uri: \"s:{x}\"\ntext: \"{x}\"\nargs: {x: {as: path}}"),
            template("uri: \"s:{x}\"\ntext: \"{x}\"\nargs: {x: {required: true}}"),
            prompt("text: x\nuri: x"),
        ] {
            breaks(unknown_key::RULE, &idle);
        }
    }
}
