//! The person who asked: whom a program is started as, and with which environment.
//!
//! Under `sudo`, `pkexec`, `doas` or `su` that is not root but whoever called it. Their environment is that of the
//! nearest ancestor process of theirs (`/proc/PID/environ`, `proc(5)`), or better of the `sudo` that it started: a
//! shell's own shows what it was given, not what it exported since.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

use crate::roots::Roots;
use crate::sys::spawn::Credentials;
use crate::watch::processes::{Status, read_status};

/// Variables that lead to the screen, the sound and the bus of a session. `sudo` drops them or hands them through,
/// depending on how it is set up; where the person's own processes lack them, ours are the next best.
const SESSION_VARIABLES: [&str; 5] =
    ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// Programs that fork, keep the caller's environment in their own, and become root.
const ELEVATORS: [&str; 3] = ["sudo", "su", "doas"];

/// An environment.
pub type Environment = BTreeMap<OsString, OsString>;

/// The person who asked for a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Who they are to the kernel.
    pub credentials: Credentials,
    /// Their login name; their uid in digits where the system has no name for it.
    pub login: String,
    /// Their home folder.
    pub home: PathBuf,
    /// Their environment.
    pub env: Environment,
    /// Whether they became somebody else (root) to run us, so that a program must be started as another user.
    pub elevated: bool,
}

/// The person could not be found out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user database could not be read.
    #[error("cannot look up user {uid}: {source}; check /etc/passwd and /etc/nsswitch.conf")]
    Lookup {
        /// The user.
        uid: u32,
        /// Why.
        source: nix::Error,
    },
    /// A variable of `sudo`, `doas` or `pkexec` names nobody.
    #[error("{variable}={value} names no user of this system; start Headstart again through sudo")]
    Nobody {
        /// The variable.
        variable: &'static str,
        /// What it says.
        value: String,
    },
}

impl Session {
    /// The person behind this process.
    ///
    /// # Errors
    ///
    /// If the user database cannot be read, or what `sudo` and the like say is not a user.
    pub fn invoking(roots: &Roots) -> Result<Self, Error> {
        let own = Process { uid: Uid::current().as_raw(), env: std::env::vars_os().collect() };
        Self::of(roots, std::process::id().cast_signed(), own)
    }

    /// As [`Session::invoking`], of process `pid` with the given user and environment.
    fn of(roots: &Roots, pid: i32, own: Process) -> Result<Self, Error> {
        let line = ancestors(roots, pid);
        let uid = match invoker(&own, &line)? {
            Some(uid) if uid != own.uid => uid,
            _ => return Self::own(own, &line),
        };
        let user = lookup(uid)?;
        // `sudo` itself still has the caller's real uid, but root's groups, which the program must not be given.
        let nearest = line.iter().position(|p| p.status.uid == uid && p.status.effective_uid == uid);
        let credentials = match nearest.map(|at| &line[at].status) {
            Some(status) => Credentials { uid, gid: status.gid, groups: status.groups.clone() },
            None => from_database(uid, user.as_ref()),
        };
        let mut env = nearest
            .and_then(|at| environment_near(roots, &line, at))
            .unwrap_or_else(|| without_elevation(&own.env, uid, user.as_ref()));
        for name in SESSION_VARIABLES.map(OsString::from) {
            if let (false, Some(value)) = (env.contains_key(&name), own.env.get(&name)) {
                env.insert(name, value.clone());
            }
        }
        let (login, home) = name_and_home(uid, user, &env);
        Ok(Self { credentials, login, home, env, elevated: true })
    }

    /// Nobody became anybody else.
    fn own(own: Process, line: &[Ancestor]) -> Result<Self, Error> {
        let user = lookup(own.uid)?;
        let credentials = match line.first() {
            Some(me) => Credentials { uid: own.uid, gid: me.status.gid, groups: me.status.groups.clone() },
            None => from_database(own.uid, user.as_ref()),
        };
        let (login, home) = name_and_home(own.uid, user, &own.env);
        Ok(Self { credentials, login, home, env: own.env, elevated: false })
    }

    /// The folders that commands are looked up in.
    #[must_use]
    pub fn search_path(&self) -> Vec<PathBuf> {
        let path = self.var("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
        std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect()
    }

    /// One variable of theirs; `None` if it is missing or empty.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.env.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }
}

/// What is known of our own process.
struct Process {
    uid: u32,
    env: Environment,
}

/// A process on the way from us to process 1; ourselves first.
struct Ancestor {
    pid: i32,
    status: Status,
}

fn ancestors(roots: &Roots, pid: i32) -> Vec<Ancestor> {
    let mut line: Vec<Ancestor> = Vec::new();
    let mut next = pid;
    while next > 0 && line.iter().all(|p| p.pid != next) {
        let Some(status) = read_status(roots, next) else { break };
        let parent = status.parent;
        line.push(Ancestor { pid: next, status });
        next = parent;
    }
    line
}

/// Who called: what `sudo` and the like say, else the nearest ancestor that is not root (`su` says nothing). Nobody
/// else if we are not root: then we can start nothing as anybody else either.
fn invoker(own: &Process, line: &[Ancestor]) -> Result<Option<u32>, Error> {
    if own.uid != 0 {
        return Ok(None);
    }
    for variable in ["SUDO_UID", "PKEXEC_UID"] {
        if let Some(value) = own.env.get(OsStr::new(variable)) {
            // To the kernel, all ones is nobody but "leave it as it is": root.
            let uid = value.to_str().and_then(|text| text.parse().ok()).filter(|uid| *uid != u32::MAX);
            return uid.map(Some).ok_or_else(|| nobody(variable, value));
        }
    }
    if let Some(value) = own.env.get(OsStr::new("DOAS_USER")) {
        let user = value.to_str().and_then(|name| User::from_name(name).ok().flatten());
        return user.map(|u| Some(u.uid.as_raw())).ok_or_else(|| nobody("DOAS_USER", value));
    }
    Ok(line.iter().map(|p| p.status.uid).find(|&uid| uid != 0))
}

fn nobody(variable: &'static str, value: &OsStr) -> Error {
    Error::Nobody { variable, value: value.to_string_lossy().into_owned() }
}

fn lookup(uid: u32) -> Result<Option<User>, Error> {
    User::from_uid(Uid::from_raw(uid)).map_err(|source| Error::Lookup { uid, source })
}

fn from_database(uid: u32, user: Option<&User>) -> Credentials {
    let Some(user) = user else { return Credentials { uid, gid: uid, groups: Vec::new() } };
    let groups = std::ffi::CString::new(user.name.as_str())
        .ok()
        .and_then(|name| nix::unistd::getgrouplist(&name, user.gid).ok())
        .unwrap_or_default();
    let groups = groups.into_iter().map(nix::unistd::Gid::as_raw).collect();
    Credentials { uid, gid: user.gid.as_raw(), groups }
}

fn name_and_home(uid: u32, user: Option<User>, env: &Environment) -> (String, PathBuf) {
    let home = env.get(OsStr::new("HOME")).map(PathBuf::from);
    match user {
        Some(user) => (user.name, home.unwrap_or(user.dir)),
        None => (uid.to_string(), home.unwrap_or_else(|| "/".into())),
    }
}

/// The environment of the ancestor at `at`, or of the `sudo` that it started.
fn environment_near(roots: &Roots, line: &[Ancestor], at: usize) -> Option<Environment> {
    let elevator = at
        .checked_sub(1)
        .filter(|&below| below > 0 && ELEVATORS.iter().any(|e| line[below].status.comm == *e))
        .and_then(|below| read_environment(roots, line[below].pid));
    elevator.or_else(|| read_environment(roots, line[at].pid))
}

/// `/proc/PID/environ`; `None` if it cannot be read or is empty (a process that is ending has none).
fn read_environment(roots: &Roots, pid: i32) -> Option<Environment> {
    let bytes = std::fs::read(roots.proc.join(pid.to_string()).join("environ")).ok()?;
    let env = parse_environment(&bytes);
    (!env.is_empty()).then_some(env)
}

fn parse_environment(bytes: &[u8]) -> Environment {
    let pairs = bytes.split(|&b| b == 0).filter_map(|line| {
        let equals = line.iter().skip(1).position(|&b| b == b'=')? + 1;
        let (name, value) = (&line[..equals], &line[equals + 1..]);
        Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
    });
    pairs.collect()
}

/// Our own environment, made theirs as far as that is known: for when no process of theirs is above us.
fn without_elevation(own: &Environment, uid: u32, user: Option<&User>) -> Environment {
    let mut env = own.clone();
    env.retain(|name, _| {
        !["SUDO_", "DOAS_", "PKEXEC_"].iter().any(|prefix| name.as_bytes().starts_with(prefix.as_bytes()))
    });
    if let Some(user) = user {
        env.insert("USER".into(), user.name.clone().into());
        env.insert("LOGNAME".into(), user.name.clone().into());
        env.insert("HOME".into(), user.dir.clone().into());
        env.insert("SHELL".into(), user.shell.clone().into());
    }
    let runtime = PathBuf::from(format!("/run/user/{uid}"));
    let ours_is_roots = env.get(OsStr::new("XDG_RUNTIME_DIR")).is_none_or(|dir| Path::new(dir) != runtime);
    if ours_is_roots && runtime.is_dir() {
        env.insert("XDG_RUNTIME_DIR".into(), runtime.into());
    }
    env
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
