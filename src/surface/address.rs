//! Addresses of resources: where none is written, they are made of names.
//!
//! Promises: what is made here is an absolute URI, in which a name can be told from what surrounds
//! it; the same names make the same address.

/// Schemes that mean something to clients already.
const TAKEN: [&str; 12] =
    ["http", "https", "file", "data", "blob", "about", "javascript", "mailto", "ui", "ws", "wss", "ftp"];

/// The scheme that a surface's name makes; `None` if it makes none, or one that means something else.
pub(crate) fn scheme(surface: &str) -> Option<String> {
    let scheme = surface.to_ascii_lowercase().replace('_', "-");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(plain);
    (fits && !TAKEN.contains(&scheme.as_str())).then_some(scheme)
}

/// The address of an entry that names none.
pub(crate) fn of_entry(surface: &str, entry: &str) -> Option<String> {
    Some(format!("{}:///{}", scheme(surface)?, encoded(entry)))
}

/// The address of a file in a folder.
pub(crate) fn of_file(folder: &str, path: &str) -> String {
    format!("{}{}", base(folder), encoded(path))
}

/// The template of all files in a folder.
pub(crate) fn of_folder(folder: &str) -> String {
    format!("{}{{+path}}", base(folder))
}

/// What stands before the path of a file in a folder.
fn base(folder: &str) -> String {
    if folder.ends_with(['/', ':']) { folder.to_owned() } else { format!("{folder}/") }
}

/// Percent-encodes all but unreserved characters and slashes (RFC 3986, 2.3).
pub fn encoded(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::UriTemplate;

    #[test]
    fn addresses_are_made_of_names() {
        assert_eq!(of_entry("My_Notes", "read me").as_deref(), Some("my-notes:///read%20me"));
        assert_eq!(of_entry("http", "a"), None);
        assert_eq!(of_file("docs:", "a b/ä.md"), "docs:a%20b/%C3%A4.md");
        assert_eq!(of_file("docs:///d", "a.md"), "docs:///d/a.md");
        assert_eq!(of_folder("docs:///d/"), "docs:///d/{+path}");
    }

    #[test]
    fn a_files_address_fits_its_folders_template() {
        for path in ["a.md", "a b/ä.md", "100%?#{x}.md", "a//b"] {
            let template = UriTemplate::parse(&of_folder("docs:///d")).unwrap();
            let matched = template.matched(&of_file("docs:///d", path)).unwrap();
            assert_eq!(matched, [("path".to_owned(), path.to_owned())]);
        }
    }
}
