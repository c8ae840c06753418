//! The figures, for people (a table in Markdown, which also reads well in a terminal) and for programs (JSON).

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use headstart_shared::comparison::Comparison;
use headstart_shared::units::Nanos;
use serde::Serialize;

use crate::bare::Bare;
use crate::drive::counters::Counters;
use crate::drive::parameters::Kind;
use crate::host::Host;
use crate::recording::RecordingCost;
use crate::statistics::{Gain, Spread};

/// All figures of one run of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// The machine and the moment.
    pub host: Host,
    /// Rounds of each comparison.
    pub rounds: u32,
    /// How the caches were emptied.
    pub cold: String,
    /// One entry for each application on each drive.
    pub cells: Vec<Cell>,
    /// What a reader must know to judge the figures.
    pub remarks: Vec<String>,
}

/// One application on one drive.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell {
    /// The drive.
    pub drive: Kind,
    /// How long a request of one page is on its way to the simulated drive and back.
    pub transport: Duration,
    /// The application.
    pub app: String,
    /// What `headstartctl try` observed.
    pub comparison: Option<Comparison>,
    /// What it comes to.
    pub gain: Option<Gain>,
    /// What the drive did in all of the comparison, learning included.
    pub counters: Option<Counters>,
    /// The same starts, timed without Headstart.
    pub bare: Option<Bare>,
    /// Cold starts with ureadahead in Headstart's place.
    pub replayer: Option<Vec<Nanos>>,
    /// What recording costs.
    pub recording: Option<RecordingCost>,
    /// What went wrong.
    pub failures: Vec<String>,
}

impl Cell {
    /// An application on a drive of which nothing is known yet.
    pub(crate) fn new(drive: Kind, transport: Duration, app: &str) -> Self {
        Self {
            drive,
            transport,
            app: app.to_owned(),
            comparison: None,
            gain: None,
            counters: None,
            bare: None,
            replayer: None,
            recording: None,
            failures: Vec::new(),
        }
    }
}

impl Report {
    /// Whether everything that was asked for was measured.
    pub(crate) fn complete(&self) -> bool {
        self.cells.iter().all(|cell| cell.failures.is_empty())
    }

    /// Writes `launch.json` and `launch.md` into a directory.
    pub(crate) fn save(&self, directory: &Path) -> Result<[PathBuf; 2]> {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let write = |name: &str, content: &str| {
            let path = directory.join(name);
            std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
            Ok::<_, anyhow::Error>(path)
        };
        Ok([
            write("launch.json", &serde_json::to_string_pretty(self)?)?,
            write("launch.md", &self.markdown())?,
        ])
    }

    /// The figures as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut sections = vec![
            self.comparisons(),
            self.bare_starts(),
            self.replays(),
            self.recording_costs(),
            self.conditions(),
        ];
        sections.retain(|section| !section.is_empty());
        sections.join("\n")
    }

    fn comparisons(&self) -> String {
        let row = |cell: &Cell| {
            let (gain, account) = (cell.gain?, &cell.comparison.as_ref()?.prefetch);
            let used = account.used.map_or_else(|| "–".to_owned(), |used| percent(used.0, account.read.0));
            Some([
                cell.drive.to_string(),
                cell.app.clone(),
                gain.cold.to_string(),
                gain.prefetched.to_string(),
                gain.warm.to_string(),
                format!("{:.2}", gain.ratio),
                gain.gap_closed.map_or_else(|| "–".to_owned(), |part| format!("{:.0} %", 100.0 * part)),
                (account.read + account.metadata).to_string(),
                used,
            ])
        };
        table(
            [
                "drive",
                "application",
                "cold",
                "prefetched",
                "warm",
                "ratio",
                "gap closed",
                "read ahead",
                "used",
            ],
            self.cells.iter().filter_map(row),
        )
    }

    fn bare_starts(&self) -> String {
        let row = |cell: &Cell| {
            let bare = cell.bare.as_ref()?;
            let middle = bare.cold.get(bare.cold.len() / 2)?;
            let share = Spread::of_values(bare.cold.iter().map(crate::bare::ColdStart::drive_share))?;
            let (cold, warm) = (
                Spread::of(bare.cold.iter().map(|start| start.time))?,
                Spread::of(bare.warm.iter().copied())?,
            );
            let agreement = |gain: Gain| {
                format!("{:.2} / {:.2}", gain.cold.median / cold.median, gain.warm.median / warm.median)
            };
            Some([
                cell.drive.to_string(),
                cell.app.clone(),
                cold.to_string(),
                warm.to_string(),
                cell.gain.map_or_else(|| "–".to_owned(), agreement),
                middle.drive.reads.to_string(),
                middle.drive.read_bytes.to_string(),
                middle.drive.seeks.to_string(),
                middle.drive.busy.to_string(),
                format!("{} µs", middle.drive.mean_lateness().0 / 1000),
                format!("{:.1} %", 100.0 * share.median),
            ])
        };
        table(
            [
                "drive",
                "application",
                "cold by remounting",
                "warm",
                "try's cold and warm / these",
                "reads",
                "bytes",
                "seeks",
                "drive busy",
                "answers late by",
                "drive's processor",
            ],
            self.cells.iter().filter_map(row),
        )
    }

    fn replays(&self) -> String {
        let row = |cell: &Cell| {
            let replayed = Spread::of(cell.replayer.as_ref()?.iter().copied())?;
            let cold =
                cell.bare.as_ref().and_then(|bare| Spread::of(bare.cold.iter().map(|start| start.time)));
            let cold = cold.or(cell.gain.map(|gain| gain.cold))?;
            Some([
                cell.drive.to_string(),
                cell.app.clone(),
                cold.to_string(),
                replayed.to_string(),
                format!("{:.2}", replayed.median / cold.median),
            ])
        };
        table(["drive", "application", "cold", "with ureadahead", "ratio"], self.cells.iter().filter_map(row))
    }

    fn recording_costs(&self) -> String {
        let row = |cell: &Cell| {
            let cost = cell.recording.as_ref()?;
            let Spread { median, least, greatest } = cost.percent;
            Some([
                cell.drive.to_string(),
                cell.app.clone(),
                cost.unrecorded.to_string(),
                cost.recorded.to_string(),
                format!("{median:+.1} % ({least:+.1} to {greatest:+.1})"),
            ])
        };
        table(
            ["drive", "application", "cold, not recorded", "cold, recorded", "cost"],
            self.cells.iter().filter_map(row),
        )
    }

    fn conditions(&self) -> String {
        let Host { began, version, kernel, processor, processors, memory, system, load } = &self.host;
        let mut text = format!(
            "Seconds to the end of the start; median (least–greatest) of {} rounds; where it is not said otherwise, \
             cold by --cold={}. Headstart {version}, \
             {}, {system}, Linux {kernel}, {processors} × {processor}, {memory}; load before: {load:.1}.\n",
            self.rounds,
            self.cold,
            began.format("%-d %B %Y"),
        );
        let mut kinds: Vec<_> = self.cells.iter().map(|cell| cell.drive).collect();
        kinds.dedup();
        for kind in kinds {
            let _ = writeln!(text, "- {kind}: {}", kind.describe());
        }
        for failure in self.cells.iter().flat_map(|c| c.failures.iter().map(move |f| (c, f))) {
            let (Cell { drive, app, .. }, failure) = failure;
            let _ = writeln!(text, "- Not measured: {app} on {drive}: {failure}");
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "- {remark}");
        }
        text
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown without decimals")]
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "–".to_owned() } else { format!("{:.0} %", 100.0 * part as f64 / whole as f64) }
}

/// A table, or nothing if it has no rows.
fn table<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let rows: Vec<_> = std::iter::once(header.map(str::to_owned)).chain(rows).collect();
    if rows.len() == 1 {
        return String::new();
    }
    let widths: [usize; N] =
        std::array::from_fn(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(text, "| {cell:<width$} ");
        }
        text.push_str("|\n");
        if number == 0 {
            for width in widths {
                let _ = write!(text, "|{}", "-".repeat(width + 2));
            }
            text.push_str("|\n");
        }
    }
    text
}
