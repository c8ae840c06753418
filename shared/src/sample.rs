//! Invented comparisons, for tests, documentation pictures and the sample window. Every one says that it is a sample.

use chrono::{DateTime, Utc};

use crate::comparison::{Comparison, DriveSummary, FORMAT, Host, LeftOut, PrefetchAccount, TimedRun};
use crate::run::{AppId, ColdMethod, Condition, Milestone};
use crate::units::{Bytes, Nanos};

/// The remark that a sample carries.
pub const REMARK: &str = "Sample data: these figures are invented and were not measured.";

/// A comparison with the given times in milliseconds for cold, prefetched and warm starts; round by round.
#[must_use]
pub fn comparison(cold: &[u64], prefetched: &[u64], warm: &[u64]) -> Comparison {
    let arms = [(Condition::Cold, cold), (Condition::Prefetched, prefetched), (Condition::Warm, warm)];
    let rounds = arms.iter().map(|(_, times)| times.len()).max().unwrap_or(0);
    let mut runs = Vec::new();
    for round in 0..rounds {
        for (condition, times) in &arms {
            let Some(time) = times.get(round) else { continue };
            let read = if *condition == Condition::Cold { 126 << 20 } else { 9 << 20 };
            runs.push(TimedRun {
                round: u32::try_from(round + 1).unwrap_or(u32::MAX),
                condition: *condition,
                time: Nanos(time.saturating_mul(1_000_000)),
                read: Some(Bytes(if *condition == Condition::Warm { 0 } else { read })),
            });
        }
    }
    Comparison {
        format: FORMAT,
        version: "0.1.0".to_owned(),
        began: DateTime::<Utc>::from_timestamp(1_764_526_320, 0).unwrap_or_default(),
        app: AppId("libreoffice-writer".to_owned()),
        name: "LibreOffice Writer".to_owned(),
        command: vec!["libreoffice".to_owned(), "--writer".to_owned()],
        milestone: Milestone::FirstWindow,
        cold: ColdMethod::Evict,
        rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
        runs,
        recorded: Vec::new(),
        found_cold: None,
        left_out: Vec::new(),
        prefetch: PrefetchAccount {
            files: 413,
            ranges: 1290,
            planned: Bytes(117 << 20),
            metadata: Bytes(5 << 20),
            read: Bytes(117 << 20),
            used: Some(Bytes(109 << 20)),
            time: Some(Nanos(680_000_000)),
            learned_from: 3,
            lost_events: 0,
        },
        drives: vec![DriveSummary {
            name: "sda".to_owned(),
            class: "flash".to_owned(),
            model: Some("Sample SSD 500".to_owned()),
            scheduler: Some("mq-deadline".to_owned()),
            planned: Bytes(117 << 20),
        }],
        host: Host { kernel: "6.1.0".to_owned(), cpus: 4, memory: Bytes(8 << 30) },
        remarks: vec![REMARK.to_owned()],
    }
}

/// Five rounds with a clear gain.
#[must_use]
pub fn faster() -> Comparison {
    comparison(
        &[6310, 6612, 6402, 6388, 6455],
        &[3204, 3046, 3101, 3088, 3152],
        &[2602, 2615, 2588, 2640, 2597],
    )
}

/// Five rounds in which reading ahead changes nothing.
#[must_use]
pub fn no_gain() -> Comparison {
    comparison(&[812, 835, 799, 841, 820], &[808, 844, 815, 822, 803], &[690, 702, 688, 711, 695])
}

/// A clear loss, an outlier, a start left out, lost events and little use.
#[must_use]
pub fn troubled() -> Comparison {
    let mut sample = comparison(&[62, 64, 61, 63, 62], &[71, 74, 70, 72, 190], &[63, 62, 64, 65, 66]);
    sample.rounds = 6;
    sample.prefetch.used = Some(Bytes(23 << 20));
    sample.prefetch.lost_events = 12;
    let reason = "the start ended at once with status 1".to_owned();
    sample.left_out.push(LeftOut { round: 6, condition: Condition::Cold, reason });
    sample
}
