//! Paths from a peer, kept beneath one folder.
//!
//! Promises: a path that is admitted is relative, has no `..`, and leads through no link out of the
//! root; it is checked by the kernel in one step where it can (`openat2`, beneath), else no link at all
//! is followed. What exists of it is a regular file or a folder. Paths are compared by component, never
//! as text. A program opens the path by its name later: whoever can change what is beneath the root
//! meanwhile can mislead it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

/// Why a path is refused; the text completes "the path …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathRefusal {
    /// No text.
    #[error("is empty: give a path relative to the tool's folder, or \".\" for the folder itself")]
    Empty,
    /// Begins at the file system's root.
    #[error("is absolute: give it relative to the tool's folder")]
    Absolute,
    /// Goes up.
    #[error("contains \"..\": give a path beneath the tool's folder")]
    Parent,
    /// A link leads out, or nowhere.
    #[error("leads through a link out of the tool's folder, or to one whose target is missing")]
    Link,
    /// A pipe, a socket or a device: reading it may wait for ever, writing it may do anything.
    #[error("is a pipe, a socket or a device: give a regular file or a folder")]
    Special,
    /// A name longer than the system takes, or a chain of links without end.
    #[error("is too long or leads in a circle")]
    TooLong,
    /// No descriptor or memory is left to look with.
    #[error("cannot be looked up now, the machine has no room left: try again later")]
    NoRoom,
    /// A folder on the way is closed to us.
    #[error("cannot be reached by this server")]
    Closed,
}

#[cfg(target_os = "linux")]
const HANDLE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HANDLE: OFlags = OFlags::RDONLY;

/// An open folder that paths stay beneath.
#[derive(Debug)]
pub struct Root(OwnedFd);

impl Root {
    /// Opens the folder; a link there is the operator's own and is followed.
    pub fn open(folder: &Path) -> std::io::Result<Self> {
        let flags = HANDLE | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, folder, flags, Mode::empty())?))
    }

    /// Checks a peer's path; gives it without `.`, double or trailing slashes, or `.` for the root itself.
    pub fn admit(&self, text: &str) -> Result<PathBuf, PathRefusal> {
        if text.is_empty() {
            return Err(PathRefusal::Empty);
        }
        let mut path = PathBuf::new();
        for component in Path::new(text).components() {
            match component {
                Component::Normal(name) => path.push(name),
                Component::CurDir => {}
                Component::ParentDir => return Err(PathRefusal::Parent),
                Component::RootDir | Component::Prefix(_) => return Err(PathRefusal::Absolute),
            }
        }
        self.check_existing_part(&path)?;
        Ok(if path.as_os_str().is_empty() { PathBuf::from(".") } else { path })
    }

    /// Opens a regular file to read; `None` if there is none, or a folder. Never waits: what is no regular file is not
    /// opened, and should one take the file's place meanwhile, opening it does not block and it is not read.
    pub fn open_file(&self, text: &str) -> Result<Option<File>, PathRefusal> {
        let path = self.admit(text)?;
        match self.open_beneath(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC) {
            Ok(opened) => match FileType::from_raw_mode(fstat(&opened).map_err(refusal)?.st_mode) {
                FileType::RegularFile => Ok(Some(File::from(opened))),
                FileType::Directory => Ok(None),
                _ => Err(PathRefusal::Special),
            },
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR) => Ok(None),
            Err(error) => Err(refusal(error)),
        }
    }

    /// The names in a folder with what they lead to, files and folders alone; at most so many are looked at. Empty if
    /// there is no such folder.
    pub fn names(&self, folder: &str, most: usize) -> Result<Vec<(String, FileType)>, PathRefusal> {
        let folder = self.admit(folder)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = match self.open_beneath(&folder, flags) {
            Ok(opened) => opened,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
            Err(error) => return Err(refusal(error)),
        };
        let entries = Dir::new(opened).map_err(refusal)?.flatten().take(most);
        let named = entries.filter_map(|entry| {
            let name = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | ".."))?.to_owned();
            let kind = match entry.file_type() {
                kind @ (FileType::RegularFile | FileType::Directory) => kind,
                FileType::Symlink | FileType::Unknown => self.resolve(&folder.join(&name), OFlags::empty()).ok()?,
                _ => return None,
            };
            matches!(kind, FileType::RegularFile | FileType::Directory).then_some((name, kind))
        });
        Ok(named.collect())
    }

    /// Fails unless a relative path is an existing folder beneath the root.
    pub fn find_folder(&self, path: &Path) -> std::io::Result<()> {
        self.resolve(path, OFlags::DIRECTORY)?;
        Ok(())
    }

    /// What exists of the path must be beneath; what does not exist leads nowhere, and so not out.
    fn check_existing_part(&self, path: &Path) -> Result<(), PathRefusal> {
        for part in path.ancestors() {
            match self.resolve(part, OFlags::empty()) {
                Ok(FileType::RegularFile | FileType::Directory) => return Ok(()),
                Ok(_) => return Err(PathRefusal::Special),
                // A link to what is missing looks missing, but may come to lead anywhere.
                Err(Errno::NOENT) if self.resolve(part, OFlags::NOFOLLOW).is_ok() => return Err(PathRefusal::Link),
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => return Err(refusal(error)),
            }
        }
        // Even the root itself is gone.
        Err(PathRefusal::Closed)
    }

    /// What a path leads to.
    #[cfg(target_os = "linux")]
    fn resolve(&self, path: &Path, more: OFlags) -> Result<FileType, Errno> {
        match self.open_in_one_step(path, OFlags::PATH | OFlags::CLOEXEC | more) {
            Some(found) => Ok(FileType::from_raw_mode(fstat(found?)?.st_mode)),
            None => self.resolve_without_links(path, more),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn resolve(&self, path: &Path, more: OFlags) -> Result<FileType, Errno> {
        self.resolve_without_links(path, more)
    }

    /// Opens what lies beneath.
    fn open_beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        #[cfg(target_os = "linux")]
        if let Some(opened) = self.open_in_one_step(path, flags) {
            return opened;
        }
        self.open_without_links(path, flags)
    }

    /// Opens what lies beneath by the kernel's own check; `None` on older kernels, and in sandboxes that do not know it.
    #[cfg(target_os = "linux")]
    fn open_in_one_step(&self, path: &Path, flags: OFlags) -> Option<Result<OwnedFd, Errno>> {
        use rustix::fs::{ResolveFlags, openat2};
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        // A rename beside us makes the kernel unsure, and it asks to be asked again (openat2(2), EAGAIN).
        for _ in 0..8 {
            match openat2(&self.0, path, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS | Errno::PERM) => return None,
                opened => return Some(opened),
            }
        }
        Some(Err(Errno::AGAIN))
    }

    /// Walks component by component and opens no link.
    fn open_without_links(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.resolve_without_links(path, OFlags::empty())?;
        let parts = path.components().filter(|part| *part != Component::CurDir);
        let mut names: Vec<&OsStr> = parts.map(Component::as_os_str).collect();
        let last = names.pop().unwrap_or(OsStr::new("."));
        let mut folder = self.0.try_clone().map_err(|_| Errno::MFILE)?;
        for name in names {
            let flags = HANDLE | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder = openat(&folder, name, flags, Mode::empty())?;
        }
        openat(&folder, last, flags | OFlags::NOFOLLOW, Mode::empty())
    }

    /// Walks component by component and refuses any link.
    fn resolve_without_links(&self, path: &Path, more: OFlags) -> Result<FileType, Errno> {
        let parts = path.components().filter(|part| *part != Component::CurDir);
        let names: Vec<&OsStr> = parts.map(Component::as_os_str).collect();
        let Some((last, folders)) = names.split_last() else { return Ok(FileType::Directory) };
        let mut folder = self.0.try_clone().map_err(|_| Errno::MFILE)?;
        for name in folders {
            not_a_link(&folder, name)?;
            let flags = HANDLE | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder = openat(&folder, *name, flags, Mode::empty())?;
        }
        let kind = not_a_link(&folder, last)?;
        if more.contains(OFlags::DIRECTORY) && kind != FileType::Directory { Err(Errno::NOTDIR) } else { Ok(kind) }
    }
}

fn not_a_link(folder: &OwnedFd, name: &OsStr) -> Result<FileType, Errno> {
    match FileType::from_raw_mode(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode) {
        FileType::Symlink => Err(Errno::XDEV),
        kind => Ok(kind),
    }
}

fn refusal(error: Errno) -> PathRefusal {
    match error {
        Errno::XDEV => PathRefusal::Link,
        Errno::LOOP | Errno::NAMETOOLONG => PathRefusal::TooLong,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => PathRefusal::NoRoom,
        _ => PathRefusal::Closed,
    }
}

/// The same place as seen from a folder beneath the root: `..` for each of its components, then the path.
pub fn seen_from(folder: &Path, path: &Path) -> PathBuf {
    let up = folder.components().filter(|c| matches!(c, Component::Normal(_))).map(|_| Component::ParentDir);
    let down = path.components().filter(|c| matches!(c, Component::Normal(_)));
    let seen: PathBuf = up.chain(down).collect();
    if seen.as_os_str().is_empty() { PathBuf::from(".") } else { seen }
}

/// The way from one folder to another, both absolute and their links resolved.
pub fn way(from: &Path, to: &Path) -> PathBuf {
    let common = from.components().zip(to.components()).take_while(|(from, to)| from == to).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    up.chain(to.components().skip(common)).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_way_leads_from_one_folder_to_another() {
        for (from, to, way) in [
            ("/a/b", "/a/b", ""),
            ("/a", "/a/b/c", "b/c"),
            ("/a/b/c", "/a", "../.."),
            ("/a/b", "/a/bc", "../bc"),
            ("/", "/a", "a"),
            ("/a/x", "/b", "../../b"),
        ] {
            assert_eq!(super::way(Path::new(from), Path::new(to)), Path::new(way), "{from} {to}");
        }
    }

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// `root` beside `root-secret`, with links of every sort.
    fn folder(name: &str) -> Folder {
        let base = std::env::temp_dir().join(format!("twodoor-confine-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        let root = base.join("root");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::create_dir_all(base.join("root-secret")).unwrap();
        fs::write(base.join("root-secret/key"), "s").unwrap();
        fs::write(root.join("file"), "f").unwrap();
        fs::write(root.join("-dash"), "f").unwrap();
        symlink("sub", root.join("inside")).unwrap();
        symlink("../root-secret", root.join("out")).unwrap();
        symlink("../root-secret/key", root.join("sub/../key")).unwrap();
        symlink(base.join("root-secret"), root.join("absolute-out")).unwrap();
        symlink("../root/file", root.join("out-and-in")).unwrap();
        symlink("missing", root.join("dangling")).unwrap();
        symlink("missing/../../root-secret/new", root.join("dangling-out")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        symlink("/proc/self/cwd", root.join("magic")).unwrap();
        for n in 0..41 {
            let to = if n == 0 { "../root-secret".to_owned() } else { format!("chain{}", n - 1) };
            symlink(to, root.join(format!("chain{n}"))).unwrap();
        }
        Folder(base)
    }

    const REFUSED: &[(&str, PathRefusal)] = &[
        ("", PathRefusal::Empty),
        ("/", PathRefusal::Absolute),
        ("/etc/passwd", PathRefusal::Absolute),
        ("//x", PathRefusal::Absolute),
        ("..", PathRefusal::Parent),
        ("../root-secret/key", PathRefusal::Parent),
        ("a/../../x", PathRefusal::Parent),
        ("sub/..", PathRefusal::Parent),
        ("./..", PathRefusal::Parent),
        ("out", PathRefusal::Link),
        ("out/key", PathRefusal::Link),
        ("out/new", PathRefusal::Link),
        ("out/new/er", PathRefusal::Link),
        ("key", PathRefusal::Link),
        ("absolute-out/key", PathRefusal::Link),
        ("out-and-in", PathRefusal::Link),
        ("dangling", PathRefusal::Link),
        ("dangling/x", PathRefusal::Link),
        ("dangling-out", PathRefusal::Link),
        ("magic/x", PathRefusal::Link),
    ];

    #[test]
    fn a_path_that_leaves_the_root_is_refused() {
        let base = folder("refused");
        let root = Root::open(&base.0.join("root")).unwrap();
        for (text, why) in REFUSED {
            assert_eq!(root.admit(text), Err(*why), "{text:?}");
        }
        assert_eq!(root.admit("circle"), Err(PathRefusal::TooLong));
        assert_eq!(root.admit(&"n".repeat(256)), Err(PathRefusal::TooLong));
        assert!(root.admit("chain40/key").is_err());
    }

    #[test]
    fn a_path_beneath_the_root_is_given_clean_and_need_not_exist() {
        let base = folder("admitted");
        let root = Root::open(&base.0.join("root")).unwrap();
        for (text, clean) in [
            (".", "."),
            ("./", "."),
            ("file", "file"),
            ("./file", "file"),
            ("sub//deep/", "sub/deep"),
            ("sub/./deep", "sub/deep"),
            ("inside/deep", "inside/deep"),
            ("new", "new"),
            ("sub/new", "sub/new"),
            ("gone/for/long", "gone/for/long"),
            ("file/below", "file/below"),
            ("%2e%2e%2fx", "%2e%2e%2fx"),
            ("..\\x", "..\\x"),
            ("...", "..."),
            ("-dash", "-dash"),
            ("a\nb", "a\nb"),
        ] {
            assert_eq!(root.admit(text), Ok(PathBuf::from(clean)), "{text:?}");
        }
    }

    #[test]
    fn what_exists_is_a_regular_file_or_a_folder() {
        let base = folder("special");
        let folder = base.0.join("root");
        let root = Root::open(&folder).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
        symlink("../pipe", folder.join("sub/link")).unwrap();
        for text in ["pipe", "socket", "sub/link", "inside/link", "pipe/below", "./pipe"] {
            assert_eq!(root.admit(text), Err(PathRefusal::Special), "{text}");
        }
        assert_eq!(Root::open(Path::new("/dev")).unwrap().admit("null"), Err(PathRefusal::Special));
        assert_eq!(root.resolve_without_links(Path::new("pipe"), OFlags::empty()), Ok(FileType::Fifo));
    }

    #[test]
    fn a_regular_file_alone_is_opened() {
        use std::io::Read as _;
        let base = folder("open");
        let inside = base.0.join("root");
        let root = Root::open(&inside).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(inside.join("pipe")).status().unwrap().success());
        let read = |text: &str| {
            let mut content = String::new();
            root.open_file(text)
                .map(|file| file.map(|mut file| file.read_to_string(&mut content).map(|_| content).unwrap()))
        };
        assert_eq!(read("./file").unwrap().as_deref(), Some("f"));
        for text in ["sub", "inside", ".", "gone", "sub/gone", "file/below"] {
            assert_eq!(read(text).unwrap(), None, "{text}");
        }
        assert_eq!(read("pipe"), Err(PathRefusal::Special));
        for (text, why) in REFUSED {
            assert_eq!(read(text), Err(*why), "{text:?}");
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let plainly = |text: &str| root.open_without_links(Path::new(text), flags).map(|_| ());
        assert_eq!((plainly("file"), plainly("sub/deep"), plainly(".")), (Ok(()), Ok(()), Ok(())));
        for text in ["out", "out/key", "key", "inside/deep", "circle"] {
            assert_eq!(plainly(text), Err(Errno::XDEV), "{text}");
        }
    }

    #[test]
    fn a_link_that_is_swapped_in_meanwhile_leads_nowhere() {
        use std::io::Read as _;
        use std::sync::atomic::{AtomicBool, Ordering};
        let base = folder("swapped");
        let inside = base.0.join("root");
        let root = Root::open(&inside).unwrap();
        fs::create_dir(inside.join("real")).unwrap();
        fs::write(inside.join("real/key"), "ours").unwrap();
        symlink("../root-secret", inside.join("link")).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The names change places, so that `swap` is now the folder, now the link out.
                while !done.load(Ordering::Relaxed) {
                    for name in ["real", "link"] {
                        fs::rename(inside.join(name), inside.join("swap")).unwrap();
                        fs::rename(inside.join("swap"), inside.join(name)).unwrap();
                    }
                }
            });
            for _ in 0..5000 {
                if let Ok(Some(mut file)) = root.open_file("swap/key") {
                    let mut content = String::new();
                    file.read_to_string(&mut content).unwrap();
                    assert_eq!(content, "ours");
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_folders_names_are_those_of_files_and_folders_beneath() {
        let base = folder("names");
        let root = Root::open(&base.0.join("root")).unwrap();
        let names = |text: &str| {
            let mut names: Vec<String> = root.names(text, 1000).unwrap().into_iter().map(|(name, _)| name).collect();
            names.sort();
            names
        };
        assert_eq!(names("."), ["-dash", "file", "inside", "sub"]);
        assert_eq!(names("inside"), ["deep"]);
        assert!(names("gone").is_empty() && names("file").is_empty());
        assert_eq!(root.names("out", 10).unwrap_err(), PathRefusal::Link);
        assert!(root.names(".", 1).unwrap().len() <= 1);
    }

    #[test]
    fn without_the_kernels_help_every_link_is_refused() {
        let base = folder("fallback");
        let root = Root::open(&base.0.join("root")).unwrap();
        for (text, kind) in [
            ("file", FileType::RegularFile),
            ("sub/deep", FileType::Directory),
            ("-dash", FileType::RegularFile),
            ("", FileType::Directory),
        ] {
            assert_eq!(root.resolve_without_links(Path::new(text), OFlags::empty()), Ok(kind), "{text}");
        }
        for text in ["out", "out/key", "key", "inside", "inside/deep", "magic", "dangling", "circle", "chain40"] {
            assert_eq!(root.resolve_without_links(Path::new(text), OFlags::empty()), Err(Errno::XDEV), "{text}");
        }
        let missing = root.resolve_without_links(Path::new("sub/new"), OFlags::empty());
        assert_eq!(missing, Err(Errno::NOENT));
        assert_eq!(root.resolve_without_links(Path::new("file"), OFlags::DIRECTORY), Err(Errno::NOTDIR));
    }

    #[test]
    fn a_folder_to_run_in_is_beneath_the_root_or_refused() {
        let base = folder("cwd");
        let root = Root::open(&base.0.join("root")).unwrap();
        let holds = |text| root.find_folder(Path::new(text)).is_ok();
        assert!(holds("") && holds("sub/deep") && holds("inside"));
        assert!(!holds("out") && !holds("file") && !holds("gone") && !holds("..") && !holds("absolute-out"));
    }

    #[test]
    fn a_path_is_seen_from_the_folder_that_the_program_runs_in() {
        for (folder, path, seen) in [
            ("", "a/b", "a/b"),
            ("", ".", "."),
            ("sub", "a/b", "../a/b"),
            ("sub/deep", "sub/x", "../../sub/x"),
            ("sub/deep", ".", "../.."),
        ] {
            assert_eq!(seen_from(Path::new(folder), Path::new(path)), Path::new(seen), "{path} from {folder}");
        }
    }
}
