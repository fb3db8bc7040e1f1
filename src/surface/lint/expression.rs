//! A rule's expression is read once, when the surface is.

use super::super::rules::Unfit;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::{At, Span};

pub(crate) const RULE: Rule = Rule::error(
    "expression",
    "a rule's expression is CEL over `args`, `tool` and `caller`, comes to true or false, and goes through one list at a time",
);

/// Reports what is wrong with an expression, at its place if it stands in the file as it is.
pub(crate) fn report(source: &At<String>, unfit: Unfit, findings: &mut Findings) {
    let mut span = findings.source().narrow(source.span, &source.value);
    if let Some(part) = unfit.part.filter(|_| findings.source().slice(span) == source.value) {
        span = Span { start: span.start + part.start, end: span.start + part.end };
    }
    findings.report(&RULE, span, unfit.problem, unfit.remedy);
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, tool};

    #[test]
    fn an_expression_is_read_with_the_surface() {
        for bad in ["", "1", "arg.path == 1", "args.path ==", "args.path.shout()", "args.path + 'x'"] {
            breaks(super::RULE, &format!("{}rules: [{{ allow: \"{bad}\" }}]\n", tool("")));
        }
        keeps(super::RULE, &format!("{}rules: [{{ allow: \"args.path == 'x'\" }}]\n", tool("")));
    }

    #[test]
    fn a_problem_stands_under_the_word_it_is_about() {
        let found = problems(&format!("{}rules:\n  - allow: caller == 'ann' && amout > 3\n", tool("")));
        let problem = &found.list()[0];
        assert_eq!((problem.column, problem.end_column), (31, 36), "{found}");
    }
}
