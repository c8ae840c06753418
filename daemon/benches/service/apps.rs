//! Apps to start, in a folder of their own: each a program that reads the files it is given, and ends.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use headstart_daemon::sys::readahead::evict;
use tempfile::TempDir;

/// Bytes of each data file.
const SIZE: usize = 1 << 20;

/// Installed apps.
pub(crate) struct Apps {
    folder: TempDir,
    count: usize,
    files: usize,
}

impl Apps {
    /// So many apps, each with so many files of 1 MiB to read. They are beside the benchmark, on its drive: what is in
    /// folders for temporary files is never learned from.
    pub(crate) fn install(count: usize, files: usize) -> Result<Self> {
        let beside = std::env::current_exe()?;
        let beside = beside.parent().context("the benchmark has no folder")?;
        let apps =
            Self { folder: tempfile::Builder::new().prefix("apps-").tempdir_in(beside)?, count, files };
        for folder in ["share/applications", "bin", "data"] {
            fs::create_dir_all(apps.path(folder))?;
        }
        for app in 0..count {
            apps.upgrade(app)?;
            for file in 0..files {
                fs::write(apps.data(app, file), vec![b'x'; SIZE])?;
                File::open(apps.data(app, file))?.sync_all()?;
            }
            let entry = format!(
                "[Desktop Entry]\nType=Application\nName=App {app}\nTerminal=true\nExec={}\n",
                apps.program(app).display()
            );
            fs::write(apps.path(&format!("share/applications/{}.desktop", id(app))), entry)?;
        }
        Ok(apps)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where desktop entries are found, as an agent tells it.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path("share")
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.path("bin")
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn program(&self, app: usize) -> PathBuf {
        self.path(&format!("bin/app-{app}"))
    }

    fn data(&self, app: usize, file: usize) -> PathBuf {
        self.path(&format!("data/{app}-{file}"))
    }

    /// Puts the program in place anew, as a package manager does.
    pub(crate) fn upgrade(&self, app: usize) -> Result<()> {
        let new = self.path("bin/new");
        fs::copy("/bin/cat", &new)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
        Ok(fs::rename(new, self.program(app))?)
    }

    /// What starts the app.
    pub(crate) fn command(&self, app: usize) -> Command {
        let mut command = Command::new(self.program(app));
        command.args((0..self.files).map(|file| self.data(app, file))).stdout(std::process::Stdio::null());
        command
    }

    /// Has what the app reads read anew.
    pub(crate) fn make_cold(&self, app: usize) -> Result<()> {
        (0..self.files).try_for_each(|file| evict_file(&self.data(app, file)))
    }
}

fn evict_file(path: &Path) -> Result<()> {
    evict(File::open(path)?).with_context(|| format!("cannot evict {}", path.display()))
}

/// The ID of an app.
pub(crate) fn id(app: usize) -> String {
    format!("org.example.App{app}")
}
