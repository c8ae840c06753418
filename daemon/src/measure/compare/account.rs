//! What rounds and recordings come to in figures and words.

use headstart_shared::comparison::{Host, PrefetchAccount, TimedRun};
use headstart_shared::run::{ColdMethod, Condition};
use headstart_shared::stats::{median, quantile};
use headstart_shared::units::{Bytes, Nanos, Pages};

use super::work::Rounds;
use crate::measure::prefetch::Prefetch;
use crate::path_text;
use crate::plan::{Plan, Step};
use crate::profile::Profile;
use crate::recording::Recording;
use crate::replay;
use crate::replay::guard::Memory;
use crate::roots::Roots;

/// What the prefetched starts read ahead.
pub(super) fn account(prefetch: &Prefetch, rounds: &Rounds, profile: &Profile) -> PrefetchAccount {
    let of = |value: fn(&replay::Account) -> u64| {
        #[expect(clippy::cast_precision_loss, reason = "bytes and nanoseconds below 2^52")]
        let values: Vec<f64> = rounds.replays.iter().map(|replay| value(replay) as f64).collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was a u64")]
        median(&values).map(|value| value as u64)
    };
    let reads = |plan: &Plan| plan.steps.iter().filter(|step| matches!(step, Step::Read { .. })).count();
    PrefetchAccount {
        files: prefetch.plans.iter().map(|plan| plan.files.len() as u64).sum(),
        ranges: prefetch.plans.iter().map(|plan| reads(plan) as u64).sum(),
        planned: prefetch.data(),
        metadata: prefetch.metadata(),
        read: Bytes(of(|replay| replay.data.brought_in().0).unwrap_or_default()),
        used: None,
        time: of(|replay| replay.time.unwrap_or_default().0).map(Nanos),
        learned_from: profile.runs,
        lost_events: 0,
    }
}

/// The machine.
pub(super) fn host(roots: &Roots) -> Host {
    let uname = rustix::system::uname();
    let cpus = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    Host { kernel: uname.release().to_string_lossy().into_owned(), cpus, memory: Memory::now(roots).total }
}

/// Bytes of file content that a run touched.
pub(super) fn touched(recording: &Recording) -> Bytes {
    let pages =
        recording.files.iter().flat_map(|file| &file.touches).map(|touch| Pages(touch.pages.len())).sum();
    Pages::bytes(pages, recording.page_size)
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
pub(super) fn share(part: Bytes, whole: Bytes) -> f64 {
    if whole == Bytes(0) { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of it"
)]
pub(super) fn scale(bytes: Bytes, share: f64) -> Bytes {
    Bytes((bytes.0 as f64 * share.clamp(0.0, 1.0)) as u64)
}

/// What a reader needs to know to judge the figures.
pub(super) fn remarks(
    cold: ColdMethod,
    found_cold: Option<Nanos>,
    prefetch: &Prefetch,
    rounds: &Rounds,
) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(at) = found_cold {
        remarks.push(format!(
            "The very first start took {at} and found nearly nothing in memory: that is a true cold start, \
             and no way of emptying caches quite makes one."
        ));
    }
    if cold == ColdMethod::Evict
        && let Some(left) = median(&rounds.left_cached).filter(|left| *left >= 0.05)
    {
        remarks.push(format!(
            "{:.0} % of the app's files stayed in memory when its caches were emptied, because other programs use \
             them, as in daily use. --cold=drop empties more.",
            left * 100.0
        ));
    }
    remarks.extend(cost_of_recording(rounds));
    let failures = rounds.replays.iter().flat_map(|replay| &replay.remarks).chain(&prefetch.remarks);
    for remark in failures {
        if !remarks.contains(remark) {
            remarks.push(remark.clone());
        }
    }
    if let Some(stopped) = rounds.replays.iter().find_map(|replay| replay.stopped) {
        let cancelled = stopped == replay::Stopped::Cancelled;
        let text = if cancelled {
            "A replay was still reading when its start was over and the program was ended.".into()
        } else {
            format!("A replay stopped before its end: {stopped}.")
        };
        remarks.push(text);
    }
    if let Some([first, others @ ..]) =
        rounds.replays.iter().map(|replay| &replay.skipped[..]).find(|all| !all.is_empty())
    {
        let more = match others.len() {
            0 => String::new(),
            1 => " One more file was skipped.".into(),
            more => format!(" {more} more files were skipped."),
        };
        remarks.push(format!(
            "Not everything could be read ahead: {} {}.{more}",
            path_text::to_text(&first.path),
            first.why
        ));
    }
    remarks
}

/// How much longer a cold start takes while it is recorded, if that was timed: the median over the rounds.
fn cost_of_recording(rounds: &Rounds) -> Option<String> {
    let longer: Vec<f64> = rounds
        .recorded
        .iter()
        .filter_map(|with| {
            let same = |run: &&TimedRun| run.round == with.round && run.condition == Condition::Cold;
            let without = rounds.runs.iter().find(same)?;
            Some(100.0 * (with.time.as_secs_f64() / without.time.as_secs_f64() - 1.0))
        })
        .collect();
    let (least, most) = (quantile(&longer, 0.0)?, quantile(&longer, 1.0)?);
    let middle = median(&longer)?;
    Some(format!(
        "Recording a cold start made it {middle:.1} % longer (median of {} pairs; {least:.1} to {most:.1} %).",
        longer.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Class;
    use crate::opening::Refusal;
    use crate::plan::{PlannedFile, Target, Tuning, used};
    use crate::recording::{Backend, FileIdentity, PageRange, RecordedFile, Touch};
    use crate::replay::{Skipped, Stopped, Traffic};

    const PAGE: u64 = 4096;

    fn identity() -> FileIdentity {
        FileIdentity { filesystem: 1, inode: 2, size: 1 << 20, mtime: 3 }
    }

    fn range(start: u64, end: u64) -> PageRange {
        PageRange { start, end }
    }

    fn read(file: u32, start: u64, end: u64) -> Step {
        Step::Read { file, pages: range(start, end), at: Nanos(0) }
    }

    fn plan(files: &[&str], steps: Vec<Step>) -> Plan {
        let target = Target { name: "sda".into(), class: Class::Virtual, max_readahead: Bytes(1 << 20) };
        Plan {
            page_size: PAGE,
            tuning: Tuning::for_target(&target),
            target,
            files: files.iter().map(|path| PlannedFile { path: path.into(), identity: identity() }).collect(),
            devices: Vec::new(),
            steps,
            left_out: Bytes(0),
        }
    }

    fn recording(files: &[(&str, &[PageRange])]) -> Recording {
        let file = |(path, ranges): &(&str, &[PageRange])| RecordedFile {
            path: path.into(),
            identity: identity(),
            touches: ranges.iter().map(|pages| Touch { pages: *pages, at: Nanos(0) }).collect(),
        };
        Recording {
            page_size: PAGE,
            backend: Backend::Touched,
            prefetched: true,
            files: files.iter().map(file).collect(),
            devices: Vec::new(),
            lost_events: 0,
            unnamed_pages: 0,
        }
    }

    fn replayed(read: u64, time: u64) -> replay::Account {
        let data = Traffic { requested: Bytes(read + 10), already_cached: Bytes(7), failed: Bytes(3) };
        replay::Account { data, time: Some(Nanos(time)), ..replay::Account::default() }
    }

    fn rounds(replays: Vec<replay::Account>) -> Rounds {
        Rounds { replays, ..Rounds::default() }
    }

    fn said(cold: ColdMethod, rounds: &Rounds) -> Vec<String> {
        remarks(cold, None, &Prefetch::default(), rounds)
    }

    #[test]
    fn used_is_what_was_both_planned_and_touched() {
        let steps = vec![Step::Open { file: 0 }, read(0, 0, 10), read(0, 20, 30), read(1, 0, 4)];
        let plans = [plan(&["/a", "/b"], steps), plan(&["/c"], vec![read(0, 0, 2), read(7, 0, 2)])];
        let seen = recording(&[
            ("/a", &[range(5, 8), range(9, 22)]),
            ("/c", &[range(0, 100)]),
            ("/d", &[range(0, 9)]),
        ]);
        // Of /a 5..8, 9..10 and 20..22, of /b nothing, of /c all; no file has the number 7.
        assert_eq!(used(&plans, &seen), Bytes((3 + 1 + 2 + 2) * PAGE));
        assert_eq!(used(&plans, &recording(&[])), Bytes(0));
        assert_eq!(touched(&seen), Bytes((3 + 13 + 100 + 9) * PAGE));
    }

    #[test]
    fn the_account_is_of_all_plans_and_the_median_replay() {
        let metadata = Step::Metadata { device: 0, pages: range(0, 3) };
        let plans = vec![
            plan(&["/a", "/b"], vec![metadata, Step::Open { file: 0 }, read(0, 0, 10), read(1, 0, 5)]),
            plan(&["/c"], vec![read(0, 0, 1)]),
        ];
        let prefetch = Prefetch { plans, ..Prefetch::default() };
        let profile = Profile {
            app: headstart_shared::run::AppId("app".into()),
            page_size: PAGE,
            runs: 4,
            files: Vec::new(),
            devices: Vec::new(),
        };
        let three = rounds(vec![replayed(900, 30), replayed(100, 10), replayed(200, 20)]);
        let account = account(&prefetch, &three, &profile);
        assert_eq!((account.files, account.ranges, account.learned_from), (3, 3, 4));
        assert_eq!((account.planned, account.metadata), (Bytes(16 * PAGE), Bytes(3 * PAGE)));
        assert_eq!((account.read, account.time, account.used), (Bytes(200), Some(Nanos(20)), None));
        let none = super::account(&prefetch, &Rounds::default(), &profile);
        assert_eq!((none.read, none.time), (Bytes(0), None));
    }

    #[test]
    fn shares_of_nothing_and_of_more_than_all_are_no_nonsense() {
        assert!(share(Bytes(5), Bytes(0)).abs() < f64::EPSILON);
        assert!((share(Bytes(1), Bytes(4)) - 0.25).abs() < f64::EPSILON);
        assert_eq!((scale(Bytes(100), 0.25), scale(Bytes(100), 1.5)), (Bytes(25), Bytes(100)));
    }

    #[test]
    fn nothing_is_remarked_where_all_went_well() {
        assert_eq!(said(ColdMethod::Evict, &rounds(vec![replayed(100, 10)])), Vec::<String>::new());
    }

    #[test]
    fn what_stays_in_memory_is_told_only_where_it_can_be_helped() {
        let warm = Rounds { left_cached: vec![0.01, 0.2, 0.3], ..Rounds::default() };
        let [remark] = &said(ColdMethod::Evict, &warm)[..] else { panic!("one remark") };
        assert!(remark.starts_with("20 %") && remark.contains("--cold=drop"), "{remark}");
        assert!(said(ColdMethod::Drop, &warm).is_empty());
        let gone = Rounds { left_cached: vec![0.01, 0.02, 0.9], ..Rounds::default() };
        assert!(said(ColdMethod::Evict, &gone).is_empty(), "the median counts");
    }

    #[test]
    fn a_true_cold_start_is_told_with_its_time() {
        let all =
            remarks(ColdMethod::Drop, Some(Nanos(2_000_000_000)), &Prefetch::default(), &Rounds::default());
        let [remark] = &all[..] else { panic!("one remark: {all:?}") };
        assert!(remark.contains(&Nanos(2_000_000_000).to_string()), "{remark}");
    }

    #[test]
    fn the_same_trouble_in_many_replays_is_told_once() {
        let skipped = |path: &str| Skipped { path: path.into(), why: Refusal::Changed };
        let mut trouble = replayed(100, 10);
        trouble.remarks = vec!["slow".into()];
        trouble.stopped = Some(Stopped::MemoryLow);
        trouble.skipped = vec![skipped("/a\nb"), skipped("/c")];
        let all = said(ColdMethod::Evict, &rounds(vec![replayed(1, 1), trouble.clone(), trouble.clone()]));
        assert_eq!(all.len(), 3, "{all:?}");
        assert_eq!(all[0], "slow");
        assert!(all[1].contains("memory became short"), "{all:?}");
        assert!(all[2].contains("/a\\x0ab") && all[2].ends_with("One more file was skipped."), "{all:?}");
        trouble.stopped = Some(Stopped::Cancelled);
        trouble.skipped.truncate(1);
        let all = said(ColdMethod::Evict, &rounds(vec![trouble]));
        assert!(all[1].contains("still reading") && !all[2].contains("more"), "{all:?}");
    }

    #[test]
    fn what_recording_costs_is_told_pair_by_pair() {
        let run = |round, seconds: u64| TimedRun {
            round,
            condition: Condition::Cold,
            time: Nanos(seconds * 1_000_000_000),
            read: None,
        };
        let rounds = Rounds {
            runs: vec![run(1, 100), run(2, 200), run(3, 100)],
            // The fourth has no partner and does not count.
            recorded: vec![run(1, 102), run(2, 200), run(3, 110), run(4, 900)],
            ..Rounds::default()
        };
        let told = cost_of_recording(&rounds).unwrap();
        assert_eq!(told, "Recording a cold start made it 2.0 % longer (median of 3 pairs; 0.0 to 10.0 %).");
        assert_eq!(cost_of_recording(&Rounds::default()), None);
    }
}
