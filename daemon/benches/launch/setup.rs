//! Everything that a measurement stands on: a drive with the image in it, mounted, and a screen.

use std::fs::File;

use anyhow::Result;

use crate::drive::Drive;
use crate::drive::parameters::Kind;
use crate::process::Interrupt;
use crate::root::Root;
use crate::screen::Screen;

/// Up until it is dropped.
#[derive(Debug)]
pub(crate) struct Setup {
    // In the order in which they are to go: what runs inside, what is mounted, what it is mounted from.
    screen: Option<Screen>,
    root: Root,
    drive: Drive,
}

impl Setup {
    /// Brings up a drive that holds what the store holds, and a screen if one is wanted.
    pub(crate) fn start(kind: Kind, store: &File, with_screen: bool, interrupt: &Interrupt) -> Result<Self> {
        let drive = Drive::start(kind, store.try_clone()?)?;
        let screen = if with_screen { Some(Screen::start(interrupt)?) } else { None };
        let root = Root::mount(drive.device())?;
        Ok(Self { screen, root, drive })
    }

    /// The screen applications are to use, if they need one.
    pub(crate) fn screen(&self) -> Option<&Screen> {
        self.screen.as_ref()
    }

    /// Where they are started.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The drive they are read from.
    pub(crate) fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Forgets all that is cached of the drive, and begins to count anew.
    pub(crate) fn make_cold(&mut self) -> Result<()> {
        let drive = &self.drive;
        self.root.remount(|| Ok(drive.forget()?))?;
        drive.reset_counters();
        Ok(())
    }
}
