//! Looking at profiles and plans, and carrying profiles from machine to machine.

use std::io::{self, Write as _};

use anyhow::bail;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use headstart_daemon::measure::prefetch::{Choices, Prefetch};
use headstart_daemon::measure::subject::app_id;
use headstart_daemon::mounts::Mounts;
use headstart_daemon::path_text;
use headstart_daemon::profile::{FileProfile, Profile, exchange};
use headstart_daemon::sys::residency::page_size;
use headstart_shared::units::{Nanos, Pages};

use crate::Context;
use crate::args::{Export, Import, PlanShow, ProfileList, ProfileShow, Which};
use crate::files::{as_person, loaded, store, tell};

/// Prints a profile.
pub(crate) fn show(options: &ProfileShow, context: &Context) -> anyhow::Result<()> {
    let profile = find(&options.which, context)?;
    if options.json {
        return json(&profile);
    }
    let mut table = table(&["FIRST NEED", "READ", "RUNS", "FILE"], &[0, 1]);
    for file in by_need(&profile) {
        let ranges: Vec<_> = if options.ranges {
            file.ranges.iter().map(std::slice::from_ref).collect()
        } else {
            vec![&file.ranges[..]]
        };
        for ranges in ranges {
            let first = ranges.iter().map(|range| range.first_need).min().unwrap_or_default();
            let pages: u64 = ranges.iter().map(|range| range.pages.len()).sum();
            let runs = ranges.iter().map(|range| range.history.runs()).max().unwrap_or_default();
            let path = path_text::to_text(&file.path);
            let place = match (options.ranges, ranges) {
                (true, [range]) => format!("{path} [{}..{}]", range.pages.start, range.pages.end),
                _ => path,
            };
            table.add_row([
                first.to_string(),
                Pages(pages).bytes(profile.page_size).to_string(),
                runs.to_string(),
                place,
            ]);
        }
    }
    let metadata: u64 = profile.devices.iter().flat_map(|d| &d.ranges).map(|r| r.pages.len()).sum();
    let mut out = io::stdout().lock();
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "{}: {} in {} files and {} of file-system structures, from {} {}",
        profile.app,
        profile.pages().bytes(profile.page_size),
        profile.files.len(),
        Pages(metadata).bytes(profile.page_size),
        profile.runs,
        if profile.runs == 1 { "run" } else { "runs" },
    )?;
    Ok(())
}

/// Prints the apps that have a profile.
pub(crate) fn list(options: &ProfileList, context: &Context) -> anyhow::Result<()> {
    let apps = store(context)?.apps(context.session.credentials.uid)?;
    if options.json {
        return json(&apps);
    }
    let mut table = table(&["APP", "RUNS", "FILES", "READ", "LEARNED"], &[1, 2, 3]);
    let mut any = false;
    for app in apps {
        let Some(profile) = app.profile else { continue };
        any = true;
        table.add_row([
            app.app.to_string(),
            profile.runs.to_string(),
            profile.files.to_string(),
            profile.pages.bytes(page_size()).to_string(),
            profile.learned.with_timezone(&chrono::Local).format("%Y-%m-%d %H:%M").to_string(),
        ]);
    }
    if !any {
        tell("no app was learned yet; headstartctl try APP learns one");
        return Ok(());
    }
    writeln!(io::stdout(), "{table}")?;
    Ok(())
}

/// Prints the plans of a profile.
pub(crate) fn plan(options: &PlanShow, context: &Context) -> anyhow::Result<()> {
    let profile = find(&options.which, context)?;
    let mounts = Mounts::of(&context.roots, None)?;
    let choices = Choices { as_if: options.drive, tuning: None };
    let prefetch = Prefetch::plan(&profile, choices, &mounts, &context.roots);
    for (path, kind) in &prefetch.untouchable {
        tell(&format!("not read ahead: {} is on {kind}", path.display()));
    }
    for remark in &prefetch.remarks {
        tell(remark);
    }
    if options.json {
        return json(&prefetch.plans);
    }
    let mut out = io::stdout().lock();
    for plan in &prefetch.plans {
        writeln!(out, "{plan}")?;
    }
    Ok(())
}

/// Writes a profile to a file.
pub(crate) fn export(options: &Export, context: &Context) -> anyhow::Result<()> {
    let profile = known(&options.app, context)?;
    as_person(context, || exchange::export(&profile, &options.file))??;
    tell(&format!("wrote {}", options.file.display()));
    Ok(())
}

/// Takes a profile from a file.
pub(crate) fn import(options: &Import, context: &Context) -> anyhow::Result<()> {
    let profile = as_person(context, || exchange::import(&options.file, page_size()))??;
    let what = format!(
        "a profile of {}: {} in {} files, from {} runs",
        profile.app,
        profile.pages().bytes(profile.page_size),
        profile.files.len(),
        profile.runs
    );
    if options.check {
        writeln!(io::stdout(), "{what}")?;
        return Ok(());
    }
    store(context)?.save_profile(context.session.credentials.uid, &profile)?;
    tell(&format!("took in {what}"));
    Ok(())
}

fn find(which: &Which, context: &Context) -> anyhow::Result<Profile> {
    match (&which.file, &which.app) {
        (Some(file), _) => Ok(as_person(context, || exchange::import(file, page_size()))??),
        (None, Some(app)) => known(app, context),
        (None, None) => bail!("name an app, or give a file with --file"),
    }
}

fn known(name: &str, context: &Context) -> anyhow::Result<Profile> {
    let store = store(context)?;
    let uid = context.session.credentials.uid;
    // As given first: what was learned may not be installed any more.
    for app in [headstart_shared::run::AppId(name.into()), app_id(name, &context.session)] {
        if let Some(profile) = loaded(store.profile(uid, &app)?) {
            return Ok(profile);
        }
    }
    let apps: Vec<_> = store.apps(uid)?.into_iter().map(|app| app.app.0).collect();
    match apps.as_slice() {
        [] => bail!("nothing was learned of {name} yet; headstartctl try {name} does that"),
        apps => bail!(
            "nothing was learned of {name} yet; headstartctl try {name} does that. Learned so far: {}",
            apps.join(", ")
        ),
    }
}

fn by_need(profile: &Profile) -> Vec<&FileProfile> {
    let need = |file: &FileProfile| {
        file.ranges.iter().map(|range| range.first_need).min().unwrap_or(Nanos(u64::MAX))
    };
    let mut files: Vec<_> = profile.files.iter().collect();
    files.sort_by_key(|file| need(file));
    files
}

fn table(head: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(head.to_vec());
    for column in right {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string_pretty(value)?)?;
    Ok(())
}
