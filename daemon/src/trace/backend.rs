//! Which way of recording works here, found out by doing it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::recorder::{RecordError, Recorded, Recorder};
use crate::recording::{Backend, Recording};
use crate::roots::Roots;
use crate::sys::readahead::evict;
use crate::sys::residency::{page_size, resident_in};
use crate::watch::start::Monotonic;

/// What was tried, and what came of it.
#[derive(Debug)]
pub struct Choice {
    /// The finest that works; `None` if none does.
    pub backend: Option<Backend>,
    /// What does not work, the finest first, and why.
    pub failures: Vec<(Backend, String)>,
}

/// Tries the ways of recording, the finest first, on a file of our own that is there for certain: the program itself.
#[must_use]
pub fn choose(roots: &Roots) -> Choice {
    let mut failures = Vec::new();
    for backend in [Backend::Touched, Backend::Added, Backend::Resident] {
        match try_out(backend, roots) {
            Ok(()) => return Choice { backend: Some(backend), failures },
            Err(why) => failures.push((backend, why)),
        }
    }
    Choice { backend: None, failures }
}

/// Records one read of our own.
///
/// # Errors
/// Why it does not work, in words.
pub fn try_out(backend: Backend, roots: &Roots) -> Result<(), String> {
    let program = roots.proc.join("self/exe");
    let file = File::open(&program).map_err(|e| format!("cannot read {}: {e}", program.display()))?;
    let page = match backend {
        Backend::Added => cold_page(&file).map_err(|e| format!("cannot tell what is cached: {e}"))?,
        _ => Some(0),
    };
    let recorder = Recorder::prepare(backend, roots).map_err(|e| e.to_string())?;
    let recording = record_read(recorder, &file, page.unwrap_or(0)).map_err(|e| e.to_string())?;
    let seen = recording.files.iter().any(|recorded| !recorded.touches.is_empty());
    // Of a file that is cached whole nothing can be brought in: then it has to do that the event is there.
    if backend == Backend::Touched && !seen || backend == Backend::Added && page.is_some() && !seen {
        return Err("the kernel has the events, but does not report a read that was made".into());
    }
    Ok(())
}

/// A page that is not in memory, after asking the kernel to let go of what nobody uses.
fn cold_page(file: &File) -> io::Result<Option<u64>> {
    evict(file)?;
    let resident = resident_in(file)?;
    let pages = file.metadata()?.len().div_ceil(page_size());
    Ok((0..pages).rev().find(|page| !resident.iter().any(|r| (r.start..r.end).contains(page))))
}

fn record_read(recorder: Recorder, file: &File, page: u64) -> Result<Recording, RecordError> {
    let started = Monotonic::now();
    let id = rustix::thread::gettid().as_raw_nonzero().get();
    for filter in recorder.announce_to() {
        rustix::io::write(filter, id.to_string().as_bytes())
            .map_err(|errno| RecordError::Filter(errno.into()))?;
    }
    let mut byte = [0];
    // What cannot be read is missing from the recording, which is then what is reported.
    let _ = file.read_at(&mut byte, page * page_size());
    recorder.finish(Recorded { started, keeper: id, prefetched: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_any_kernel_interface_each_failure_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().into(), tracefs: dir.path().into(), ..Roots::default() };
        let choice = choose(&roots);
        assert_eq!(choice.backend, None);
        assert_eq!(choice.failures.len(), 3);
        assert!(choice.failures.iter().all(|(_, why)| why.contains("self/exe")), "{choice:?}");
    }
}
