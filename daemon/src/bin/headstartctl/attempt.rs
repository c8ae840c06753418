//! `try`: one comparison, in front of the person who asked for it.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use headstart_daemon::measure::compare::{Compared, Options, Until, compare};
use headstart_daemon::measure::prefetch::Choices;
use headstart_daemon::measure::subject::{Request, Subject};
use headstart_daemon::store::Store;
use headstart_daemon::trace::backend;
use headstart_daemon::watch::session::Session;
use headstart_shared::chart::{self, Theme};
use headstart_shared::comparison::Comparison;
use headstart_shared::run::{AppId, ColdMethod, Milestone};
use headstart_shared::text::English;
use rustix::process::geteuid;
use signal_hook::flag;

use crate::args::{ColdArg, STDOUT, Try, UntilArg};
use crate::files::{hand_over, loaded, store, tell, write};
use crate::progress::Bar;
use crate::{Context, INTERRUPTED, is_broken_pipe};

/// Runs the comparison and prints it.
pub(crate) fn run(options: &Try, context: &Context) -> anyhow::Result<ExitCode> {
    let signals = Signals::listen()?;
    let request = match (&options.app, options.command.as_slice()) {
        (Some(app), _) => Request::App(app.clone()),
        (None, []) => Request::Any,
        (None, command) => Request::Command(command.to_vec()),
    };
    // The program's session: what is set for it does not move our own files.
    let mut session = context.session.clone();
    session.env.extend(options.env.iter().cloned());
    let mut subject = Subject::find(&request, &session)?;
    if let Some(class) = &options.window_class {
        subject.hints = subject.hints.or_class(class);
    }
    if let Some(id) = &options.id {
        subject.app = AppId(id.clone());
    }
    need_root()?;
    let mut store = store(context)?;
    let compared = measure(options, &subject, &session, &mut store, context, &signals)?;
    let mut failures = Failures::default();
    failures.take(keep(&compared, &mut store, context));
    if compared.comparison.runs.is_empty() {
        tell(if compared.profile.runs > 0 {
            "stopped before anything was timed; what was learned is kept"
        } else {
            "stopped before anything was timed; nothing is left behind"
        });
    } else {
        publish(options, &compared.comparison, context, &mut failures);
        if compared.cancelled {
            tell("stopped early; the figures are those of the starts that were finished");
        }
    }
    Ok(match (compared.cancelled, failures.any) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    })
}

/// What went wrong after the measurement: told at once, and nothing else is kept from being done.
#[derive(Default)]
struct Failures {
    any: bool,
}

impl Failures {
    fn take(&mut self, result: anyhow::Result<()>) {
        if let Err(error) = result
            && !is_broken_pipe(&error)
        {
            self.any = true;
            tell(&format!("{error:#}"));
        }
    }
}

fn need_root() -> anyhow::Result<()> {
    if geteuid().is_root() {
        return Ok(());
    }
    bail!(
        "try needs root: to see which pages a start touches (tracefs, fanotify) and to empty caches.\n\
         Run it with sudo; the program is started as you all the same.\n\
         Without root these work: doctor, profile show --file, plan show --file, import --check"
    )
}

fn measure(
    options: &Try,
    subject: &Subject,
    session: &Session,
    store: &mut Store,
    context: &Context,
    signals: &Signals,
) -> anyhow::Result<Compared> {
    let roots = &context.roots;
    let uid = context.session.credentials.uid;
    let known = if options.relearn { None } else { loaded(store.profile(uid, &subject.app)?) };
    let choice = backend::choose(roots);
    let Some(backend) = choice.backend else {
        let why: Vec<_> = choice.failures.into_iter().map(|(_, why)| why).collect();
        bail!(
            "nothing on this kernel tells what a start touches; see headstartctl doctor\n{}",
            why.join("\n")
        );
    };
    if let Some((_, why)) = choice.failures.first() {
        tell(&format!("recording is coarser than it could be: {why}; see headstartctl doctor"));
    }
    let bar = Bar::new(options.rounds);
    tell(&format!("timing {} ({})", subject.name, subject.program.display()));
    let settings = settings(options, backend);
    let mut show = |progress| bar.show(progress);
    let compared = compare(subject, session, known, &settings, roots, &signals.cancel, &mut show);
    signals.restore();
    bar.clear();
    Ok(compared?)
}

/// Keeps what was learned and measured.
fn keep(compared: &Compared, store: &mut Store, context: &Context) -> anyhow::Result<()> {
    let uid = context.session.credentials.uid;
    if compared.profile.runs > 0 {
        store.save_profile(uid, &compared.profile).context("what was learned is not kept")?;
    }
    if !compared.comparison.runs.is_empty() {
        store.save_comparison(uid, &compared.comparison).context("the result is not kept")?;
    }
    Ok(())
}

fn settings(options: &Try, backend: headstart_daemon::recording::Backend) -> Options {
    Options {
        rounds: options.rounds,
        learn: options.learn,
        cold: match options.cold {
            ColdArg::Evict => ColdMethod::Evict,
            ColdArg::Drop => ColdMethod::Drop,
        },
        until: match options.until {
            UntilArg::Auto => Until::Auto,
            UntilArg::Window => Until::Milestone(Milestone::FirstWindow),
            UntilArg::Exit => Until::Milestone(Milestone::Exit),
            UntilArg::Settled => Until::Milestone(Milestone::Settled),
        },
        timeout: Duration::from_secs_f64(options.timeout),
        linger: Duration::from_millis(options.linger),
        choices: Choices { as_if: options.drive, tuning: options.tuning },
        backend,
        time_recording: options.time_recording,
        ignore_failure: options.ignore_failure,
    }
}

/// Ctrl-C, a closed terminal or a request to end stops after the processes of the running start are gone.
struct Signals {
    cancel: Arc<AtomicBool>,
    /// Whether nothing is left that has to be ended: a signal then ends us, as it does any program.
    over: Arc<AtomicBool>,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let this = Self { cancel: Arc::default(), over: Arc::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_default(signal, Arc::clone(&this.over))
                .and_then(|_| flag::register(signal, Arc::clone(&this.cancel)))
                .context("cannot listen to signals")?;
        }
        Ok(this)
    }

    fn restore(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Shows the result in all the ways asked for: files first, since standard output may be closed by whoever reads it.
fn publish(options: &Try, comparison: &Comparison, context: &Context, failures: &mut Failures) {
    let csv = || Ok(comparison.to_csv());
    let svg = || Ok(chart::svg(comparison, &Theme::LIGHT, &English));
    let json = || comparison.to_json().context("cannot write the result as JSON");
    let makes: [(_, &dyn Fn() -> anyhow::Result<String>); 3] =
        [(&options.json, &json), (&options.csv, &csv), (&options.svg, &svg)];
    let (to_stdout, to_files): (Vec<_>, Vec<_>) = makes
        .into_iter()
        .filter_map(|(path, make)| Some((path.as_deref()?, make)))
        .partition(|(path, _)| *path == Path::new(STDOUT));
    for (path, make) in to_files {
        failures.take(make().and_then(|text| write(context, path, &text)));
    }
    // The window is a convenience: a home that cannot be written to is no failure of the measurement.
    if let Err(error) = json().and_then(|json| hand_over(context, &json)) {
        tell(&format!("the window will not show this result: {error:#}"));
    }
    let shown = match to_stdout.first() {
        Some((_, make)) => make(),
        None => Ok(format!("{}\n", comparison.to_table(terminal_width()).trim_end())),
    };
    failures.take(shown.and_then(|text| print(&text)));
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
}

fn terminal_width() -> usize {
    if !io::stdout().is_terminal() {
        return 80;
    }
    rustix::termios::tcgetwinsize(io::stdout()).map_or(80, |size| usize::from(size.ws_col).clamp(40, 120))
}
