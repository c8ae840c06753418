use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

/// A `/proc` made up for the test.
struct Proc(tempfile::TempDir);

impl Proc {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn roots(&self) -> Roots {
        Roots { proc: self.0.path().to_path_buf(), ..Roots::default() }
    }

    fn add(
        &self,
        pid: i32,
        comm: &str,
        parent: i32,
        started: u64,
        ticks: [u64; 4],
        read: Option<u64>,
    ) -> &Self {
        let dir = self.0.path().join(pid.to_string());
        fs::create_dir_all(&dir).unwrap();
        let [user, system, cuser, csystem] = ticks;
        let stat = format!(
            "{pid} ({comm}) S {parent} {pid} {pid} 0 -1 4194560 1 2 3 4 {user} {system} {cuser} {csystem} 20 0 1 0 \
             {started} 1000 1 18446744073709551615 0 0\n"
        );
        fs::write(dir.join("stat"), stat).unwrap();
        if let Some(read) = read {
            fs::write(dir.join("io"), format!("rchar: 1\nwchar: 2\nread_bytes: {read}\nwrite_bytes: 9\n"))
                .unwrap();
        }
        self
    }
}

#[test]
fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
    let proc = Proc::new();
    proc.add(7, "a) R 1 (b", 3, 42, [1, 2, 3, 4], None);
    let stat = read_stat(&proc.roots(), 7).unwrap();
    assert_eq!((stat.comm.as_str(), stat.state, stat.parent), ("a) R 1 (b", b'S', 3));
    assert_eq!((stat.ticks, stat.started), (10, 42));
}

#[test]
fn times_and_faults_are_told_apart() {
    let proc = Proc::new();
    proc.add(7, "a) b", 3, 42, [100, 200, 300, 400], None);
    let times = read_times(&proc.roots(), 7).unwrap();
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    let cpu = [times.user, times.system, times.reaped_user, times.reaped_system];
    assert_eq!(cpu.map(|time| time.0 / tick), [100, 200, 300, 400]);
    assert_eq!((times.major_faults, times.reaped_major_faults, times.started), (3, 4, 42));
}

#[test]
fn the_run_is_what_descends_from_the_keeper() {
    let proc = Proc::new();
    proc.add(1, "init", 0, 1, [0; 4], None)
        .add(10, "headstart-run", 1, 5, [0; 4], None)
        .add(11, "app", 10, 6, [0; 4], None)
        .add(9, "child", 11, 7, [0; 4], None)
        .add(12, "detached", 10, 8, [0; 4], None)
        .add(13, "stranger", 1, 9, [0; 4], None);
    symlink("/opt/app (deleted)", proc.0.path().join("11/exe")).unwrap();
    let found = descendants(&proc.roots(), 10);
    let mut pids: Vec<i32> = found.iter().map(|process| process.key.pid).collect();
    assert!(
        pids.iter().position(|&p| p == 11) < pids.iter().position(|&p| p == 9),
        "parents first: {pids:?}"
    );
    pids.sort_unstable();
    assert_eq!(pids, [9, 11, 12]);
    assert_eq!(found.iter().find(|p| p.key.pid == 11).unwrap().exe, Some(PathBuf::from("/opt/app")));
    for (pid, expected) in
        [(9, true), (11, true), (12, true), (13, false), (10, false), (1, false), (99, false)]
    {
        assert_eq!(is_descendant(&proc.roots(), 10, pid), expected, "{pid}");
    }
}

#[test]
fn a_circle_of_parents_ends() {
    let proc = Proc::new();
    proc.add(5, "a", 6, 1, [0; 4], None).add(6, "b", 5, 1, [0; 4], None);
    assert_eq!(descendants(&proc.roots(), 5).len(), 1);
    assert!(!is_descendant(&proc.roots(), 99, 5));
}

#[test]
fn the_account_is_the_living_and_what_was_reaped() {
    let proc = Proc::new();
    proc.add(10, "headstart-run", 1, 5, [0, 0, 30, 5], Some(4096))
        .add(11, "app", 10, 6, [10, 5, 0, 0], Some(8192))
        .add(13, "stranger", 1, 9, [99; 4], Some(1 << 40));
    let hz = rustix::param::clock_ticks_per_second();
    let account = account(&proc.roots(), 10);
    assert_eq!(account, Account { cpu: Nanos(50 * 1_000_000_000 / hz), read: Some(Bytes(12288)) });
    // A process that may not be read makes the sum unknown, not smaller.
    proc.add(12, "secret", 11, 7, [0; 4], None);
    assert_eq!(super::account(&proc.roots(), 10).read, None);
}

#[test]
fn instances_are_found_by_executable_and_scripts_by_argument() {
    let bin = tempfile::tempdir().unwrap();
    let (program, script) = (bin.path().join("program"), bin.path().join("script"));
    fs::write(&program, "\x7fELF").unwrap();
    fs::write(&script, "#!/usr/bin/python3\n").unwrap();
    let shell = bin.path().join("python3.11");
    fs::write(&shell, "\x7fELF").unwrap();
    let proc = Proc::new();
    let add = |pid: i32, exe: &Path, cmdline: &str, uid: u32| {
        proc.add(pid, "x", 1, 7, [0; 4], None);
        let dir = proc.0.path().join(pid.to_string());
        symlink(exe, dir.join("exe")).unwrap();
        fs::write(dir.join("cmdline"), cmdline.replace(' ', "\0")).unwrap();
        let status =
            format!("Name:\tx\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t1\t1\t1\t1\nGroups:\t\n");
        fs::write(dir.join("status"), status).unwrap();
    };
    add(20, &program, "program", 1000);
    add(21, &program, "program", 1001);
    add(22, &shell, &format!("python3 {} arg", script.display()), 1000);
    add(23, &shell, "python3 other.py", 1000);
    let found = |program: &Path| {
        let keys = running_instances(&proc.roots(), program, 1000);
        keys.iter().map(|key| key.pid).collect::<Vec<_>>()
    };
    assert_eq!(found(&program), [20]);
    assert_eq!(found(&script), [22]);
    assert_eq!(found(&shell), [0; 0], "an interpreter says nothing about what it runs");
    assert_eq!(found(Path::new("/nonexistent")), [0; 0]);
}

proptest! {
    #[test]
    fn any_stat_is_read_or_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        parse_stat(&bytes);
    }

    #[test]
    fn any_name_is_read_back(comm in "[^\0\u{fffd}]{0,15}") {
        let stat = format!("1 ({comm}) R 2 0 0 0 0 0 0 0 0 0 1 2 3 4 0 0 0 0 77");
        let stat = parse_stat(stat.as_bytes()).unwrap();
        prop_assert_eq!((stat.comm, stat.parent, stat.ticks, stat.started), (comm, 2, 10, 77));
    }
}
