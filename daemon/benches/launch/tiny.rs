//! A small image for a quick check of the wiring: the host's Python, started without a desktop.
//!
//! It takes seconds to make and needs no network. A command that imports much of the standard library reads some
//! hundred small files, which is enough for reading ahead to show on a hard disk.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::apps::{Target, Until};
use crate::image::{Attached, format};
use crate::mounts::Mounted;
use crate::process::{Interrupt, run};
use crate::root::HOME;

const CAPACITY: u64 = 256 << 20;
/// Imports what of these the host's Python has.
const IMPORTS: &str = "import importlib\n\
    for name in '''asyncio argparse configparser csv ctypes dataclasses decimal difflib doctest email.mime.multipart \
    ftplib gettext hashlib html.parser http.client http.cookiejar http.server imaplib inspect ipaddress json \
    logging.config lzma mailbox multiprocessing.pool optparse pdb pickle plistlib pydoc random sched secrets shelve \
    smtplib socketserver sqlite3 ssl statistics tarfile tempfile unittest urllib.request uuid wsgiref.simple_server \
    xml.dom.minidom xml.etree.ElementTree xml.sax xmlrpc.client zipfile'''.split():\n    \
    try: importlib.import_module(name)\n    except ImportError: pass\n";

/// The image, without a name in memory, and the command to start in it.
pub(crate) fn make(interrupt: &Interrupt) -> Result<(File, Target)> {
    let image = tempfile::NamedTempFile::new_in("/dev/shm").context("no memory for the image")?;
    image.as_file().set_len(CAPACITY)?;
    format(image.path(), None, interrupt)?;
    let device = Attached::attach(image.path())?;
    let directory = tempfile::Builder::new().prefix("headstart-tiny-").tempdir()?;
    let mounted = Mounted::filesystem(device.path(), directory.path(), "ext4")?;
    let python = fill(mounted.at(), interrupt)?;
    let command = vec![python, "-I".to_owned(), "-c".to_owned(), IMPORTS.to_owned()];
    let target = Target { name: "python".to_owned(), command, until: Until::Exit };
    drop((mounted, device));
    Ok((image.into_file(), target))
}

/// Copies Python into the root, and returns its path there.
fn fill(root: &Path, interrupt: &Interrupt) -> Result<String> {
    let ask = "import os, sys, sysconfig\n\
        print(os.path.realpath(sys.executable))\n\
        print(sysconfig.get_path('stdlib'))";
    let answer = output(Command::new("/usr/bin/python3").args(["-I", "-c", ask]))?;
    let (python, library) = answer.trim().split_once('\n').context("Python does not say where it is")?;
    let mut files: BTreeSet<PathBuf> = needs(Path::new(python))?;
    for extension in fs::read_dir(Path::new(library).join("lib-dynload")).into_iter().flatten().flatten() {
        if extension.path().extension() == Some(OsStr::new("so")) {
            files.extend(needs(&extension.path())?);
        }
    }
    for directory in ["dev", "proc", "sys", "tmp", "run", HOME.trim_start_matches('/')] {
        fs::create_dir_all(root.join(directory))?;
    }
    // Links are followed: what matters is that each name leads to its content.
    let mut copy = Command::new("cp");
    copy.args([
        "--parents",
        "--dereference",
        "--recursive",
        "--preserve=mode,timestamps",
        "--target-directory",
    ]);
    copy.arg(root).arg(python).arg(library).args(files);
    // To preserve the directories' attributes, cp looks for them from where it runs.
    run("cp", copy.current_dir("/"), interrupt)?;
    Ok(python.to_owned())
}

/// The libraries that a program or library is linked with, and the linker that loads them.
fn needs(binary: &Path) -> Result<BTreeSet<PathBuf>> {
    let listing = output(Command::new("ldd").arg(binary))?;
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(listing.lines().filter_map(path).collect())
}

fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {name}"))?;
    ensure!(output.status.success(), "{name} failed: {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
