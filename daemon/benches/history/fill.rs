//! A history of five years, as the daemon writes it.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use headstart_daemon::drive::{Class, Flash};
use headstart_daemon::plan::{Need, Plan, Target, Tuning, Wanted, WantedFile};
use headstart_daemon::profile::{FileProfile, History, Profile, RangeUse};
use headstart_daemon::recording::{FileIdentity, PageRange};
use headstart_daemon::store::{Activity, Store, StoredPlans, TIMELINES};
use headstart_shared::launch::{
    Arm, Launch, ProcessSpan, ReadAhead, Temperature, Timeline, Usage, UsageSample,
};
use headstart_shared::policy::AppState;
use headstart_shared::run::{AppId, Milestone};
use headstart_shared::units::{Bytes, Nanos};

const DAY: Duration = Duration::from_hours(24);

/// Five years of launches, with all that the daemon stores beside them.
pub(crate) fn fill(store: &mut Store, uid: u32, apps: usize, launches: usize) -> anyhow::Result<()> {
    for number in 0..apps {
        let profile = profile(number);
        store.save_profile(uid, &profile)?;
        let plans = StoredPlans { layout: 1, plans: vec![plan(&profile)], sample: vec![0; 2_000] };
        store.save_plans(uid, &profile.app, &plans)?;
        store.set_state(uid, &profile.app, AppState::Prefetching, number as u64)?;
    }
    let now = Utc::now();
    let step = DAY * 365 * 5 / u32::try_from(launches.max(1))?;
    for number in 0..launches {
        let launch = launch(number, apps, now - step * u32::try_from(launches - number)?);
        let recent = launches - number <= apps * TIMELINES as usize;
        let stored = store.record_launch(uid, &launch, recent.then(|| timeline(&launch)).as_ref())?;
        store.add_activity(Some(uid), &activity(&launch, stored))?;
        store.add_read(launch.began.date_naive(), "nvme0n1", Bytes(30 << 20))?;
        // As after every launch; of those that are followed by more, nothing is left.
        if launches - number <= apps {
            store.judge(uid, &launch.app)?;
        }
    }
    Ok(())
}

fn app(number: usize) -> AppId {
    AppId(format!("org.example.Application{number:04}.desktop"))
}

/// From 100 files on, as a small tool, to 1300, as an office program; five ranges in each.
fn profile(number: usize) -> Profile {
    let file = |file: usize| FileProfile {
        path: PathBuf::from(format!(
            "/usr/lib/x86_64-linux-gnu/application-{number:04}/plug-ins/libpart-{file:06}.so"
        )),
        identity: FileIdentity {
            filesystem: 0x1234_5678_9abc_def0,
            inode: 1_000_000 + file as u64,
            size: 4 << 20,
            mtime: 1_700_000_000_123_456_789,
        },
        earlier: History::default(),
        ranges: (0..5).map(|range| range_use(file as u64 * 50_000, range)).collect(),
    };
    let files = (0..100 + number * 7 % 1_200).map(file).collect();
    Profile { app: app(number), page_size: 4096, runs: 30, files, devices: Vec::new() }
}

fn range_use(after: u64, range: u64) -> RangeUse {
    RangeUse {
        pages: PageRange { start: range * 150, end: range * 150 + 40 },
        first_need: Nanos(after + range * 1_000_000),
        history: History(0x3fff_ffff),
    }
}

fn plan(profile: &Profile) -> Plan {
    let wanted = |file: &FileProfile| WantedFile {
        path: file.path.clone(),
        identity: file.identity,
        ranges: file.ranges.iter().map(|range| Need { pages: range.pages, at: range.first_need }).collect(),
        first_need: file.ranges[0].first_need,
        extents: Vec::new(),
    };
    let wanted = Wanted { files: profile.files.iter().map(wanted).collect(), devices: Vec::new() };
    let class = Class::Flash(Flash::Nvme);
    let target = Target { name: "nvme0n1".into(), class, max_readahead: Bytes(128 << 10) };
    Plan::new(&wanted, 4096, target, Tuning::for_class(class), Bytes(1 << 30))
}

fn launch(number: usize, apps: usize, began: DateTime<Utc>) -> Launch {
    let wobble = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let held_out = (number / apps).is_multiple_of(8);
    let seconds = if held_out { 2 } else { 1 };
    let window = Nanos(seconds * 1_000_000_000 + wobble * 10);
    Launch {
        id: 0,
        app: app(number % apps),
        began,
        arm: if held_out { Arm::HeldOut } else { Arm::Prefetched },
        temperature: Temperature::Cold,
        cached: Some(0.125),
        milestones: vec![(Milestone::FirstWindow, window), (Milestone::Settled, Nanos(window.0 * 2))],
        exclusions: Vec::new(),
        usage: Usage {
            user: Nanos(700_000_000 + wobble),
            system: Nanos(200_000_000 + wobble),
            blocked: Some(Nanos(300_000_000 + wobble)),
            major_faults: 1_234,
            read: Some(Bytes(30 << 20)),
            processes: 12,
        },
        read_ahead: Some(ReadAhead {
            read: Bytes(30 << 20),
            cached: Bytes(2 << 20),
            used: None,
            first_read: Nanos(1_500_000),
            done: Some(Nanos(400_000_000)),
        }),
        version: 0x1234_5678_9abc_def0,
        recorded: false,
        tuned: false,
    }
}

/// Ten seconds sampled at 20 Hz, and a dozen processes.
fn timeline(launch: &Launch) -> Timeline {
    let process = |number: i32| ProcessSpan {
        pid: 100_000 + number,
        parent: 100_000,
        name: "a-program-of-it".into(),
        began: Nanos(123_456_789),
        ended: Some(Nanos(2_123_456_789)),
        cpu: Nanos(123_456_789),
        blocked: Some(Nanos(12_345_678)),
        read: Some(Bytes(3_456_789)),
    };
    let sample = |number: u64| UsageSample {
        at: Nanos(number * 50_000_000),
        cpu: Nanos(34_567_890),
        blocked: Some(Nanos(12_345_678)),
        read: Bytes(1_234_567),
        machine_read: Bytes(1_234_567),
    };
    Timeline {
        format: 1,
        launch: launch.clone(),
        processes: (0..12).map(process).collect(),
        samples: (0..200).map(sample).collect(),
        priorities: Vec::new(),
    }
}

fn activity(launch: &Launch, number: u64) -> Activity {
    let app = Some(launch.app.clone());
    Activity { id: 0, at: launch.began, kind: 1, app, launch: Some(number), count: None, detail: None }
}
