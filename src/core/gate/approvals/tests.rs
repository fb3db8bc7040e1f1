//! Approvals on real folders, and on a disk that fails at every step.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::core::store::model::{Fault, ModelDisk};
use crate::protocol::digest;

fn bound(principal: &str, arguments: &str) -> Bound {
    let digest = |text: &str| digest::of_bytes(text.as_bytes());
    Bound {
        principal: principal.to_owned(),
        surface: "s".to_owned(),
        version: "1.0.0".to_owned(),
        tool: "wipe".to_owned(),
        tool_digest: digest("tool"),
        arguments: digest(arguments),
        rules: digest("rules"),
        definition: digest("definition"),
    }
}

fn ask(approvals: &Approvals, bound: &Bound) -> Result<Standing, ApprovalError> {
    approvals.ask(bound, "what it would do".to_owned())
}

fn decide(approvals: &Approvals, id: &str, decision: Decision) -> Result<Standing, ApprovalError> {
    let shown = approvals.named(id)?;
    approvals.decide(&shown, decision).map(|request| request.standing)
}

fn model() -> (ModelDisk, PathBuf) {
    let folder = PathBuf::from("/approvals");
    (ModelDisk::new(&folder), folder)
}

#[test]
fn an_approval_is_for_one_call_and_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let approvals = Approvals::open(&folder.path().join("state")).unwrap();
    let (call, other) = (bound("ann", "a"), bound("ann", "b"));
    assert_eq!(ask(&approvals, &call).unwrap(), Standing::Pending);
    assert_eq!(ask(&approvals, &call).unwrap(), Standing::Pending, "asking again changes nothing");
    assert_eq!(approvals.list().unwrap().len(), 1);
    assert_eq!(decide(&approvals, &call.request_id(), Decision::Approve).unwrap(), Standing::Approved);
    assert_eq!(ask(&approvals, &other).unwrap(), Standing::Pending, "other arguments are another call");
    assert_eq!(ask(&approvals, &bound("eve", "a")).unwrap(), Standing::Pending, "another caller has its own");
    assert_eq!(ask(&approvals, &call).unwrap(), Standing::Approved);
    assert_eq!(ask(&approvals, &call).unwrap(), Standing::Used);
    let again = decide(&approvals, &call.request_id(), Decision::Approve);
    assert!(matches!(again, Err(ApprovalError::Decided { standing: Standing::Used, .. })), "{again:?}");
}

#[test]
fn what_was_denied_stays_so_and_what_was_approved_can_be_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let approvals = Approvals::open(folder.path()).unwrap();
    let (call, other) = (bound("ann", "a"), bound("ann", "b"));
    for call in [&call, &other] {
        ask(&approvals, call).unwrap();
    }
    decide(&approvals, &call.request_id(), Decision::Deny).unwrap();
    assert_eq!(ask(&approvals, &call).unwrap(), Standing::Denied);
    assert!(decide(&approvals, &call.request_id(), Decision::Approve).is_err());
    decide(&approvals, &other.request_id(), Decision::Approve).unwrap();
    decide(&approvals, &other.request_id(), Decision::Deny).unwrap();
    assert_eq!(ask(&approvals, &other).unwrap(), Standing::Denied);
}

#[test]
fn of_a_hundred_calls_at_once_in_several_processes_one_is_let_through() {
    let folder = tempfile::tempdir().unwrap();
    let call = bound("ann", "a");
    let first = Approvals::open(folder.path()).unwrap();
    ask(&first, &call).unwrap();
    decide(&first, &call.request_id(), Decision::Approve).unwrap();
    // Each opens the folder for itself, as processes do: a lock is of an open file.
    let each = || ask(&Approvals::open(folder.path()).unwrap(), &call).unwrap();
    let standings: Vec<Standing> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..100).map(|_| scope.spawn(each)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(standings.iter().filter(|standing| **standing == Standing::Approved).count(), 1);
    assert_eq!(standings.iter().filter(|standing| **standing == Standing::Used).count(), 99);
}

#[test]
fn requests_are_bounded_for_all_and_for_one_and_what_is_over_makes_room() {
    let (disk, folder) = model();
    let approvals = Approvals::open_on(Arc::new(disk.clone()), folder.clone()).unwrap();
    for n in 0..OF_ONE_CALLER {
        ask(&approvals, &bound("ann", &n.to_string())).unwrap();
    }
    assert!(matches!(ask(&approvals, &bound("ann", "more")), Err(ApprovalError::Full)));
    assert_eq!(ask(&approvals, &bound("bob", "more")).unwrap(), Standing::Pending);
    let mut over = approvals.named(&bound("ann", "0").request_id()).unwrap();
    over.expires = 1;
    approvals.write(&over).unwrap();
    assert_eq!(ask(&approvals, &bound("ann", "more")).unwrap(), Standing::Pending);
    assert!(approvals.named(&over.id).is_err(), "what is over is gone");
}

#[test]
fn a_request_expires_and_a_clock_set_back_extends_nothing() {
    let (disk, folder) = model();
    let approvals = Approvals::open_on(Arc::new(disk), folder).unwrap();
    let call = bound("ann", "a");
    for expires in [1, now() - 1, now() + 10_000, u64::MAX] {
        ask(&approvals, &call).unwrap();
        let mut request = approvals.named(&call.request_id()).unwrap();
        (request.standing, request.expires) = (Standing::Approved, expires);
        approvals.write(&request).unwrap();
        assert_eq!(ask(&approvals, &call).unwrap(), Standing::Pending, "{expires}");
    }
}

#[test]
fn a_name_is_found_by_its_beginning_if_that_is_of_one_alone() {
    let (disk, folder) = model();
    let approvals = Approvals::open_on(Arc::new(disk), folder).unwrap();
    let id = bound("ann", "a").request_id();
    ask(&approvals, &bound("ann", "a")).unwrap();
    assert_eq!(approvals.named(id.get(..4).unwrap()).unwrap().id, id);
    for n in 0..40 {
        ask(&approvals, &bound("bob", &n.to_string())).unwrap();
    }
    assert!(matches!(approvals.named(""), Err(ApprovalError::Unknown(_))));
    assert!(matches!(approvals.named("../lock"), Err(ApprovalError::Unknown(_))));
    let first: Vec<char> = approvals.list().unwrap().iter().filter_map(|r| r.id.chars().next()).collect();
    let twice = first.iter().find(|c| first.iter().filter(|d| d == c).count() > 1).unwrap();
    assert!(matches!(approvals.named(&twice.to_string()), Err(ApprovalError::Ambiguous(_))));
}

#[test]
fn whatever_fails_at_any_step_an_approval_is_used_at_most_once() {
    for step in 0..40 {
        for fault in [Fault::Crash, Fault::Once(ErrorKind::StorageFull), Fault::Once(ErrorKind::Other)] {
            let (disk, folder) = model();
            let call = bound("ann", "a");
            let approvals = Approvals::open_on(Arc::new(disk.clone()), folder.clone()).unwrap();
            ask(&approvals, &call).unwrap();
            decide(&approvals, &call.request_id(), Decision::Approve).unwrap();
            disk.fail(step, fault);
            let mut runs = usize::from(ask(&approvals, &call).is_ok_and(|standing| standing == Standing::Approved));
            drop(approvals);
            let spared = disk.was_spared();
            let disk = if fault == Fault::Crash { disk.crash(u64::try_from(step).unwrap() + 1) } else { disk };
            disk.mend();
            let approvals = Approvals::open_on(Arc::new(disk), folder).unwrap();
            runs += usize::from(ask(&approvals, &call).unwrap() == Standing::Approved);
            assert!(runs <= 1, "{step} {fault:?}");
            assert!(runs == 1 || fault != Fault::Crash || !spared, "{step}: an approval that was never used is lost");
        }
    }
}

#[test]
fn what_is_damaged_foreign_or_newer_is_refused_by_name_and_left_alone() {
    let id = bound("ann", "a").request_id();
    for (name, text) in [
        (format!("{id}.json"), ""),
        (format!("{id}.json"), "{\"v\":1}"),
        (format!("{id}.json"), "{\"v\":2}"),
        (format!("{id}.json"), "[]"),
        ("notes.txt".to_owned(), "mine"),
        ("x.json".to_owned(), "{}"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        drop(Approvals::open(folder.path()).unwrap());
        let path = folder.path().join(FOLDER).join(&name);
        fs::write(&path, text).unwrap();
        let error = Approvals::open(folder.path()).unwrap_err();
        assert!(error.to_string().contains(&name), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn links_are_not_followed_and_what_others_can_write_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    drop(Approvals::open(&state).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&state), mode(&state.join(FOLDER))), (0o700, 0o700));
    let approvals = Approvals::open(&state).unwrap();
    let call = bound("ann", "a");
    ask(&approvals, &call).unwrap();
    assert_eq!(mode(&approvals.path_of(&call.request_id())), 0o600);
    fs::set_permissions(state.join(FOLDER), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(Approvals::open(&state), Err(StoreError::Unusable { .. })));
    fs::remove_dir_all(state.join(FOLDER)).unwrap();
    symlink(elsewhere.path(), state.join(FOLDER)).unwrap();
    assert!(matches!(Approvals::open(&state), Err(StoreError::Unusable { .. })));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_record_that_another_user_could_have_written_is_no_approval() {
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let approvals = Approvals::open(&state).unwrap();
    let call = bound("ann", "a");
    ask(&approvals, &call).unwrap();
    decide(&approvals, &call.request_id(), Decision::Approve).unwrap();
    let record = approvals.path_of(&call.request_id());
    for open in [0o666, 0o620, 0o602] {
        mode(&record, open);
        let error = ask(&approvals, &call).unwrap_err().to_string();
        assert!(error.contains(&call.request_id()) && error.contains("can be written by other users"), "{error}");
        assert!(Approvals::open(&state).is_err());
    }
    mode(&record, 0o600);
    for of in [state.as_path(), &state.join(FOLDER)] {
        mode(of, 0o777);
        let error = ask(&approvals, &call).unwrap_err();
        assert!(matches!(error, ApprovalError::Store(StoreError::Unusable { .. })), "{error}");
        mode(of, 0o700);
    }
    let elsewhere = folder.path().join("elsewhere.json");
    fs::rename(&record, &elsewhere).unwrap();
    symlink(&elsewhere, &record).unwrap();
    let error = ask(&approvals, &call).unwrap_err().to_string();
    assert!(error.contains("it is a link"), "{error}");
    fs::rename(&elsewhere, &record).unwrap();
    assert_eq!(ask(&approvals, &call).unwrap(), Standing::Approved, "none of them used it");
}
