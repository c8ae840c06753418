//! The lines of a profile file, after the first.

use std::path::PathBuf;

use headstart_shared::run::AppId;
use headstart_shared::units::Nanos;
use serde::{Deserialize, Serialize};

use crate::profile::{DeviceProfile, FileProfile, History, MAX_FILES, MAX_RANGES, Profile, RangeUse};
use crate::recording::{DeviceNumber, FileIdentity, PageRange};

/// First page, page after the last, first need, history.
type Range = (u64, u64, u64, u32);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Line {
    Profile {
        app: String,
        runs: u32,
    },
    Device {
        filesystem: u64,
        major: u32,
        minor: u32,
        ranges: Vec<Range>,
    },
    File {
        #[serde(with = "crate::path_text")]
        path: PathBuf,
        filesystem: u64,
        inode: u64,
        size: u64,
        mtime: i64,
        earlier: u32,
        ranges: Vec<Range>,
    },
}

/// Why the lines make no profile.
pub(super) enum Flaw {
    /// This line, from 0, is not one of a profile.
    Line(usize, String),
    /// There is no line about the app.
    NoProfile,
}

pub(super) fn write(profile: &Profile) -> String {
    let head = Line::Profile { app: profile.app.0.clone(), runs: profile.runs };
    let devices = profile.devices.iter().map(|d| Line::Device {
        filesystem: d.filesystem,
        major: d.device.major,
        minor: d.device.minor,
        ranges: write_ranges(&d.ranges),
    });
    let files = profile.files.iter().map(|f| Line::File {
        path: f.path.clone(),
        filesystem: f.identity.filesystem,
        inode: f.identity.inode,
        size: f.identity.size,
        mtime: f.identity.mtime,
        earlier: f.earlier.0,
        ranges: write_ranges(&f.ranges),
    });
    let mut text = String::new();
    for line in std::iter::once(head).chain(devices).chain(files) {
        // Strings and integers always have a JSON form.
        text.push_str(&serde_json::to_string(&line).unwrap_or_default());
        text.push('\n');
    }
    text
}

pub(super) fn read(text: &str, page_size: u64) -> Result<Profile, Flaw> {
    let mut lines = text.lines().enumerate();
    let mut next = || {
        lines
            .next()
            .map(|(at, line)| serde_json::from_str::<Line>(line).map_err(|e| Flaw::Line(at, flaw(&e))))
    };
    let Some(Line::Profile { app, runs }) = next().transpose()? else {
        return Err(Flaw::NoProfile);
    };
    let mut profile = Profile { app: AppId(app), page_size, runs, files: Vec::new(), devices: Vec::new() };
    let mut count = 0;
    // More than is accepted is not read to its end; the check of the whole then says so.
    while profile.files.len() <= MAX_FILES && count <= MAX_RANGES {
        let Some(line) = next().transpose()? else { break };
        match line {
            Line::Profile { .. } => return Err(Flaw::NoProfile),
            Line::Device { filesystem, major, minor, ranges } => {
                count += ranges.len();
                profile.devices.push(DeviceProfile {
                    device: DeviceNumber { major, minor },
                    filesystem,
                    ranges: read_ranges(ranges),
                });
            }
            Line::File { path, filesystem, inode, size, mtime, earlier, ranges } => {
                count += ranges.len();
                profile.files.push(FileProfile {
                    path,
                    identity: FileIdentity { filesystem, inode, size, mtime },
                    earlier: History(earlier),
                    ranges: read_ranges(ranges),
                });
            }
        }
    }
    Ok(profile)
}

/// The reader's words, without its line: to it, each line is the first.
fn flaw(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

fn write_ranges(ranges: &[RangeUse]) -> Vec<Range> {
    ranges.iter().map(|r| (r.pages.start, r.pages.end, r.first_need.0, r.history.0)).collect()
}

fn read_ranges(ranges: Vec<Range>) -> Vec<RangeUse> {
    let read = |(start, end, need, history)| RangeUse {
        pages: PageRange { start, end },
        first_need: Nanos(need),
        history: History(history),
    };
    ranges.into_iter().map(read).collect()
}
