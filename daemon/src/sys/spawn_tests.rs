use super::*;

#[test]
fn reports_survive_the_pipe_and_garbage_is_none() {
    let reports = [
        Report::Forked { pid: 1 },
        Report::Ended { pid: 4_194_304, status: 139, at: u64::MAX },
        Report::Empty,
    ];
    for report in reports {
        assert_eq!(Report::decode(&report.encode()), Some(report));
    }
    assert_eq!(Report::decode(&[0; Report::LEN]), None);
    assert_eq!(Report::decode(&[0xff; Report::LEN]), None);
    let (reading, writing) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    rustix::io::write(&writing, &Report::Empty.encode()[..10]).unwrap();
    drop(writing);
    assert_eq!(read_report(&reading), None);
}

#[test]
fn a_zero_byte_is_refused_before_anything_is_started() {
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
    let (good, bad) = (OsString::from("a"), OsString::from("a\0b"));
    let (args, bad_args) = ([good.clone()], [good.clone(), bad.clone()]);
    let bad_env = [(good, bad)];
    let spec = Spec {
        path: Path::new("/bin/true"),
        args: &bad_args,
        env: &[],
        cwd: None,
        credentials: None,
        stdio: [null.as_fd(); 3],
        null: null.as_fd(),
        announce_to: &[],
        start: null.as_fd(),
    };
    let error = spawn(&spec).unwrap_err().to_string();
    assert!(error.contains("/bin/true") && error.contains("a\\0b"), "{error}");
    let spec = Spec { args: &args, env: &bad_env, ..spec };
    assert!(matches!(spawn(&spec), Err(Error::ZeroByte { .. })));
}

#[test]
fn blocked_signals_come_back() {
    let mask = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        status.lines().find(|line| line.starts_with("SigBlk")).unwrap().to_owned()
    };
    let before = mask();
    let blocked = BlockedSignals::all();
    assert_ne!(mask(), before);
    drop(blocked);
    assert_eq!(mask(), before);
}

#[test]
fn the_clock_is_the_one_that_starts_are_measured_on() {
    let before = crate::watch::start::Monotonic::now().0;
    let between = monotonic();
    assert!(before <= between && between <= crate::watch::start::Monotonic::now().0);
}
