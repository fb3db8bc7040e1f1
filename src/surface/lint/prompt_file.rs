//! A prompt's file is read anew at each call; what is wrong with it already is said now.

use crate::protocol::json::shortened;
use crate::surface::file::{SurfaceFile, Want};
use crate::surface::problem::{Findings, Rule, did_you_mean};
use crate::surface::resolve::{Resolved, ResolvedPath};
use crate::surface::template;

pub(crate) const RULE: Rule = Rule::error(
    "prompt-file",
    "a prompt's file is text of at most 1 MiB, whose placeholders name the prompt's arguments",
);

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    for (backend, resolved) in file.backends().zip(&resolved.backends) {
        for (entry, found) in backend.paths.iter().zip(&resolved.paths) {
            let (Want::Text(arguments), ResolvedPath::Text(text)) = (&entry.want, found) else { continue };
            let path = &entry.path.value;
            let Some(text) = text else {
                let remedy = "write it as UTF-8 text of at most 1 MiB";
                findings.report(&RULE, entry.path.span, format!("{path:?} is no such text"), remedy);
                continue;
            };
            match template::parse(text) {
                Err(stray) => {
                    let message = format!("in {path:?} {}", shortened(&stray.problem, 120));
                    findings.report(&RULE, entry.path.span, message, "write {{ and }} there for braces");
                }
                Ok(template) => {
                    for name in
                        template::arguments(&template).filter(|name| arguments.iter().all(|known| known != name))
                    {
                        let message = format!("in {path:?} {{{name}}} names no argument of {:?}", backend.name.value);
                        let meant = did_you_mean(name, arguments.iter().map(String::as_str));
                        let meant = meant.map(|name| format!("; did you mean {{{name}}}?")).unwrap_or_default();
                        let remedy = format!("declare it under `args`, or write {{{{ and }}}} for braces{meant}");
                        findings.report(&RULE, entry.path.span, message, remedy);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{Folder, breaks_in, keeps_in, prompt};

    #[test]
    fn a_file_that_could_not_be_filled_in_is_refused() {
        let folder = Folder::new("prompt-file");
        let with = |path: &str| prompt(&format!("args: {{path: }}\nfile: {path}"));
        for (name, text) in [("stray", "a { b"), ("unknown", "Review {paht}."), ("code", "fn f() {}")] {
            folder.file(name, text, 0o644);
            breaks_in(&folder, super::RULE, &with(name));
        }
        std::fs::write(folder.path("binary"), [0xff, 0xfe]).unwrap();
        breaks_in(&folder, super::RULE, &with("binary"));
        folder.file("large", &"x".repeat(1024 * 1024 + 1), 0o644);
        breaks_in(&folder, super::RULE, &with("large"));
        folder.file("good", "Review {path}, not {{this}}.", 0o644);
        keeps_in(&folder, super::RULE, &with("good"));
    }
}
