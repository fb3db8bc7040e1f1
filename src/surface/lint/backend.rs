//! A tool is carried out by one backend; two would leave open which counts.

use crate::surface::problem::{Findings, Rule};
use crate::surface::tree::Entry;

pub(crate) const RULE: Rule =
    Rule::error("backend", "a tool has exactly one backend: `run`, `target`, `http`, `upstream` or `builtin`");

/// A kind of backend, by the key that declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A command.
    Run,
    /// An action of a registered capability.
    Target,
    /// An HTTP request.
    Http,
    /// A tool of another MCP server.
    Upstream,
    /// A tool of a built-in domain.
    Builtin,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Run, Self::Target, Self::Http, Self::Upstream, Self::Builtin];

    /// The key that declares it.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Target => "target",
            Self::Http => "http",
            Self::Upstream => "upstream",
            Self::Builtin => "builtin",
        }
    }
}

/// Every key that declares a backend.
pub(crate) const KEYS: [&str; 5] = ["run", "target", "http", "upstream", "builtin"];

/// The one backend of a tool. None and several are reported.
pub(crate) fn of(tool: &Entry, findings: &mut Findings) -> Option<Kind> {
    // What is no mapping is reported where its keys are read.
    tool.node.as_map()?;
    let mut present = Kind::ALL.into_iter().filter_map(|kind| Some((kind, tool.node.get(kind.key())?.key.span)));
    match (present.next(), present.next()) {
        (Some((kind, _)), None) => return Some(kind),
        (None, _) => {
            let remedy = "write the program and its arguments, such as `run: [git, --version]`";
            findings.report(&RULE, tool.key.span, "a tool has no backend", remedy);
        }
        (Some((first, _)), Some((second, span))) => {
            let message = format!("a tool has both `{}` and `{}`", first.key(), second.key());
            findings.report(&RULE, span, message, "leave out one of the two");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, tool};

    #[test]
    fn a_tool_has_exactly_one_backend() {
        for bad in ["title: x", "run: [ls]\n    target: a/b", "http: x\n    upstream: y"] {
            let yaml = format!("surface: s\nversion: 1.0.0\ntools:\n  t:\n    description: x\n    {bad}\n");
            breaks(super::RULE, &yaml);
            assert_eq!(problems(&yaml).list().len(), 1, "{}", problems(&yaml));
        }
        keeps(super::RULE, &tool(""));
    }
}
