//! One thread of a replay.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use headstart_shared::units::Pages;
use rustix::io::{Errno, pread};

use super::account::{Tally, Traffic, now, thread_cpu};
use super::files::{Files, Found, NO_DESCRIPTOR, Room};
use super::{Lane, Shared, Skipped};
use crate::opening::Opener;
use crate::plan::{Step, Tuning};
use crate::recording::PageRange;
use crate::sys::identity::FileUser;
use crate::sys::readahead::readahead;
use crate::sys::residency::cached_pages;
use crate::sys::{ioprio, residency};

/// Requests that a worker remembers when it does not wait for any before the end.
const REMEMBERED: u32 = 32;

/// Requests in flight that a worker of this tuning keeps account of.
pub(super) fn ring_size(tuning: &Tuning) -> u32 {
    if tuning.window == 0 { REMEMBERED } else { tuning.window }
}

/// A request that may still be in flight.
struct Flight {
    fd: Arc<OwnedFd>,
    /// Its last page, which arrives last or nearly so.
    last: u64,
    pages: u64,
    kind: Content,
}

#[derive(Clone, Copy)]
enum Content {
    Data,
    Metadata,
}

pub(super) struct Worker<'a> {
    lane: &'a Lane,
    shared: &'a Shared,
    page_size: u64,
    ring: VecDeque<Flight>,
    ring_size: usize,
    tally: Tally,
}

impl<'a> Worker<'a> {
    pub(super) fn new(lane: &'a Lane, shared: &'a Shared, room: &Room) -> Self {
        let ring_size = room.ring.min(ring_size(&lane.plan.tuning) as usize).max(1);
        let ring = VecDeque::with_capacity(ring_size);
        Self { lane, shared, page_size: residency::page_size(), ring, ring_size, tally: Tally::default() }
    }

    /// Gets ready, says so (with a remark, if there is one to make), waits at the gate and works.
    pub(super) fn run(mut self, ready: &Sender<Option<String>>) -> Tally {
        let options = &self.shared.options;
        let mut opener = Opener::new(&options.roots.proc);
        if let Some(user) = &options.user {
            match FileUser::new(user) {
                Ok(eyes) => opener = opener.with_eyes_of(eyes),
                Err(error) => {
                    let uid = user.uid;
                    let remark =
                        format!("nothing is read ahead: cannot take the permissions of user {uid}: {error}");
                    let _ = ready.send(Some(remark));
                    return self.tally;
                }
            }
        }
        let priority = self.lane.plan.tuning.priority;
        let remark = ioprio::set_own(priority).err();
        let remark = remark.map(|error| format!("the I/O priority \"{priority}\" could not be set: {error}"));
        let _ = ready.send(remark);

        let (gate, stop) = (&self.shared.gate, &self.shared.stop);
        if !gate.wait(stop) {
            return self.tally;
        }
        let (began, cpu) = (now(), thread_cpu());
        self.work(&mut opener);
        while self.land_oldest() {}
        self.tally.span = Some((began, now()));
        self.tally.cpu = thread_cpu() - cpu;
        self.tally
    }

    fn work(&mut self, opener: &mut Opener) {
        let lane = self.lane;
        loop {
            if self.shared.stop.is_stopped() {
                return;
            }
            if let Some(reason) = self.shared.guard.check() {
                self.shared.stop.stop_because(reason);
                return;
            }
            let Some(step) = lane.plan.steps.get(lane.cursor.fetch_add(1, Ordering::Relaxed)) else { return };
            self.tally.steps += 1;
            match *step {
                Step::Metadata { device, pages } => {
                    if let Some(Some(fd)) = lane.devices.get(device as usize) {
                        self.read(Arc::clone(fd), pages, Content::Metadata);
                    }
                }
                Step::Open { file } => {
                    self.file(file, |files| files.touch(file, opener));
                }
                Step::Read { file, pages, .. } => {
                    if let Some(fd) = self.file(file, |files| files.get(file, opener)) {
                        self.read(fd, pages, Content::Data);
                    }
                    lane.files.done(file);
                }
            }
        }
    }

    /// Gets a file in one of its ways and counts what came of it. Without a descriptor to be had, what is in flight is
    /// waited for, which gives some back.
    fn file(&mut self, file: u32, mut get: impl FnMut(&Files) -> Found) -> Option<Arc<OwnedFd>> {
        let lane = self.lane;
        let mut found = get(&lane.files);
        if matches!(found, Found::NoRoom) {
            while self.land_oldest() {}
            found = get(&lane.files);
        }
        let why = match found {
            Found::Open(fd, first) => {
                self.tally.files_opened += u64::from(first);
                return Some(fd);
            }
            Found::Known => return None,
            Found::Refused(why) => why,
            Found::NoRoom => NO_DESCRIPTOR,
        };
        let path = lane.plan.files.get(file as usize).map(|file| file.path.clone()).unwrap_or_default();
        self.tally.skipped.push(Skipped { path, why });
        None
    }

    fn read(&mut self, fd: Arc<OwnedFd>, pages: PageRange, kind: Content) {
        // A kernel that does not tell how much is cached is taken to have nothing cached: asking again is harmless.
        let cached = cached_pages(&fd, pages).map_or(0, |count| count.cached).min(pages.len());
        let page_size = self.page_size;
        let traffic = self.traffic(kind);
        traffic.requested += Pages(pages.len()).bytes(page_size);
        traffic.already_cached += Pages(cached).bytes(page_size);
        let missing = pages.len() - cached;
        if missing == 0 {
            return;
        }
        if self.ring.len() >= self.ring_size {
            match self.lane.plan.tuning.window {
                0 => drop(self.ring.pop_front()),
                _ => drop(self.land_oldest()),
            }
        }
        let start = pages.start.saturating_mul(page_size);
        match readahead(&fd, start, pages.len().saturating_mul(page_size)) {
            Ok(()) => self.ring.push_back(Flight { fd, last: pages.end - 1, pages: missing, kind }),
            Err(_) => self.traffic(kind).failed += Pages(missing).bytes(page_size),
        }
    }

    /// Waits for the oldest request in flight; `false` if there is none.
    ///
    /// Reading one byte of its last page waits for that page exactly as the program would. The descriptor expects reads
    /// in no order, so a page that was evicted meanwhile comes back alone.
    fn land_oldest(&mut self) -> bool {
        let Some(Flight { fd, last, pages, kind }) = self.ring.pop_front() else { return false };
        let mut byte = [0_u8; 1];
        let result = loop {
            match pread(&fd, &mut byte[..], last.saturating_mul(self.page_size)) {
                Err(Errno::INTR) => {}
                result => break result,
            }
        };
        if result.is_err() {
            let page_size = self.page_size;
            self.traffic(kind).failed += Pages(pages).bytes(page_size);
        }
        true
    }

    fn traffic(&mut self, kind: Content) -> &mut Traffic {
        match kind {
            Content::Data => &mut self.tally.data,
            Content::Metadata => &mut self.tally.metadata,
        }
    }
}
