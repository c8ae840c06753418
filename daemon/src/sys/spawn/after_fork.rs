//! What runs between `fork` and `execve`, and the keeper's whole life: async-signal-safe functions only, as
//! `signal-safety(7)` lists them. Nothing here allocates, locks or panics on purpose; memory was made ready before.

use std::os::fd::RawFd;
use std::ptr;

use libc::c_int;

use super::{Credentials, KeeperPlan, Report, SHELL, monotonic};

/// The keeper, from its first instruction to its last.
pub(super) fn keeper_main(plan: &KeeperPlan<'_>) -> ! {
    // SAFETY: plain system calls with valid arguments; failures of the first ones cost comfort, not safety.
    let program = unsafe {
        libc::setsid();
        // An ignored SIGCHLD would make the kernel reap, and lose, what our children used.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::prctl(libc::PR_SET_NAME, c"headstart-run".as_ptr());
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) != 0 {
            fail(plan.failure, 0)
        }
        libc::fork()
    };
    match program {
        0 => program_main(plan),
        -1 => fail(plan.failure, 0),
        pid => {
            send(plan.reports, Report::Forked { pid });
            keep(plan, pid)
        }
    }
}

/// The program's process up to `execve`. It still has all signals blocked.
fn program_main(plan: &KeeperPlan<'_>) -> ! {
    let image = plan.image;
    // SAFETY: plain system calls; every pointer is into `image`, which outlives the call, and lists are terminated.
    unsafe {
        libc::setsid();
        if !connect_streams(&image.stdio) {
            fail(plan.failure, 1)
        }
        for &fd in &image.announce_to {
            if !write_own_pid(fd) {
                fail(plan.failure, 2)
            }
        }
        if let Some(user) = &image.credentials
            && !become_user(user)
        {
            fail(plan.failure, 3)
        }
        if let Some(dir) = &image.cwd
            && libc::chdir(dir.as_ptr()) != 0
        {
            fail(plan.failure, 4)
        }
        // Should the keeper be killed, nobody would be left to end the run. After the change of user, which resets it.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // Descriptors that somebody left open must not leak into the program.
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        default_signals();
        let now = monotonic().to_ne_bytes();
        libc::write(image.start, now.as_ptr().cast(), now.len());
        let envp = image.envp.pointers.as_ptr();
        libc::execve(image.path.as_ptr(), image.argv.pointers.as_ptr(), envp);
        if errno() == libc::ENOEXEC {
            libc::execve(SHELL.as_ptr(), image.shell_argv.pointers.as_ptr(), envp);
        }
        fail(plan.failure, 5)
    }
}

/// Makes `stdio` the descriptors 0, 1 and 2. The given ones may be any of these themselves.
fn connect_streams(stdio: &[RawFd; 3]) -> bool {
    let mut high = [0; 3];
    for (slot, &fd) in high.iter_mut().zip(stdio) {
        // SAFETY: duplicating a descriptor touches no memory.
        *slot = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
        if *slot < 0 {
            return false;
        }
    }
    // SAFETY: as above; the copies are above 2, so none is overwritten before its turn.
    (0..3).zip(high).all(|(target, fd)| unsafe { libc::dup2(fd, target) } >= 0)
}

/// Writes our own process number in decimal.
fn write_own_pid(fd: RawFd) -> bool {
    let mut digits = [0u8; 12];
    let mut at = digits.len();
    // SAFETY: takes and touches nothing.
    let mut pid = unsafe { libc::getpid() }.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (pid % 10) as u8;
        pid /= 10;
        if pid == 0 {
            break;
        }
    }
    let text = &digits[at..];
    // SAFETY: `text` is valid for its length.
    unsafe { libc::write(fd, text.as_ptr().cast(), text.len()) == text.len().cast_signed() }
}

/// Groups first: after `setuid` we may not change them. The raw system calls are meant: the C library's versions
/// would signal other threads, and there are none in this process.
fn become_user(user: &Credentials) -> bool {
    // SAFETY: `groups` is valid for its length; the others touch no memory.
    unsafe {
        libc::syscall(libc::SYS_setgroups, user.groups.len(), user.groups.as_ptr()) == 0
            && libc::syscall(libc::SYS_setresgid, user.gid, user.gid, user.gid) == 0
            && libc::syscall(libc::SYS_setresuid, user.uid, user.uid, user.uid) == 0
    }
}

/// Default dispositions and an empty mask: a program must not inherit what we or our shell ignored or blocked. By the
/// raw call: the C library keeps two signals to itself and would leave these as they are.
fn default_signals() {
    // The kernel's `sigaction` differs between architectures; in all of them zeros are SIG_DFL, no flags, no mask.
    let default = [0u64; 8];
    // SAFETY: `default` is at least as long as the structure; SIGKILL and SIGSTOP refuse, which is as it should be.
    unsafe {
        for signal in 1..=64 {
            let none = ptr::null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, KERNEL_SIGSET_BYTES);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// The length of the kernel's signal set: one bit for each of 64 signals.
const KERNEL_SIGSET_BYTES: usize = 8;

fn errno() -> c_int {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() }
}

/// Tells the parent which step failed and ends.
fn fail(pipe: RawFd, step: c_int) -> ! {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&step.to_ne_bytes());
    bytes[4..].copy_from_slice(&errno().to_ne_bytes());
    // SAFETY: `bytes` is valid for its length; `_exit` runs no handlers of the parent.
    unsafe {
        libc::write(pipe, bytes.as_ptr().cast(), bytes.len());
        libc::_exit(127)
    }
}

fn send(pipe: RawFd, report: Report) {
    let bytes = report.encode();
    // SAFETY: `bytes` is valid for its length. A write of less than PIPE_BUF is whole or nothing (pipe(7)).
    unsafe { libc::write(pipe, bytes.as_ptr().cast(), bytes.len()) };
}

/// Reaps and reports until the control pipe closes, then kills what is left.
fn keep(plan: &KeeperPlan<'_>, mut program: c_int) -> ! {
    let (reports, control) = shed_descriptors(plan);
    let child_ended = child_signal();
    let mut empty = false;
    loop {
        // First of all: what ended before the descriptor was there raised no event on it.
        let none_left = reap(reports, libc::WNOHANG, &mut program);
        if none_left && !empty {
            empty = true;
            send(reports, Report::Empty);
        }
        let event = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds = [event(child_ended), event(control)];
        // SAFETY: `fds` is valid for its length.
        if unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) } < 0 {
            continue;
        }
        if fds[0].revents != 0 {
            let mut info = [0u8; 128];
            // SAFETY: `info` is valid for its length.
            unsafe { libc::read(child_ended, info.as_mut_ptr().cast(), info.len()) };
        }
        if fds[1].revents != 0 {
            end_all(reports, program)
        }
    }
}

/// Keeps only the pipes, at 3 and 4: a descriptor of ours held here would keep its other end waiting.
fn shed_descriptors(plan: &KeeperPlan<'_>) -> (RawFd, RawFd) {
    // SAFETY: calls on descriptors touch no memory. The copies are above 4, so no `dup2` overwrites one.
    unsafe {
        let reports = libc::fcntl(plan.reports, libc::F_DUPFD, 5);
        let control = libc::fcntl(plan.control, libc::F_DUPFD, 5);
        for fd in 0..3 {
            libc::dup2(plan.null, fd);
        }
        libc::dup2(reports, 3);
        libc::dup2(control, 4);
        if libc::syscall(libc::SYS_close_range, 5, libc::c_uint::MAX, 0) != 0 {
            // Before Linux 5.9.
            for fd in 5..4096 {
                libc::close(fd);
            }
        }
        (3, 4)
    }
}

/// A descriptor that becomes readable when a child ends. All signals are blocked here already.
fn child_signal() -> RawFd {
    // SAFETY: the set is plain memory.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC)
    }
}

/// Reaps every child that has ended (or, without `WNOHANG`, at least one); whether none is left at all. The program's
/// number is forgotten (0) when it is reaped: it may soon be another process's.
fn reap(reports: RawFd, mut flags: c_int, program: &mut c_int) -> bool {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result.
        match unsafe { libc::waitpid(-1, &raw mut status, flags) } {
            0 => return false,
            -1 if errno() == libc::EINTR => {}
            -1 => return errno() == libc::ECHILD,
            pid => {
                send(reports, Report::Ended { pid, status, at: monotonic() });
                if pid == *program {
                    *program = 0;
                }
                flags = libc::WNOHANG;
            }
        }
    }
}

/// Kills the children until there are none: what they leave behind becomes our child and gets its turn. Nobody but us
/// reaps them, so a number read from the list is never somebody else's.
fn end_all(reports: RawFd, mut program: c_int) -> ! {
    loop {
        if reap(reports, libc::WNOHANG, &mut program) {
            // SAFETY: runs no handlers.
            unsafe { libc::_exit(0) }
        }
        match kill_children() {
            // What may not be signalled (a set-user-ID program, when we are not root) cannot be waited for either.
            (0, 1..) => {
                // SAFETY: runs no handlers.
                unsafe { libc::_exit(1) }
            }
            // No list in this kernel (CONFIG_PROC_CHILDREN): the program itself is what we know.
            (0, 0) => {
                if program > 0 {
                    // SAFETY: signals only; it is not reaped yet, so the number is still its own.
                    unsafe { libc::kill(program, libc::SIGKILL) };
                }
                pause_a_little();
            }
            _ => {
                if reap(reports, 0, &mut program) {
                    // SAFETY: runs no handlers.
                    unsafe { libc::_exit(0) }
                }
            }
        }
    }
}

fn pause_a_little() {
    // SAFETY: sleeps.
    unsafe { libc::poll(ptr::null_mut(), 0, 10) };
}

/// Sends SIGKILL to every child in `/proc/thread-self/children` (`proc(5)`); how many took it, how many refused.
fn kill_children() -> (u32, u32) {
    let mut list = [0u8; 4096];
    // SAFETY: the path is terminated and `list` is valid for its length.
    let length = unsafe {
        let fd = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(fd, list.as_mut_ptr().cast(), list.len());
        libc::close(fd);
        usize::try_from(length).unwrap_or(0)
    };
    let (mut killed, mut refused, mut pid) = (0, 0, 0i32);
    for &byte in list.iter().take(length) {
        if byte.is_ascii_digit() {
            pid = pid.wrapping_mul(10).wrapping_add(i32::from(byte - b'0'));
        } else if pid > 1 {
            // SAFETY: signals only, and only a child that nobody else can have reaped.
            if unsafe { libc::kill(pid, libc::SIGKILL) } == 0 {
                killed += 1;
            } else {
                refused += 1;
            }
            pid = 0;
        }
    }
    (killed, refused)
}
