//! From start to end: configuration, history, launches, bus; then signals and the watchdog.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chrono::Utc;
use headstart_daemon::roots::Roots;
use headstart_daemon::service::bus::{self, Bus, Notices};
use headstart_daemon::service::config::{Config, ConfigError};
use headstart_daemon::service::launches::Inputs;
use headstart_daemon::service::log::{Level, log};
use headstart_daemon::service::mailbox::{Sender, mailbox};
use headstart_daemon::service::messages::{Request, SharedFigures};
use headstart_daemon::store::{Activity, Opened, Store};
use headstart_shared::bus::ActivityCode;
use sd_notify::NotifyState;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot::Receiver;

use crate::Args;
use crate::launches::{self, Ended};
use crate::watchdog::{self, Alive};

/// How long the launches may take to put away what goes on.
const FAREWELL: Duration = Duration::from_secs(5);

/// What was begun.
struct Service {
    bus: bus::Inputs,
    /// Done before anybody could be told.
    done: Vec<Activity>,
    ended: Receiver<Ended>,
    launches: Sender,
    alive: Arc<Alive>,
}

/// Serves until it is told to end.
pub(crate) fn serve(args: &Args) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .thread_keep_alive(Duration::from_secs(1))
        .build()
        .context("cannot wait for anything; see the limits of open files and threads")?;
    // Before anything else: a signal that comes early must not end us half-way.
    let mut signals = runtime.block_on(async { Signals::new() }).context("cannot receive signals")?;
    let mut service = begin(args)?;
    let outcome = runtime.block_on(attend(
        args,
        service.bus,
        service.done,
        &mut service.ended,
        &service.alive,
        &mut signals,
    ));
    tell_systemd(&[NotifyState::Stopping]);
    farewell(&runtime, &service.launches, &mut service.ended);
    // What still examines the kernel is not waited for.
    runtime.shutdown_background();
    outcome
}

/// Opens what is needed and starts the launches.
fn begin(args: &Args) -> anyhow::Result<Service> {
    let mut done = vec![activity(ActivityCode::Started, None)];
    let config = Arc::new(Config::load(&args.config).unwrap_or_else(|error| refused(&error, &mut done)));
    let Opened { store, set_aside } = Store::open(&args.state_dir)?;
    if let Some(place) = set_aside {
        log(Level::Warning, format_args!("the history was damaged and is now {}", place.display()));
        done.push(activity(ActivityCode::HistorySetAside, Some(place.display().to_string())));
    }
    let (launches, mailbox) = mailbox().context("cannot make a mailbox; see the limit of open files")?;
    let (notices, figures, alive) = (Notices::new(), SharedFigures::default(), Arc::new(Alive::new()));
    let heart = Arc::clone(&alive);
    let inputs = Inputs {
        roots: Roots::default(),
        state_dir: args.state_dir.clone(),
        runtime_dir: args.runtime_dir.clone(),
        config: Arc::clone(&config),
        mailbox,
        notices: Box::new(notices.tell()),
        alive: Box::new(move || heart.now()),
        figures: Arc::clone(&figures),
    };
    let ended = launches::start(inputs).context("cannot start a thread; see the limit of processes")?;
    let bus = bus::Inputs {
        roots: Roots::default(),
        store,
        config,
        config_path: args.config.clone(),
        launches: launches.clone(),
        notices,
        figures,
    };
    Ok(Service { bus, done, ended, launches, alive })
}

/// There is no configuration from before to keep.
fn refused(error: &ConfigError, done: &mut Vec<Activity>) -> Config {
    log(Level::Error, format_args!("{error}; every setting has its default until then"));
    done.push(activity(ActivityCode::ConfigRefused, Some(error.to_string())));
    Config::default()
}

/// Takes the name and attends to signals, the watchdog and the other half.
async fn attend(
    args: &Args,
    inputs: bus::Inputs,
    done: Vec<Activity>,
    ended: &mut Receiver<Ended>,
    alive: &Alive,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    let bus = Bus::connect(args.bus.as_deref(), inputs).await?;
    for activity in done {
        bus.note(None, activity);
    }
    bus.take_name().await?;
    tell_systemd(&[NotifyState::Ready]);
    let mut ticks = watchdog::interval().map(tokio::time::interval);
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => return Ok(()),
            _ = signals.interrupt.recv() => return Ok(()),
            _ = signals.reload.recv() => reload(&bus),
            () = tick(&mut ticks) => {
                if alive.lately() {
                    tell_systemd(&[NotifyState::Watchdog]);
                } else {
                    log(Level::Error, "the launches do not answer; systemd is going to start the service anew");
                }
            }
            () = bus.closed() => bail!("the bus is gone; without it nobody can ask for anything"),
            how = &mut *ended => return how.context("the launches ended without a word")?.context("the launches ended"),
        }
    }
}

async fn tick(ticks: &mut Option<tokio::time::Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => pending().await,
    }
}

fn reload(bus: &Bus) {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell_systemd(&[NotifyState::Reloading, now]);
    }
    if bus.reload().is_ok() {
        log(Level::Info, "the configuration was read again");
    }
    tell_systemd(&[NotifyState::Ready]);
}

/// Has the launches put away what goes on, and waits for that, but not for ever.
fn farewell(runtime: &Runtime, launches: &Sender, ended: &mut Receiver<Ended>) {
    // Once it was taken out, or if nobody is there to be told, they have ended.
    if ended.is_terminated() || !launches.send(Request::Stop) {
        return;
    }
    match runtime.block_on(async { tokio::time::timeout(FAREWELL, ended).await }) {
        Ok(Ok(Err(error))) => log(Level::Error, &error),
        Ok(_) => {}
        Err(_) => log(Level::Warning, "the launches take too long to end; what goes on is left unfinished"),
    }
}

fn activity(kind: ActivityCode, detail: Option<String>) -> Activity {
    Activity { id: 0, at: Utc::now(), kind: kind.into(), app: None, launch: None, count: None, detail }
}

/// Outside of systemd nobody listens, which is no failure.
fn tell_systemd(state: &[NotifyState]) {
    let _ = sd_notify::notify(state);
}

struct Signals {
    reload: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            reload: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}
