//! A private address is asked where the file says so: else it would be refused at every call.

use crate::surface::file::{KindEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::At;
use crate::surface::url::{self, Url};

pub(crate) const RULE: Rule =
    Rule::error("private-address", "this machine or a private network is asked with `allow_private: true` alone");

/// Every address that the file asks, and whether it may be a private one.
pub(super) fn addresses<'f>(file: &'f SurfaceFile<'_>) -> impl Iterator<Item = (&'f At<Url>, bool)> {
    let of_tools = file.tools.iter().filter_map(|tool| match &tool.kind {
        Some(KindEntry::Http(Some(http))) => Some((&http.url, http.allow_private)),
        _ => None,
    });
    of_tools.chain(file.upstreams.iter().filter_map(|upstream| Some((upstream.url.as_ref()?, upstream.allow_private))))
}

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for (address, allowed) in addresses(file) {
        let host = &address.value.origin.host;
        if !allowed && url::is_private(host) {
            let message = format!("{host:?} is this machine or on a private network");
            findings.report(&RULE, address.span, message, "write `allow_private: true` beside it, if that is meant");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps, upstream};

    #[test]
    fn a_private_address_is_allowed_in_words() {
        for host in ["localhost:1", "127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]"] {
            breaks(super::RULE, &http(&format!("get: \"http://{host}/\""), ""));
            keeps(super::RULE, &http(&format!("get: \"http://{host}/\", allow_private: true"), ""));
            breaks(super::RULE, &upstream(&format!("url: \"http://{host}/mcp\", digest: any")));
        }
        keeps(super::RULE, &http("get: https://example.com/", ""));
    }
}
