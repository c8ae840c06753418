//! From a profile to plans for the drives at hand, and to a replay that waits for a start.

use std::path::PathBuf;

use headstart_shared::comparison::DriveSummary;
use headstart_shared::units::Bytes;

use crate::drive::{Class, Drive};
use crate::learn;
use crate::mounts::{Kind, Mounts};
use crate::plan::group::{Groups, by_drive};
use crate::plan::{self, Need, Plan, Tuning, Wanted, WantedDevice, WantedFile, locate};
use crate::profile::Profile;
use crate::replay::guard::{Limits, Memory};
use crate::roots::Roots;

/// What a profile comes to on this machine.
#[derive(Debug, Default)]
pub struct Prefetch {
    /// A plan for each drive.
    pub plans: Vec<Plan>,
    /// The drives of the plans, as far as they are known.
    pub drives: Vec<Option<Drive>>,
    /// Files that are not read ahead because of the file system they are on.
    pub untouchable: Vec<(PathBuf, Kind)>,
    /// Remarks in words.
    pub remarks: Vec<String>,
}

/// How plans are made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Plan as if all drives were of this class.
    pub as_if: Option<Class>,
    /// Order and carry out like this, whatever the drive.
    pub tuning: Option<Tuning>,
}

impl Prefetch {
    /// Plans what `profile` wants. On spinning drives the files are opened to ask where they lie, so plan before caches
    /// are emptied.
    #[must_use]
    pub fn plan(profile: &Profile, choices: Choices, mounts: &Mounts, roots: &Roots) -> Self {
        let budget = Limits::default().budget(&Memory::now(roots));
        let Groups { drives: groups, untouchable, remarks } = by_drive(wanted(profile), mounts, roots);
        let mut this = Self { untouchable, remarks, ..Self::default() };
        let mut parts = Vec::with_capacity(groups.len());
        for mut group in groups {
            let target = group.target(choices.as_if);
            if target.class == Class::Spinning {
                locate::locate(&mut group.wanted, roots, mounts);
            }
            let tuning = choices.tuning.unwrap_or_else(|| Tuning::for_target(&target));
            parts.push((group.wanted, target, tuning));
            this.drives.push(group.drive.map(|drive| match choices.as_if {
                Some(class) => drive.as_if(class),
                None => drive,
            }));
        }
        this.plans = plan::plans(parts, profile.page_size, budget);
        this
    }

    /// The drives in the words shown beside a result, the one with most to read first.
    #[must_use]
    pub fn summaries(&self) -> Vec<DriveSummary> {
        let summary = |(plan, drive): (&Plan, &Option<Drive>)| DriveSummary {
            name: plan.target.name.clone(),
            class: plan.target.class.to_string(),
            model: drive.as_ref().and_then(|drive| drive.model.clone()),
            scheduler: drive.as_ref().and_then(|drive| drive.scheduler.clone()),
            planned: plan.data() + plan.metadata(),
        };
        let mut all: Vec<_> = self.plans.iter().zip(&self.drives).map(summary).collect();
        all.sort_by_key(|drive| std::cmp::Reverse(drive.planned));
        all
    }

    /// Bytes of file content in all plans.
    #[must_use]
    pub fn data(&self) -> Bytes {
        self.plans.iter().map(Plan::data).sum()
    }

    /// Bytes of file-system structures in all plans.
    #[must_use]
    pub fn metadata(&self) -> Bytes {
        self.plans.iter().map(Plan::metadata).sum()
    }
}

/// What learning selects, as planning takes it.
fn wanted(profile: &Profile) -> Wanted {
    let selected = learn::wanted(profile);
    let needs = |ranges: &[learn::WantedRange]| -> Vec<Need> {
        ranges.iter().map(|range| Need { pages: range.pages, at: range.first_need }).collect()
    };
    let files = selected.files.iter().map(|wanted| {
        let ranges = needs(&wanted.ranges);
        WantedFile {
            path: wanted.file.path.clone(),
            identity: wanted.file.identity,
            first_need: ranges.iter().map(|need| need.at).min().unwrap_or_default(),
            ranges,
            extents: Vec::new(),
        }
    });
    let devices = selected.devices.iter().map(|wanted| WantedDevice {
        device: wanted.device.device,
        filesystem: wanted.device.filesystem,
        base: 0,
        ranges: needs(&wanted.ranges),
    });
    Wanted { files: files.collect(), devices: devices.collect() }
}
