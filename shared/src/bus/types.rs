//! What travels on the bus.

use serde::{Deserialize, Serialize};
use zbus::{DeserializeDict, SerializeDict, Type};

/// Declares an enumeration that travels as an unsigned number. 0, and any number that is not known, is `Unknown`.
macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, Type)]
        #[serde(from = "u32", into = "u32")]
        #[zbus(signature = "u")]
        pub enum $name {
            /// Not known to this version.
            #[default]
            Unknown,
            $($(#[$variant_doc])* $variant,)*
        }

        impl From<u32> for $name {
            fn from(number: u32) -> Self {
                match number {
                    $($number => Self::$variant,)*
                    _ => Self::Unknown,
                }
            }
        }

        impl From<$name> for u32 {
            fn from(value: $name) -> Self {
                match value {
                    $name::Unknown => 0,
                    $($name::$variant => $number,)*
                }
            }
        }
    };
}

wire_enum! {
    /// [`crate::policy::Policy`] on the bus.
    PolicyCode {
        /// Never prefetched.
        Off = 1,
        /// Prefetched at launch.
        AtLaunch = 2,
    }
}

wire_enum! {
    /// [`crate::policy::AppState`] on the bus.
    StateCode {
        /// Being learned.
        Learning = 1,
        /// Prefetched at launch.
        Prefetching = 2,
        /// Switched off by a person.
        SwitchedOff = 3,
        /// Switched off by Headstart: no measurable gain.
        WithoutGain = 4,
        /// Switched off by Headstart: slower.
        Slower = 5,
        /// On file systems that are not read ahead from.
        Untouchable = 6,
    }
}

wire_enum! {
    /// [`crate::verdict::Verdict`] on the bus.
    VerdictCode {
        /// Not enough counted launches yet.
        Measuring = 1,
        /// The interval is above zero.
        Faster = 2,
        /// The interval holds zero.
        NoMeasurableGain = 3,
        /// The interval is below zero.
        Slower = 4,
        /// Nothing is held out, so nothing can be claimed.
        NotCompared = 5,
    }
}

wire_enum! {
    /// [`crate::run::Milestone`] on the bus.
    MilestoneCode {
        /// The first window.
        FirstWindow = 1,
        /// The exit of a command.
        Exit = 2,
        /// Disk and processor quiet.
        Settled = 3,
    }
}

wire_enum! {
    /// [`crate::launch::Arm`] on the bus.
    ArmCode {
        /// Read ahead.
        Prefetched = 1,
        /// Left alone by lot.
        HeldOut = 2,
        /// Left alone.
        Off = 3,
    }
}

wire_enum! {
    /// [`crate::launch::Temperature`] on the bus.
    TemperatureCode {
        /// Cold.
        Cold = 1,
        /// Between.
        Lukewarm = 2,
        /// Warm.
        Warm = 3,
    }
}

wire_enum! {
    /// [`crate::launch::Exclusion`] on the bus.
    ExclusionCode {
        /// Handed to a running instance.
        Hot = 1,
        /// The machine slept.
        Suspended = 2,
        /// Files were replaced.
        Upgrading = 3,
        /// Others kept the drive or processor busy.
        ForeignLoad = 4,
        /// Recorded.
        Recorded = 5,
        /// Ended before any milestone.
        EndedEarly = 6,
        /// No milestone in time.
        NoMilestone = 7,
        /// Memory ran short.
        ShortOfMemory = 8,
        /// Too many starts at once.
        Burst = 9,
        /// The daemon ended meanwhile.
        Interrupted = 10,
    }
}

wire_enum! {
    /// Why nothing is prefetched at the moment.
    PauseCode {
        /// Nothing is paused.
        NotPaused = 1,
        /// A person said so.
        ByPerson = 2,
        /// On battery.
        OnBattery = 3,
        /// The machine is too hot.
        Thermal = 4,
        /// Inside a container.
        Container = 5,
        /// Today's budget of bytes is spent.
        BudgetSpent = 6,
        /// The kernel lacks or refuses what is needed.
        KernelRefuses = 7,
    }
}

wire_enum! {
    /// What an entry of the activity list tells.
    ActivityCode {
        /// A launch was seen.
        Launched = 1,
        /// A launch was learned from.
        Learned = 2,
        /// An app is prefetched from now on.
        NowPrefetched = 3,
        /// An app was switched off for want of a gain.
        GaveUp = 4,
        /// An app that was given up is tried again.
        TriedAgain = 5,
        /// A policy was changed by a person.
        PolicyChanged = 6,
        /// Paused.
        Paused = 7,
        /// Resumed.
        Resumed = 8,
        /// An app or the history was forgotten.
        Forgotten = 9,
        /// The configuration was read anew.
        ConfigLoaded = 10,
        /// A configuration was refused.
        ConfigRefused = 11,
        /// The history was set aside because it was damaged.
        HistorySetAside = 12,
        /// Priorities were changed for a launch and put back.
        Tuned = 13,
        /// Events were lost: launches may have gone unseen.
        EventsLost = 14,
        /// Files of an app changed; the launch after is learned from.
        Upgraded = 15,
        /// The daemon started.
        Started = 16,
        /// The daemon could not write the history.
        StorageFailed = 17,
        /// Starts went by unwatched, because too many came at once.
        Burst = 18,
    }
}

/// An app of the caller. Without a history it has an `app`, `policy` and `state` only.
#[derive(Clone, Debug, Default, PartialEq, SerializeDict, DeserializeDict, Type)]
#[zbus(signature = "dict")]
pub struct AppInfo {
    /// Its ID.
    pub app: String,
    /// Its untranslated name, if it has a desktop entry.
    pub name: Option<String>,
    /// What its person chose.
    pub policy: PolicyCode,
    /// How far it has got.
    pub state: StateCode,
    /// Launches learned from.
    pub learned: Option<u32>,
    /// Launches needed before it is prefetched.
    pub learned_needed: Option<u32>,
    /// Launches seen, hot starts not among them.
    pub launches: Option<u64>,
    /// Hot starts seen.
    pub hot: Option<u64>,
    /// The last launch.
    pub last_launch: Option<i64>,
    /// The claim.
    pub verdict: VerdictCode,
    /// What the claim's times are the times to.
    pub milestone: MilestoneCode,
    /// Counted launches that were prefetched.
    pub prefetched: Option<u32>,
    /// Counted launches that were held out.
    pub held_out: Option<u32>,
    /// Counted launches of each kind that a verdict needs.
    pub needed: Option<u32>,
    /// Median time of held-out launches, seconds.
    pub before: Option<f64>,
    /// Median time of prefetched launches, seconds.
    pub after: Option<f64>,
    /// The gain in seconds; negative is slower.
    pub gain: Option<f64>,
    /// The lower end of its interval.
    pub gain_low: Option<f64>,
    /// The upper end of its interval.
    pub gain_high: Option<f64>,
    /// The interval's coverage, 0 to 1.
    pub level: Option<f64>,
    /// Files in its profile.
    pub files: Option<u64>,
    /// Bytes in its profile.
    pub bytes: Option<u64>,
}

/// A launch of the caller's.
#[derive(Clone, Debug, Default, PartialEq, SerializeDict, DeserializeDict, Type)]
#[zbus(signature = "dict")]
pub struct LaunchInfo {
    /// Its number.
    pub id: u64,
    /// The app.
    pub app: String,
    /// When it began.
    pub began: i64,
    /// What Headstart did.
    pub arm: ArmCode,
    /// How cold it was.
    pub temperature: TemperatureCode,
    /// The share of its profile that was cached.
    pub cached: Option<f64>,
    /// Time to the first window.
    pub first_window: Option<u64>,
    /// Time until settled.
    pub settled: Option<u64>,
    /// Time to the exit.
    pub exit: Option<u64>,
    /// Why it does not count.
    pub exclusions: Vec<ExclusionCode>,
    /// CPU time in user mode.
    pub user: u64,
    /// CPU time in the kernel.
    pub system: u64,
    /// Time waited for drives.
    pub blocked: Option<u64>,
    /// Page faults that waited for a drive.
    pub major_faults: u64,
    /// Bytes that it had read itself.
    pub read: Option<u64>,
    /// Processes.
    pub processes: u32,
    /// Bytes read ahead for it.
    pub read_ahead: Option<u64>,
    /// Bytes of them that it used.
    pub used: Option<u64>,
    /// From the exec to the first request for it.
    pub first_read: Option<u64>,
    /// Changes with the app's executable.
    pub version: u64,
    /// Whether it was learned from.
    pub recorded: bool,
    /// Whether priorities were changed.
    pub tuned: bool,
    /// Whether its timeline is kept.
    pub timeline: bool,
}

/// What launches to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDict, DeserializeDict, Type)]
#[zbus(signature = "dict")]
pub struct LaunchQuery {
    /// Of this app only.
    pub app: Option<String>,
    /// Only launches with a number below this one: the next page.
    pub before: Option<u64>,
    /// At most so many, the latest first; 100 if not given, 1000 at most.
    pub limit: Option<u32>,
    /// Of this user; another than the caller is an administrator's.
    pub uid: Option<u32>,
}

/// One thing that the daemon did.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDict, DeserializeDict, Type)]
#[zbus(signature = "dict")]
pub struct ActivityInfo {
    /// Its number; rises with time.
    pub id: u64,
    /// When.
    pub at: i64,
    /// What.
    pub kind: ActivityCode,
    /// The app that it is about.
    pub app: Option<String>,
    /// The launch that it is about.
    pub launch: Option<u64>,
    /// How many, where the kind counts something.
    pub count: Option<u64>,
    /// A file name, a line number and a system's error message, as the kernel or the parser gave it.
    pub detail: Option<String>,
}

/// The daemon's state and its own cost since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDict, DeserializeDict, Type)]
#[zbus(signature = "dict")]
pub struct StatusInfo {
    /// Its version.
    pub version: String,
    /// When it started.
    pub started: i64,
    /// Whether and why it is paused.
    pub pause: PauseCode,
    /// Until when, if that is known.
    pub paused_until: Option<i64>,
    /// Executables (and scripts) whose starts it waits for.
    pub watched: u32,
    /// Apps that are prefetched at launch.
    pub prefetching: u32,
    /// Apps being learned.
    pub learning: u32,
    /// Sessions whose agents report windows.
    pub agents: u32,
    /// How launches are recorded: `touched`, `added`, `resident` or nothing.
    pub backend: Option<String>,
    /// Its CPU time.
    pub cpu: u64,
    /// Its resident memory.
    pub resident: u64,
    /// Bytes in the history.
    pub history: u64,
    /// Bytes read ahead today.
    pub read_today: u64,
    /// The most that is read ahead in a day; absent if there is no limit.
    pub daily_budget: Option<u64>,
    /// Start events lost since it started.
    pub lost: u64,
    /// Starts of watched programs seen since it started: the sum of the five below.
    pub starts: u64,
    /// Launches that it followed.
    pub followed: u64,
    /// Programs that launches executed.
    pub parts: u64,
    /// Second starts of an app that was starting.
    pub again: u64,
    /// Starts of no app.
    pub others: u64,
    /// Starts that went by unwatched, because too many came at once.
    pub unwatched: u64,
}

/// A session, as its agent describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDict, DeserializeDict, Type)]
#[zbus(signature = "dict")]
pub struct SessionInfo {
    /// `XDG_DATA_HOME` and `XDG_DATA_DIRS` with `applications` folders, in their order of precedence.
    pub data_dirs: Vec<String>,
    /// `PATH`, to find programs by.
    pub path: Option<Vec<String>>,
    /// `XDG_CURRENT_DESKTOP`.
    pub desktop: Option<String>,
    /// Whether it sees windows of X11.
    pub x11: bool,
    /// Whether it sees windows of Wayland.
    pub wayland: bool,
}

/// A window that became visible.
#[derive(Clone, Debug, Default, PartialEq, Eq, SerializeDict, DeserializeDict, Type)]
#[zbus(signature = "dict")]
pub struct WindowInfo {
    /// When, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at: u64,
    /// Its process, where known. In the agent's own process namespace.
    pub pid: Option<i32>,
    /// Its X11 class and instance, or its Wayland application ID.
    pub names: Vec<String>,
}
