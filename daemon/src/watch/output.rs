//! Where a program's output goes; of what is captured the end is kept.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;

use super::start::Monotonic;
use super::watched::Watched;

/// How much of the last output is kept.
pub(super) const TAIL_BYTES: usize = 16 * 1024;
/// Where a program's output goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Nowhere.
    Null,
    /// Where ours goes.
    Inherit,
    /// Its end is kept: [`Run::last_words`](super::launch::Run::last_words).
    #[default]
    Capture,
}

/// Sees each line of captured error output, and when it was read. Says whether to keep it out of the last words.
pub type LineObserver = Arc<dyn Fn(&[u8], Monotonic) -> bool + Send + Sync>;

/// Captured output.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pub(super) bytes: VecDeque<u8>,
    pub(super) open_streams: u32,
}

/// One of the program's output streams.
pub(super) enum Stream {
    Null,
    Inherit,
    Capture(File, File),
}

impl Stream {
    pub(super) fn new(output: Output) -> io::Result<Self> {
        Ok(match output {
            Output::Null => Self::Null,
            Output::Inherit => Self::Inherit,
            Output::Capture => {
                let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
                Self::Capture(ours.into(), theirs.into())
            }
        })
    }

    pub(super) fn child_end<'a>(&'a self, null: BorrowedFd<'a>, inherited: BorrowedFd<'a>) -> BorrowedFd<'a> {
        match self {
            Self::Null => null,
            Self::Inherit => inherited,
            Self::Capture(_, theirs) => theirs.as_fd(),
        }
    }

    /// Reads it until no process holds it any more, however little of it is kept: a full pipe would hold up the program.
    pub(super) fn follow(self, tail: &Arc<Watched<Tail>>, lines: Option<LineObserver>) {
        let Self::Capture(ours, theirs) = self else { return };
        drop(theirs);
        tail.lock().open_streams += 1;
        let tail = Arc::clone(tail);
        thread::spawn(move || {
            read_output(ours, &tail, lines.as_ref());
            tail.lock().open_streams -= 1;
            tail.changed.notify_all();
        });
    }
}

fn read_output(mut stream: File, tail: &Watched<Tail>, observer: Option<&LineObserver>) {
    let mut buffer = [0; 8192];
    let mut line = Vec::new();
    loop {
        let read = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let at = Monotonic::now();
        for piece in buffer[..read].split_inclusive(|&b| b == b'\n') {
            line.extend_from_slice(piece);
            // A line without end is cut: nobody reads one that long.
            if piece.ends_with(b"\n") || line.len() > TAIL_BYTES {
                take_line(&mut line, at, tail, observer);
            }
        }
    }
    if !line.is_empty() {
        take_line(&mut line, Monotonic::now(), tail, observer);
    }
}

fn take_line(line: &mut Vec<u8>, at: Monotonic, tail: &Watched<Tail>, observer: Option<&LineObserver>) {
    let taken = observer.is_some_and(|observer| observer(line.trim_ascii_end(), at));
    if !taken {
        let mut tail = tail.lock();
        tail.bytes.extend(line.iter());
        let excess = tail.bytes.len().saturating_sub(TAIL_BYTES);
        tail.bytes.drain(..excess);
    }
    line.clear();
}
