//! A tool belongs to an upstream that the file declares, and every upstream has a tool.

use crate::protocol::json::shortened;
use crate::surface::file::{KindEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule, did_you_mean};

pub(crate) const RULE: Rule = Rule::error("unknown-upstream", "a tool's upstream stands under `upstreams`");

pub(crate) const UNUSED: Rule = Rule::warning("unused-upstream", "every upstream has a tool here");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let known: Vec<&str> = file.upstreams.iter().map(|upstream| upstream.name.value.as_str()).collect();
    let used: Vec<_> = file
        .tools
        .iter()
        .filter_map(|tool| match &tool.kind {
            Some(KindEntry::Upstream(Some(used))) => Some(used),
            _ => None,
        })
        .collect();
    for used in used.iter().filter(|used| !known.contains(&used.upstream.as_str())) {
        let span = findings.source().narrow(used.span, &used.upstream);
        let message = format!("there is no upstream {:?}", shortened(&used.upstream, 64));
        let meant = did_you_mean(&used.upstream, known.iter().copied());
        findings.suggest(&RULE, span, message, "declare it under `upstreams`, or correct its name", meant);
    }
    for upstream in &file.upstreams {
        if used.iter().all(|used| used.upstream != upstream.name.value) {
            let name = &upstream.name.value;
            let message = format!("no tool here is one of the upstream {name:?}");
            let remedy = format!("write a tool with `upstream: {name}/TOOL`, or leave it out");
            findings.report(&UNUSED, upstream.name.span, message, remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, upstream};

    #[test]
    fn tools_and_upstreams_belong_together() {
        let good = upstream("run: [ls], digest: any");
        keeps(super::RULE, &good);
        keeps(super::UNUSED, &good);
        let bad = good.replace("upstream: up/echo", "upstream: upp/echo");
        breaks(super::RULE, &bad);
        breaks(super::UNUSED, &bad);
        let problems = problems(&bad);
        let problem = problems.list().iter().find(|p| p.rule == super::RULE.id).unwrap();
        assert_eq!((problem.suggestion.as_deref(), problem.end_column - problem.column), (Some("up"), 3));
    }
}
