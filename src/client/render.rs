//! A probe's report for a person: two columns, then the digests whole, then the verdict.

use std::fmt::{self, Formatter};

use super::probe::{Changed, Differences, Digests, DoorReport, Report, Verdict};
use crate::protocol::Class;
use crate::protocol::json::shortened;

/// Characters of a column.
const WIDTH: usize = 36;

/// Tools that are shown by name.
const SHOWN: usize = 30;

/// Characters of a digest that are enough to tell two apart by eye.
const SHORT_DIGEST: usize = 19;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "probe of {}\n", shortened(&self.target, 200))?;
        let mut row = |label: &str, cell: &dyn Fn(&DoorReport) -> String| {
            let line = format!("{label:<14}{:<width$}  {}", cell(&self.modern), cell(&self.legacy), width = WIDTH);
            writeln!(f, "{}", line.trim_end())
        };
        row("", &|door| if std::ptr::eq(door, &self.modern) { "modern door" } else { "legacy door" }.to_owned())?;
        row("revision", &|door| door.revision.unwrap_or("does not open").to_owned())?;
        row("server", &|door| {
            door.server
                .as_ref()
                .map_or_else(|| said(door, "does not say"), |s| clipped(&format!("{} {}", s.name, s.version)))
        })?;
        row("instructions", &|door| {
            let count = door.instructions.as_ref().map(|text| text.chars().count());
            count.map_or_else(|| said(door, "none"), |count| format!("{count} characters"))
        })?;
        row("tools", &|door| {
            door.tools.as_ref().map_or_else(|| said(door, "cannot tell"), |tools| tools.len().to_string())
        })?;
        let names = |door: &DoorReport| door.tools.as_ref().map_or(0, Vec::len);
        let most = names(&self.modern).max(names(&self.legacy));
        for index in 0..most.min(SHOWN) {
            row("", &|door| door.tools.as_ref().and_then(|t| t.get(index)).map_or_else(String::new, |n| clipped(n)))?;
        }
        if most > SHOWN {
            row("", &|door| match names(door).saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!("and {more} more"),
            })?;
        }
        row("digest", &|door| door.digest.as_ref().map_or_else(|| said(door, "cannot tell"), short))?;
        row("published", &|door| published(door))?;
        writeln!(f)?;
        for (label, door) in [("modern door", &self.modern), ("legacy door", &self.legacy)] {
            details(f, label, door)?;
        }
        if let Some(differences) = &self.differences {
            differing(f, differences)?;
        }
        if self.modern.opens && self.legacy.opens && self.modern.instructions != self.legacy.instructions {
            writeln!(f, "note: the two doors give different instructions")?;
        }
        writeln!(f, "\n{}", verdict(self))
    }
}

fn clipped(text: &str) -> String {
    shortened(text, WIDTH.saturating_sub(1))
}

/// A cell without content: blank where the door does not open, as the first row says so.
fn said(door: &DoorReport, otherwise: &str) -> String {
    if door.opens { otherwise.to_owned() } else { String::new() }
}

fn short(digests: &Digests) -> String {
    let digest = digests.sorted_keys.as_ref().or(digests.rfc8785.as_ref());
    digest.map_or_else(|| "cannot tell".to_owned(), |digest| shortened(digest, SHORT_DIGEST))
}

fn published(door: &DoorReport) -> String {
    let all = &door.published;
    if all.is_empty() {
        return said(door, "nothing");
    }
    match (all.iter().any(|p| p.holds == Some(false)), all.iter().any(|p| p.holds.is_none())) {
        (true, _) => "another digest",
        (false, true) => "cannot tell",
        (false, false) => "the same digest",
    }
    .to_owned()
}

fn details(f: &mut Formatter<'_>, label: &str, door: &DoorReport) -> fmt::Result {
    if let Some(digests) = &door.digest {
        match (&digests.sorted_keys, &digests.rfc8785) {
            (Some(one), Some(other)) if one == other => writeln!(f, "{label}   {one}")?,
            forms => {
                let text = |form: &Option<String>| form.clone().unwrap_or_else(|| "has no digest".to_owned());
                writeln!(f, "{label}   {} (sorted keys)", text(forms.0))?;
                writeln!(f, "{label}   {} (RFC 8785)", text(forms.1))?;
            }
        }
    }
    for false_claim in door.published.iter().filter(|published| published.holds == Some(false)) {
        let (key, value) = (shortened(&false_claim.key, 64), shortened(&false_claim.value, 80));
        writeln!(f, "{label}   {} publishes {key} = {value}", false_claim.from)?;
    }
    if let Some(problem) = &door.problem {
        let what = if door.opens { "its tools cannot be listed" } else { "does not open" };
        writeln!(f, "{label}   {what}: {problem}")?;
    }
    for remark in &door.remarks {
        writeln!(f, "{label}   note: {remark}")?;
    }
    Ok(())
}

fn differing(f: &mut Formatter<'_>, differences: &Differences) -> fmt::Result {
    let names = |names: &[String]| {
        let shown: Vec<String> = names.iter().take(SHOWN).map(|name| shortened(name, 64)).collect();
        let more = names.len().saturating_sub(SHOWN);
        shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
    };
    if !differences.only_modern.is_empty() {
        writeln!(f, "only through the modern door: {}", names(&differences.only_modern))?;
    }
    if !differences.only_legacy.is_empty() {
        writeln!(f, "only through the legacy door: {}", names(&differences.only_legacy))?;
    }
    for Changed { name, members } in differences.changed.iter().take(SHOWN) {
        writeln!(f, "defined differently: {} ({})", shortened(name, 64), names(members))?;
    }
    if let Some(more) = differences.changed.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        writeln!(f, "defined differently: {more} more")?;
    }
    if differences.reordered {
        writeln!(f, "listed in another order")?;
    }
    let counts = Class::ALL.into_iter().filter_map(|class| {
        let count = differences.changes.iter().filter(|change| change.class == class).count();
        (count > 0).then(|| format!("{count} {}", class.name()))
    });
    let counts: Vec<String> = counts.collect();
    if !counts.is_empty() {
        writeln!(f, "from the modern list to the legacy list: {}", counts.join(", "))?;
    }
    if differences.one_form_only {
        writeln!(f, "note: the two lists agree in one canonical form only: some number is written in two ways")?;
    }
    Ok(())
}

fn verdict(report: &Report) -> &'static str {
    match report.verdict {
        Verdict::Same => "same: both doors deliver the same tools in the same order",
        Verdict::PublishedDiffers => {
            "published digest differs: both doors deliver the same tools, but not those that the published digest is of"
        }
        Verdict::Differ => "different: the two doors do not deliver the same tools",
        Verdict::OneDoorOnly if report.modern.opens => "one door only: the modern door opens, the legacy door does not",
        Verdict::OneDoorOnly => "one door only: the legacy door opens, the modern door does not",
        Verdict::NoDoor => "no door opens",
        Verdict::CannotTell => "cannot tell: both doors open, but a list cannot be read",
    }
}
