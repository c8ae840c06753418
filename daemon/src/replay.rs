//! Carrying out plans: threads that wait at a gate and then read, in the order of each plan.
//!
//! Everything that can be done without touching a drive is done before the gate opens: threads started, priorities set,
//! names made ready, file systems judged by mountinfo. No file is opened before, because that alone would read inodes
//! and folders, which is half of what the start costs. After it, workers take the steps of their plan one after the
//! other from a common cursor, so that the order of need is kept however many there are.
//!
//! Reading is `readahead(2)`: nothing is copied, and the drive has several requests to choose from. A worker with as many
//! requests in flight as the tuning allows waits for its oldest before it asks for more, so that the program's own reads
//! never queue behind the whole plan. What is cached already is left alone.
//!
//! A replay stops between two requests when it is told to or when memory becomes short ([`guard`]).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use thiserror::Error;

use crate::mounts::Mounts;
use crate::plan::{Plan, Step};
use crate::roots::Roots;
use crate::sys::identity::User;

mod account;
mod devices;
mod files;
mod gate;
pub mod guard;
mod worker;

pub use account::{Account, Skipped, Stopped, Traffic};
pub use gate::Gate;

use account::Tally;
use files::Files;
use guard::{Guard, Limits};
use worker::Worker;

/// How plans are carried out.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the kernel's file systems are.
    pub roots: Roots,
    /// Whose profile it is: files that this user may not read are skipped. `None`: the process's own permissions.
    pub user: Option<User>,
    /// When to stop for want of memory.
    pub limits: Limits,
}

/// Why a replay could not be made ready.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The plan is from a kernel with other pages.
    #[error("the plan counts in pages of {plan} bytes, this kernel's have {kernel}; learn the app again")]
    PageSize {
        /// The plan's.
        plan: u64,
        /// This kernel's.
        kernel: u64,
    },
    /// No thread or descriptor to be had.
    #[error("cannot start the threads that read ahead: {0}; are processes or open files limited here?")]
    Start(#[source] io::Error),
}

/// A replay that is ready, running or over.
#[derive(Debug)]
pub struct Replay {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<Tally>>,
    skipped: Vec<Skipped>,
    remarks: Vec<String>,
}

/// What all workers of a replay share.
#[derive(Debug)]
struct Shared {
    gate: Gate,
    stop: Stopper,
    guard: Guard,
    options: Options,
}

/// One plan and the workers' progress in it.
#[derive(Debug)]
struct Lane {
    plan: Plan,
    files: Files,
    /// Open block devices, by their index in the plan; `None` for one that is not read.
    devices: Vec<Option<Arc<std::os::fd::OwnedFd>>>,
    cursor: std::sync::atomic::AtomicUsize,
}

/// Stops a replay, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    inner: Arc<StopState>,
}

#[derive(Debug)]
struct StopState {
    /// Looked at between any two requests.
    stopped: AtomicBool,
    reason: Mutex<Option<Stopped>>,
    /// Readable once stopped, for workers that are still at the gate.
    event: std::os::fd::OwnedFd,
}

impl Stopper {
    fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            inner: Arc::new(StopState { stopped: AtomicBool::new(false), reason: Mutex::new(None), event }),
        })
    }

    /// Stops the replay: no request is made any more. Those in flight arrive.
    pub fn stop(&self) {
        self.stop_because(Stopped::Cancelled);
    }

    fn stop_because(&self, reason: Stopped) {
        // The first reason is the one that counts.
        self.inner.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.inner.stopped.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.inner.event, &1_u64.to_ne_bytes());
    }

    fn is_stopped(&self) -> bool {
        self.inner.stopped.load(Ordering::Acquire)
    }

    fn reason(&self) -> Option<Stopped> {
        *self.inner.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replay {
    /// Makes plans ready: when this returns, all workers wait at the gate. No file has been touched.
    ///
    /// # Errors
    /// When the plans do not fit this kernel, or threads cannot be started.
    pub fn prepare(
        plans: Vec<Plan>,
        mounts: &Mounts,
        gate: &Gate,
        options: Options,
    ) -> Result<Self, ReplayError> {
        let kernel = crate::sys::residency::page_size();
        if let Some(plan) = plans.iter().find(|plan| plan.page_size != kernel) {
            return Err(ReplayError::PageSize { plan: plan.page_size, kernel });
        }
        let guard = Guard::new(&options.roots, options.limits);
        let stop = Stopper::new().map_err(ReplayError::Start)?;
        let shared = Arc::new(Shared { gate: gate.clone(), stop, guard, options });
        let mut replay = Self { shared, workers: Vec::new(), skipped: Vec::new(), remarks: Vec::new() };
        let threads = plans.iter().map(|plan| plan.tuning.workers.max(1)).sum();
        let windows =
            plans.iter().map(|plan| plan.tuning.workers.max(1) * worker::ring_size(&plan.tuning)).sum();
        let room = files::Room::make(&replay.shared.options.roots, threads, windows);
        for plan in plans {
            let lane = replay.lane(plan, mounts, &room);
            replay.start(&Arc::new(lane), &room)?;
        }
        Ok(replay)
    }

    /// Stops this replay, from wherever it is passed on to.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.shared.stop.clone()
    }

    /// Whether all is done, so that [`Replay::finish`] will not wait.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.workers.iter().all(JoinHandle::is_finished)
    }

    /// Waits for the end, and says what was done. Without an open gate or a stop it waits for these first.
    #[must_use]
    pub fn finish(mut self) -> Account {
        let mut tallies = Vec::with_capacity(self.workers.len());
        for worker in std::mem::take(&mut self.workers) {
            if let Ok(tally) = worker.join() {
                tallies.push(tally);
            } else {
                let remark =
                    "a thread that reads ahead ended before its time; this is a mistake in Headstart";
                self.remarks.push(remark.to_owned());
            }
        }
        let skipped = std::mem::take(&mut self.skipped);
        let remarks = std::mem::take(&mut self.remarks);
        account::sum(tallies, skipped, remarks, self.shared.gate.opened_at(), self.shared.stop.reason())
    }

    fn lane(&mut self, plan: Plan, mounts: &Mounts, room: &files::Room) -> Lane {
        let roots = &self.shared.options.roots;
        let mut devices = Vec::with_capacity(plan.devices.len());
        for planned in &plan.devices {
            match devices::open(planned, mounts, roots) {
                Ok(fd) => devices.push(Some(Arc::new(fd))),
                Err(why) => {
                    self.remarks.push(why.to_string());
                    devices.push(None);
                }
            }
        }
        let mut reads: HashMap<u32, u32> = HashMap::new();
        for step in &plan.steps {
            if let Step::Read { file, .. } = step {
                *reads.entry(*file).or_default() += 1;
            }
        }
        let files = Files::new(&plan.files, &reads, mounts, room);
        self.skipped.extend(files.excluded(&plan.files));
        Lane { plan, files, devices, cursor: 0.into() }
    }

    fn start(&mut self, lane: &Arc<Lane>, room: &files::Room) -> Result<(), ReplayError> {
        let (ready, wait) = mpsc::channel::<Option<String>>();
        let drive = OsStr::from_bytes(lane.plan.target.name.as_bytes()).to_string_lossy().into_owned();
        let count = lane.plan.tuning.workers.max(1);
        for number in 0..count {
            let (lane, shared, ready, room) =
                (Arc::clone(lane), Arc::clone(&self.shared), ready.clone(), room.clone());
            // The kernel shows fifteen bytes of a thread's name.
            let name = format!("read {drive:.6}/{number}");
            let run = move || Worker::new(&lane, &shared, &room).run(&ready);
            let thread =
                Builder::new().name(name).stack_size(256 << 10).spawn(run).map_err(ReplayError::Start)?;
            self.workers.push(thread);
        }
        drop(ready);
        for remark in wait.iter().take(count as usize).flatten() {
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
        Ok(())
    }
}

/// A replay that nobody waits for any more must not go on.
impl Drop for Replay {
    fn drop(&mut self) {
        if !self.workers.is_empty() {
            self.shared.stop.stop();
            for worker in self.workers.drain(..) {
                let _ = worker.join();
            }
        }
    }
}

#[cfg(test)]
mod tests;
