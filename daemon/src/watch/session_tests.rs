use std::fs;

use super::*;

/// A `/proc` with a line of processes, each the parent of the next.
struct Line(tempfile::TempDir);

impl Line {
    fn new(processes: &[(i32, &str, u32, &[u8])]) -> Self {
        let line = Self(tempfile::tempdir().unwrap());
        let mut parent = 0;
        for (pid, comm, uid, environ) in processes {
            let dir = line.0.path().join(pid.to_string());
            fs::create_dir(&dir).unwrap();
            // As sudo 1.9 and su show it: the caller's is their real user and nothing else.
            let ids = match *comm {
                "sudo" | "su" => format!("Uid:\t{uid}\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0 \n"),
                _ => format!(
                    "Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{uid}\t{uid}\t{uid}\t{uid}\nGroups:\t4 27 {uid} \n"
                ),
            };
            let status = format!("Name:\t{comm}\nState:\tS (sleeping)\nPid:\t{pid}\nPPid:\t{parent}\n{ids}");
            fs::write(dir.join("status"), status).unwrap();
            fs::write(dir.join("environ"), environ).unwrap();
            parent = *pid;
        }
        line
    }

    fn session(&self, pid: i32, uid: u32, env: &[(&str, &str)]) -> Result<Session, Error> {
        let roots = Roots { proc: self.0.path().to_path_buf(), ..Roots::default() };
        Session::of(&roots, pid, Process { uid, env: environment(env) })
    }
}

fn environment(vars: &[(&str, &str)]) -> Environment {
    vars.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

const USER: u32 = 4_000_000_123;

#[test]
fn under_sudo_it_is_the_caller_with_what_their_shell_exported() {
    let line = Line::new(&[
        (1, "systemd", 0, b"A=1\0"),
        (10, "bash", USER, b"HOME=/home/ada\0DISPLAY=:7\0"),
        (11, "sudo", USER, b"HOME=/home/ada\0DISPLAY=:7\0EXPORTED=yes\0EMPTY=\0=odd\0nothing\0"),
        // With a terminal of its own for the command, sudo has one more process.
        (12, "sudo", 0, b"HOME=/home/ada\0DISPLAY=:7\0EXPORTED=yes\0EMPTY=\0=odd\0nothing\0"),
        (13, "headstartctl", 0, b"HOME=/root\0"),
    ]);
    let own = [
        ("SUDO_UID", "4000000123"),
        ("HOME", "/root"),
        ("DISPLAY", ":1"),
        ("XAUTHORITY", "/x"),
        ("SECRET", "r"),
    ];
    let session = line.session(13, 0, &own).unwrap();
    assert!(session.elevated);
    assert_eq!(session.credentials, Credentials { uid: USER, gid: USER, groups: vec![4, 27, USER] });
    assert_eq!((session.login.as_str(), session.home.as_path()), ("4000000123", Path::new("/home/ada")));
    let expected =
        [("HOME", "/home/ada"), ("DISPLAY", ":7"), ("EXPORTED", "yes"), ("EMPTY", ""), ("XAUTHORITY", "/x")];
    assert_eq!(session.env, environment(&expected));
    assert_eq!(session.var("EMPTY"), None);
}

#[test]
fn su_and_pkexec_say_less_and_the_line_of_processes_tells() {
    let line = Line::new(&[
        (1, "systemd", 0, b""),
        (10, "zsh", USER, b"HOME=/home/ada\0"),
        (11, "su", USER, b"HOME=/home/ada\0BY=su\0"),
        (12, "bash", 0, b"HOME=/root\0"),
        (13, "headstartctl", 0, b"HOME=/root\0"),
    ]);
    assert_eq!(line.session(13, 0, &[]).unwrap().var("BY"), Some(OsStr::new("su")));
    let line =
        Line::new(&[(10, "bash", USER, b"HOME=/home/ada\0"), (12, "headstartctl", 0, b"HOME=/root\0")]);
    let session = line.session(12, 0, &[("PKEXEC_UID", "4000000123"), ("HOME", "/root")]).unwrap();
    assert_eq!(session.home, Path::new("/home/ada"));
}

#[test]
fn root_itself_and_people_without_privileges_are_who_they_are() {
    let line =
        Line::new(&[(1, "init", 0, b""), (10, "bash", 0, b"A=1\0"), (11, "headstartctl", 0, b"A=1\0")]);
    let session = line.session(11, 0, &[("HOME", "/root"), ("SUDO_UID", "0")]).unwrap();
    assert!(!session.elevated && session.credentials.uid == 0);
    let line = Line::new(&[(10, "bash", 0, b"A=1\0"), (11, "headstartctl", USER, b"A=1\0")]);
    let session = line.session(11, USER, &[("HOME", "/h"), ("SUDO_UID", "7")]).unwrap();
    assert!(!session.elevated && session.credentials.uid == USER);
    assert_eq!(session.env.len(), 2);
}

#[test]
fn without_a_process_of_theirs_our_environment_is_made_theirs() {
    let line = Line::new(&[(1, "init", 0, b""), (12, "headstartctl", 0, b"")]);
    // Every system has this user.
    let own = [
        ("SUDO_UID", "65534"),
        ("SUDO_USER", "nobody"),
        ("HOME", "/root"),
        ("DISPLAY", ":1"),
        ("USER", "root"),
    ];
    let session = line.session(12, 0, &own).unwrap();
    assert!(session.elevated);
    assert_eq!(session.var("USER").unwrap(), session.login.as_str());
    assert_ne!(session.var("HOME"), Some(OsStr::new("/root")));
    assert_eq!((session.var("SUDO_UID"), session.var("DISPLAY")), (None, Some(OsStr::new(":1"))));
}

#[test]
fn what_names_nobody_is_refused() {
    let line = Line::new(&[(12, "headstartctl", 0, b"")]);
    let error = line.session(12, 0, &[("SUDO_UID", "ada")]).unwrap_err().to_string();
    assert!(error.contains("SUDO_UID=ada"), "{error}");
    assert!(line.session(12, 0, &[("DOAS_USER", "no-such-user-here")]).is_err());
}

#[test]
fn the_session_of_the_test_itself_can_start_things() {
    let session = Session::invoking(&Roots::default()).unwrap();
    assert_eq!(session.elevated, session.credentials.uid != rustix::process::getuid().as_raw());
    assert!(session.search_path().iter().all(|dir| dir.is_absolute()));
}

#[test]
fn the_number_that_stands_for_no_change_is_nobody() {
    let line = Line::new(&[(1, "init", 0, b"A=1\0"), (2, "headstartctl", 0, b"A=1\0")]);
    let refused = line.session(2, 0, &[("SUDO_UID", "4294967295")]).unwrap_err();
    assert!(matches!(refused, Error::Nobody { variable: "SUDO_UID", .. }), "{refused}");
}
