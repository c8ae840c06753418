//! From the history's words to those of the bus. Pure.

use chrono::{DateTime, Utc};
use headstart_shared::bus::{
    ActivityCode, ActivityInfo, AppInfo, ArmCode, ExclusionCode, LaunchInfo, MilestoneCode, PolicyCode,
    StateCode, TemperatureCode, VerdictCode,
};
use headstart_shared::launch::{Arm, Exclusion, Launch, Temperature};
use headstart_shared::policy::{AppState, Policy};
use headstart_shared::run::Milestone;
use headstart_shared::verdict::{Effect, Verdict};

use crate::store::{Activity, AppRecord};

/// What is needed beside a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Bytes of a page of this kernel.
    pub(super) page_size: u64,
    /// Whether launches are held out at all.
    pub(super) compares: bool,
}

/// An app of which there is no history, and its name if it is installed.
pub(super) fn without_history(id: &str, name: Option<&str>) -> AppInfo {
    AppInfo {
        app: id.to_owned(),
        name: name.map(str::to_owned),
        policy: policy(Policy::default()),
        state: StateCode::Learning,
        ..AppInfo::default()
    }
}

/// An app with its history, and its name if it is installed.
pub(super) fn app_info(record: &AppRecord, name: Option<&str>, setting: Setting) -> AppInfo {
    let (learned, learned_needed) = match (record.state, record.profile) {
        (Some(AppState::Learning { runs, needed }), _) => (Some(runs), Some(needed)),
        (_, Some(profile)) => (Some(profile.runs), None),
        (_, None) => (None, None),
    };
    let info = AppInfo {
        app: record.app.0.clone(),
        name: name.map(str::to_owned),
        policy: policy(record.policy),
        state: state(record),
        learned,
        learned_needed,
        launches: Some(record.launches),
        hot: Some(record.hot),
        last_launch: record.last_launch.as_ref().map(DateTime::timestamp_millis),
        files: record.profile.map(|profile| profile.files),
        bytes: record.profile.map(|profile| profile.pages.bytes(setting.page_size).0),
        ..AppInfo::default()
    };
    with_verdict(info, record.verdict.as_ref(), setting.compares)
}

fn with_verdict(info: AppInfo, verdict: Option<&Verdict>, compares: bool) -> AppInfo {
    let with = |verdict, effect: &Effect| with_effect(info.clone(), verdict, effect);
    match verdict {
        Some(Verdict::Faster(effect)) => with(VerdictCode::Faster, effect),
        Some(Verdict::NoMeasurableGain(effect)) => with(VerdictCode::NoMeasurableGain, effect),
        Some(Verdict::Slower(effect)) => with(VerdictCode::Slower, effect),
        // What was measured before stays true; what is still to be measured never will be.
        _ if !compares => AppInfo { verdict: VerdictCode::NotCompared, ..info },
        Some(&Verdict::Measuring { held_out, prefetched, needed }) => AppInfo {
            verdict: VerdictCode::Measuring,
            held_out: Some(small(held_out)),
            prefetched: Some(small(prefetched)),
            needed: Some(small(needed)),
            ..info
        },
        None => AppInfo { verdict: VerdictCode::Measuring, ..info },
    }
}

fn with_effect(info: AppInfo, verdict: VerdictCode, effect: &Effect) -> AppInfo {
    AppInfo {
        verdict,
        milestone: milestone(effect.milestone),
        held_out: Some(small(effect.held_out)),
        prefetched: Some(small(effect.prefetched)),
        before: Some(effect.before),
        after: Some(effect.after),
        gain: Some(effect.gain.value),
        gain_low: Some(effect.gain.interval.low),
        gain_high: Some(effect.gain.interval.high),
        level: Some(effect.gain.interval.level),
        ..info
    }
}

/// A launch, and whether its timeline is kept.
pub(super) fn launch_info(launch: &Launch, timeline: bool) -> LaunchInfo {
    let time_to = |milestone| launch.time_to(milestone).map(|nanos| nanos.0);
    LaunchInfo {
        id: launch.id,
        app: launch.app.0.clone(),
        began: launch.began.timestamp_millis(),
        arm: arm(launch.arm),
        temperature: temperature(launch.temperature),
        cached: launch.cached,
        first_window: time_to(Milestone::FirstWindow),
        settled: time_to(Milestone::Settled),
        exit: time_to(Milestone::Exit),
        exclusions: launch.exclusions.iter().map(|&e| exclusion(e)).collect(),
        user: launch.usage.user.0,
        system: launch.usage.system.0,
        blocked: launch.usage.blocked.map(|nanos| nanos.0),
        major_faults: launch.usage.major_faults,
        read: launch.usage.read.map(|bytes| bytes.0),
        processes: launch.usage.processes,
        read_ahead: launch.read_ahead.map(|ahead| ahead.read.0),
        used: launch.read_ahead.and_then(|ahead| ahead.used).map(|bytes| bytes.0),
        first_read: launch.read_ahead.map(|ahead| ahead.first_read.0),
        version: launch.version,
        recorded: launch.recorded,
        tuned: launch.tuned,
        timeline,
    }
}

/// Something that was done.
pub(super) fn activity_info(activity: &Activity) -> ActivityInfo {
    ActivityInfo {
        id: activity.id,
        at: activity.at.timestamp_millis(),
        kind: ActivityCode::from(activity.kind),
        app: activity.app.as_ref().map(|app| app.0.clone()),
        launch: activity.launch,
        count: activity.count,
        detail: activity.detail.clone(),
    }
}

/// A choice; `None` if it is none that there is.
pub(super) fn policy_of(code: PolicyCode) -> Option<Policy> {
    match code {
        PolicyCode::Off => Some(Policy::Off),
        PolicyCode::AtLaunch => Some(Policy::AtLaunch),
        PolicyCode::Unknown => None,
    }
}

/// Milliseconds since 1970; 0 if it is not known.
pub(super) fn millis(at: Option<DateTime<Utc>>) -> i64 {
    at.map_or(0, |at| at.timestamp_millis())
}

fn policy(policy: Policy) -> PolicyCode {
    match policy {
        Policy::Off => PolicyCode::Off,
        Policy::AtLaunch => PolicyCode::AtLaunch,
    }
}

/// What a person chose is so at once, whatever the next launch will write.
fn state(record: &AppRecord) -> StateCode {
    if record.policy == Policy::Off {
        return StateCode::SwitchedOff;
    }
    match record.state {
        None | Some(AppState::Learning { .. } | AppState::SwitchedOff) => StateCode::Learning,
        Some(AppState::Prefetching) => StateCode::Prefetching,
        Some(AppState::WithoutGain { slower: false }) => StateCode::WithoutGain,
        Some(AppState::WithoutGain { slower: true }) => StateCode::Slower,
        Some(AppState::Untouchable) => StateCode::Untouchable,
    }
}

fn milestone(milestone: Milestone) -> MilestoneCode {
    match milestone {
        Milestone::FirstWindow => MilestoneCode::FirstWindow,
        Milestone::Exit => MilestoneCode::Exit,
        Milestone::Settled => MilestoneCode::Settled,
        _ => MilestoneCode::Unknown,
    }
}

fn arm(arm: Arm) -> ArmCode {
    match arm {
        Arm::Prefetched => ArmCode::Prefetched,
        Arm::HeldOut => ArmCode::HeldOut,
        Arm::Off => ArmCode::Off,
    }
}

fn temperature(temperature: Temperature) -> TemperatureCode {
    match temperature {
        Temperature::Cold => TemperatureCode::Cold,
        Temperature::Lukewarm => TemperatureCode::Lukewarm,
        Temperature::Warm => TemperatureCode::Warm,
        Temperature::Unknown => TemperatureCode::Unknown,
    }
}

fn exclusion(exclusion: Exclusion) -> ExclusionCode {
    match exclusion {
        Exclusion::Hot => ExclusionCode::Hot,
        Exclusion::Suspended => ExclusionCode::Suspended,
        Exclusion::Upgrading => ExclusionCode::Upgrading,
        Exclusion::ForeignLoad => ExclusionCode::ForeignLoad,
        Exclusion::Recorded => ExclusionCode::Recorded,
        Exclusion::EndedEarly => ExclusionCode::EndedEarly,
        Exclusion::NoMilestone => ExclusionCode::NoMilestone,
        Exclusion::ShortOfMemory => ExclusionCode::ShortOfMemory,
        Exclusion::Burst => ExclusionCode::Burst,
        Exclusion::Interrupted => ExclusionCode::Interrupted,
        _ => ExclusionCode::Unknown,
    }
}

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
