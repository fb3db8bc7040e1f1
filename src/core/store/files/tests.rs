//! The store on a disk that fails at every step in turn, and forgets what nobody synced.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use super::*;
use crate::core::store::model::{Fault, ModelDisk};

const ROOT: &str = "/state";

/// Keeps every record that is whole: a letter, any number of times.
fn whole(_: &str, bytes: &[u8]) -> Result<Option<Vec<u8>>, Unreadable> {
    match bytes.first() {
        Some(first) if bytes.len() == LENGTH && bytes.iter().all(|b| b == first) => Ok(Some(bytes.to_vec())),
        _ => Err(Unreadable::Corrupt("it is not whole".to_owned())),
    }
}

const LENGTH: usize = 64;

fn record(letter: u8) -> Vec<u8> {
    vec![letter; LENGTH]
}

fn open(disk: &ModelDisk) -> Result<Store, StoreError> {
    Store::open_on(Arc::new(disk.clone()), Path::new(ROOT), &whole)
}

fn new_disk() -> ModelDisk {
    ModelDisk::new(Path::new(ROOT))
}

/// What each record may be after a crash: what was acknowledged, or what was being done to it then.
type Allowed = BTreeMap<&'static str, Vec<Option<u8>>>;

/// Opens, writes, writes over, removes; says what was acknowledged up to the first refusal.
fn work(disk: &ModelDisk, allowed: &mut Allowed) -> Option<Store> {
    let store = open(disk).ok()?;
    for (name, letter) in [
        ("a.json", Some(b'1')),
        ("b.json", Some(b'2')),
        ("a.json", Some(b'3')),
        ("b.json", None),
        ("c.json", Some(b'4')),
    ] {
        let before = allowed.entry(name).or_insert_with(|| vec![None]);
        let done = match letter {
            Some(letter) => store.write(name, &record(letter)).is_ok(),
            None => store.remove(name).is_ok(),
        };
        match done {
            true => *before = vec![letter],
            false => before.push(letter),
        }
    }
    Some(store)
}

fn held(store: &Store) -> BTreeMap<String, u8> {
    store.names().unwrap().into_iter().map(|name| (name.clone(), store.read(&name).unwrap()[0])).collect()
}

fn check_allowed(found: &BTreeMap<String, u8>, allowed: &Allowed, when: &str) {
    for (name, letters) in allowed {
        let letter = found.get(*name).copied();
        assert!(letters.contains(&letter), "{when}: {name} is {letter:?}, may be {letters:?}");
    }
}

#[test]
fn whatever_step_a_crash_comes_at_what_was_acknowledged_is_there_and_nothing_is_half_there() {
    for n in 0.. {
        let disk = new_disk();
        disk.fail(n, Fault::Crash);
        let mut allowed = Allowed::new();
        let store = work(&disk, &mut allowed);
        let spared = disk.was_spared();
        for luck in 1..60u64 {
            let after = disk.crash(luck.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let store = open(&after).unwrap_or_else(|error| panic!("crash at {n}, luck {luck}: {error}"));
            check_allowed(&held(&store), &allowed, &format!("crash at {n}, luck {luck}"));
        }
        drop(store);
        if spared {
            assert!(n > 20, "{n} steps are too few to be all");
            return;
        }
    }
}

#[test]
fn whatever_step_a_crash_comes_at_while_records_are_taken_over_none_is_lost_or_old() {
    for n in 0.. {
        let first = new_disk();
        drop(work(&first, &mut Allowed::new()).unwrap());
        let disk = first.crash(7);
        disk.fail(n, Fault::Crash);
        let mut allowed = Allowed::from([("a.json", vec![Some(b'3')]), ("c.json", vec![Some(b'4')])]);
        if let Ok(store) = open(&disk) {
            let done = store.write("a.json", &record(b'5')).is_ok();
            allowed.insert("a.json", if done { vec![Some(b'5')] } else { vec![Some(b'3'), Some(b'5')] });
        }
        let spared = disk.was_spared();
        for luck in 1..60u64 {
            let after = disk.crash(luck.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let store = open(&after).unwrap_or_else(|error| panic!("crash at {n}, luck {luck}: {error}"));
            check_allowed(&held(&store), &allowed, &format!("crash at {n}, luck {luck}"));
        }
        if spared {
            return;
        }
    }
}

#[test]
fn whatever_step_finds_no_room_is_refused_and_the_next_one_works() {
    for n in 0.. {
        let disk = new_disk();
        disk.fail(n, Fault::Once(ErrorKind::StorageFull));
        let mut allowed = Allowed::new();
        let store = work(&disk, &mut allowed);
        let spared = disk.was_spared();
        if let Some(store) = store {
            disk.mend();
            check_allowed(&held(&store), &allowed, &format!("no room at {n}"));
            assert!(!store.is_distrusted());
            store.write("d.json", &record(b'9')).unwrap();
            assert_eq!(held(&store)["d.json"], b'9');
        }
        if spared {
            return;
        }
    }
}

#[test]
fn after_a_sync_that_failed_nothing_is_written_any_more_and_what_was_acknowledged_is_there() {
    let (mut distrusted, mut trusted) = (0, 0);
    for n in 0.. {
        let disk = new_disk();
        disk.fail(n, Fault::Once(ErrorKind::Other));
        let mut allowed = Allowed::new();
        let store = work(&disk, &mut allowed);
        let spared = disk.was_spared();
        if let Some(store) = store {
            disk.mend();
            let next = store.write("d.json", &record(b'9'));
            assert_eq!(store.is_distrusted(), matches!(next, Err(WriteError::Distrusted)), "{next:?}");
            assert_eq!(store.is_distrusted(), next.is_err());
            *(if store.is_distrusted() { &mut distrusted } else { &mut trusted }) += 1;
            check_allowed(&held(&store), &allowed, &format!("an error at {n}"));
        }
        if spared {
            assert!(distrusted >= 8 && trusted >= 8, "{distrusted} and {trusted}");
            return;
        }
        let after = open(&disk.crash(3)).unwrap();
        check_allowed(&held(&after), &allowed, &format!("an error at {n}, then a crash"));
    }
}

#[test]
fn a_disk_that_fails_for_good_loses_nothing_and_works_once_it_is_mended() {
    for kind in [ErrorKind::StorageFull, ErrorKind::ReadOnlyFilesystem] {
        for n in 0..40 {
            let disk = new_disk();
            disk.fail(n, Fault::Forever(kind));
            let mut allowed = Allowed::new();
            let store = work(&disk, &mut allowed);
            disk.mend();
            drop(store);
            let store = open(&disk).unwrap();
            check_allowed(&held(&store), &allowed, &format!("{kind} from {n} on"));
            store.write("d.json", &record(b'9')).unwrap();
        }
    }
}

#[test]
fn two_processes_share_a_folder_and_what_the_dead_one_held_goes_to_the_living() {
    let disk = new_disk();
    let (one, two) = (open(&disk).unwrap(), open(&disk).unwrap());
    one.write("a.json", &record(b'1')).unwrap();
    two.write("b.json", &record(b'2')).unwrap();
    assert_eq!(two.names().unwrap(), ["b.json"]);
    assert_eq!(two.find("a.json").unwrap(), Some(record(b'1')));
    assert_eq!(two.find("z.json").unwrap(), None);
    assert_eq!(two.adopt(&whole).unwrap(), Vec::<String>::new());
    drop(one);
    assert_eq!(two.adopt(&whole).unwrap(), ["a.json"]);
    assert_eq!(held(&two), BTreeMap::from([("a.json".to_owned(), b'1'), ("b.json".to_owned(), b'2')]));
    assert_eq!(disk.files().len(), 5, "{:?}", disk.files().keys());
}

#[test]
fn a_store_that_holds_nothing_leaves_no_folder_behind() {
    let disk = new_disk();
    drop(open(&disk).unwrap());
    let files: Vec<_> = disk.files().into_keys().collect();
    assert_eq!(files, [Path::new("/state/format"), Path::new("/state/lock")]);
}

#[test]
fn what_is_not_ours_or_damaged_or_newer_is_refused_by_name_and_left_as_it_is() {
    let holder = "/state/0123456789abcdef0123456789abcdef";
    for (path, bytes, expected) in [
        ("/state/notes.txt".to_owned(), "mine", "is not a file of twodoor's"),
        ("/state/format".to_owned(), r#"{"twodoor":"state","v":2}"#, "was written by a newer twodoor"),
        ("/state/format".to_owned(), "", "is damaged"),
        ("/state/format".to_owned(), "[1]", "is damaged"),
        (format!("{holder}/a.json"), "111", "is damaged: it is not whole"),
        (format!("{holder}/a.json"), "", "is damaged: it is not whole"),
        (format!("{holder}/notes.txt"), "mine", "is not a file of twodoor's"),
    ] {
        let disk = new_disk();
        drop(open(&disk).unwrap());
        if path.starts_with(holder) {
            disk.make_folder(Path::new(holder)).unwrap();
        }
        disk.plant(Path::new(&path), bytes.as_bytes());
        let error = open(&disk).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&path) && text.contains(expected), "{text}");
        assert!(!error.remedy().is_empty());
        let left = disk.files();
        assert_eq!(left[Path::new(&path)], bytes.as_bytes());
        assert!(left.keys().all(|p| p.starts_with(holder) || p.parent() == Some(Path::new(ROOT))), "{left:?}");
    }
}

#[test]
fn a_folder_that_others_could_change_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name);
    let refused = |name: &str| match Store::open(&path(name), &whole) {
        Err(StoreError::Unusable { problem, .. }) => problem,
        other => panic!("{name}: {other:?}"),
    };
    std::fs::write(path("file"), "").unwrap();
    assert_eq!(refused("file"), "is not a folder");
    std::fs::create_dir(path("real")).unwrap();
    symlink(path("real"), path("link")).unwrap();
    assert_eq!(refused("link"), "is a link");
    std::fs::create_dir(path("open")).unwrap();
    std::fs::set_permissions(path("open"), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(refused("open"), "can be written by other users");

    let store = Store::open(&path("new/deeper"), &whole).unwrap();
    store.write("a.json", &record(b'1')).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path("new/deeper")), mode(&store.own), mode(&store.own.join("a.json"))), (0o700, 0o700, 0o600));
    symlink("/etc/hostname", store.own.join("b.json")).unwrap();
    assert!(store.read("b.json").is_err());
}
