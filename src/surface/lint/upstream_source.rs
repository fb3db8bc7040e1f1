//! An upstream is a program or an address, and its tools are named after it.

use crate::protocol::json::shortened;
use crate::surface::fields::Fields;
use crate::surface::file::{BackendEntry, ElementEntry};
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::At;

pub(crate) const RULE: Rule = Rule::error(
    "upstream",
    "an upstream has a short plain name, and either `run` or `url`; a tool of it is UPSTREAM/TOOL",
);

/// Keys that say something of one way alone.
const BESIDE_URL: &[&str] = &["headers", "allow_private"];

/// Checks an upstream's name.
pub(crate) fn check_name(name: &At<String>, findings: &mut Findings) {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
    if !(1..=32).contains(&name.value.len()) || !name.value.bytes().all(plain) {
        let message = format!("{:?} cannot be the name of an upstream", shortened(&name.value, 64));
        findings.report(&RULE, name.span, message, "use 1 to 32 of a-z, 0-9, - and _");
    }
}

/// Checks that there is one way to it.
pub(crate) fn check(fields: &Fields<'_>, name: &At<String>, findings: &mut Findings) {
    match (fields.get("run"), fields.get("url")) {
        (Some(_), Some(url)) => {
            findings.report(&RULE, url.key.span, "an upstream has both `run` and `url`", "leave out one of the two");
        }
        (None, None) => {
            let remedy = "write `run: [npx, -y, some-server]` or `url: https://example.com/mcp`";
            findings.report(&RULE, name.span, format!("the upstream {:?} is not reached", name.value), remedy);
        }
        (Some(_), None) => {
            for entry in BESIDE_URL.iter().filter_map(|key| fields.get(key)) {
                let message = format!("`{}` stands beside `run`, where it has no effect", entry.key.value);
                findings.report(&RULE, entry.key.span, message, "leave it out; secrets of a program go into `env`");
            }
        }
        (None, Some(_)) => {
            if let Some(env) = fields.get("env") {
                let message = "`env` stands beside `url`, where it has no effect";
                findings.report(&RULE, env.key.span, message, "leave it out; secrets go into `headers`");
            }
        }
    }
}

/// Reports a group in the command of an upstream, which has no argument that could be absent.
pub(crate) fn check_run(backend: &BackendEntry<'_>, findings: &mut Findings) {
    for element in &backend.run {
        if let (ElementEntry::Group(_), Some(first)) = (element, element.templates().first()) {
            let message = "a group stands in the command of an upstream";
            findings.report(&RULE, first.span, message, "write its words one by one");
        }
    }
}

/// Reports what names no tool of an upstream.
pub(crate) fn not_a_tool(said: &At<String>, findings: &mut Findings) {
    let message = format!("{:?} is no tool of an upstream", shortened(&said.value, 64));
    findings.report(&RULE, said.span, message, "write UPSTREAM/TOOL, such as `upstream: everything/echo`");
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, upstream};

    #[test]
    fn an_upstream_is_a_program_or_an_address() {
        for bad in [
            "digest: any",
            "run: [ls, [-a, -b]], digest: any",
            "run: [ls], url: https://h/, digest: any",
            "run: [ls], digest: any, headers: {A: b}",
            "run: [ls], digest: any, allow_private: true",
            "url: https://h/, digest: any, env: [A]",
        ] {
            breaks(super::RULE, &upstream(bad));
        }
        keeps(super::RULE, &upstream("run: [ls], digest: any, env: [A]"));
        keeps(super::RULE, &upstream("url: https://h/, digest: any"));
        let named = |name: &str| upstream("run: [ls], digest: any").replace("up:", &format!("{name}:"));
        breaks(super::RULE, &named("Up"));
        breaks(super::RULE, &named("\"a/b\""));
        let tool =
            |said: &str| upstream("run: [ls], digest: any").replace("upstream: up/echo", &format!("upstream: {said}"));
        for bad in ["up", "up/", "/echo", "\"\""] {
            breaks(super::RULE, &tool(bad));
        }
        keeps(super::RULE, &tool("up/a/b"));
    }
}
