//! The rules that surface files are held to: one file each, with its examples as a test below it.
//!
//! A rule is a `RULE` and either a `check` over the whole file, listed in [`CHECKS`], or a function
//! that reading calls where it meets the matter. To add one: a file, its line in [`rules`], and,
//! for a check, its line in [`CHECKS`].

pub(super) mod argument_as;
pub(super) mod argument_name;
pub(super) mod arguments_twice;
mod asks_itself;
pub(super) mod backend;
pub(super) mod braces;
pub(super) mod call_rule;
pub(super) mod cap;
mod code_options;
mod coerced_rule;
mod completion;
mod contradiction;
mod default_value;
mod derived_uri;
mod digest_name;
mod dispatcher;
pub(super) mod duration;
mod dynamic_script;
pub(super) mod env_name;
#[cfg(test)]
mod examples;
mod excluded;
pub(super) mod exit_code;
pub(super) mod expression;
mod fetched_uri;
mod folder;
mod folder_count;
pub(super) mod gate_level;
pub(super) mod glob;
mod header_secret;
pub(super) mod hidden_characters;
pub(super) mod http_body;
pub(super) mod http_header;
pub(super) mod http_method;
mod http_placeholder;
pub(super) mod http_url;
mod http_writes;
pub(super) mod icon;
mod long_text;
mod maybe_irreversible;
mod media_type;
pub(super) mod misplaced_key;
mod missing_description;
pub(super) mod missing_key;
mod missing_source;
mod nothing_declared;
mod old_dialect;
pub(super) mod one_source;
mod option_value;
mod output_schema;
mod plain_http;
mod portable_name;
pub(super) mod priority;
mod private_address;
mod program;
mod program_placeholder;
mod prompt_file;
mod read_only_verb;
mod reserved_name;
mod rule_twin;
mod secret_header;
mod secret_literal;
pub(super) mod secret_variable;
pub(crate) mod similar_names;
mod skill_folder;
mod source_path;
pub(super) mod stdin_argument;
pub(super) mod surface_name;
mod target;
mod target_argument;
pub(super) mod target_common;
pub(super) mod target_effect;
pub(super) mod token_cost;
mod tool_count;
mod two_placeholders;
pub(super) mod unknown_key;
mod unknown_placeholder;
pub(super) mod unknown_resource;
mod unknown_upstream;
mod unready_target;
mod unset_variable;
mod unused_argument;
pub(super) mod upstream_digest;
pub(super) mod upstream_source;
pub(super) mod value_kind;
pub(super) mod variable;
pub(super) mod version;

use super::file::SurfaceFile;
use super::problem::{Findings, Rule};
use super::resolve::Resolved;
use super::{callers, frozen, lock, source, tree};

/// The checks over a whole file.
const CHECKS: &[fn(&SurfaceFile<'_>, &mut Findings)] = &[
    asks_itself::check,
    call_rule::check,
    coerced_rule::check,
    completion::check,
    contradiction::check,
    default_value::check,
    derived_uri::check,
    digest_name::check,
    dispatcher::check,
    dynamic_script::check,
    fetched_uri::check,
    header_secret::check,
    http_placeholder::check,
    http_writes::check,
    long_text::check,
    media_type::check,
    missing_description::check,
    nothing_declared::check,
    old_dialect::check,
    option_value::check,
    output_schema::check,
    plain_http::check,
    portable_name::check,
    private_address::check,
    program_placeholder::check,
    read_only_verb::check,
    reserved_name::check,
    rule_twin::check,
    secret_header::check,
    secret_literal::check,
    similar_names::check,
    stdin_argument::check,
    surface_name::check,
    tool_count::check,
    two_placeholders::check,
    unknown_placeholder::check,
    unset_variable::check,
    unknown_upstream::check,
    unused_argument::check,
    version::check,
];

/// Runs every check.
pub(super) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    for check in CHECKS {
        check(file, findings);
    }
    folder::check(file, resolved, findings);
    folder_count::check(file, resolved, findings);
    missing_source::check(file, resolved, findings);
    program::check(file, resolved, findings);
    prompt_file::check(file, resolved, findings);
    skill_folder::check(file, resolved, findings);
    source_path::check(file, resolved, findings);
    target::check(file, resolved, findings);
    target_argument::check(file, resolved, findings);
    target_effect::check(file, resolved, findings);
    excluded::check(file, resolved, findings);
    maybe_irreversible::check(file, resolved, findings);
    unready_target::check(file, resolved, findings);
}

/// Every rule on surface files but those that hold for every catalog, however it was made.
pub fn rules() -> Vec<Rule> {
    vec![
        source::UNREADABLE,
        source::KIND,
        source::SIZE,
        source::MODE,
        source::LINK,
        source::UTF8,
        hidden_characters::RULE,
        tree::SYNTAX,
        tree::DOCUMENT,
        tree::DUPLICATE,
        tree::TAG,
        tree::MERGE,
        tree::ALIAS,
        tree::KEY,
        tree::NUMBER,
        tree::TOO_DEEP,
        tree::TOO_LARGE,
        unknown_key::RULE,
        missing_key::RULE,
        value_kind::RULE,
        surface_name::RULE,
        reserved_name::RULE,
        version::RULE,
        digest_name::RULE,
        nothing_declared::RULE,
        one_source::RULE,
        variable::RULE,
        completion::RULE,
        derived_uri::RULE,
        fetched_uri::RULE,
        glob::RULE,
        source_path::RULE,
        missing_source::RULE,
        folder_count::RULE,
        prompt_file::RULE,
        unknown_resource::RULE,
        skill_folder::RULE,
        media_type::RULE,
        icon::RULE,
        priority::RULE,
        tool_count::RULE,
        portable_name::RULE,
        similar_names::RULE,
        missing_description::RULE,
        long_text::RULE,
        contradiction::RULE,
        argument_name::RULE,
        argument_as::RULE,
        arguments_twice::RULE,
        misplaced_key::RULE,
        default_value::RULE,
        unused_argument::RULE,
        secret_header::RULE,
        output_schema::RULE,
        old_dialect::RULE,
        backend::RULE,
        braces::RULE,
        unknown_placeholder::RULE,
        two_placeholders::RULE,
        program_placeholder::RULE,
        dynamic_script::RULE,
        option_value::RULE,
        program::RULE,
        folder::RULE,
        env_name::RULE,
        secret_literal::RULE,
        stdin_argument::RULE,
        duration::RULE,
        cap::RULE,
        exit_code::RULE,
        http_method::RULE,
        http_url::RULE,
        http_placeholder::RULE,
        http_header::RULE,
        http_body::RULE,
        secret_variable::RULE,
        header_secret::RULE,
        unset_variable::RULE,
        plain_http::RULE,
        private_address::RULE,
        http_writes::RULE,
        http_writes::POST,
        upstream_source::RULE,
        upstream_digest::RULE,
        upstream_digest::ANY,
        unknown_upstream::RULE,
        unknown_upstream::UNUSED,
        read_only_verb::RULE,
        asks_itself::RULE,
        call_rule::RULE,
        expression::RULE,
        rule_twin::RULE,
        coerced_rule::RULE,
        gate_level::RULE,
        maybe_irreversible::RULE,
        target::REGISTRY,
        target::RULE,
        target_argument::RULE,
        target_argument::REQUIRED,
        target_common::RULE,
        target_argument::NARROW,
        target_effect::RULE,
        target_effect::READS,
        excluded::RULE,
        unready_target::RULE,
        dispatcher::RULE,
        token_cost::RULE,
        lock::VERSION,
        lock::CONFLICT,
        lock::DIGEST,
        lock::DIFFERS,
        lock::MISSING,
        lock::BUMP,
        frozen::LABEL,
        frozen::NAME,
        frozen::CHANGED,
        callers::NAME,
        callers::HASH,
        callers::SCOPE,
        callers::URI,
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::surface::problem::Severity;

    #[test]
    fn every_rule_has_a_name_of_its_own_and_stands_in_the_reference() {
        let reference = include_str!("../../../docs/surface-file.md");
        let mut seen = HashSet::new();
        for rule in rules() {
            assert!(seen.insert(rule.id), "{} stands twice", rule.id);
            let severity = if rule.severity == Severity::Error { "error" } else { "warning" };
            let row = format!("| `{}` | {severity} | {} |", rule.id, rule.text);
            assert!(reference.contains(&row), "docs/surface-file.md lacks the line\n{row}");
        }
    }
}
