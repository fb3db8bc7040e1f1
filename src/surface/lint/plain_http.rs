//! What goes to another machine unencrypted is read, and changed, by whoever is on the way.

use super::private_address;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::url;

pub(crate) const RULE: Rule = Rule::warning("plain-http", "what goes to another machine is encrypted");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for (address, _) in private_address::addresses(file) {
        let origin = &address.value.origin;
        if !origin.tls && !url::is_private(&origin.host) {
            let span = findings.source().narrow(address.span, "http://");
            let message = format!("{:?} is spoken to without encryption", origin.host);
            findings.suggest(&RULE, span, message, "write https://", Some("https://".to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps, upstream};

    #[test]
    fn plain_http_to_another_machine_is_warned_of() {
        breaks(super::RULE, &http("get: http://example.com/", ""));
        breaks(super::RULE, &upstream("url: http://example.com/mcp, digest: any"));
        keeps(super::RULE, &http("get: https://example.com/", ""));
        keeps(super::RULE, &http("get: \"http://127.0.0.1:8080/\", allow_private: true", ""));
    }
}
