//! A file that is put in its place in one step.
//!
//! Promises: whoever reads the place meanwhile finds what was there or what comes, whole; what is not put there leaves
//! nothing behind.

use std::fs::{self, File, OpenOptions};
use std::io::{Result, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A file that was written whole, beside the place that it is for.
#[derive(Debug)]
pub(crate) struct Beside {
    new: PathBuf,
    place: PathBuf,
}

impl Beside {
    /// Writes the file, first made with this mode as far as the process allows it; `prepare` sees it before any byte is
    /// in it.
    pub(crate) fn write(
        place: &Path,
        bytes: &[u8],
        mode: u32,
        prepare: impl FnOnce(&File) -> Result<()>,
    ) -> Result<Self> {
        let name = place.file_name().ok_or(std::io::ErrorKind::InvalidFilename)?;
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(std::io::Error::other)?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{:016x}.new", u64::from_ne_bytes(number)));
        let new = place.with_file_name(hidden);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        let beside = Self { new, place: place.to_owned() };
        prepare(&file)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(beside)
    }

    /// Puts it in its place, whatever is there.
    pub(crate) fn replace(self) -> Result<()> {
        fs::rename(&self.new, &self.place)?;
        self.sync_folder();
        Ok(())
    }

    /// Puts it in its place, if nothing is there.
    pub(crate) fn place(self) -> Result<()> {
        fs::hard_link(&self.new, &self.place)?;
        self.sync_folder();
        Ok(())
    }

    /// The file is in its place; that its folder cannot be synced on some file systems changes nothing of that.
    fn sync_folder(&self) {
        let folder = self.place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.new);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_comes_whole_or_not_at_all_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a.lock");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let write = |bytes: &[u8]| Beside::write(&place, bytes, 0o600, |_| Ok(())).unwrap();
        drop(write(b"never"));
        assert_eq!(names(), 0);
        write(b"one").place().unwrap();
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(write(b"two").place().unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        assert_eq!((fs::read(&place).unwrap(), names()), (b"one".to_vec(), 1));
        write(b"three").replace().unwrap();
        assert_eq!((fs::read(&place).unwrap(), names()), (b"three".to_vec(), 1));
        let refused = Beside::write(&place, b"four", 0o600, |_| Err(std::io::ErrorKind::PermissionDenied.into()));
        assert!(refused.is_err() && names() == 1);
        assert!(Beside::write(Path::new("/"), b"", 0o600, |_| Ok(())).is_err());
    }
}
