//! Media types by the names of files.

/// Names whose usual type is of another age.
const OURS: [(&str, &str); 4] = [
    ("ts", "text/x-typescript"),
    ("mts", "text/x-typescript"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// The media type of a file, if its name tells.
pub fn type_of(path: &str) -> Option<String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let (_, extension) = name.rsplit_once('.')?;
    let extension = extension.to_ascii_lowercase();
    if let Some((_, ours)) = OURS.iter().find(|(known, _)| *known == extension) {
        return Some((*ours).to_owned());
    }
    mime_guess::from_ext(&extension).first_raw().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::type_of;

    #[test]
    fn a_name_tells_its_type() {
        for (path, expected) in [
            ("a.md", Some("text/markdown")),
            ("deep/a.PNG", Some("image/png")),
            ("a.json", Some("application/json")),
            ("a.ts", Some("text/x-typescript")),
            ("a.yml", Some("application/yaml")),
            ("README", None),
            ("a.b/README", None),
            ("a.unheard-of", None),
        ] {
            assert_eq!(type_of(path).as_deref(), expected, "{path}");
        }
    }
}
