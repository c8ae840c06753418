//! The drive as a FUSE file system of one file, `disk`, whose reads are answered when the model says.
//!
//! Two threads take turns at one of two jobs. Either stamps the reads that arrive and hands them to the model. The one
//! that does so while nothing else is outstanding then stays to answer: it fetches the data of the read that is due
//! next, sleeps until its moment, sends it, and so on until nothing is outstanding any more, while the other thread
//! takes in what arrives. A read of an idle drive so costs two wake-ups of one thread and no word between threads.
//! Writes go straight to the store.
//!
//! `counters`, beside `disk`, shows [`Counters`] as JSON; writing anything to it resets them.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    Request, TimeOrNow, WriteFlags,
};
use headstart_shared::units::Nanos;
use rustix::thread::{Pid, gettid};

use super::clock;
use super::counters::Counters;
use super::model::{Access, Model};
use super::parameters::Mechanism;

const DISK: INodeNo = INodeNo(2);
const COUNTERS: INodeNo = INodeNo(3);
/// The kernel may keep names and attributes: they never change.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// The longest read and write in one request. Loop devices send up to 1280 KiB, most of them far less.
const LONGEST: u32 = 1 << 20;

/// How long a request travels between the application and the drive's clock, both ways.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transport {
    /// Of each request, however small.
    pub request: Duration,
    /// More for each page of 4 KiB in it.
    pub page: Duration,
}

impl Transport {
    fn of(self, access: Access) -> Duration {
        self.request + self.page * u32::try_from(access.length / 4096).unwrap_or(u32::MAX)
    }
}

/// What both threads and the owner of the drive share.
#[derive(Debug)]
pub(super) struct Shared {
    store: File,
    capacity: u64,
    state: Mutex<State>,
    /// What the answering thread sends from.
    data: Mutex<Vec<u8>>,
    threads: Mutex<Vec<Pid>>,
}

#[derive(Debug)]
struct State {
    model: Model<ReplyData>,
    /// Whether one of the threads answers.
    answering: bool,
    counters: Counters,
    /// What the model and the threads had used up when the counters were last reset.
    base: (Duration, Nanos),
    transport: Transport,
}

/// A panic while a lock is held leaves figures of which each is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(store: File, mechanism: Mechanism) -> io::Result<Self> {
        let capacity = store.metadata()?.len();
        let state = State {
            model: Model::new(mechanism, capacity),
            answering: false,
            counters: Counters::default(),
            base: (Duration::ZERO, Nanos(0)),
            transport: Transport::default(),
        };
        let data = Mutex::new(vec![0; LONGEST as usize]);
        Ok(Self { store, capacity, state: Mutex::new(state), data, threads: Mutex::default() })
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Replaces the idle drive's mechanism; `transport` is what its requests spend outside the drive.
    pub(super) fn refit(&self, mechanism: Mechanism, transport: Transport) {
        let mut state = lock(&self.state);
        state.model = Model::new(mechanism, self.capacity);
        state.transport = transport;
        self.reset(&mut state);
    }

    pub(super) fn counters(&self) -> Counters {
        let state = lock(&self.state);
        let (busy, processor) = state.base;
        Counters {
            busy: state.model.busy().saturating_sub(busy).into(),
            processor: self.processor() - processor,
            ..state.counters
        }
    }

    pub(super) fn reset_counters(&self) {
        self.reset(&mut lock(&self.state));
    }

    fn reset(&self, state: &mut State) {
        state.counters = Counters::default();
        state.base = (state.model.busy(), self.processor());
    }

    fn processor(&self) -> Nanos {
        lock(&self.threads).iter().filter_map(|&thread| clock::processor_time(thread)).map(Nanos::from).sum()
    }

    /// Notes the calling thread as one of the drive's own.
    fn know_thread(&self) {
        thread_local!(static KNOWN: Cell<bool> = const { Cell::new(false) });
        if !KNOWN.replace(true) {
            lock(&self.threads).push(gettid());
        }
    }

    fn submit(&self, access: Access, reply: ReplyData) {
        let mut state = lock(&self.state);
        // Under the lock, so that arrivals are in order of time.
        state.model.submit(clock::now(), access, reply);
        let outstanding = state.model.outstanding();
        state.counters.count_depth(outstanding);
        let others_answer = std::mem::replace(&mut state.answering, true);
        drop(state);
        if !others_answer {
            self.answer();
        }
    }

    /// Answers until nothing is outstanding.
    fn answer(&self) {
        let mut data = lock(&self.data);
        while let Some((due, access, transport)) = self.next() {
            let fetched = self.fetch(access, &mut data);
            clock::sleep_until(due.saturating_sub(transport));
            self.send(fetched.map(|length| &data[..length]), transport);
        }
    }

    fn next(&self) -> Option<(Duration, Access, Duration)> {
        let mut state = lock(&self.state);
        let next = state.model.due();
        state.answering = next.is_some();
        next.map(|(due, access)| (due, access, state.transport.of(access)))
    }

    fn fetch(&self, access: Access, data: &mut Vec<u8>) -> io::Result<usize> {
        let within = self.capacity.saturating_sub(access.offset).min(access.length);
        let length = usize::try_from(within).map_err(io::Error::other)?;
        if data.len() < length {
            data.resize(length, 0);
        }
        self.store.read_exact_at(&mut data[..length], access.offset)?;
        Ok(length)
    }

    fn send(&self, data: io::Result<&[u8]>, transport: Duration) {
        let now = clock::now();
        let mut state = lock(&self.state);
        let Some(served) = state.model.complete() else { return };
        // What the transport's own time has used up already counts as late too: it cannot be given back.
        let late = (now + transport).saturating_sub(served.at);
        state.counters.count_read(&served, late);
        drop(state);
        match data {
            Ok(bytes) => served.tag.data(bytes),
            Err(error) => served.tag.error(error.into()),
        }
    }
}

/// The file system. Its methods run in the drive's two threads.
#[derive(Debug)]
pub(super) struct DiskFs(pub(super) Arc<Shared>);

impl DiskFs {
    fn attributes(&self, node: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match node {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            DISK => (FileType::RegularFile, 0o600, self.0.capacity),
            COUNTERS => (FileType::RegularFile, 0o600, 0),
            _ => return None,
        };
        Some(FileAttr {
            ino: node,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl Filesystem for DiskFs {
    /// Without asynchronous direct I/O, and with the usual limit of 16 requests under way, the kernel would hand the
    /// drive one request after the other, or 16 at most, and no queue could ever form in it.
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let missing =
            |flags| io::Error::new(io::ErrorKind::Unsupported, format!("this kernel's FUSE lacks {flags:?}"));
        config.add_capabilities(InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_MAX_PAGES).map_err(missing)?;
        let limits = [config.set_max_background(512), config.set_congestion_threshold(512)];
        if limits.iter().any(Result::is_err) || config.set_max_write(LONGEST).is_err() {
            return Err(io::Error::other("FUSE refuses the queue limits of the drive"));
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let node = match name.as_encoded_bytes() {
            b"disk" => DISK,
            b"counters" => COUNTERS,
            _ => return reply.error(Errno::ENOENT),
        };
        match self.attributes(node).filter(|_| parent == INodeNo::ROOT) {
            Some(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, node: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(node) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Accepts the truncation with which a shell opens `counters` for writing, and changes nothing.
    fn setattr(
        &self,
        _request: &Request,
        node: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<std::time::SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<std::time::SystemTime>,
        _chgtime: Option<std::time::SystemTime>,
        _bkuptime: Option<std::time::SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(node).filter(|_| node == COUNTERS) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::EPERM),
        }
    }

    fn open(&self, _request: &Request, _node: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _request: &Request,
        node: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.0.know_thread();
        if node == DISK {
            return self.0.submit(Access { offset, length: size.into() }, reply);
        }
        let Ok(text) = serde_json::to_vec_pretty(&self.0.counters()) else { return reply.error(Errno::EIO) };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        let end = start.saturating_add(size as usize).min(text.len());
        reply.data(&text[start..end]);
    }

    fn write(
        &self,
        _request: &Request,
        node: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if node == COUNTERS {
            self.0.reset_counters();
        } else if let Err(error) = self.0.store.write_all_at(data, offset) {
            return reply.error(error.into());
        } else {
            lock(&self.0.state).counters.count_write(data.len());
        }
        reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX));
    }

    fn flush(&self, _r: &Request, _node: INodeNo, _h: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    /// The store is memory: what is written is as safe as it will ever be.
    fn fsync(&self, _r: &Request, _node: INodeNo, _h: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }
}
