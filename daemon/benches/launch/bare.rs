//! Cold and warm starts timed without any part of Headstart, to hold its own figures against.
//!
//! Cold is made in another way too: the file system is unmounted and mounted again, so what is cached of it is gone
//! and the rest of the machine is left alone.

use std::time::{Duration, Instant};

use anyhow::Result;
use headstart_shared::units::Nanos;
use serde::Serialize;

use crate::apps::Target;
use crate::drive::counters::Counters;
use crate::process::Interrupt;
use crate::session::time_start;
use crate::setup::Setup;

/// The starts of one application on one drive.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Bare {
    /// Starts with nothing of the drive cached.
    pub cold: Vec<ColdStart>,
    /// Starts right after another one.
    pub warm: Vec<Nanos>,
}

/// A start with nothing cached, and what the drive did until the application was ended.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ColdStart {
    /// Until the start was over.
    pub time: Nanos,
    /// The drive's counters.
    pub drive: Counters,
    /// The time in which they were counted.
    pub counted: Nanos,
}

impl ColdStart {
    /// The part of one processor that the drive itself took.
    #[expect(clippy::cast_precision_loss, reason = "a share of a second in nanoseconds")]
    pub(crate) fn drive_share(&self) -> f64 {
        self.drive.processor.0 as f64 / self.counted.0.max(1) as f64
    }
}

/// Times `rounds` cold starts, each followed by a warm one.
pub(crate) fn measure(
    setup: &mut Setup,
    target: &Target,
    rounds: u32,
    interrupt: &Interrupt,
) -> Result<Bare> {
    let mut bare = Bare::default();
    for _ in 0..rounds {
        setup.make_cold()?;
        let began = Instant::now();
        let cold = start(setup, target, interrupt)?;
        let drive = setup.drive().counters();
        bare.cold.push(ColdStart { time: cold.into(), drive, counted: began.elapsed().into() });
        bare.warm.push(start(setup, target, interrupt)?.into());
    }
    Ok(bare)
}

fn start(setup: &Setup, target: &Target, interrupt: &Interrupt) -> Result<Duration> {
    time_start(setup.screen(), setup.root(), target, interrupt, || Ok(()))
}
