//! The monotonic clock, waiting on it precisely, and threads that the scheduler runs as soon as they are due.

use std::num::NonZeroU64;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::thread::{Pid, gettid, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The span since the monotonic clock's origin.
pub(super) fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Sleeps until a moment of [`now`]; returns at once if it has passed. Never spins: the processors belong to the
/// application that is measured.
pub(super) fn sleep_until(moment: Duration) {
    if now() >= moment {
        return;
    }
    let seconds = i64::try_from(moment.as_secs()).unwrap_or(i64::MAX);
    let request = Timespec { tv_sec: seconds, tv_nsec: moment.subsec_nanos().into() };
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &request)
        == Err(rustix::io::Errno::INTR)
    {}
}

/// Makes the calling thread, and those it starts, run the moment they are due, as the controller of a drive would.
///
/// The real-time class is asked for with `chrt`; where that is not allowed, the highest ordinary priority serves.
pub(super) fn make_prompt() {
    // Without this the kernel may let a sleep last 50 µs longer to save a wake-up.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let thread = gettid();
    if !real_time(thread) {
        let _ = setpriority_process(Some(thread), -20);
    }
}

fn real_time(thread: Pid) -> bool {
    Command::new("chrt")
        .args(["--fifo", "--pid", "10", &thread.as_raw_nonzero().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The processor time that a thread of this process has used.
pub(super) fn processor_time(thread: Pid) -> Option<Duration> {
    let path = format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero());
    let text = std::fs::read_to_string(path).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
