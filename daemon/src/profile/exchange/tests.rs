use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;

use headstart_shared::run::AppId;
use proptest::prelude::*;

use super::*;
use crate::profile::testing::{self, PAGE, any_profile, in_own_mounts, mount_read_only, mount_small, names};
use crate::profile::{History, MAX_FILES};
use crate::recording::PageRange;

fn read(bytes: &[u8]) -> Result<Profile, ExchangeError> {
    decode(bytes, Path::new("p.headstart"), PAGE)
}

/// A file with a body of one's own and a checksum that fits.
fn forged(page_size: u64, body: &str) -> Vec<u8> {
    let header = Header { page_size, length: body.len() as u64 };
    [header.render(body).as_bytes(), body.as_bytes()].concat()
}

fn body(profile: &Profile) -> String {
    text::write(profile)
}

proptest! {
    #[test]
    fn every_profile_survives(profile in any_profile()) {
        let bytes = encode(&profile).unwrap();
        prop_assert_eq!(read(&bytes).unwrap(), profile);
    }

    #[test]
    fn a_cut_is_always_noticed(profile in any_profile(), at in any::<prop::sample::Index>()) {
        let bytes = encode(&profile).unwrap();
        let cut = &bytes[..at.index(bytes.len())];
        let cut_short = matches!(read(cut), Err(ExchangeError::CutShort { .. } | ExchangeError::Altered { .. }));
        prop_assert!(cut_short, "{:?}", read(cut));
    }

    #[test]
    fn altered_bytes_are_never_accepted(
        profile in any_profile(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..4),
    ) {
        let whole = encode(&profile).unwrap();
        let mut bytes = whole.clone();
        for (at, mask) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
        }
        prop_assert_eq!(read(&bytes).is_ok(), bytes == whole);
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), tail in "[ -~\n]{0,80}") {
        prop_assert!(read(&bytes).is_err());
        let head = [MAGIC.as_bytes(), tail.as_bytes()].concat();
        prop_assert!(read(&head).is_err());
        prop_assert!(read(&forged(PAGE, &tail)).is_err());
    }
}

#[test]
fn each_flipped_bit_of_the_first_line_is_noticed() {
    let bytes = encode(&testing::profile("app", 2)).unwrap();
    let line = bytes.iter().position(|b| *b == b'\n').unwrap();
    for at in 0..=line {
        for bit in 0..8 {
            let mut altered = bytes.clone();
            altered[at] ^= 1 << bit;
            assert!(read(&altered).is_err(), "byte {at} bit {bit}");
        }
    }
}

#[test]
fn the_file_is_text_to_compare() {
    let mut profile = testing::profile("org.gnome.gedit", 1);
    profile.files[0].path = PathBuf::from(OsString::from_vec(b"/home/\xff/x".to_vec()));
    insta::assert_snapshot!(String::from_utf8(encode(&profile).unwrap()).unwrap(), @r#"
    headstart-profile 1 page-size=4096 length=293 crc32=8d7f668e
    {"profile":{"app":"org.gnome.gedit","runs":3}}
    {"device":{"filesystem":77,"major":8,"minor":1,"ranges":[[1048576,1048579,1048576000000,5]]}}
    {"file":{"path":"/home/\\xff/x","filesystem":77,"inode":0,"size":409600,"mtime":1700000000000000000,"earlier":0,"ranges":[[0,3,0,5],[9,12,9000000,5]]}}
    "#);
}

#[test]
fn each_fault_has_its_own_message() {
    let profile = testing::profile("app", 2);
    let bytes = encode(&profile).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let with = |change: &dyn Fn(&mut Profile)| {
        let mut p = profile.clone();
        change(&mut p);
        forged(PAGE, &body(&p))
    };
    let faults: [(&str, Vec<u8>); 14] = [
        ("empty", vec![]),
        ("cut short", bytes[..bytes.len() - 9].to_vec()),
        ("longer", [&bytes[..], b"{}"].concat()),
        ("edited", text.replace("000001.so", "000002.so").into_bytes()),
        ("newlines of Windows", text.replace('\n', "\r\n").into_bytes()),
        ("too new", text.replacen("profile 1", "profile 2", 1).into_bytes()),
        ("another file", b"[Desktop Entry]\n".to_vec()),
        ("another page size", forged(16384, &body(&profile))),
        ("not JSON", forged(PAGE, "{\"profile\":{\"app\":\"a\",\"runs\":1}}\nx\n")),
        ("no app", forged(PAGE, "")),
        ("leads upwards", with(&|p| p.files[1].path = "/usr/../etc/shadow".into())),
        ("beyond the end", with(&|p| p.files[0].ranges[1].pages.end = u64::MAX)),
        ("twice", with(&|p| p.files[1] = p.files[0].clone())),
        ("app name", with(&|p| p.app = AppId("\u{1b}[2J".into()))),
    ];
    let messages: Vec<String> =
        faults.iter().map(|(what, bytes)| format!("{what}: {}", read(bytes).unwrap_err())).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    empty: "p.headstart" is cut short: not even its first line is whole; copy it again from where it came from
    cut short: "p.headstart" is cut short: 436 of 445 bytes after its first line are there; copy it again from where it came from
    longer: "p.headstart" was altered since it was exported: there is more than was exported; copy it again from where it came from, unedited
    edited: "p.headstart" was altered since it was exported: the checksum does not fit; copy it again from where it came from, unedited
    newlines of Windows: "p.headstart" was altered since it was exported: there is more than was exported; copy it again from where it came from, unedited
    too new: "p.headstart" has format 2, this Headstart reads up to 1: update Headstart, or export it with an older one
    another file: "p.headstart" is not a Headstart profile: give a file written by 'export'
    another page size: "p.headstart" was learned with pages of 16384 bytes, this kernel has 4096: learn the app on this machine
    not JSON: line 3 of "p.headstart" is not one that Headstart writes (expected value at column 1): do not use this file
    no app: "p.headstart" was altered since it was exported: the line about the app is missing; copy it again from where it came from, unedited
    leads upwards: "p.headstart" holds values that no start can have (the path "/usr/../etc/shadow" leads upwards): do not use this file
    beyond the end: "p.headstart" holds values that no start can have (the ranges of "/usr/lib/000000.so" reach beyond its end): do not use this file
    twice: "p.headstart" holds values that no start can have ("/usr/lib/000000.so" is out of order or there twice): do not use this file
    app name: "p.headstart" holds values that no start can have (the name of the app is empty, too long or holds control characters): do not use this file
    "#);
}

#[test]
fn absurd_values_are_refused_when_writing_too() {
    let mut profile = testing::profile("app", 1);
    profile.files[0].ranges[0].pages = PageRange { start: 5, end: 5 };
    assert!(matches!(encode(&profile), Err(ExchangeError::Unfit(_))));
    let mut profile = testing::profile("app", 1);
    profile.files[0].ranges[0].history = History(0);
    assert!(matches!(encode(&profile), Err(ExchangeError::Unfit(_))));
}

#[test]
fn more_than_a_profile_may_hold_is_not_read_to_its_end() {
    let line = |n: usize| {
        format!(
            "{{\"file\":{{\"path\":\"/{n:06}\",\"filesystem\":1,\"inode\":1,\"size\":1,\"mtime\":1,\"earlier\":0,\"ranges\":[[0,1,0,1]]}}}}\n"
        )
    };
    let files: String = (0..=MAX_FILES).map(line).collect();
    let body = format!("{{\"profile\":{{\"app\":\"a\",\"runs\":1}}}}\n{files}this is never looked at");
    assert!(matches!(
        read(&forged(PAGE, &body)),
        Err(ExchangeError::Invalid { source: InvalidProfile::TooMany { what: "files", .. }, .. })
    ));
}

#[test]
fn a_file_is_written_whole_and_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.headstart");
    let first = testing::profile("app", 3);
    export(&first, &path).unwrap();
    let second = testing::profile("app", 4);
    export(&second, &path).unwrap();
    assert_eq!(import(&path, PAGE).unwrap(), second);
    assert_eq!(names(dir.path()), ["app.headstart"]);
}

#[test]
fn what_is_no_regular_file_is_neither_read_nor_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (fifo, link) = (dir.path().join("fifo"), dir.path().join("link"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    symlink("/etc/hostname", &link).unwrap();
    let profile = testing::profile("app", 1);
    for path in [&fifo, &link, dir.path(), Path::new("/dev/null")] {
        assert!(
            matches!(export(&profile, path), Err(ExchangeError::Write(WriteError::NotAFile { .. }))),
            "{path:?}"
        );
    }
    for path in [&fifo, dir.path(), Path::new("/dev/zero")] {
        assert!(matches!(import(path, PAGE), Err(ExchangeError::NotAFile { .. })), "{path:?}");
    }
    assert_eq!(names(dir.path()), ["fifo", "link"]);
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(&forged(PAGE, "")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert!(matches!(import(&path, PAGE), Err(ExchangeError::TooLarge { .. })));
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    if !in_own_mounts("profile::exchange::tests::a_full_disk_leaves_what_was_there") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    mount_small(dir.path(), 64 << 10);
    let path = dir.path().join("app.headstart");
    let small = testing::profile("app", 3);
    export(&small, &path).unwrap();
    let error = export(&testing::profile("app", 5000), &path).unwrap_err();
    assert!(matches!(error, ExchangeError::Write(WriteError::Full { .. })), "{error}");
    assert!(error.to_string().contains("disk is full"));
    assert_eq!(names(dir.path()), ["app.headstart"]);
    assert_eq!(import(&path, PAGE).unwrap(), small);
}

#[test]
fn a_read_only_folder_is_named_as_such() {
    if !in_own_mounts("profile::exchange::tests::a_read_only_folder_is_named_as_such") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    mount_read_only(dir.path());
    let error = export(&testing::profile("app", 1), &dir.path().join("x")).unwrap_err();
    assert!(matches!(error, ExchangeError::Write(WriteError::ReadOnly { .. })), "{error}");
    assert!(names(dir.path()).is_empty());
    let missing = export(&testing::profile("app", 1), &dir.path().join("no/x")).unwrap_err();
    assert!(matches!(missing, ExchangeError::Write(WriteError::NoFolder { .. })), "{missing}");
}
