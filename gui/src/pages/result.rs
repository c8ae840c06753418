//! The result: the verdict in a sentence, the picture, the figures behind it, and what to be careful about.

use std::rc::Rc;

use adw::prelude::*;
use chrono::Local;
use gettextrs::{gettext, ngettext};
use gtk::glib;
use headstart_shared::comparison::Comparison;
use headstart_shared::run::Condition;
use headstart_shared::summary::{ConditionSummary, Summary, Verdict};
use headstart_shared::text::{self, SpanFormat, clean, fill, shorten};
use headstart_shared::words;

use crate::i18n::Gettext;
use crate::widgets::{chart, rows, starts};

/// Starts listed in the row of a condition; the table has all.
const LISTED: usize = 12;

/// The page.
pub(crate) fn page(comparison: &Rc<Comparison>) -> gtk::ScrolledWindow {
    let summary = comparison.summary();
    let column = gtk::Box::builder().orientation(gtk::Orientation::Vertical).spacing(24).build();
    column.add_css_class("result");
    column.append(&hero(comparison, &summary));
    column.append(&picture(comparison));
    if let Some(remarks) = remarks(comparison, &summary) {
        column.append(&remarks);
    }
    column.append(&figures(&summary));
    column.append(&gained(comparison, &summary));
    column.append(&read_ahead(comparison, &summary));
    column.append(&measurement(comparison));
    if !comparison.runs.is_empty() {
        let every = rows::group(&gettext("Every Start"));
        every.add(&starts::table(comparison));
        column.append(&every);
    }
    let clamp = adw::Clamp::builder().maximum_size(860).tightening_threshold(600).child(&column).build();
    gtk::ScrolledWindow::builder()
        .hscrollbar_policy(gtk::PolicyType::Never)
        .vexpand(true)
        .child(&clamp)
        .build()
}

/// The sentence that matters, with what it rests on.
fn hero(comparison: &Comparison, summary: &Summary) -> gtk::Box {
    let hero = gtk::Box::builder().orientation(gtk::Orientation::Vertical).spacing(6).build();
    let name = line(&shorten(&words::name(comparison), 150), "heading");
    name.set_wrap_mode(gtk::pango::WrapMode::WordChar);
    hero.append(&name);
    let verdict = line(&words::verdict(&summary.verdict, &Gettext), "title-1");
    if let Some(class) = verdict_class(&summary.verdict) {
        verdict.add_css_class(class);
    }
    hero.append(&verdict);
    let basis = line(&basis(comparison, summary), "dim-label");
    hero.append(&basis);
    hero
}

fn verdict_class(verdict: &Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Faster(_) => Some("gain"),
        Verdict::Slower(_) => Some("loss"),
        _ => None,
    }
}

/// What the verdict compares, and with what certainty.
fn basis(comparison: &Comparison, summary: &Summary) -> String {
    let milestone = words::milestone(comparison.milestone, &Gettext);
    let medians =
        summary.condition(Condition::Cold).median.zip(summary.condition(Condition::Prefetched).median);
    let level = summary.gain.map(|gain| gain.seconds.interval.level).filter(|level| *level > 0.0);
    let (Some((cold, prefetched)), Some(level)) = (medians, level) else { return milestone };
    let format = SpanFormat::suiting(&[cold, prefetched]);
    fill(
        &gettext("{milestone}: medians {cold} cold, {prefetched} prefetched; {level} interval"),
        &[
            ("milestone", &milestone),
            ("cold", &format.with_unit(cold, &Gettext)),
            ("prefetched", &format.with_unit(prefetched, &Gettext)),
            ("level", &text::level(level, &Gettext)),
        ],
    )
}

fn line(text: &str, class: &str) -> gtk::Label {
    let label =
        gtk::Label::builder().label(text).wrap(true).xalign(0.0).selectable(true).can_focus(false).build();
    label.add_css_class(class);
    label
}

fn picture(comparison: &Rc<Comparison>) -> gtk::Box {
    let card = gtk::Box::builder().orientation(gtk::Orientation::Vertical).build();
    card.add_css_class("card");
    card.append(&chart::chart(comparison));
    card
}

fn figures(summary: &Summary) -> adw::PreferencesGroup {
    let group = rows::group(&gettext("Figures"));
    for one in &summary.conditions {
        group.add(&condition(one));
    }
    group
}

fn condition(one: &ConditionSummary) -> adw::ActionRow {
    let name = words::condition(one.condition, &Gettext);
    let meaning = words::condition_meaning(one.condition, &Gettext);
    let (Some(median), Some(spread)) = (one.median, one.spread) else {
        return rows::figure(&name, &meaning, &gettext("no starts"), Some("dim-label"));
    };
    let (low, high) = spread.ends();
    let format = SpanFormat::suiting(&[median]);
    let mut times: Vec<String> = one.times.iter().take(LISTED).map(|t| format.number(*t, &Gettext)).collect();
    if one.times.len() > LISTED {
        times.push("…".to_owned());
    }
    let count = one.times.len();
    let template = ngettext(
        "{meaning}\nOne start: {times}",
        "{meaning}\n{count} starts: {times}\n{kind}: {range}",
        u32::try_from(count).unwrap_or(u32::MAX),
    );
    let details = fill(
        &template,
        &[
            ("meaning", &meaning),
            ("count", &count.to_string()),
            ("times", &times.join("  ")),
            ("kind", &words::spread_kind(&spread, &Gettext)),
            ("range", &format.range(low, high, &Gettext)),
        ],
    );
    let class = match one.condition {
        Condition::Cold => Some("arm-cold"),
        Condition::Prefetched => Some("arm-prefetched"),
        Condition::Warm => None,
    };
    rows::figure(&name, &details, &format.with_unit(median, &Gettext), class)
}

fn gained(comparison: &Comparison, summary: &Summary) -> adw::PreferencesGroup {
    let group = rows::group(&gettext("Gain"));
    if let Some(gain) = &summary.gain {
        group.add(&rows::fact(&gettext("Time gained"), &words::gained_time(gain, &Gettext)));
        if let Some(share) = words::gained_share(gain, &Gettext) {
            group.add(&rows::fact(&gettext("Part of a cold start gained"), &share));
        }
    }
    let gap = words::gap_closed(summary.gap_closed, &Gettext);
    group.add(&rows::fact(&gettext("Gap between cold and warm closed"), &gap));
    group.add(&rows::fact(&gettext("How cold was made"), &words::cold_method(comparison.cold, &Gettext)));
    group
}

fn remarks(comparison: &Comparison, summary: &Summary) -> Option<adw::PreferencesGroup> {
    let group = rows::group(&gettext("Remarks"));
    let all = words::remarks(comparison, summary, &Gettext);
    for (position, remark) in all.iter().enumerate().take(100) {
        let warning = position < summary.warnings.len();
        let icon = if warning { "dialog-warning-symbolic" } else { "dialog-information-symbolic" };
        group.add(&rows::remark(icon, &shorten(remark, 500)));
    }
    (!all.is_empty()).then_some(group)
}

fn read_ahead(comparison: &Comparison, summary: &Summary) -> adw::PreferencesGroup {
    let group = rows::group(&gettext("Read Ahead"));
    let account = &comparison.prefetch;
    let read = words::read_ahead(comparison, summary, &Gettext);
    group.add(&rows::fact(&gettext("File content"), &read));
    let metadata = text::bytes(account.metadata, &Gettext);
    group.add(&rows::fact(&gettext("Directories and other file-system structures"), &metadata));
    if let Some(time) = account.time {
        group.add(&rows::fact(&gettext("Time it took"), &text::span(time, &Gettext)));
    }
    let learned = ngettext("one start", "{count} starts", account.learned_from);
    let learned = fill(&learned, &[("count", &account.learned_from.to_string())]);
    group.add(&rows::fact(&gettext("Learned from"), &learned));
    group
}

fn measurement(comparison: &Comparison) -> adw::PreferencesGroup {
    let group = rows::group(&gettext("Measurement"));
    for drive in comparison.drives.iter().take(20) {
        let planned = text::bytes(drive.planned, &Gettext);
        let words = words::drive(drive, &Gettext);
        let template = gettext("{drive}: {bytes} of what is read ahead");
        group
            .add(&rows::fact(&gettext("Drive"), &fill(&template, &[("drive", &words), ("bytes", &planned)])));
    }
    group.add(&rows::fact(&gettext("Command"), &shorten(&clean(&comparison.command.join(" ")), 500)));
    group.add(&rows::fact(&gettext("Measured"), &moment(comparison)));
    let host = &comparison.host;
    let cpus = ngettext("one processor", "{count} processors", host.cpus);
    let machine = fill(
        &gettext("{cpus}, {memory} of memory, Linux {kernel}"),
        &[
            ("cpus", &fill(&cpus, &[("count", &host.cpus.to_string())])),
            ("memory", &text::bytes(host.memory, &Gettext)),
            ("kernel", &clean(&host.kernel)),
        ],
    );
    group.add(&rows::fact(&gettext("Machine"), &machine));
    group.add(&rows::fact(&gettext("Measured with"), &format!("Headstart {}", clean(&comparison.version))));
    group
}

/// When it was measured, as the locale writes it.
fn moment(comparison: &Comparison) -> String {
    let local =
        glib::DateTime::from_unix_local(comparison.began.timestamp()).and_then(|time| time.format("%c"));
    local.map_or_else(|_| comparison.began.with_timezone(&Local).to_rfc2822(), Into::into)
}
