//! The image: a Debian root with real applications whose first-run set-up is done, made once and kept.
//!
//! The packages are installed in a scratch file system and copied into the image in one go. Files so lie one after the
//! other, directory by directory, in the first third of the drive, as after a fresh installation: spread over all of
//! a drive of a few gigabytes, they would be farther apart, for a model whose seeks grow with the part of the drive that
//! is crossed, than they ever are on a real disk.
//!
//! A benchmark works on a copy without a name in `/dev/shm`. What the applications write goes there, so every run
//! begins with the same image, and the copy is gone when the process ends.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::SeekFrom as Sparse;

use crate::apps::{App, PACKAGES, Target};
use crate::mounts::Mounted;
use crate::process::{Interrupt, run};
use crate::root::{HOME, Root};
use crate::screen::Screen;
use crate::session::time_start;
use crate::window::Watcher;

/// Changes with the recipe, so that an image made by an older one is made anew.
const RECIPE: u32 = 2;
/// All hosts measure the same release.
const SUITE: &str = "bookworm";
const CAPACITY: u64 = 6 << 30;
/// Room that is left for the applications when the image moves into memory.
const HEADROOM: u64 = 2 << 30;

/// The finished image, made first if there is none.
pub(crate) fn obtain(rebuild: bool, interrupt: &Interrupt) -> Result<PathBuf> {
    let directory = cache()?;
    let image = directory.join(format!("{SUITE}-{RECIPE}.ext4"));
    if image.exists() && !rebuild {
        return Ok(image);
    }
    let _alone = lock("build")?;
    eprintln!("Building {} (once; needs 2 GB of disk and some minutes)", image.display());
    let [partial, scratch] = ["partial", "scratch"].map(|extension| image.with_extension(extension));
    let built = build(&partial, &scratch, interrupt);
    let _ = fs::remove_file(scratch);
    built.inspect_err(|_| drop(fs::remove_file(&partial)))?;
    fs::rename(&partial, &image).with_context(|| format!("cannot name {}", image.display()))?;
    Ok(image)
}

/// Keeps others from doing the same until it is dropped; the kernel drops it for a process that is killed.
pub(crate) fn lock(what: &str) -> Result<File> {
    let directory = cache()?;
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let path = directory.join(format!("{what}.lock"));
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => {
            bail!("another benchmark is at it ({} is locked)", path.display())
        }
        Err(fs::TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

fn cache() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = base.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    Ok(base.context("neither XDG_CACHE_HOME nor HOME is set")?.join("headstart-bench"))
}

fn build(image: &Path, scratch: &Path, interrupt: &Interrupt) -> Result<()> {
    // What is installed here is copied in the order in which this file system lists it, so it too is a fixed one.
    create(scratch)?;
    format(scratch, None, interrupt)?;
    let device = Attached::attach(scratch)?;
    let target = tempfile::Builder::new().prefix("headstart-install-").tempdir()?;
    let mounted = Mounted::filesystem(device.path(), target.path(), "ext4")?;
    install(mounted.at(), interrupt)?;
    create(image)?;
    format(image, Some(mounted.at()), interrupt)?;
    drop((mounted, device));
    first_starts(image, interrupt)
}

fn create(image: &Path) -> Result<()> {
    let sized = File::create(image).and_then(|file| file.set_len(CAPACITY));
    sized.with_context(|| format!("cannot make {}", image.display()))
}

/// Makes an ext4 file system, with what a directory holds in it, that is the same each time as far as that is.
pub(crate) fn format(image: &Path, content: Option<&Path>, interrupt: &Interrupt) -> Result<()> {
    let mut mke2fs = Command::new("mke2fs");
    mke2fs.args(["-q", "-F", "-t", "ext4", "-U", "68656164-7374-6172-7400-000000000001"]);
    mke2fs.args([
        "-E",
        "hash_seed=68656164-7374-6172-7400-000000000002,lazy_itable_init=0,lazy_journal_init=0",
    ]);
    if let Some(directory) = content {
        mke2fs.arg("-d").arg(directory);
    }
    run("mke2fs", mke2fs.arg(image), interrupt)
}

fn install(root: &Path, interrupt: &Interrupt) -> Result<()> {
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap.args(["--variant=minbase", "--aptopt=Apt::Install-Recommends \"false\""]);
    mmdebstrap.arg(format!("--include={}", PACKAGES.join(","))).arg(SUITE).arg(root);
    run("mmdebstrap", &mut mmdebstrap, interrupt)?;
    fs::create_dir_all(root.join(HOME.trim_start_matches('/')))?;
    fs::write(root.join("etc/machine-id"), "68656164737461727400000000000003\n")?;
    let mut fonts = Command::new("chroot");
    run("fc-cache", fonts.arg(root).args(["fc-cache", "--force"]).stdin(Stdio::null()), interrupt)
}

fn first_starts(image: &Path, interrupt: &Interrupt) -> Result<()> {
    let device = Attached::attach(image)?;
    for target in App::ALL.map(App::target) {
        eprintln!("First start of {}", target.name);
        let root = Root::mount(device.path())?;
        prime(&root, &target, interrupt)
            .with_context(|| format!("the first start of {} failed", target.name))?;
    }
    Ok(())
}

/// Starts an application, lets it finish what it does once, and closes it as a person would.
fn prime(root: &Root, target: &Target, interrupt: &Interrupt) -> Result<()> {
    let screen = Screen::start(interrupt)?;
    time_start(Some(&screen), root, target, interrupt, || {
        interrupt.sleep(Duration::from_secs(8))?;
        Watcher::connect(&screen)?.close_all()?;
        interrupt.sleep(Duration::from_secs(3))
    })
    .map(drop)
}

/// A loop device for building, released by the kernel with its last user.
#[derive(Debug)]
pub(crate) struct Attached {
    path: PathBuf,
    /// Held open: the device lasts as long.
    _open: File,
}

impl Attached {
    /// Attaches an image.
    pub(crate) fn attach(image: &Path) -> Result<Self> {
        let output = Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(image).output();
        let output = output.context("cannot run losetup: util-linux is missing")?;
        ensure!(output.status.success(), "losetup: {}", String::from_utf8_lossy(&output.stderr).trim());
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let open = File::open(&path).with_context(|| format!("cannot open {}", path.display()));
        let _ = Command::new("losetup").arg("--detach").arg(&path).status();
        Ok(Self { path, _open: open? })
    }

    /// The device.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// A copy of the image to work on, and whether it is in memory.
pub(crate) fn working_copy(image: &Path) -> Result<(File, bool)> {
    let mut from = File::open(image).with_context(|| format!("cannot open {}", image.display()))?;
    let blocks = std::os::unix::fs::MetadataExt::blocks(&from.metadata()?);
    let fits = memory_available()? > blocks * 512 + HEADROOM;
    let directory = if fits { Path::new("/dev/shm") } else { image.parent().unwrap_or(Path::new(".")) };
    let mut copy = tempfile::tempfile_in(directory)
        .with_context(|| format!("cannot make a working copy in {}", directory.display()))?;
    copy_sparse(&mut from, &mut copy).with_context(|| format!("cannot copy {}", image.display()))?;
    copy.rewind()?;
    Ok((copy, fits))
}

fn memory_available() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("/proc/meminfo has no MemAvailable")? * 1024)
}

/// Copies the parts of a file that hold data, and leaves holes where it has some.
fn copy_sparse(from: &mut File, to: &mut File) -> io::Result<()> {
    let length = from.metadata()?.len();
    to.set_len(length)?;
    let mut at = 0;
    loop {
        let data = match rustix::fs::seek(&*from, Sparse::Data(at)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let hole = rustix::fs::seek(&*from, Sparse::Hole(data))?;
        from.seek(SeekFrom::Start(data))?;
        to.seek(SeekFrom::Start(data))?;
        io::copy(&mut Read::by_ref(from).take(hole - data), to)?;
        to.flush()?;
        at = hole;
    }
}
