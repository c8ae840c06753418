//! The service's own state and cost.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use headstart_shared::bus::{BusError, StatusInfo};
use rustix::time::{ClockId, clock_gettime};

use super::callers::lock;
use super::state::State;
use crate::doctor;
use crate::recording::Backend;
use crate::roots::Roots;

/// How long what was found of the kernel is not looked for again: looking has it trace itself.
const FOUND_LASTS: Duration = Duration::from_secs(10);

/// The version of this program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What was last found of the kernel. One looks at a time.
#[derive(Debug, Default)]
pub(super) struct Doctor(tokio::sync::Mutex<Option<(Instant, Arc<str>)>>);

impl Doctor {
    /// The findings as JSON, those of `headstartctl doctor --json`.
    pub(super) async fn examine(&self, roots: &Roots) -> Result<String, BusError> {
        let mut last = self.0.lock().await;
        if let Some((_, json)) = last.as_ref().filter(|(at, _)| at.elapsed() < FOUND_LASTS) {
            return Ok(json.to_string());
        }
        let roots = roots.clone();
        let failed = |what: String| BusError::Failed(what);
        let look = move || serde_json::to_string_pretty(&doctor::examine(&roots));
        let json = tokio::task::spawn_blocking(look).await.map_err(|e| failed(e.to_string()))?;
        let json: Arc<str> = json.map_err(|e| failed(e.to_string()))?.into();
        *last = Some((Instant::now(), Arc::clone(&json)));
        Ok(json.to_string())
    }
}

/// What it is and costs now.
pub(super) fn status(state: &State) -> Result<StatusInfo, BusError> {
    let (history, read) =
        state.store(|store| Ok((store.used()?, store.read_on(Utc::now().date_naive())?)))?;
    let figures = lock(&state.figures).clone();
    let pause = *lock(&state.pause);
    Ok(StatusInfo {
        version: VERSION.to_owned(),
        started: state.started.timestamp_millis(),
        pause: pause.reason,
        paused_until: pause.until.map(|until| until.timestamp_millis()),
        watched: figures.watched,
        prefetching: figures.prefetching,
        learning: figures.learning,
        agents: lock(&state.clients).agents(),
        backend: figures.backend.map(|backend| word(backend).to_owned()),
        cpu: cpu(),
        resident: resident(&state.roots),
        history: history.0,
        read_today: read.0,
        daily_budget: state.config().daily_budget.map(|bytes| bytes.0),
        lost: figures.lost,
        starts: figures.starts.starts(),
        followed: figures.starts.watched,
        parts: figures.starts.parts,
        again: figures.starts.again,
        others: figures.starts.others,
        unwatched: figures.starts.unwatched,
    })
}

fn word(backend: Backend) -> &'static str {
    match backend {
        Backend::Touched => "touched",
        Backend::Added => "added",
        Backend::Resident => "resident",
    }
}

/// Nanoseconds of processor time that this process has had.
fn cpu() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Bytes of this process in memory; 0 if procfs does not say.
fn resident(roots: &Roots) -> u64 {
    let pages = fs::read_to_string(roots.proc.join("self/statm"))
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cost_is_known() {
        let before = cpu();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(5) {}
        assert!(cpu() > before);
        assert!(resident(&Roots::default()) > 1 << 20);
        let nowhere = Roots { proc: "/nonexistent".into(), ..Roots::default() };
        assert_eq!(resident(&nowhere), 0);
    }
}
