//! Times starts of real applications on simulated drives, so that anyone can repeat the project's figures:
//!
//! ```text
//! cargo bench -p headstart-daemon --bench launch -- --help
//! ```
//!
//! Needs root, and of Debian 12 or later `mmdebstrap`, `e2fsprogs`, `util-linux`, `xvfb`, `openbox` and `dbus`. It
//! works in a mount namespace of its own, on a copy of its image; nothing outlives it, even if it is killed.

mod apps;
mod bare;
mod compare;
#[path = "../drive/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "tests use the rest")]
mod drive;
mod host;
mod image;
mod mounts;
mod options;
mod process;
mod recording;
mod replayer;
mod report;
mod root;
mod screen;
mod session;
mod setup;
mod statistics;
mod tiny;
mod window;

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use apps::{App, Target};
use compare::{Request, compare};
use drive::parameters::Kind;
use drive::{Drive, calibrate};
use host::Host;
use options::Options;
use process::Interrupt;
use report::{Cell, Report};
use setup::Setup;
use statistics::Gain;

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.bench && std::env::args_os().len() == 1 {
        println!("Nothing is measured unless asked for: cargo bench --bench launch -- --help");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything that was asked for was measured, and holds.
fn run(options: &Options) -> Result<bool> {
    ensure!(rustix::process::geteuid().is_root(), "mounting and loop devices need root: try again with sudo");
    let interrupt = Interrupt::catch()?;
    if options.calibrate {
        return calibrate_all(&options.drives, &interrupt);
    }
    if let Some(kind) = options.serve {
        return serve(kind, options, &interrupt).map(|()| true);
    }
    mounts::enter_private()?;
    let _workplace = mounts::workplace()?;
    let plan = Plan::make(options, &interrupt)?;
    let report = measure(&plan, options, &interrupt);
    println!("\n{}", report.markdown());
    for path in report.save(&options.output)? {
        println!("Written: {}", path.display());
    }
    interrupt.check()?;
    Ok(report.complete())
}

/// What is measured on what.
struct Plan {
    store: File,
    drives: Vec<Kind>,
    targets: Vec<Target>,
    with_screen: bool,
    replayer: Option<PathBuf>,
    remarks: Vec<String>,
}

impl Plan {
    fn make(options: &Options, interrupt: &Interrupt) -> Result<Self> {
        let mut remarks = Vec::new();
        let replayer = if options.replayer { replayer::find() } else { None };
        if options.replayer && replayer.is_none() {
            remarks.push("Not compared with ureadahead: it is not installed.".to_owned());
        }
        if options.quick {
            let (store, target) = tiny::make(interrupt)?;
            remarks.push(
                "A quick check on a small image: it shows that everything works, not what is gained.".into(),
            );
            let (drives, targets) = (vec![Kind::Hdd], vec![target]);
            return Ok(Self { store, drives, targets, with_screen: false, replayer, remarks });
        }
        let image = image::obtain(options.rebuild_image, interrupt)?;
        let (store, in_memory) = image::working_copy(&image)?;
        if !in_memory {
            remarks.push(
                "The image does not fit into memory: the host's own drive adds to the times.".to_owned(),
            );
        }
        let targets = options.apps.iter().map(|app| app.target()).collect();
        Ok(Self { store, drives: options.drives.clone(), targets, with_screen: true, replayer, remarks })
    }
}

/// Measures cell by cell. What fails is noted and does not keep the rest from being measured; an interrupt ends it.
fn measure(plan: &Plan, options: &Options, interrupt: &Interrupt) -> Report {
    let mut report = Report {
        host: Host::look(),
        rounds: options.rounds,
        cold: options.cold.word().to_owned(),
        cells: Vec::new(),
        remarks: plan.remarks.clone(),
    };
    for &kind in &plan.drives {
        for target in &plan.targets {
            if interrupt.check().is_err() {
                report.remarks.push("Interrupted: what is missing was not measured.".to_owned());
                return report;
            }
            eprintln!("{} on {kind}", target.name);
            let mut cell = Cell::new(kind, Duration::ZERO, &target.name);
            if let Err(error) = measure_cell(&mut cell, plan, target, options, interrupt) {
                cell.failures.push(format!("{error:#}"));
            }
            report.cells.push(cell);
        }
    }
    report
}

fn measure_cell(
    cell: &mut Cell,
    plan: &Plan,
    target: &Target,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut setup = Setup::start(cell.drive, &plan.store, plan.with_screen, interrupt)?;
    cell.transport = setup.drive().transport().request;
    if options.cross_check {
        cell.bare = Some(bare::measure(&mut setup, target, options.rounds, interrupt)?);
    }
    if let Some(tool) = plan.replayer.as_deref() {
        cell.replayer = Some(replayer::measure(tool, &mut setup, target, options.rounds, interrupt)?);
    }
    let (rounds, cold) = (options.rounds, options.cold.word());
    let headstartctl = &options.headstartctl;
    let request = Request { headstartctl, rounds, cold, options: &options.try_options(cell.drive) };
    if !options.no_comparison {
        setup.make_cold()?;
        let comparison = compare(&setup, target, request, interrupt)?;
        cell.counters = Some(setup.drive().counters());
        cell.gain = Gain::of(&comparison);
        cell.recording = recording::RecordingCost::of(&comparison);
        cell.comparison = Some(comparison);
        ensure!(cell.gain.is_some(), "no start of some condition counts");
    }
    Ok(())
}

fn calibrate_all(drives: &[Kind], interrupt: &Interrupt) -> Result<bool> {
    const CAPACITY: u64 = 6 << 30;
    let mut all_hold = true;
    println!(
        "Mean time of a read, by the model and as measured. Holds within {:.0} % or {:?}.",
        100.0 * calibrate::TOLERANCE,
        calibrate::SLACK
    );
    for &kind in drives {
        let store = tempfile::tempfile_in("/dev/shm").context("no memory for the drive's store")?;
        store.set_len(CAPACITY)?;
        let drive = Drive::start(kind, store)?;
        println!(
            "{kind}: {}; on the way to the drive and back {:?}",
            kind.describe(),
            drive.transport().request
        );
        for pattern in calibrate::PATTERNS {
            interrupt.check()?;
            let check = calibrate::check(&drive, pattern)?;
            let (expected, measured, percent) = (check.expected, check.measured, 100.0 * check.error());
            let verdict = if check.holds() { "holds" } else { "DOES NOT HOLD" };
            println!("  {:<34}{expected:>12.1?}{measured:>12.1?}{percent:>+9.1} %  {verdict}", check.pattern);
            all_hold &= check.holds();
        }
    }
    Ok(all_hold)
}

/// In the caller's own mount namespace, so that what is mounted can be used from another terminal.
fn serve(kind: Kind, options: &Options, interrupt: &Interrupt) -> Result<()> {
    let _alone = image::lock("serve")?;
    mounts::clear_workplace()?;
    let _workplace = mounts::workplace()?;
    let image = image::obtain(options.rebuild_image, interrupt)?;
    let (store, _) = image::working_copy(&image)?;
    let setup = Setup::start(kind, &store, true, interrupt)?;
    println!("{kind} ({}) is {}", kind.describe(), setup.drive().device().display());
    println!("Its file system is mounted on {}", setup.root().path().display());
    println!("Counters, reset when written to: {}", setup.drive().counters_file().display());
    println!("An application is started in it like this:");
    let environment: Vec<_> =
        session::environment(setup.screen()).iter().map(|(name, value)| format!("{name}={value}")).collect();
    let command = App::Gedit.target().command.join(" ");
    println!("  env -i {} chroot {} {command}", environment.join(" "), setup.root().path().display());
    println!("Up until interrupted (Ctrl-C).");
    while interrupt.sleep(Duration::from_hours(1)).is_ok() {}
    Ok(())
}
