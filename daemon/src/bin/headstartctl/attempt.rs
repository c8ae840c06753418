//! `try`: one comparison, in front of the person who asked for it.

use std::io::{self, IsTerminal as _, Write as _};
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
use headstart_shared::chart::{self, Theme};
use headstart_shared::comparison::Comparison;
use headstart_shared::run::{AppId, ColdMethod, Milestone};
use headstart_shared::text::English;
use rustix::process::geteuid;

use crate::args::{ColdArg, Try, UntilArg};
use crate::files::{hand_over, loaded, store, tell, write};
use crate::progress::Bar;
use crate::{Context, INTERRUPTED};

/// Runs the comparison and prints it.
pub(crate) fn run(options: &Try, mut context: Context) -> anyhow::Result<ExitCode> {
    let cancel = cancel_on_signals()?;
    let request = match (&options.app, options.command.as_slice()) {
        (Some(app), _) => Request::App(app.clone()),
        (None, []) => Request::Any,
        (None, command) => Request::Command(command.to_vec()),
    };
    context.session.env.extend(options.env.iter().cloned());
    let mut subject = Subject::find(&request, &context.session)?;
    if let Some(class) = &options.window_class {
        subject.hints = subject.hints.or_class(class);
    }
    if let Some(id) = &options.id {
        subject.app = AppId(id.clone());
    }
    need_root()?;
    let mut store = store(&context)?;
    let Some(compared) = measure(options, &subject, &context, &mut store, &cancel)? else {
        return Ok(stopped());
    };
    // Figures that took minutes are shown also when the disk has no room for them.
    let kept = keep(&compared, &mut store, context.session.credentials.uid);
    let code = finish(options, &compared, &context)?;
    kept.map(|()| code)
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

/// `None` if it was stopped before there was anything to tell.
fn measure(
    options: &Try,
    subject: &Subject,
    context: &Context,
    store: &mut Store,
    cancel: &AtomicBool,
) -> anyhow::Result<Option<Compared>> {
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
    let compared = compare(subject, &context.session, known, &settings, roots, cancel, &mut |p| bar.show(p));
    bar.clear();
    match compared {
        Ok(compared) => Ok(Some(compared)),
        // A start that was stopped is no start, and too few of them give no profile: all that is only the Ctrl-C.
        Err(_) if cancel.load(Ordering::Relaxed) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn keep(compared: &Compared, store: &mut Store, uid: u32) -> anyhow::Result<()> {
    if compared.profile.runs > 0 {
        store.save_profile(uid, &compared.profile).context("cannot keep what was learned")?;
    }
    if !compared.comparison.runs.is_empty() {
        store.save_comparison(uid, &compared.comparison).context("cannot keep the result")?;
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
fn cancel_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&cancel)).context("cannot listen to signals")?;
    }
    Ok(cancel)
}

fn finish(options: &Try, compared: &Compared, context: &Context) -> anyhow::Result<ExitCode> {
    let comparison = &compared.comparison;
    if comparison.runs.is_empty() && compared.cancelled {
        return Ok(stopped());
    }
    if comparison.runs.is_empty() {
        let first = comparison.left_out.first().map_or("no reason is known", |one| one.reason.as_str());
        bail!("{}: no start could be timed; of the first: {first}", comparison.name);
    }
    print(options, comparison, context)?;
    if compared.cancelled {
        tell("stopped early; the figures are those of the starts that were finished");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

fn stopped() -> ExitCode {
    tell("stopped before anything was timed; nothing is left behind");
    ExitCode::from(INTERRUPTED)
}

fn print(options: &Try, comparison: &Comparison, context: &Context) -> anyhow::Result<()> {
    let json = comparison.to_json()?;
    let to_stdout = [&options.json, &options.csv].into_iter().flatten().any(|path| path.as_os_str() == "-");
    if !to_stdout {
        let width = terminal_width();
        writeln!(io::stdout(), "{}", comparison.to_table(width).trim_end())?;
    }
    if let Some(path) = &options.json {
        write(context, path, &json)?;
    }
    if let Some(path) = &options.csv {
        write(context, path, &comparison.to_csv())?;
    }
    if let Some(path) = &options.svg {
        write(context, path, &chart::svg(comparison, &Theme::LIGHT, &English))?;
    }
    // The window is a convenience: a home that cannot be written to is no failure of the measurement.
    if let Err(error) = hand_over(context, &json) {
        tell(&format!("the window will not show this result: {error:#}"));
    }
    Ok(())
}

fn terminal_width() -> usize {
    if !io::stdout().is_terminal() {
        return 80;
    }
    rustix::termios::tcgetwinsize(io::stdout()).map_or(80, |size| usize::from(size.ws_col).clamp(40, 120))
}
