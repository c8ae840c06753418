//! Files and the store, with whose rights they are written.

use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use headstart_daemon::measure::start::user;
use headstart_daemon::profile::atomic;
use headstart_daemon::store::{Loaded, Store};
use headstart_daemon::sys::identity::FileUser;

use crate::Context;

/// Does something with the rights of the person who asked, so that under sudo no file becomes root's, and none is written
/// where only root may. The calling thread is given back its own.
pub(crate) fn as_person<T: Send>(context: &Context, act: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
    if !context.session.elevated {
        return Ok(act());
    }
    // The groups are taken on for good, so in a thread of its own.
    std::thread::scope(|scope| {
        let work = scope.spawn(|| FileUser::new(&user(&context.session)).map(|eyes| eyes.during(act)));
        match work.join() {
            Ok(done) => done.context("cannot act as the person who asked"),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Writes a whole file.
pub(crate) fn write(context: &Context, path: &Path, contents: &str) -> anyhow::Result<()> {
    as_person(context, || atomic::write(path, contents.as_bytes()))??;
    Ok(())
}

/// Opens the store, and says so if it had to begin anew.
pub(crate) fn store(context: &Context) -> anyhow::Result<Store> {
    let why = if rustix::process::geteuid().is_root() {
        "cannot open the history"
    } else {
        "the history belongs to root: run with sudo, or give a folder of your own with --state-dir"
    };
    let opened = Store::open(&context.state_dir).context(why)?;
    if let Some(aside) = opened.set_aside {
        tell(&format!("the history was damaged; it is now {}, and a new one was begun", aside.display()));
    }
    Ok(opened.store)
}

/// What could be loaded; what could not is told.
pub(crate) fn loaded<T>(loaded: Loaded<T>) -> T {
    for damaged in &loaded.damaged {
        tell(damaged);
    }
    loaded.value
}

/// A line for the person, beside the figures.
pub(crate) fn tell(line: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(io::stderr(), "headstartctl: {line}");
}

/// Hands the result over to the window: `last-try.json` in the person's own state folder.
pub(crate) fn hand_over(context: &Context, json: &str) -> anyhow::Result<()> {
    let session = &context.session;
    let state = session.var("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let in_home = state.is_none();
    let folder = state.unwrap_or_else(|| session.home.join(".local/state")).join("headstart");
    let path = folder.join("last-try.json");
    as_person(context, || -> anyhow::Result<()> {
        let home = session.home.display();
        // Some users are made without one, and it is not for us to make it.
        anyhow::ensure!(
            !in_home || session.home.is_dir(),
            "there is no home folder {home}; set XDG_STATE_HOME"
        );
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(atomic::write(&path, json.as_bytes())?)
    })?
}
