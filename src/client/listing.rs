//! A server's tools as delivered: all pages joined, in order, with the digest anyone can recompute.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::problem::Problem;
use crate::protocol::compare;
use crate::protocol::digest::{self, Foreign};
use crate::protocol::json::{JsonLimits, Kind, shortened};
use crate::protocol::limits::{LISTING_BYTES, LISTING_PAGES, LISTING_TOOLS};
use crate::protocol::{Json, Method, RawJson};

/// Most published digests kept of one answer.
const PUBLISHED_AT_MOST: usize = 16;

/// A digest that a server publishes in the `_meta` of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The key; its name part is `toolsDigest`.
    pub key: String,
    /// The value: a text as it is, anything else as JSON.
    pub value: String,
    /// The method whose answer carried it.
    pub from: &'static str,
}

/// The digests in the `_meta` of an answer to `method`.
pub(super) fn published(meta: Option<&RawJson>, method: Method) -> Vec<Published> {
    let members = meta.and_then(RawJson::members).unwrap_or_default();
    let digests = members.into_iter().filter(|(key, _)| key.rsplit('/').next() == Some("toolsDigest"));
    let found = digests.take(PUBLISHED_AT_MOST).map(|(key, value)| Published {
        key: key.into(),
        value: value.as_text().unwrap_or_else(|| shortened(value.as_str(), 128)),
        from: method.name(),
    });
    found.collect()
}

/// All tools of one door.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The `tools` arrays as delivered, joined into one.
    pub text: String,
    /// The same, read strictly.
    pub tools: Vec<Json>,
    /// Recomputed over [`Listing::text`], in both canonical forms.
    pub digest: Foreign,
    /// How many pages there were; none if the server declares no tools and was not asked.
    pub pages: usize,
    /// What the pages publish, each value once.
    pub published: Vec<Published>,
    /// What is unusual about them.
    pub remarks: Vec<String>,
    /// How long the list may be kept, milliseconds: the shortest time that a page says.
    pub ttl_ms: Option<u64>,
}

impl Listing {
    /// The names in order; a tool without one is shown by its place.
    pub fn names(&self) -> Vec<String> {
        compare::names(&self.tools)
    }
}

/// Pages as they come in.
#[derive(Debug, Default)]
pub(super) struct Pages {
    joined: String,
    count: usize,
    cursors: HashSet<Box<str>>,
    published: Vec<Published>,
    remarks: Vec<String>,
    ttl_ms: Option<u64>,
}

impl Pages {
    /// Adds a page; gives the cursor of the next one, if there is one.
    pub(super) fn add(&mut self, result: &RawJson) -> Result<Option<RawJson>, Problem> {
        let shape = |why: &str| Problem::shape(Method::ToolsList.name(), why);
        let members = result.members().ok_or_else(|| shape("it is no object"))?;
        let member = |name: &str| members.iter().find(|(key, _)| &**key == name).map(|(_, value)| value);
        let tools = member("tools").filter(|tools| tools.kind() == Kind::Array);
        let items = tools
            .and_then(|tools| tools.as_str().strip_prefix('[')?.strip_suffix(']'))
            .ok_or_else(|| shape("it has no array of tools"))?;
        if items.len() > LISTING_BYTES.saturating_sub(self.joined.len()) {
            return Err(Problem::TooLong { method: Method::ToolsList.name().to_owned(), limit: LISTING_BYTES });
        }
        if !items.trim().is_empty() {
            if !self.joined.is_empty() {
                self.joined.push(',');
            }
            self.joined.push_str(items);
        }
        self.count += 1;
        for found in published(member("_meta"), Method::ToolsList) {
            if !self.published.contains(&found) && self.published.len() < PUBLISHED_AT_MOST {
                self.published.push(found);
            }
        }
        let ttl_ms = member("ttlMs").and_then(|ttl| ttl.as_str().parse().ok());
        self.ttl_ms = ttl_ms.into_iter().chain(self.ttl_ms).min();
        let Some(cursor) = member("nextCursor") else { return Ok(None) };
        match cursor.as_text() {
            Some(_) if self.count >= LISTING_PAGES => {
                Err(shape(&format!("it is page {} and more follow: at most {LISTING_PAGES} are read", self.count)))
            }
            Some(text) if !self.cursors.insert(text.as_str().into()) => {
                Err(shape(&format!("page {} names a cursor that was followed before", self.count)))
            }
            // An empty cursor is a cursor (2026-07-28 server/utilities/pagination).
            Some(_) => Ok(Some(cursor.clone())),
            None if cursor.kind() == Kind::Null => {
                self.remarks.push("the last page has nextCursor null, which strict clients refuse".to_owned());
                Ok(None)
            }
            None => Err(shape("its nextCursor is no text")),
        }
    }

    /// Reads what was joined.
    pub(super) fn finish(self) -> Result<Listing, Problem> {
        let text = format!("[{}]", self.joined);
        let limits = JsonLimits { items: LISTING_TOOLS, ..JsonLimits::default() };
        let list = Json::parse(text.as_bytes(), &limits).map_err(|error| Problem::NotStrict {
            method: Method::ToolsList.name().to_owned(),
            why: error.to_string(),
        })?;
        let digest = digest::of_foreign(&list);
        let tools = if let Json::Array(tools) = list { tools } else { Vec::new() };
        let mut remarks = self.remarks;
        let mut seen = HashSet::new();
        let mut twice = String::new();
        for name in tools.iter().filter_map(|tool| tool.get("name")?.as_str()) {
            if !seen.insert(name) && twice.len() < 200 {
                let _ = write!(twice, "{}{}", if twice.is_empty() { "" } else { ", " }, shortened(name, 64));
            }
        }
        if !twice.is_empty() {
            remarks.push(format!("names that more than one tool has: {twice}"));
        }
        Ok(Listing { text, tools, digest, pages: self.count, published: self.published, remarks, ttl_ms: self.ttl_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn page(text: &str) -> RawJson {
        RawJson::new(Bytes::copy_from_slice(text.as_bytes()), &JsonLimits::default()).unwrap()
    }

    fn listing(pages: &[&str]) -> Result<Listing, Problem> {
        let mut joined = Pages::default();
        for text in pages {
            joined.add(&page(text))?;
        }
        joined.finish()
    }

    #[test]
    fn pages_are_joined_as_delivered_and_digested_as_one_array() {
        let pages = [
            r#"{"tools":[ {"name":"b","n":1.50} ],"nextCursor":""}"#,
            r#"{"nextCursor":"x","tools":[]}"#,
            r#"{"tools":[{"name":"a"},{"x":1}],"_meta":{"a.b/toolsDigest":"sha256:1","toolsDigest":7,"a.b/xtoolsDigest":"no"}}"#,
        ];
        let joined = listing(&pages).unwrap();
        assert_eq!(joined.text, r#"[ {"name":"b","n":1.50} ,{"name":"a"},{"x":1}]"#);
        assert_eq!(joined.names(), ["b", "a", "(tool 3 has no name)"]);
        let whole = Json::parse(br#"[{"n":1.5,"name":"b"},{"name":"a"},{"x":1}]"#, &JsonLimits::default()).unwrap();
        assert_eq!(joined.digest, digest::of_foreign(&whole));
        let published: Vec<_> = joined.published.iter().map(|p| (p.key.as_str(), p.value.as_str())).collect();
        assert_eq!(published, [("a.b/toolsDigest", "sha256:1"), ("toolsDigest", "7")]);
        let empty = listing(&[r#"{"tools":[]}"#]).unwrap();
        assert_eq!((empty.text.as_str(), empty.tools.len()), ("[]", 0));
    }

    #[test]
    fn the_order_of_tools_counts() {
        let one = listing(&[r#"{"tools":[{"name":"a"},{"name":"b"}]}"#]).unwrap();
        let other = listing(&[r#"{"tools":[{"name":"b"},{"name":"a"}]}"#]).unwrap();
        assert_ne!(one.digest, other.digest);
    }

    #[test]
    fn cursors_go_on_but_not_round_and_not_for_ever() {
        let mut pages = Pages::default();
        let next = |cursor: &str| page(&format!(r#"{{"tools":[],"nextCursor":{cursor}}}"#));
        assert_eq!(pages.add(&next(r#""""#)).unwrap().unwrap().as_str(), r#""""#);
        assert!(pages.add(&next(r#""a""#)).unwrap().is_some());
        let problem = pages.add(&next(r#""\u0061""#)).unwrap_err().to_string();
        assert!(problem.contains("page 3 names a cursor that was followed before"), "{problem}");
        assert!(matches!(Pages::default().add(&next("7")), Err(Problem::Shape { .. })));
        assert!(matches!(Pages::default().add(&next("null")), Ok(None)));

        let mut endless = Pages::default();
        for count in 1..LISTING_PAGES {
            assert!(endless.add(&next(&format!("\"{count}\""))).is_ok());
        }
        let problem = endless.add(&next("\"z\"")).unwrap_err().to_string();
        assert!(problem.contains("at most 1000 are read"), "{problem}");
    }

    #[test]
    fn what_is_no_list_is_refused_and_names_used_twice_are_remarked() {
        for text in ["[]", "{}", r#"{"tools":{}}"#, r#"{"tools":null}"#] {
            assert!(matches!(listing(&[text]), Err(Problem::Shape { .. })), "{text}");
        }
        let twice = listing(&[r#"{"tools":[{"name":"a"},{"name":"a"}]}"#]).unwrap();
        assert_eq!(twice.remarks, ["names that more than one tool has: a"]);
    }

    #[test]
    fn more_tools_than_the_limit_cannot_be_told() {
        let many = |count: usize| format!(r#"{{"tools":[{}]}}"#, vec!["1"; count].join(","));
        assert!(listing(&[&many(LISTING_TOOLS / 2), &many(LISTING_TOOLS / 2)]).is_ok());
        let over = listing(&[&many(LISTING_TOOLS / 2), &many(LISTING_TOOLS / 2 + 1)]);
        assert!(matches!(over, Err(Problem::NotStrict { .. })));
    }
}
